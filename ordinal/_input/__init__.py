"""Arguments of callers become arrays: every "X must be ..." is raised here.

checks                 numbers, choices, flags and generators
keywords               unknown keyword arguments
errors                 base class of the package's exceptions
types                  type aliases for signatures
features, columns      matrices of features, and columns of tables
frame                  a table as one record
sparse                 compressed sparse rows
labels                 labels and their ranks
weights, costs         weights of rows and classes, and cost matrices
problem                checked training data
basis                  the argument `basis`
predictions, scores    arguments of the metrics and of comparisons
immutable              base class of immutable objects
fields                 declared types and rules of the fields of records

Imports `_solvers`. Every package may import it.
"""
