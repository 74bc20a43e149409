"""Support vector machines for ranks: their programs, models and fits.

`programs` says by tables what tells the methods apart, `model` is what every fit
returns, `cuts` finds the thresholds that are best for the scores of a regression, `job`
fits on the kernel matrix and `on_basis` on a basis of rows. `ordinal/svm.py` states (P)
and (D) and has the functions that users call.
"""
