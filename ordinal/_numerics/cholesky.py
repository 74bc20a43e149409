"""Cholesky factor and triangular solves in numpy, by blocks that can be interrupted.

numpy has a Cholesky factorisation but no triangular solve, and one call of it holds
Ctrl-C back until it ends. Here nearly all the work is matrix products of BLOCK
columns, so the speed is BLAS's, the memory is the caller's matrix, and the
interpreter gets a turn several times a second at any size. The products are of BLOCK
rows, which threads share: larger ones are no faster, and leave threads without work.

The pivoted incomplete factorisation K ~ L L' takes a matrix K in tiles. Pivots are
chosen in blocks, in one of two ways: the candidates with the largest residuals on the
diagonal, as long as they remain large after the other pivots of the block; or at
random, each with a probability proportional to its residual, which a few rows far from
all others do not mislead. Of K only the columns of the pivots and the entries between
candidates are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._solvers import _triangular
from .._watch.cancellation import check_cancelled
from .rows import TILE, matmul, strips
from .threads import Pool

BLOCK = 128
_FEW = 1000  # rows up to which a factorisation on one thread is as fast


def lower_inverse(L: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Return the inverse of a lower triangular matrix, by halves. O(n^3 / 3).

    The bytes do not depend on `n_threads`.
    """
    with Pool(n_threads if len(L) > _FEW else 1) as pool:
        return _lower_inverse(L, pool)


def _lower_inverse(L: np.ndarray, pool: Pool) -> np.ndarray:
    n = L.shape[0]
    if n <= BLOCK // 2:
        out = np.empty((n, n))
        _triangular.lower_inverse(L, out)
        return out
    h = n // 2
    out = np.zeros((n, n))
    top = out[:h, :h] = _lower_inverse(L[:h, :h], pool)
    low = out[h:, h:] = _lower_inverse(L[h:, h:], pool)
    corner = out[h:, :h]
    left = times_lower(L[h:, :h], top, TILE, pool)

    def multiply_left(rows: slice) -> None:
        # `low` is lower triangular, too.
        matmul(-low[rows, : rows.stop], left[: rows.stop], corner[rows])

    pool.run(multiply_left, strips(n - h))
    return out


def times_lower(
    A: np.ndarray, L: np.ndarray, width: int, pool: Pool | None = None
) -> np.ndarray:
    """Return A L for a lower triangular L, `width` columns at a time.

    Each product leaves out the zeros above its block of L, in total nearly half of
    the multiplications.
    """
    out = np.empty((len(A), len(L)))

    def multiply(columns: slice) -> None:
        below = slice(columns.start, None)
        matmul(A[:, below], L[below, columns], out[:, columns])

    (pool or Pool(1)).run(multiply, strips(len(L), width))
    return out


def times_upper(A: np.ndarray, U: np.ndarray, out: np.ndarray, width: int) -> None:
    """Fill `out` with A U for an upper triangular U, as `times_lower` does for L."""
    for columns in strips(out.shape[1], width):
        above = slice(0, columns.stop)
        np.matmul(A[:, above], U[above, columns], out=out[:, columns])


