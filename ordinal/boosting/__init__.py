"""Boosting: a cumulative link model whose score is a sum of trees.

    P(y <= k | x) = F(b_k - f(x)),   k = 1..r-1,   b_1 < ... < b_(r-1)               (1)

f is a sum of trees, one per round. A round takes the first and second derivative of

    L(f, b) = -sum_i w_i log(F(b_(y_i) - f(x_i)) - F(b_(y_i - 1) - f(x_i)))          (2)

by the scores of the rows, and grows a tree by Newton's method: a leaf adds

    -rate G / (H + l2),   G and H the sums of the derivatives of its rows            (3)

to their scores. Every few rounds a Newton step moves the thresholds for the scores as
they are, and at the end they move to their optimum, which is unique but for the link
cauchit. A round grows one tree, whatever the number of ranks.

Where the ranks do not lie along one direction, `structure="scores"` has one score per
threshold, P(y <= k | x) = F(b_k - f_k(x)): r - 1 problems of two ranks, whose
probabilities are put in order at each row.

LightGBM grows the trees (G. Ke et al., "LightGBM: a highly efficient gradient boosting
decision tree", NeurIPS 2017). A model holds them as plain arrays, so that predictions,
files and explanations need numpy alone.

The modules of this package:

    fit       the function that users call
    growing   rounds, held-out rows and the number of rounds
    forest    trees as arrays
    model     the model
"""

from .fit import fit_boosting
from .forest import Trees
from .model import BoostingModel

__all__ = ["BoostingModel", "Trees", "fit_boosting"]


def __dir__() -> list[str]:
    return __all__
