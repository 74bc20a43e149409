"""Nonparallel support vector ordinal regression (NPSVOR).

Every rank k has a hyperplane f_k(x) = <w_k, phi(x)> + b_k of its own, near the rows of
rank k and with the lower and higher ranks on its two sides. With s_i = -1 where
y_i < k and +1 where y_i > k, rows i of weight v_i, and C1 for the parameter C,

    min_{w,b}  1/2 |w|^2 + C1 sum_{y_i = k} v_i max(0, |f(x_i)| - epsilon)
                         + C2 sum_{y_i != k} v_i max(0, 1 - s_i f(x_i))           (P)

    min_g  1/2 g'Kg + sum_i phi_i(g_i)   s.t.  sum_i g_i = 0,  lo_i <= g_i <= hi_i  (D)

      y_i = k :  phi_i = epsilon |g_i|,   [lo_i, hi_i] = [-C1 v_i, C1 v_i]
      y_i < k :  phi_i = g_i,             [lo_i, hi_i] = [-C2 v_i, 0]
      y_i > k :  phi_i = -g_i,            [lo_i, hi_i] = [0, C2 v_i]

and f = K g + b. A row's rank is the k of the smallest |f_k(x)|. With a cost matrix the
C2 of row i in problem k is multiplied by cost[y_i, k].

The value of (P) plus that of (D) is the duality gap. Its terms are nonnegative, one a
row, so it is 0 just at the optimum, and                                         (GAP)

    gap <= violation / 2 * sum_i (hi_i - lo_i)

where violation is that of `_quadratic/program.py` (KKT) and b the middle of its
interval.

H. Wang, Y. Shi, L. Niu, Y. Tian, "Nonparallel support vector ordinal regression", IEEE
Transactions on Cybernetics 47(10):3306-3317, 2017. (4), (8), (10), Algorithm 2. The
paper's (4a) prints |w|^2; its dual belongs to 1/2 |w|^2, and so do we.

The modules of this package:

    fit    the functions that users call
    admm   the program of every rank; the paper's solver, for all ranks at once
    model  what every fit returns
"""

from .fit import fit_npsvor, fit_npsvor_path
from .model import NpsvorModel

__all__ = ["NpsvorModel", "fit_npsvor", "fit_npsvor_path"]


def __dir__() -> list[str]:
    return __all__
