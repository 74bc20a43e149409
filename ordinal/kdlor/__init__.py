"""KDLOR: kernel discriminant learning, with the means of the ranks in order.

With shares p_i of the weights, which sum to 1, features phi_i and means m_k of the
present ranks, the scatter within the ranks and a ridge, u for the parameter `ridge`,

    S = sum_i p_i (phi_i - m_(y_i)) (phi_i - m_(y_i))' + u t I,

    min_{w,rho}  w'S w - C rho   s.t.  w'(m_(k+1) - m_k) >= rho for all k            (P)

    max_a  -1/4 a'Q a   s.t.  a >= 0,  sum_k a_k = C,   Q = D'S^-1 D                 (D)

where D has the columns m_(k+1) - m_k, and w = S^-1 D a / 2. The score is f(x) = <w,
phi(x)>. With the shares c_k of the ranks in the weights and their mean scores mu_k, the
thresholds are where the largest of the c_k N(f; mu_k, w'S w) changes, N being the
density of a normal distribution: between two neighbours alone, at

    (mu_k + mu_(k+1)) / 2 - w'S w log(c_(k+1) / c_k) / (mu_(k+1) - mu_k).          (CUT)

The paper has the first term alone, the middle, which is (CUT) where ranks have equal
weight. Where they have not, the middle may be worse than a constant, since rare ranks
are predicted too often (docs/decisions.md). w, rho and the thresholds are in proportion
to C, so that no prediction depends on it.

t is the trace of the scatter around the mean of all rows. Predictions thus change
neither if the kernel is multiplied by a number nor if a number is added to it, nor if
all weights are multiplied by one. A row of weight 2 is two rows.

By the rows of the kernel matrix K, w = sum_i beta_i phi_i solves 2 S w = D a where

    (K + u t diag(1 / p)) beta = E g,    2 u t E'beta = E'd,    D a = sum_i d_i phi_i

and E has a 1 where row i is of rank k: in every rank, f_i + u t beta_i / p_i   (ROWS)
is one number g_k. This needs one Cholesky factorisation of order n, and solutions for
the columns of E alone; K is not centred within ranks. On a basis S is a matrix of
order m itself, that of the features z(x) of `kernels/features.py` in place of phi. (D)
is a problem of r - 1 unknowns, which an active set solves exactly.

The gap is one of raw data: scores and means are computed afresh from the kernel, which
gives (P) at w. For any w and feasible a, with the residual e = 2 S w - D a,

    max (D) >= -1/4 a'Q a >= w'S w - w'D a - |e|^2 / (4 u t),                      (GAP)

where |e|, of e = sum_i e_i phi_i, is at most sum_i |e_i| |phi_i - m| + |m| |sum_i e_i|
for the mean m of all rows.

B.-Y. Sun, J. Li, D. D. Wu, X.-M. Zhang, W.-B. Li, "Kernel discriminant learning for
ordinal regression", IEEE Transactions on Knowledge and Data Engineering 22(6):906-910,
2010. The ridge there keeps S from being singular and is not part of the method; ORCA
adds u |beta|^2 for the coefficients beta of w, which counts a row that is written twice
otherwise than one of weight 2.

The modules of this package:

    fit      the model and the function that users call; the dual (D) and its solution
    scatter  the scatter of the training rows
"""

from .fit import KdlorModel, fit_kdlor

__all__ = ["KdlorModel", "fit_kdlor"]


def __dir__() -> list[str]:
    return __all__
