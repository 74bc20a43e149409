"""Linear cumulative models: P(y <= j | x) = F(theta_j - x'beta) and what goes with it.

`design` holds the columns of the location, the nominal effects and the scale, and the
structure of the thresholds, `likelihood` the mean loss with its derivatives, `bordered`
the form of its Hessian by many thresholds, and `newton` finds its minimum. What a fit
returns stands on three: `estimates` are its fields, `inference` adds errors and tests,
`model` predictions. The losses of LIT and LAT are in `thresholded`.

Imports `_model` and what stands below. `linear` and `logistic` import it.
"""
