"""The prior covariance of a Gaussian process at the training rows, and what a diagonal
W of site precisions makes of it.

With B = I + W^1/2 Sigma W^1/2, whose eigenvalues are 1 or more, and
R = W^1/2 B^-1 W^1/2 = (W^-1 + Sigma)^-1,

    (Sigma^-1 + W)^-1 = Sigma - Sigma R Sigma,    |I + Sigma W| = |B|,

so that Sigma, which is singular for duplicate rows, is never inverted, nor W.

`Dense` holds Sigma. `LowRank` holds Phi with Sigma = Phi Phi', Phi = K_nm L^-T and
K_mm = L L' of m inducing rows; what K_nn has beside it on its diagonal is `rest`, which
the likelihood of a row takes as noise of its own: the FITC approximation. C. E.
Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press, 2006,
sections 3.4 and 3.6; E. Snelson, Z. Ghahramani, NIPS 18, 2006.
"""

import numpy as np

from .._model.monitor import turn
from .._numerics.cholesky import Cholesky, lower_inverse
from .._numerics.rows import inner, strips, times, turns
from .._solvers import _gp_products

_SMALL = 1e-6  # W_i Sigma_ii below which 1 - (B^-1)_ii has lost digits
_JITTER = 1e-10  # of the mean diagonal of K_mm
_ROWS = 1024  # of B made at a time: its memory is new, and costs as much as its values
_ROUNDING = 1e-14  # of a matrix of norm 1, at first


class Dense:
    """Sigma (n, n) and its factor at the latest W."""

    def __init__(self, Sigma: np.ndarray, n_threads: int = 1):
        self.Sigma = Sigma
        self.rest = np.zeros(len(Sigma))
        self._n_threads = n_threads
        self._B = np.empty_like(Sigma)
        self.log_det, self._inverted = 0.0, False  # as for W = 0

    def times(self, v: np.ndarray) -> np.ndarray:
        """Sigma v."""
        return np.asarray(self.Sigma @ v)

    def factor(self, W: np.ndarray) -> None:
        """Take W (n,) >= 0. O(n^3 / 3)."""
        self.W, self.root, self._inverted = W, np.sqrt(W), False
        for rows in strips(len(W), _ROWS):
            turn()
            _gp_products.scaled(
                self.Sigma, self.root, rows.start, rows.stop, self._B, self._n_threads
            )
        self._cholesky = Cholesky(self._B)
        self.log_det = self._cholesky.log_det

    def solve(self, v: np.ndarray) -> np.ndarray:
        """(I + W Sigma)^-1 v = v - R Sigma v."""
        return np.asarray(v - self._R_times(self.times(v)))

    def _R_times(self, v: np.ndarray) -> np.ndarray:
        scaled = self.root * v
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
        small = np.flatnonzero(self.W * diagonal < _SMALL)
        with np.errstate(divide="ignore", invalid="ignore"):
            A = (1 - q) / self.W
        for part in (small[columns] for columns in strips(small.size, 64)):
            turn()
            columns = L_inverse @ (self.root[:, None] * self.Sigma[:, part])
            A[part] = diagonal[part] - np.einsum("ij,ij->j", columns, columns)
        return A, q

    def sensitivity(self, a: np.ndarray, u: np.ndarray, c: np.ndarray) -> np.ndarray:
        """M with 1/2 a'dK a - 1/2 tr(R dK) + u'dK a = <M, dK>. O(n^3 / 3).

        After `marginals`, whose factor it spends. There is no `rest` to change by c.
        """
        M = self._cholesky.inverse_from_factor()
        M *= -0.5 * self.root[:, None]
        M *= self.root
        M += np.outer(0.5 * a + u, a)
        return M

    def predictor(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coef, root) with posterior mean k(x, X) coef and variance
        k(x, x) - |root k(X, x)|^2; after `marginals`, without which the variance is
        that of the prior."""
        if not self._inverted:
            return a, np.zeros(self._B.shape)  # whose memory is not touched as yet
        root = np.tril(self._B)
        root *= self.root
        return a, root


class LowRank:
    """Sigma = Phi Phi' of m inducing rows and its factor at the latest W.

    Parameters
    ----------
    K_nm, K_mm : kernel values with the inducing rows and between them
    diagonal : (n,) array
        k(x, x) of all rows.
    """

    def __init__(self, K_nm: np.ndarray, K_mm: np.ndarray, diagonal: np.ndarray):
        jitter = _JITTER * np.diagonal(K_mm).mean()
        L = np.linalg.cholesky(K_mm + jitter * np.eye(len(K_mm)))
        self.K_nm, self.K_mm = K_nm, K_mm
        self._L_inverse = lower_inverse(L)
        self.Phi = times(K_nm, self._L_inverse.T)
        held = np.einsum("ij,ij->i", self.Phi, self.Phi)
        self.rest = np.maximum(diagonal - held, 0)
        self.log_det, self._C_root = 0.0, np.eye(len(K_mm))  # as for W = 0

    def times(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.Phi @ (self.Phi.T @ v))

    def factor(self, W: np.ndarray) -> None:
        """Take W (n,) >= 0. O(n m^2)."""
        self.W, self.root = W, np.sqrt(W)
        m = self.Phi.shape[1]
        C = np.zeros((m, m))
        for rows in turns(len(W), m * m):
            scaled = self.root[rows, None] * self.Phi[rows]
            C += scaled.T @ scaled
        L = np.linalg.cholesky(C + np.eye(m))
        self.log_det = 2 * float(np.log(np.diagonal(L)).sum())
        self._C_root = lower_inverse(L)  # of C = I + Phi'W Phi, C^-1 = root' root

    def solve(self, v: np.ndarray) -> np.ndarray:
        inner = self._C_root.T @ (self._C_root @ (self.Phi.T @ v))
        return np.asarray(v - self.W * (self.Phi @ inner))

    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        T = times(self.Phi, self._C_root.T)
        A = np.einsum("ij,ij->i", T, T)
        return A, 1 - self.W * A

    def sensitivity(
        self, a: np.ndarray, u: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(G_nm, G_mm, c) with which the change is <G_nm, dK_nm> + <G_mm, dK_mm> +
        c'd diagonal, where the objective changes by c_i with `rest` i. O(n m^2)."""
        P = times(self.Phi, self._L_inverse)  # K_nm K_mm^-1
        WT = times(self.Phi, self._C_root.T)
        WT *= self.W[:, None]
        G = times(WT, inner(WT, P)) - self.W[:, None] * P  # -R P
        G *= 0.5
        G += 0.5 * np.outer(a + u, a @ P) + 0.5 * np.outer(a, u @ P)
        live = self.rest > 0
        G -= np.where(live, c, 0.0)[:, None] * P
        return 2 * G, -inner(P, G), np.where(live, c, 0.0)

    def predictor(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = self.Phi.T @ a
        # K_mm^-1 - L^-T C^-1 L^-1 = L^-T (I - C^-1) L^-1
        kept = np.eye(len(theta)) - inner(self._C_root, self._C_root)
        return self._L_inverse.T @ theta, times(_root(kept), self._L_inverse)


def _root(A: np.ndarray) -> np.ndarray:
    """R with R'R = A up to rounding, for a positive semi-definite A of norm 1 or less.

    By a Cholesky factorisation, a tenth of the work of one by eigenvalues.
    """
    shift = _ROUNDING
    while True:
        try:
            return np.linalg.cholesky(A + shift * np.eye(len(A))).T
        except np.linalg.LinAlgError:
            shift *= 4


Covariance = Dense | LowRank
