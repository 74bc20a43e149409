"""Cholesky factor and triangular solves in numpy, by blocks that can be interrupted.

numpy has a Cholesky factorisation but no triangular solve, and one call of it holds
Ctrl-C back until it ends. Here nearly all the work is matrix products of BLOCK
columns, so the speed is BLAS's, the memory is the caller's matrix, and the
interpreter gets a turn several times a second at any size. The products are of strips
of rows, which threads share.
"""

from functools import partial

import numpy as np

from .._solvers import _triangular
from .._watch.monitor import check_cancelled
from .pool import Pool
from .rows import matmul, strips

BLOCK = 128
_STRIP = 512  # rows of one product: a few hundredths of a second at 10 000 rows


def lower_inverse(L: np.ndarray) -> np.ndarray:
    """Inverse of a small lower triangular matrix, by halves. O(n^3 / 3)."""
    n = L.shape[0]
    if n <= BLOCK // 2:
        out = np.empty((n, n))
        _triangular.lower_inverse(L, out)
        return out
    h = n // 2
    out = np.zeros((n, n))
    out[:h, :h] = lower_inverse(L[:h, :h])
    out[h:, h:] = lower_inverse(L[h:, h:])
    out[h:, :h] = matmul(-out[h:, h:], matmul(L[h:, :h], out[:h, :h]))
    return out


def _groups(blocks: list[slice]) -> list[list[slice]]:
    """Blocks that are worked on by one call, about as wide as a strip."""
    several = _STRIP // BLOCK
    return [blocks[i : i + several] for i in range(0, len(blocks), several)]


class Cholesky:
    """A = L L' for a symmetric positive definite A, which is overwritten.

    Only the lower triangle of A is read. The strictly lower blocks of `A` end as
    those of L; its diagonal blocks end as the inverses of L's, which is what both
    solves need. The factor does not depend on `n_threads`.

    Raises
    ------
    numpy.linalg.LinAlgError
        A is not positive definite to working precision.
    OutOfTime
        As `check_cancelled` does, here and in all methods.
    """

    def __init__(self, A: np.ndarray, n_threads: int = 1):
        self.A = A
        n = A.shape[0]
        self.blocks = [slice(j, min(j + BLOCK, n)) for j in range(0, n, BLOCK)]
        self._n_threads = n_threads if n > _STRIP else 1
        with Pool(self._n_threads) as pool:
            for J in self.blocks:
                check_cancelled()
                if J.start:
                    pool.run(partial(self._subtract, J), strips(n, _STRIP, J.start))
                inverse = lower_inverse(np.linalg.cholesky(A[J, J]))
                if not np.isfinite(inverse).all():
                    raise np.linalg.LinAlgError("matrix is singular")
                A[J, J] = inverse
                pool.run(partial(self._scale, J), strips(n, _STRIP, J.stop))

    def _subtract(self, J: slice, rows: slice) -> None:
        """Subtract the contribution of the columns left of J from these rows of J."""
        A, left = self.A, slice(0, J.start)
        A[rows, J] -= A[rows, left] @ A[J, left].T

    def _scale(self, J: slice, rows: slice) -> None:
        """Multiply these rows of the columns J by the inverse of the diagonal block."""
        self.A[rows, J] = self.A[rows, J] @ self.A[J, J].T

    def forward(self, B: np.ndarray) -> np.ndarray:
        """L^-1 B for a matrix of columns, in B's memory. O(n^2) a column."""
        for J in self.blocks:
            check_cancelled()
            if J.start:
                B[J] -= self.A[J, : J.start] @ B[: J.start]
            B[J] = self.A[J, J] @ B[J]
        return B

    def backward(self, B: np.ndarray) -> np.ndarray:
        """L'^-1 B for a matrix of columns, in B's memory. O(n^2) a column."""
        for J in reversed(self.blocks):
            check_cancelled()
            B[J] -= self.A[J.stop :, J].T @ B[J.stop :]
            B[J] = self.A[J, J].T @ B[J]
        return B

    @property
    def log_det(self) -> float:
        """Return the log determinant ln |A|."""
        return -2 * float(
            sum(np.log(np.diagonal(self.A[J, J])).sum() for J in self.blocks)
        )

    def invert_factor(self) -> np.ndarray:
        """X = L^-1 in the lower triangle of A; what is above stays. O(n^3 / 3)."""
        A, blocks = self.A, self.blocks
        with Pool(self._n_threads) as pool:
            for i, I in enumerate(blocks):  # below the diagonal, row by row
                check_cancelled()
                left = A[I, : I.start].copy()  # of L, where the strips write X
                pool.run(partial(self._invert_rows, I, left), _groups(blocks[:i]))
        return A

    def _invert_rows(self, I: slice, left: np.ndarray, some: list[slice]) -> None:
        """Return the rows I of X in some blocks of columns, from those above them."""
        A = self.A
        for J in some:
            A[I, J] = -A[I, I] @ (left[:, J.start :] @ A[J.start : I.start, J])

    def inverse(self) -> np.ndarray:
        """A^-1, in the memory of A; the factor is spent. O(2/3 n^3)."""
        self.invert_factor()
        return self.inverse_from_factor()

    def inverse_from_factor(self) -> np.ndarray:
        """A^-1 = X'X after `invert_factor`. O(n^3 / 3)."""
        A, blocks = self.A, self.blocks
        with Pool(self._n_threads) as pool:
            for I in blocks:  # from the top: rows above I are no longer needed
                check_cancelled()
                left = np.ascontiguousarray(A[I.start :, I].T)
                pool.run(partial(self._multiply, I, left), strips(I.stop, _STRIP))
                A[I, I] = np.tril(A[I, I]) + np.tril(A[I, I], -1).T  # to the last bit
        return A

    def _multiply(self, I: slice, left: np.ndarray, columns: slice) -> None:
        """Return the rows I of A^-1 in these columns, which are columns I in these
        rows.

        No strip writes what another one reads: that lies from row I.start on.
        """
        part = left @ self.A[I.start :, columns]
        self.A[I, columns] = part
        self.A[columns, I] = part.T

    def solve(self, B: np.ndarray) -> np.ndarray:
        """A^-1 B for a matrix of columns, in B's memory."""
        return self.backward(self.forward(B))
