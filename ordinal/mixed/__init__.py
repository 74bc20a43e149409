"""Cumulative link mixed models: linear models with random effects of groups.

With the model of `ordinal.linear`, row i in the level g of each grouping factor, and
effects b_g of the columns z_i,

    P(y_i <= j | b) = F((theta_j - n_i'nu_j - x_i'beta - o_ij - z_i'b_g) / s_i)
    b_g ~ N(0, Sigma),  Sigma = Lambda Lambda'                                       (1)

    max  log of the integral over b of prod_i P(y_i | b)^w_i times the density of b  (L)

L is approximated at the modes of the effects (Laplace), by adaptive Gauss-Hermite
quadrature, or by panels where neither is accurate. The stopping ratio and adjacent
categories models of `fit_ratio` take random effects too.

R. H. B. Christensen, "ordinal", R package. D. Bates et al., "Fitting linear
mixed-effects models using lme4", Journal of Statistical Software 67(1), 2015.

The modules of this package:

    fit            the function `fit_clmm`
    random_terms   random effects in formulas and arrays
    likelihood     marginal likelihood and its gradient
    elimination    curvature of the effects, factored without the zeros
    hermite        adaptive Gauss-Hermite quadrature, of one or two nested factors
    rows           likelihood of rows: cumulative; stopping ratios, adjacent categories
    panels         integrals over groups whose rows all have one rank
    search         the search for the optimum, and its certificate
    optimum        the optimum, from the fit without random effects
    refits         fits to the training rows of a model: profiles, fewer terms
    quadrature     the number of nodes, and checks of the integrals
    model          the model that `fit_clmm` returns
    margins        averages and marginal effects with random effects
"""

from .fit import fit_clmm
from .model import ClmmModel
from .random_terms import RandomEffects

__all__ = ["ClmmModel", "RandomEffects", "fit_clmm"]


def __dir__() -> list[str]:
    return __all__
