"""TLS-SVOR: SVORIM with squared slacks that are truncated at u, robust to outliers.

With s_ij = +1 if y_i > j and -1 otherwise, f_i = sum_h k(x_i, h) w_h over basis rows h,
and a weight v_i of row i,

    min_{w,b}  psi = 1/(2C) (|w|^2 + |b|^2) + sum_ij v_i p(1 - s_ij (f_i - b_j))^2   (P)

    p(s) = P(s) - P(s - u),  which is 0 up to -eta, s on [eta, u - eta], u from u + eta,
    P(t) = (t + eta)^3 (3 eta - t) / (16 eta^3) between -eta and eta                 (4)

p has two continuous derivatives and is near q(s) = min(max(s, 0), u):

    0 <= p^2 - q^2 < 0.0526 eta^2  up to u - eta,  0 <= q^2 - p^2 < 0.375 u eta  above

The penalty is the Euclidean norm of the coefficients, not w'Kw, so that k need not be
positive semi-definite. The basis is every row, some of them (the reduced kernel), or
rows given by the caller. A row of weight v stands for v rows, each with the coefficient
w_h / v, so that its penalty is w_h^2 / v. With a linear kernel and every row in the
basis, (P) has as few unknowns as there are features (`tlssvor.objective`).

u = inf is np-SVOR. psi is then strongly convex: its minimum is unique, its thresholds
increase, and

    psi - min psi <= C/2 |gradient|^2                                              (GAP)

For a finite u it is not convex, contrary to the paper, because p^2 is bounded; a fit
returns a local minimum. It begins at the minimum for u = inf, lowers u in steps, each
warm started at the last solution, and leaves saddle points. At the final u it never
ends above the psi of the solution for u = inf. With D_ij = 2 v_i (p'^2 + p p'') at the
slacks, a Newton step needs

    d2psi = [ diag(sum_i D_ij) + I/C    -D'K                        ]
            [ -K'D                      K' diag(sum_j D_ij) K + I/C ]

The block of b comes first. It is diagonal, so that a Cholesky factorisation eliminates
it at no cost. If the matrix is indefinite, C is replaced by a smaller number, and the
step, which is then too short, is lengthened.

The two thresholds about a rank without rows are one variable, with the terms and the
penalties of both.

He H., "Smooth support vector ordinal regression with truncated errors" (in Chinese),
2014, doi:10.3969/j.issn.1001-0548.2014.01.022, Theorems 1 to 3. Y.-J. Lee,
S.-Y. Huang, IEEE Transactions on Neural Networks 18(1):1-13, 2007, for the reduced
kernel.

The modules of this package:

    fit           the model and the function that users call
    objective     columns that coefficients multiply; psi, its gradient and Hessian
    newton        Newton's method for indefinite Hessians, and descent from u = inf
"""

from .fit import TlsSvorModel, fit_tlssvor

__all__ = ["TlsSvorModel", "fit_tlssvor"]


def __dir__() -> list[str]:
    return __all__
