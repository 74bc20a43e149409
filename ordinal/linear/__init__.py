"""Linear models of ordered ranks: the cumulative link model (proportional odds).

With ranks y_i in 0..r-1, weights w_i of sum W, and a distribution function F,

    P(y_i <= j) = F(eta_ij),  eta_ij = (theta_j - n_i'nu_j - x_i'beta - o_ij) / s_i  (1)
    s_i = exp(z_i'zeta),       theta_0 < theta_1 < ... < theta_(r-2)

    min  -(1/W) sum_i w_i log(F(eta_i,y_i) - F(eta_i,y_i - 1))
         + l1 |beta|_1 + l2/2 |beta|^2                                               (P)

With F the logistic function this is the proportional odds model, POM: one unit more of
x changes the odds of y <= j by the factor exp(-beta), the same one for all j. The
columns n have one slope per threshold ("nominal" effects: partial proportional odds).
The columns z change the spread of the latent variable ("scale" effects). For logit,
probit, cloglog and loglog, log(F(a) - F(b)) is concave in (a, b). (P) is then convex if
there are no scale effects, and its minimum is the only one. For cauchit, and with scale
effects, the minimum may be a local one.

P. McCullagh, "Regression models for ordinal data", JRSS B 42:109-142, 1980, (2.1) to
(6.1). B. Peterson, F. E. Harrell, "Partial proportional odds models for ordinal
response variables", Applied Statistics 39:205-217, 1990. J. W. Pratt, "Concavity of the
log likelihood", JASA 76:103-106, 1981. R. H. B. Christensen, "ordinal", R package.

`ordinal.inference` has the tests, intervals and diagnostics of the models. The modules
of this package:

    fit                     the functions `fit_pom` and `fit_pom_path`
    prepared                checked arguments, training rows and the design of a fit
    monotone                monotone effects
    estimates               base class of the models: fields, predictions and tables
    model                   the models of `fit_pom` and `fit_pom_path`
    ratio_loss, ratio       stopping ratio and adjacent categories models
"""

from .fit import fit_pom, fit_pom_path
from .model import PomModel, PomPath
from .ratio import RatioModel, Stages, fit_ratio, stages

__all__ = [
    "PomModel",
    "PomPath",
    "RatioModel",
    "Stages",
    "fit_pom",
    "fit_pom_path",
    "fit_ratio",
    "stages",
]


def __dir__() -> list[str]:
    return __all__
