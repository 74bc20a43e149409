"""Kernel values of pairs of rows, tile by tile."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._input.sparse import is_sparse
from .._input.types import Index, Matrix
from .._numerics.rows import TILE, inner_products, matmul, squared_norms, strips, take
from .._numerics.threads import Pool
from .._solvers import _kernel_values
from .._watch.cancellation import check_cancelled
from .functions import LARGEST, NOT_CSR, KernelFunction, check_values

# Number of multiplications below which one thread computes a matrix of values in 5 ms,
# which is how long a second thread may wait for a processor on a busy machine. A value
# costs as much as _COST_OF_VALUE multiplications besides its inner product
# (tools/bench/busy.py).
_WORTH_A_THREAD, _COST_OF_VALUE = 200_000_000, 32


def diagonal_of(kernel: KernelFunction, X: Any) -> np.ndarray:
    """Return k(x, x) of every row of X, or of a precomputed matrix X, (n,)."""
    out = kernel.diagonal(X)
    check_values(out)
    return out


class Evaluator:
    """Kernel matrix k(A, B) in tiles; what tiles share is computed once.

    Parameters
    ----------
    kernel : KernelFunction
    A, B : (n, d) and (m, d) matrices
        For a Precomputed kernel, A holds the values, and B the numbers of its columns
        that belong to the rows of B.
    products : Products, optional
        Inner products of the rows of A, which is B; radial kernels alone use them.

    Attributes
    ----------
    shape : (n, m)
    concurrent : bool
        Whether several threads may compute tiles at the same time.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        A: Any,
        B: Any,
        n_threads: int = 1,
        products: "Products | None" = None,
    ):
        if not kernel.takes_csr and (is_sparse(A) or is_sparse(B)):
            raise TypeError(NOT_CSR)
        # They are products of the given rows, not of rows scaled by weights.
        self._products = products if kernel.is_radial else None
        kernel, A, B = kernel.on_plain_rows(A, B)
        self.kernel, self.A, self.B, self.n_threads = kernel, A, B, n_threads
        self.shape = len(A), len(B)
        self.concurrent = kernel.concurrent
        if kernel.is_radial:
            known = self._products
            self._aa = squared_norms(A) if known is None else known.norms
            self._bb = self._aa if B is A else squared_norms(B)

    def tile(
        self,
        rows: Index,
        columns: Index,
        out: np.ndarray,
        scratch: np.ndarray | None = None,
    ) -> np.ndarray:
        """Fill `out`, float32 or float64, with k(A[rows], B[columns]), and return it.

        `scratch` is memory for as many doubles, and may be that of `out`. Page faults
        of a new array would cost more than the values.
        """
        if self.kernel.is_radial:  # in (0, 1]: nothing to check
            if self._products is not None and isinstance(rows, slice):
                products = self._products.tile(rows, columns)
            else:
                A, B = take(self.A, rows), take(self.B, columns)
                if scratch is not None:
                    scratch = scratch[: out.size].reshape(out.shape)
                products = inner_products(A, B, scratch)
            self.kernel.of_products(products, self._aa[rows], self._bb[columns], out)
            return out
        most = min(LARGEST, float(np.finfo(out.dtype).max))
        out[:] = self.kernel.tile(self.A, self.B, rows, columns, most)
        return out

    def product(self, coef: np.ndarray) -> np.ndarray:
        """Return k(A, B) @ coef, (n, p), for coef (m, p).

        Every thread holds one tile of k at a time. Entries that overflow are infinite
        or NaN.
        """
        out = np.zeros((self.shape[0], coef.shape[1]))

        def strip(rows: slice) -> None:
            buffer = np.empty(TILE * TILE)
            for columns in strips(self.shape[1]):
                check_cancelled()
                size = rows.stop - rows.start, columns.stop - columns.start
                tile = buffer[: size[0] * size[1]].reshape(size)
                K = self.tile(rows, columns, tile, buffer)
                with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                    out[rows] += matmul(K, coef[columns])

        self._each_strip(strip)
        return out

    def fill(self, out: np.ndarray) -> None:
        """Fill `out`, (n, m), with k(A, B)."""

        def strip(rows: slice) -> None:
            scratch = np.empty(TILE * TILE)
            for columns in strips(self.shape[1]):
                check_cancelled()
                self.tile(rows, columns, out[rows, columns], scratch)

        self._each_strip(strip)

    def triangle(self, out: np.ndarray, mirror: bool) -> None:
        """Fill the upper triangle of k(A, A), with `mirror` also the lower one.

        Raises ValueError if a tile on the diagonal that a callable returns is not
        symmetric.
        """

        def strip(rows: slice) -> None:
            scratch = np.empty(TILE * TILE)
            for columns in strips(self.shape[1], start=rows.start):
                check_cancelled()
                tile = self.tile(rows, columns, out[rows, columns], scratch)
                if columns.start == rows.start and not self.concurrent:
                    _check_symmetry(tile)  # of a callable; ours are symmetric
                if mirror and out.dtype == np.float32:
                    ends = rows.start, rows.stop, columns.start, columns.stop
                    _kernel_values.mirror(out, *ends)
                elif mirror and columns.start > rows.start:
                    out[columns, rows] = tile.T

        self._each_strip(strip)

    def _each_strip(self, call: Callable[[slice], None]) -> None:
        """Call a function of every strip of rows, on several threads if it pays."""
        rows = list(strips(self.shape[0]))
        (m, n), d = self.shape, 1
        if not self.kernel.by_number:
            d = self.A.shape[1]
        shared = self.concurrent and m * n * (d + _COST_OF_VALUE) >= _WORTH_A_THREAD
        with Pool(min(self.n_threads, len(rows)) if shared else 1) as pool:
            pool.run(call, rows)


class Products:
    """Cache of the inner products of rows with each other, which no gamma changes.

    It holds tiles of the upper triangle as `Evaluator.triangle` asks for them, 4 n^2
    bytes in all. Several threads may use it; at worst a tile is computed twice.
    """

    def __init__(self, X: Matrix):
        self.X, self.norms = X, squared_norms(X)
        self._tiles: dict[tuple[int, int, int], np.ndarray] = {}
        self._in_order: tuple[np.ndarray, Products] | None = None

    def in_order(self, order: np.ndarray) -> "Products":
        """Return the products of the reordered rows; the last result is cached."""
        known = self._in_order
        if known is None or not np.array_equal(known[0], order):
            self._in_order = known = order, Products(take(self.X, order))
        return known[1]

    def tile(self, rows: slice, columns: Any) -> np.ndarray:
        """Return <x_i, x_j> for i in rows and j in columns, read-only by convention."""
        key = rows.start, columns.start, columns.stop
        if key not in self._tiles:
            self._tiles[key] = inner_products(take(self.X, rows), take(self.X, columns))
        return self._tiles[key]


def on_itself(
    kernel: KernelFunction, X: Matrix, n_threads: int, products: Products | None = None
) -> Evaluator:
    """Return the evaluator of k(X, X), for rows X or a precomputed matrix X."""
    columns = np.arange(len(X)) if kernel.by_number else X
    return Evaluator(kernel, X, columns, n_threads, products)


def _check_symmetry(tile: np.ndarray) -> None:
    """Raise ValueError unless a tile on the diagonal is symmetric."""
    worst = float(np.abs(tile - tile.T).max())
    if worst > 1e-5 * float(np.abs(tile).max()):
        raise ValueError(
            f"kernel must be symmetric; k(a, b) and k(b, a) differ by {worst:.3g}"
        )
