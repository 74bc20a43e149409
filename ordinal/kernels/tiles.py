"""Kernel values of pairs of rows, tile by tile, and their derivatives by ln gamma."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._input.sparse import CSR
from .._input.types import Index, Kernel, Matrix
from .._numerics.pool import Pool
from .._numerics.rows import TILE, inner_products, squared_norms, strips, take, z_scores
from .._solvers import _kernel_values
from .._watch.monitor import check_cancelled
from .functions import (
    ARD,
    LARGEST,
    NAMED,
    RBF,
    Linear,
    LinearARD,
    Pearson,
    Polynomial,
    Precomputed,
    check_values,
    times_columns,
)

# Number of multiplications below which one thread computes a matrix of values in 5 ms,
# which is how long a second thread may wait for a processor on a busy machine. A value
# costs as much as _COST_OF_VALUE multiplications besides its inner product
# (tools/bench/busy.py).
_WORTH_A_THREAD, _COST_OF_VALUE = 200_000_000, 32

_NOT_CSR = "CSR rows go with the linear, polynomial and RBF kernels only"


def values_of(
    kernel: Kernel, A: Matrix, B: Matrix, most: float = LARGEST
) -> np.ndarray:
    """Return kernel(A, B) after checks of its shape, type and values.

    ValueError or TypeError is raised otherwise: a solver cannot continue with NaN.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # check_values refuses it
        K = np.asarray(kernel(A, B))
    if K.shape != (len(A), len(B)):
        raise ValueError(f"kernel returned shape {K.shape}, not {(len(A), len(B))}")
    if K.dtype.kind not in "fiu":
        raise TypeError(f"kernel must return real numbers, got dtype {K.dtype}")
    check_values(K, most)
    return K


def diagonal_of(kernel: Kernel, X: Any) -> np.ndarray:
    """Return k(x, x) of every row of X, or of a precomputed matrix X, (n,)."""
    n = len(X)
    if isinstance(kernel, RBF | ARD):
        return np.ones(n)
    if isinstance(kernel, Precomputed):
        out = np.diagonal(X).copy()
    elif isinstance(kernel, Linear):
        out = squared_norms(X)
    elif isinstance(kernel, Pearson):
        out = squared_norms(z_scores(X))
    elif isinstance(kernel, Polynomial):
        with np.errstate(over="ignore"):  # seen by the check
            out = (kernel.gamma * squared_norms(X) + kernel.coef0) ** kernel.degree
    elif isinstance(X, CSR):
        raise TypeError(_NOT_CSR)
    else:
        out = np.empty(n)
        for rows in strips(n, 64):  # a callable returns blocks: small ones waste little
            out[rows] = np.diagonal(values_of(kernel, X[rows], X[rows]))
    check_values(out)
    return out


class Evaluator:
    """Kernel matrix k(A, B) in tiles; what tiles share is computed once.

    Parameters
    ----------
    kernel : callable
    A, B : (n, d) and (m, d) matrices
        For a Precomputed kernel, A holds the values, and B the numbers of its columns
        that belong to the rows of B.
    products : Products, optional
        Inner products of the rows of A, which is B; only an RBF kernel uses them.

    Attributes
    ----------
    shape : (n, m)
    concurrent : bool
        Whether several threads may compute tiles at the same time.
    """

    def __init__(
        self,
        kernel: Kernel,
        A: Any,
        B: Any,
        n_threads: int = 1,
        products: "Products | None" = None,
    ):
        # `z_scores` of a Pearson kernel refuses CSR rows itself.
        if not isinstance(
            kernel, Linear | Polynomial | RBF | Pearson | Precomputed
        ) and (isinstance(A, CSR) or isinstance(B, CSR)):
            raise TypeError(_NOT_CSR)
        # They are products of the given rows, not of those scaled for an ARD kernel.
        self._products = products if isinstance(kernel, RBF) else None
        kernel, A, B = _on_plain_rows(kernel, A, B)
        self.kernel, self.A, self.B, self.n_threads = kernel, A, B, n_threads
        self.shape = len(A), len(B)
        # A callable of the user's is called from one thread at a time.
        self.concurrent = isinstance(kernel, tuple(NAMED.values()))
        if isinstance(kernel, RBF):
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
        if isinstance(self.kernel, RBF):  # in (0, 1]: nothing to check
            if self._products is not None and isinstance(rows, slice):
                products = self._products.tile(rows, columns)
            else:
                A, B = take(self.A, rows), take(self.B, columns)
                if scratch is not None:
                    scratch = scratch[: out.size].reshape(out.shape)
                products = inner_products(A, B, scratch)
            aa, bb = self._aa[rows], self._bb[columns]
            _kernel_values.rbf(products, aa, bb, float(self.kernel.gamma), out)
            return out
        most = min(LARGEST, float(np.finfo(out.dtype).max))
        if isinstance(self.kernel, Precomputed):
            K = take(self.A, rows)[:, self.B[columns]]
            check_values(K, most)
        else:
            A, B = take(self.A, rows), take(self.B, columns)
            K = values_of(self.kernel, A, B, most)
        out[:] = K
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
                    out[rows] += K @ coef[columns]

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
        rows = list(strips(self.shape[0]))
        (m, n), d = self.shape, 1
        if not isinstance(self.kernel, Precomputed):
            d = self.A.shape[1]
        shared = self.concurrent and m * n * (d + _COST_OF_VALUE) >= _WORTH_A_THREAD
        with Pool(min(self.n_threads, len(rows)) if shared else 1) as pool:
            pool.run(call, rows)


