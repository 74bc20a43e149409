"""Explainable ordinal factorization: a score in pieces, learned from pairs of rows.

The range of each feature is cut in pieces. Phi(x) has one entry per piece: 1 for those
below x, the share of the piece that holds x, 0 for those above. With a main effect u_a
and a vector v_a of factors a piece, and j(a) the feature of piece a,

    U(x) = sum_a u_a Phi_a + sum_{a<b, j(a) != j(b)} <v_a, v_b> Phi_a Phi_b          (U)

    min_{u,V}  1/(2 M) sum_{y_i > y_j} w_i w_j max(0, tau - U(x_i) + U(x_j))^2
               + l2_main |u|^2 + l2_pair |V|^2                               (P)

where M is the sum of the w_i w_j, so that a penalty means the same for any number of
rows. With e_j = sum_{a of j} (u_a, v_a) Phi_a, the value of feature j's curve at x, and
S = sum_j e_j,

    U = S_u + 1/2 (|S_v|^2 - sum_j |e_jv|^2)                                         (F)

which costs O(d k) for k factors, whatever the number of pieces: a table holds the
curves, linear between, at their knots. The gradient is scattered on the knots, then
summed up. With the scores sorted, the sum over pairs of (P) takes O(n log n).

A missing value, or a category, is a piece of its own: Phi is 1 there, and 0 elsewhere.
A piece that no training row has stands for the mean row.

Monotone features: u_a >= 0, for a falling feature with Phi the pieces above x; and
V >= 0 for all features, lest another's factors turn the slope around. Both are squares
of free numbers, but for the stochastic solver, which sets factors below 0 to 0, as the
paper does. (P) is not convex unless k = 0: a local optimum is what the solvers find. At
V = 0 the slope by V is 0, so V starts at random.

M. Guo, Z. Xu, Q. Zhang, X. Liao, J. Liu, "Explainable ordinal factorization model",
ECAI 2020: Definitions 1 to 5, (4), (9), (14)-(17), Algorithm 1. The sum over pairs of
(4) has those of one feature too: main effects that its curve would not show. (1), which
(4) is to restate, has pairs of different features alone, and predictions are as good.
The paper calls (P) convex, and its Proposition 1, L <= R, holds for rows in order only.

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