class Cholesky:
    """A = L L' for a symmetric positive definite A, which is overwritten.

    Only the lower triangle of A is read. The blocks of `A` below the diagonal become
    those of L, the blocks on the diagonal the inverses of those of L, which the
    triangular solutions need. The factor does not depend on `n_threads`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If A is not positive definite to working precision.
    OutOfTime
        As `check_cancelled` does, here and in all methods.
    """

    def __init__(self, A: np.ndarray, n_threads: int = 1):
        self.A = A
        n = A.shape[0]
        self.blocks = [slice(j, min(j + BLOCK, n)) for j in range(0, n, BLOCK)]
        self._n_threads = n_threads if n > _FEW else 1
        with Pool(self._n_threads) as pool:
            for J in self.blocks:
                check_cancelled()
                if J.start:
                    pool.run(partial(self._subtract, J), strips(n, BLOCK, J.start))
                inverse = lower_inverse(np.linalg.cholesky(A[J, J]))
                if not np.isfinite(inverse).all():
                    raise np.linalg.LinAlgError("matrix is singular")
                A[J, J] = inverse
                pool.run(partial(self._scale, J), strips(n, BLOCK, J.stop))

    def _subtract(self, J: slice, rows: slice) -> None:
        """Subtract the contribution of the columns left of J from these rows of J."""
        A, left = self.A, slice(0, J.start)
        A[rows, J] -= A[rows, left] @ A[J, left].T

    def _scale(self, J: slice, rows: slice) -> None:
        """Multiply these rows of the columns J by the inverse of the diagonal block."""
        self.A[rows, J] = self.A[rows, J] @ self.A[J, J].T

    def forward(self, B: np.ndarray) -> np.ndarray:
        """Return L^-1 B for an (n, p) matrix B, in its memory. O(n^2 p)."""
        for J in self.blocks:
            check_cancelled()
            if J.start:
                B[J] -= self.A[J, : J.start] @ B[: J.start]
            B[J] = self.A[J, J] @ B[J]
        return B

    def backward(self, B: np.ndarray) -> np.ndarray:
        """Return L'^-1 B for an (n, p) matrix B, in its memory. O(n^2 p)."""
        for J in reversed(self.blocks):
            check_cancelled()
            B[J] -= self.A[J.stop :, J].T @ B[J.stop :]
            B[J] = self.A[J, J].T @ B[J]
        return B

    @property
    def log_det(self) -> float:
        """Return the log determinant ln |A| of the factored matrix."""
        return -2 * float(
            sum(np.log(np.diagonal(self.A[J, J])).sum() for J in self.blocks)
        )

    def invert_factor(self) -> np.ndarray:
        """Return A with X = L^-1 in its lower triangle. O(n^3 / 3).

        X overwrites L; the strictly upper triangle does not change.
        """
        A, blocks = self.A, self.blocks
        with Pool(self._n_threads) as pool:
            for i, I in enumerate(blocks):
                check_cancelled()
                left = A[I, : I.start].copy()  # L, which the strips overwrite with X
                pool.run(partial(self._invert_rows, I, left), blocks[:i])
        return A

    def _invert_rows(self, I: slice, left: np.ndarray, J: slice) -> None:
        """Compute the rows I of X in the columns J, from those above them."""
        A = self.A
        A[I, J] = -A[I, I] @ (left[:, J.start :] @ A[J.start : I.start, J])

    def inverse(self) -> np.ndarray:
        """Return A^-1 in the memory of A, which overwrites the factor. O(2/3 n^3)."""
        self.invert_factor()
        return self.inverse_from_factor()

    def inverse_from_factor(self) -> np.ndarray:
        """Return A^-1 = X'X after `invert_factor`. O(n^3 / 3)."""
        A, blocks = self.A, self.blocks
        with Pool(self._n_threads) as pool:
            for I in blocks:  # downwards, because X'X at I needs no rows above I
                check_cancelled()
                left = np.ascontiguousarray(A[I.start :, I].T)
                pool.run(partial(self._multiply, I, left), strips(I.stop, BLOCK))
                A[I, I] = np.tril(A[I, I]) + np.tril(A[I, I], -1).T  # symmetric bits
        return A

    def _multiply(self, I: slice, left: np.ndarray, columns: slice) -> None:
        """Compute the rows I of A^-1 in these columns, and its transposed entries.

        No strip writes entries that another one reads, which lie from row I.start on.
        """
        part = left @ self.A[I.start :, columns]
        self.A[I, columns] = part
        self.A[columns, I] = part.T

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B for an (n, p) matrix B, in its memory."""
        return self.backward(self.forward(B))


Tile = Callable[[np.ndarray | slice, np.ndarray, np.ndarray], object]
Pick = Callable[[np.ndarray], "int | None"]  # next pivot, from the residuals

_CANDIDATES, _PIVOTS = 64, 32  # candidates for a block of pivots, and its size
_TALL = 1024  # rows of L per product, few enough to leave work for every thread


def pivoted_cholesky(
    diagonal: np.ndarray,
    tile: Tile,
    stop: int | float,
    most: int | None = None,
    rng: np.random.Generator | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return L (n, m), pivot rows and relative trace residual of K ~ L L'. O(n m^2).

    Parameters
    ----------
    diagonal : (n,) array
        Diagonal of K.
    tile : callable(rows, columns, out)
        Function that fills `out` with K[rows, columns]; rows may be a slice.
    stop : int or float
        Number of pivots, or the share of the trace of K that may be left.
    most : int, optional
        Upper limit on the number of pivots.
    rng : numpy.random.Generator, optional
        Draws the pivots, by rejection in blocks. Y. Chen, E. N. Epperly, J. A. Tropp,
        R. J. Webber, "Randomly pivoted Cholesky", CPAM 78(5):995-1041, 2025.
    n_threads : int
        Number of threads that may call `tile`. The factor does not depend on it.
    """
    n, left = len(diagonal), diagonal.copy()  # residuals: the diagonal of K - L L'
    if not left.min() >= 0:
        raise ValueError(
            "kernel must be positive semi-definite, but k(x, x) < 0 for a row"
        )
    by_trace = isinstance(stop, float)
    most = min(n, (most or n) if by_trace else int(stop))
    # Smaller residuals are rounding errors of the updates.
    floor, trace = 1e-12 * left.max(), left.sum()
    # The number of columns is doubled when needed, because few pivots may suffice
    # where `stop` is a share.
    L = np.zeros((n, min(most, 128)))
    pivots = np.empty(0, np.intp)
    with Pool(n_threads if n > _FEW else 1) as pool:
        while pivots.size < most and left.max() > floor:
            if by_trace and left.sum() <= stop * trace:
                break
            check_cancelled()
            m = pivots.size
            new, small = _next_pivots(tile, left, L[:, :m], floor, most - m, rng)
            if m + new.size > L.shape[1]:
                wider = np.zeros((n, min(most, 2 * L.shape[1])))
                # In strips, between which Ctrl-C is handled: new memory takes long.
                for rows in strips(n):
                    wider[rows, :m] = L[rows, :m]
                L = wider
            if new.size:
                _append_columns(tile, L, m, new, small, pool)
                columns = L[:, m : m + new.size]
                left -= np.einsum("ij,ij->i", columns, columns)
                # Rounding may leave negative residuals in rows that the pivots span.
                np.maximum(left, 0, out=left)
                pivots = np.concatenate([pivots, new])
                # A residual of exactly 0, so that no row is a pivot twice.
                left[pivots] = 0
    if pivots.size == 0:
        raise ValueError("kernel must not be zero on every row: check its parameters")
    if pivots.size < L.shape[1]:
        L = np.ascontiguousarray(L[:, : pivots.size])
    return L, pivots, left.sum() / trace


