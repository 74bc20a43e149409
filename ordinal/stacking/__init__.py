"""Stacking: a linear pool of models, weighted by their out-of-fold probabilities.

Of p members with probabilities P_m that are fitted without the row that they predict,

    min_w  sum_i S(sum_m w_m P_m(. | x_i), y_i)    s.t.  w >= 0,  sum w = 1,

S the ranked probability score or the log loss. Members without weight are dropped, and
the others are fitted to all rows.

fit      fit_stacking: members, one search each on shared folds, and the pool
members  out-of-fold probabilities of a method, and its fit to all rows
weights  weights on the simplex, exactly
model    the fitted pool

M. J. van der Laan, E. C. Polley, A. E. Hubbard, "Super learner", Statistical
Applications in Genetics and Molecular Biology 6(1):25, 2007; D. H. Wolpert, "Stacked
generalization", Neural Networks 5:241-259, 1992; M. Stone, "The opinion pool", Annals
of Mathematical Statistics 32:1339-1342, 1961; E. S. Epstein, "A scoring system for
probability forecasts of ranked categories", Journal of Applied Meteorology 8:985-987,
1969.
"""

from .fit import fit_stacking
from .model import StackingModel

__all__ = ["StackingModel", "fit_stacking"]


def __dir__() -> list[str]:
    return __all__
