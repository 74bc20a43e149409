"""Models that fits return, and the preparation of a fit.

preparation         arguments that all fits check and read; their kernel, their end
kernel_fit          driver of all methods with a kernel, each a family and a solver
basis               basis of a fit, from its rows
public              modules that define the public names
registry            methods as they declare themselves, and in docstrings
model               base class of the models
support             models over support rows
threshold_model     models with one score and thresholds, and their rules
links               probabilities of ranks from scores
training_rows       digests of some training rows, by which reports recognise them
labelled            rows without a label, and labels in the type of the caller's
folds               folds, hold-out splits, and links from out-of-fold scores
storage             model files
printing            results as tables, printed and in HTML
explanation         terms of scores and importances of features, as records
views               hook of explanations, reports and figures
grouping            whole groups of rows in folds
column_names        names of the columns of rows that are passed to models
predicted           predictions of rows that are read in chunks

Imports `kernels` and what stands below.
"""
