"""Linear cumulative models: P(y <= j | x) = F(theta_j - x'beta) and what goes with it.

`design` holds the columns of the location, the nominal effects and the scale, and the
structure of the thresholds, `likelihood` the mean loss with its derivatives, `newton`
finds its minimum, and `model` is what a fit returns.

Imports `_model` and what stands below. `linear` and `logistic` import it.
"""
