"""Models that fits return, and the preparation of a fit.

preparation         arguments that all fits check and read
registry            methods as they declare themselves
model               base class of the models
support             models over support rows
threshold_model     models with one score and thresholds
hyperplanes         models of several hyperplanes
rules               rules that turn scores and probabilities into ranks
links, calibration  probabilities of ranks from scores
folds               folds and hold-out splits
storage             model files
printing            printed tables of results
display             HTML of models and results
explanation         importances and contributions of features
report              page about a model
predicted           predictions of rows that are read in chunks
docs                sections of docstrings

Imports `kernels`, `kernels` and what stands below.
"""
