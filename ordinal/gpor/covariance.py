"""The prior covariance of a Gaussian process at the training rows, and what a diagonal
W of site precisions makes of it.

With B = I + W^1/2 Sigma W^1/2, whose eigenvalues are 1 or more, and
R = W^1/2 B^-1 W^1/2 = (W^-1 + Sigma)^-1,

    (Sigma^-1 + W)^-1 = Sigma - Sigma R Sigma,    |I + Sigma W| = |B|,

so that Sigma, which is singular for duplicate rows, is never inverted, nor W.

`Dense` holds Sigma, and `LowRank` (`low_rank.py`) features of a basis. C. E. Rasmussen,
C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press, 2006, sections
3.4 and 3.6.
"""

import numpy as np

from .._numerics.cholesky import Cholesky
from .._numerics.rows import strips
from .._solvers import _gp_products
from .._watch.monitor import check_cancelled
from .low_rank import LowRank

_SMALL = 1e-6  # W_i Sigma_ii below which 1 - (B^-1)_ii has lost digits
_ROWS = 1024  # of B made at a time: its memory is new, and costs as much as its values


class Dense:
    """Sigma (n, n) and its factor at the latest W."""

    def __init__(self, Sigma: np.ndarray, n_threads: int = 1):
        self.Sigma = Sigma
        self.rest = np.zeros(len(Sigma))
        self._n_threads = n_threads
        self._B = np.empty_like(Sigma)
        self.log_det, self._inverted = 0.0, False  # as for W = 0

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Sigma v."""
        return np.asarray(self.Sigma @ v)

    def factor(self, W: np.ndarray) -> None:
        """Take W (n,) >= 0. O(n^3 / 3)."""
        self.W, self.root, self._inverted = W, np.sqrt(W), False
        for rows in strips(len(W), _ROWS):
            check_cancelled()
            _gp_products.scaled(
                self.Sigma, self.root, rows.start, rows.stop, self._B, self._n_threads
            )
        # B = I + root K root has eigenvalues of 1 and more: it needs no jitter.
        self._cholesky = Cholesky(self._B, self._n_threads)
        self.log_det = self._cholesky.log_det

    def solve(
        self, v: np.ndarray, W: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return x = (I + W Sigma)^-1 v = v - R Sigma v and Sigma x; a W (n,) >= 0
        that is given is taken first, in O(n^3 / 3).
        """
        if W is not None:
            self.factor(W)
        x = v - self._R_times(self.matvec(v))
        return x, self.matvec(x)

    def posterior(
        self, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(x, Sigma x) as `solve` has them, the diagonal of A, and 1 - W_i A_ii.

        O(2/3 n^3).
        """
        return *self.solve(v, W), *self.marginals()

    def _R_times(self, v: np.ndarray) -> np.ndarray:
        scaled = self.root * v
        # `marginals` has put the inverse where the factor was.
        if self._inverted:
            inner = self._B.T @ (self._B @ scaled)
        else:
            inner = self._cholesky.solve(scaled[:, None])[:, 0]
        return np.asarray(self.root * inner)

    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """(diagonal of the posterior covariance A, 1 - W_i A_ii). O(n^3 / 3)."""
        L_inverse = self._cholesky.invert_factor()
        self._inverted = True
        q = np.empty(len(L_inverse))  # the diagonal of B^-1
        _gp_products.column_norms(L_inverse, q)
        diagonal = np.diagonal(self.Sigma)
        # (1 - q) / W is a difference of numbers near 1 there: computed from the
        # columns.
        small = np.flatnonzero(self.W * diagonal < _SMALL)
        with np.errstate(divide="ignore", invalid="ignore"):
            A = (1 - q) / self.W
        for part in (small[columns] for columns in strips(small.size, 64)):
            check_cancelled()
            columns = L_inverse @ (self.root[:, None] * self.Sigma[:, part])
            A[part] = diagonal[part] - np.einsum("ij,ij->j", columns, columns)
        return A, q

    def sensitivity(self, a: np.ndarray, u: np.ndarray, c: np.ndarray) -> np.ndarray:
        """M with 1/2 a'dK a - 1/2 tr(R dK) + u'dK a = <M, dK>. O(n^3 / 3).

        After `marginals`, whose factor it spends. There is no `rest` to change by c.
        """
        M = self._cholesky.inverse_from_factor()
        M *= -0.5 * self.root[:, None]
        # Rows and columns are scaled in place: M is the largest array of a fit.
        M *= self.root
        M += np.outer(0.5 * a + u, a)
        return M

    def predictor(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coef, root) with posterior mean k(x, X) coef and variance
        k(x, x) - |root k(X, x)|^2; after `marginals`, without which the variance is
        that of the prior.
        """
        if not self._inverted:
            return a, np.zeros(self._B.shape)  # whose memory is not touched as yet
        root = np.tril(self._B)
        root *= self.root
        return a, root


Covariance = Dense | LowRank
