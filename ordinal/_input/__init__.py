"""Arguments of callers become arrays: every "X must be ..." is raised here.

checks                 numbers, choices, flags, generators and unknown keywords
types                  type aliases for signatures
features, columns      matrices of features; columns and row order of tables
frame                  a table as one record
sparse                 compressed sparse rows
immutable              immutable records and read-only arrays
intervals              labels known as intervals, and the ranks these tell apart
labels                 labels and their ranks; weights of rows and classes; costs
warning                warnings at the caller
problem                checked training data
basis                  the argument `basis`
predictions            arguments of the metrics and of comparisons
fields                 declared types and rules of the fields of records

Imports `_solvers`. Every package may import it.
"""