def _on_plain_rows(kernel: Kernel, A: Any, B: Any) -> tuple[Kernel, Any, Any]:
    """Return a kernel without weights per feature, and rows with the same values.

    Rows are scaled once, rather than for every tile.
    """
    if isinstance(kernel, Pearson):
        scaled: Callable[[Any], np.ndarray] = z_scores
    elif isinstance(kernel, ARD | LinearARD):
        scaled = partial(times_columns, factor=np.sqrt(kernel.gamma))
    else:
        return kernel, A, B
    of_A = scaled(A)
    of_B = of_A if B is A else scaled(B)
    return RBF(1.0) if isinstance(kernel, ARD) else Linear(), of_A, of_B


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
    kernel: Kernel, X: Matrix, n_threads: int, products: Products | None = None
) -> Evaluator:
    """Return the evaluator of k(X, X), for rows X or a precomputed matrix X."""
    columns = np.arange(len(X)) if isinstance(kernel, Precomputed) else X
    return Evaluator(kernel, X, columns, n_threads, products)


def _check_symmetry(tile: np.ndarray) -> None:
    """Raise ValueError unless a tile on the diagonal is symmetric."""
    worst = float(np.abs(tile - tile.T).max())
    if worst > 1e-5 * float(np.abs(tile).max()):
        raise ValueError(
            f"kernel must be symmetric; k(a, b) and k(b, a) differ by {worst:.3g}"
        )


_LEARNED = RBF | ARD | LinearARD


def gamma_slopes(
    kernel: Kernel, A: Any, B: Any, K: np.ndarray, G: np.ndarray
) -> np.ndarray:
    """Return the derivative of <G, k(A, B)> by ln gamma, (p,), where K = k(A, B).

    There is one entry per gamma, and none for a kernel that has none to be learned.
    O(n m d).
    """
    out = np.zeros(np.size(kernel.gamma) if isinstance(kernel, _LEARNED) else 0)
    if isinstance(kernel, ARD):
        centre = A.mean(axis=0)  # far from 0, squares would cancel
        A, B = A - centre, B - centre
    for rows in strips(len(K) if out.size else 0):
        check_cancelled()
        # The derivative of an RBF kernel is K ln K, which needs no rows.
        part = None if isinstance(kernel, RBF) else take(A, rows)
        out += _of_rows(kernel, part, B, K[rows], G[rows])
    return out


def _of_rows(
    kernel: Kernel, A: Any, B: Any, K: np.ndarray, G: np.ndarray
) -> np.ndarray:
    """Return the summand of some rows of `gamma_slopes`."""
    if isinstance(kernel, ARD):
        N = G * K
        squares = N.sum(axis=1) @ A**2 + N.sum(axis=0) @ B**2
        by_gamma = 2 * np.einsum("ij,ij->j", A, N @ B) - squares
        return np.asarray(kernel.gamma * by_gamma)
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * np.einsum("ij,ij->j", A, G @ B))
    # RBF. K ln K is 0 where K is 0, not NaN.
    change = np.log(np.maximum(K, np.finfo(float).tiny))
    change *= K
    return np.array([np.vdot(change, G)])


def diagonal_slopes(kernel: Kernel, X: Any, c: np.ndarray) -> np.ndarray:
    """Return the derivative of sum_i c_i k(x_i, x_i) by ln gamma, (p,)."""
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * (c @ X**2))
    return np.zeros(np.size(kernel.gamma) if isinstance(kernel, RBF | ARD) else 0)
