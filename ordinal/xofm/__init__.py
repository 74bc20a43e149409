"""Explainable ordinal factorization: a piecewise linear score, learned from pairs.

The range of each feature is divided into pieces. Phi(x) has one entry per piece: 1 for
pieces below x, the share of the piece below x for the one that contains x, 0 for pieces
above. With a main effect u_a and a vector v_a of factors per piece, and j(a) the
feature of piece a,

    U(x) = sum_a u_a Phi_a + sum_{a<b, j(a) != j(b)} <v_a, v_b> Phi_a Phi_b          (U)

    min_{u,V}  1/(2 M) sum_{y_i > y_j} w_i w_j max(0, tau - U(x_i) + U(x_j))^2
               + l2_main |u|^2 + l2_pair |V|^2                               (P)

where M is the sum of all w_i w_j, so that a penalty has the same effect for any number
of rows. With e_j = sum_{a of j} (u_a, v_a) Phi_a, the value of feature j's curve at x,
and S = sum_j e_j,

    U = S_u + 1/2 (|S_v|^2 - sum_j |e_jv|^2)                                         (F)

which costs O(d k) for k factors, whatever the number of pieces: a table holds the
values of the piecewise linear curves at their knots. The gradient is added up at the
knots, and then converted to pieces. With sorted scores the sum over pairs of (P) takes
O(n log n) operations.

A missing value, or a category, is a piece of its own: Phi is 1 there, and 0 elsewhere.
A piece without training rows has the mean value of its feature.

Monotone features have u_a >= 0; for a decreasing feature Phi counts the pieces above x.
In addition V >= 0 for all features, because the factors of another feature could
otherwise reverse the slope. Both are squares of free numbers, except that the
stochastic solver sets negative factors to 0, as the paper does. (P) is not convex
unless k = 0: the solvers return a local optimum. At V = 0 the gradient by V is 0, so
that V starts at random numbers.

M. Guo, Z. Xu, Q. Zhang, X. Liao, J. Liu, "Explainable ordinal factorization model",
ECAI 2020: Definitions 1 to 5, (4), (9), (14)-(17), Algorithm 1. The sum over pairs in
(4) includes pairs of pieces of the same feature, which are main effects that its curve
would not show. Equation (1), which (4) restates, has pairs of different features only,
as here; predictions are as good. With a column per piece, clipped to it, the score is
that of (4). The paper calls (P) convex, and its Proposition 1, L <= R, holds only if
the training scores are in the order of the ranks.

The modules of this package:

    fit           the function that users call, and its rows in chunks
    model         the model, and the scores that new rows are compared with
    layout        position of a value among the pieces
    objective     pairwise loss, penalties and bounds
    solvers       quasi-Newton and stochastic minimisation, early stopping
    explanations  curves, interactions and contributions
"""

from .._model.explanation import Named
from .explanations import Interaction, ScoreFunction
from .fit import fit_xofm
from .model import XofmModel

__all__ = ["Interaction", "Named", "ScoreFunction", "XofmModel", "fit_xofm"]


def __dir__() -> list[str]:
    return __all__