def _next_pivots(
    tile: Tile,
    left: np.ndarray,
    L: np.ndarray,
    floor: float,
    most: int,
    rng: np.random.Generator | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the next pivots, and their block of L.

    If all candidates have residuals of rounding only, there are none, and their entries
    of `left` are set to 0.
    """
    width = min(_CANDIDATES, len(left))
    if rng is None:
        # Rows with the largest residuals. The block of values between them costs less
        # than one column per pivot.
        candidates = np.argpartition(-left, width - 1)[:width]
    else:
        candidates = in_proportion(left, width, rng)
    block = np.empty((width, width))
    tile(candidates, candidates, block)
    block -= L[candidates] @ L[candidates].T
    diagonal = np.diagonal(block)
    pick = _largest(diagonal, floor) if rng is None else _drawn(diagonal, floor, rng)
    order, small = _pivoted_block(block, min(_PIVOTS, most), pick)
    if order.size == 0:
        left[candidates] = 0
    return candidates[order], small


def _append_columns(
    tile: Tile, L: np.ndarray, m: int, new: np.ndarray, small: np.ndarray, pool: Pool
) -> None:
    """Compute the columns m, m + 1, ... of L, those of the pivots `new`."""
    columns = slice(m, m + new.size)
    # It has at most 32 columns, so its inverse costs little and saves time per strip.
    inverse = np.linalg.inv(small)

    def fill(rows: slice) -> None:
        part = np.empty((rows.stop - rows.start, new.size))
        tile(rows, new, part)
        part -= L[rows, :m] @ L[new, :m].T
        L[rows, columns] = part @ inverse.T

    pool.run(fill, strips(len(L), _TALL))
    L[new, columns] = small  # with exact zeros above the diagonal


def in_proportion(
    weights: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw `size` indices, with replacement, in proportion to the weights."""
    # A search costs O(log n) per draw; `Generator.choice` makes a table of n entries.
    ends = np.cumsum(weights)
    at = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
    last = np.searchsorted(ends, ends[-1])  # if the product is rounded up
    return np.asarray(np.minimum(at, last))


def _largest(diagonal: np.ndarray, floor: float) -> Pick:
    """Return a rule that picks the candidate with the largest residual.

    It stops at a quarter of the first residual, because rows outside of the block may
    then have larger ones.
    """
    enough = max(floor, 0.25 * diagonal.max())

    def pick(left: np.ndarray) -> int | None:
        p = int(left.argmax())
        return p if left[p] > enough else None

    return pick


def _drawn(diagonal: np.ndarray, floor: float, rng: np.random.Generator) -> Pick:
    """Return a rule that picks candidates in the order in which they were drawn.

    A candidate is accepted with the probability of its residual divided by that at the
    time of the draw.
    """
    least = np.maximum(floor, rng.random(diagonal.size) * diagonal)
    candidates = iter(range(diagonal.size))

    def pick(left: np.ndarray) -> int | None:
        return next((p for p in candidates if left[p] > least[p]), None)

    return pick


def _pivoted_block(
    block: np.ndarray, most: int, pick: Pick
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pivots of the Cholesky factorisation of a block, and its factor."""
    left = np.diagonal(block).copy()
    factor = np.zeros((block.shape[0], most))
    order: list[int] = []
    while len(order) < most and (p := pick(left)) is not None:
        j = len(order)
        column = (block[:, p] - factor[:, :j] @ factor[p, :j]) / np.sqrt(left[p])
        factor[:, j] = column
        left -= column**2
        left[[*order, p]] = -np.inf
        order.append(p)
    return np.array(order, np.intp), np.tril(factor[order, : len(order)])
