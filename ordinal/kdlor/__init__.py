"""KDLOR: kernel discriminant learning, with the means of the ranks in order.

With shares p_i of the weights, which sum to 1, features phi_i and means m_k of the
present ranks, the scatter within the ranks and a ridge, u for the parameter `ridge`,

    S = sum_i p_i (phi_i - m_(y_i)) (phi_i - m_(y_i))' + u t I,

    min_{w,rho}  w'S w - C rho   s.t.  w'(m_(k+1) - m_k) >= rho for all k            (P)

    max_a  -1/4 a'Q a   s.t.  a >= 0,  sum_k a_k = C,   Q = D'S^-1 D                 (D)

where D has the columns m_(k+1) - m_k, and w = S^-1 D a / 2. The score is f(x) = <w,
phi(x)>. With the shares c_k of the ranks in the weights and their mean scores mu_k, the
thresholds are the scores at which the largest of the c_k N(f; mu_k, w'S w) changes,
where N is the density of a normal distribution. Between two adjacent ranks this is at

    (mu_k + mu_(k+1)) / 2 - w'S w log(c_(k+1) / c_k) / (mu_(k+1) - mu_k).          (CUT)

The paper has the first term only, the midpoint, which is (CUT) for ranks of equal
weight. For others the midpoint may be worse than a constant, because rare ranks are
predicted too often (docs/decisions.md). w, rho and the thresholds are proportional to
C, so that no prediction depends on it.

t is the trace of the scatter about the mean of all rows. Predictions therefore do not
change if the kernel is multiplied by a number, if a number is added to it, or if all
weights are multiplied by a number. A row of weight 2 stands for two rows.

With the kernel matrix K of the rows, w = sum_i beta_i phi_i solves 2 S w = D a if

    (K + u t diag(1 / p)) beta = E g,    2 u t E'beta = E'd,    D a = sum_i d_i phi_i

where E_ik = 1 if row i is of rank k, and 0 otherwise: f_i + u t beta_i / p_i   (ROWS)
is the same number g_k for all rows of rank k. This takes one Cholesky factorisation of
order n, and solutions for the columns of E; K need not be centred within ranks. On a
basis S is a matrix of order m, with the features z(x) of `kernels/features.py` in place
of phi. (D) has r - 1 unknowns; an active set method solves it exactly.

The duality gap is computed from raw data: scores and means are computed again from the
kernel, which gives (P) at w. For any w and feasible a, with the residual e = 2 S w -
D a,

    max (D) >= -1/4 a'Q a >= w'S w - w'D a - |e|^2 / (4 u t),                      (GAP)

where |e|, of e = sum_i e_i phi_i, is at most sum_i |e_i| |phi_i - m| + |m| |sum_i e_i|
for the mean m of all rows.

B.-Y. Sun, J. Li, D. D. Wu, X.-M. Zhang, W.-B. Li, "Kernel discriminant learning for
ordinal regression", IEEE Transactions on Knowledge and Data Engineering 22(6):906-910,
2010. The ridge there keeps S from being singular and is not part of the method. ORCA
adds u |beta|^2 for the coefficients beta of w, so that a row that is written twice
differs from a row of weight 2.

The modules of this package:

    fit      the model and the function that users call; the solution of the dual (D)
    scatter  the scatter of the training rows
"""

from .fit import KdlorModel, fit_kdlor

__all__ = ["KdlorModel", "fit_kdlor"]


def __dir__() -> list[str]:
    return __all__
