"""LIT and LAT: logistic losses of a linear score at the immediate or at all thresholds.

With ranks y_i in 0..r-1, weights w_i of sum W, and s_ij = +1 if y_i > j, otherwise -1,

    min  (1/W) sum_i w_i sum_(j in T_i) log(1 + exp(-s_ij (x_i'beta - theta_j)))
             + l2/2 |beta|^2,   theta_0 <= ... <= theta_(r-2)                       (P2)

    T_i = {y_i - 1, y_i} for LIT, {0, ..., r-2} for LAT

(P2) is convex. With LAT the optimal thresholds are always in order: at the same value,
the slope by theta_(j+1) is the slope by theta_j less w_i / W for each row of rank
j + 1. With LIT their order is a constraint, and a rank whose thresholds it makes equal
is not predicted. The loss of LIT is that of POM (`ordinal.linear`) without
log(1 - exp(theta_(y-1) - theta_y)), the term that keeps POM's thresholds apart. LIT
therefore fits no probabilities; LAT fits one logistic regression per threshold, with
common coefficients. With two ranks all three methods are logistic regression.

J. D. M. Rennie, N. Srebro, "Loss functions for preference levels: regression with
discrete ordered labels", IJCAI Workshop on Advances in Preference Handling, 2005.

The modules of this package:

    fit        the functions that users call, and the model that they return
    objective  the losses, their minimum and the order of the thresholds
"""

from .fit import LinearThresholdModel, fit_lat, fit_lit

__all__ = ["LinearThresholdModel", "fit_lat", "fit_lit"]


def __dir__() -> list[str]:
    return __all__
