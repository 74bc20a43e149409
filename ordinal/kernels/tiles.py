"""Values of a kernel for pairs of rows, tile by tile, and derivatives by ln gamma."""

from collections.abc import Callable
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
)

# Multiplications of a matrix of values below which one thread takes 5 ms, no longer
# than another may wait for its processor on a busy machine; a value counts for so many
# beside those of its inner product (tools/bench/busy.py)
_WORTH_A_THREAD, _COST_OF_VALUE = 200_000_000, 32

_NOT_CSR = "CSR rows go with the linear, polynomial and RBF kernels only"


def values_of(
    kernel: Kernel, A: Matrix, B: Matrix, most: float = LARGEST
) -> np.ndarray:
    """Return kernel(A, B), checked, because NaN would end a solver at once."""
    with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
        K = np.asarray(kernel(A, B))
    if K.shape != (len(A), len(B)):
        raise ValueError(f"kernel returned shape {K.shape}, not {(len(A), len(B))}")
    if K.dtype.kind not in "fiu":
        raise TypeError(f"kernel must return real numbers, got dtype {K.dtype}")
    check_values(K, most)
    return K


def diagonal_of(kernel: Kernel, X: Any) -> np.ndarray:
    """Return k(x, x) for every row of X (or of a precomputed matrix)."""
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
        for rows in strips(n, 64):  # a callable gives blocks; small ones waste little
            out[rows] = np.diagonal(values_of(kernel, X[rows], X[rows]))
    check_values(out)
    return out


class Evaluator:
    """k(A, B) in tiles, with what can be shared between tiles computed once.

    Parameters
    ----------
    kernel : callable
    A, B : matrices of rows; for a Precomputed kernel A holds the values and B is
        the array of the columns of A that stand for B's rows.
    products : Products, optional
        Those of the rows of A, which is B, for an RBF kernel.
    """

    def __init__(
        self,
        kernel: Kernel,
        A: Any,
        B: Any,
        n_threads: int = 1,
        products: "Products | None" = None,
    ):
        if isinstance(kernel, Pearson):  # the linear kernel of rows made once
            kernel, same = Linear(), B is A
            A = z_scores(A)
            B = A if same else z_scores(B)
        self.kernel, self.A, self.B, self.n_threads = kernel, A, B, n_threads
        self._products = products
        self.shape = len(A), len(B)
        # a callable of the user's is called from one thread at a time
        self.concurrent = isinstance(kernel, tuple(NAMED.values()))
        if isinstance(kernel, RBF):
            self._aa = squared_norms(A) if products is None else products.norms
            self._bb = self._aa if B is A else squared_norms(B)
        elif not isinstance(kernel, Linear | Polynomial | Precomputed) and (
            isinstance(A, CSR) or isinstance(B, CSR)
        ):
            raise TypeError(_NOT_CSR)

    def tile(
        self,
        rows: Index,
        columns: Index,
        out: np.ndarray,
        scratch: np.ndarray | None = None,
    ) -> np.ndarray:
        """Fill out, float32 or float64, with k(A[rows], B[columns]).

        `scratch` is room for as many doubles; a new tile's memory costs more to fetch
        than its values to compute. It may be that of `out`.
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
        """Return k(A, B) @ coef in double, never more than a tile of k a thread at
        once.

        coef is (len(B), p); the result is (len(A), p), infinite or NaN where it exceeds
        double.
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
        """Fill an array with k(A, B)."""

        def strip(rows: slice) -> None:
            scratch = np.empty(TILE * TILE)
            for columns in strips(self.shape[1]):
                check_cancelled()
                self.tile(rows, columns, out[rows, columns], scratch)

        self._each_strip(strip)

    def triangle(self, out: np.ndarray, mirror: bool) -> None:
        """Fill the upper triangle of k(A, A), and the lower one from it for `mirror`.

        Raises ValueError if a callable's tile on the diagonal is not symmetric.
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


class Products:
    """Inner products of rows with each other, which are the same for every gamma.

    Tiles of the upper triangle as `Evaluator.triangle` asks for them, 4 n^2 bytes in
    all. Several threads may ask; at worst a tile is computed twice.
    """

    def __init__(self, X: Matrix):
        self.X, self.norms = X, squared_norms(X)
        self._tiles: dict[tuple[int, int, int], np.ndarray] = {}
        self._in_order: tuple[np.ndarray, Products] | None = None

    def in_order(self, order: np.ndarray) -> "Products":
        """Return the products of the rows in another order, caching the last result."""
        known = self._in_order
        if known is None or not np.array_equal(known[0], order):
            self._in_order = known = order, Products(take(self.X, order))
        return known[1]

    def tile(self, rows: slice, columns: Any) -> np.ndarray:
        """Return <x_i, x_j> for i of rows and j of columns; not to be written to."""
        key = rows.start, columns.start, columns.stop
        if key not in self._tiles:
            self._tiles[key] = inner_products(take(self.X, rows), take(self.X, columns))
        return self._tiles[key]


def on_itself(
    kernel: Kernel, X: Matrix, n_threads: int, products: Products | None = None
) -> Evaluator:
    """Return k(X, X) of the training rows X, or of a precomputed matrix X."""
    columns = np.arange(len(X)) if isinstance(kernel, Precomputed) else X
    return Evaluator(kernel, X, columns, n_threads, products)


def _check_symmetry(tile: np.ndarray) -> None:
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

    One entry a gamma; none for a kernel that has none to be learned. O(n m d).
    """
    out = np.zeros(np.size(kernel.gamma) if isinstance(kernel, _LEARNED) else 0)
    if isinstance(kernel, ARD):
        centre = A.mean(axis=0)  # far from 0, squares would cancel
        A, B = A - centre, B - centre
    for rows in strips(len(K) if out.size else 0):  # so that Ctrl-C has its turn
        check_cancelled()
        # the slopes of an RBF kernel are seen from its values, without the rows
        part = None if isinstance(kernel, RBF) else take(A, rows)
        out += _of_rows(kernel, part, B, K[rows], G[rows])
    return out


def _of_rows(
    kernel: Kernel, A: Any, B: Any, K: np.ndarray, G: np.ndarray
) -> np.ndarray:
    """Return the part of some rows in `gamma_slopes`."""
    if isinstance(kernel, ARD):
        N = G * K
        squares = N.sum(axis=1) @ A**2 + N.sum(axis=0) @ B**2
        by_gamma = 2 * np.einsum("ij,ij->j", A, N @ B) - squares
        return np.asarray(kernel.gamma * by_gamma)
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * np.einsum("ij,ij->j", A, G @ B))
    change = np.log(np.maximum(K, np.finfo(float).tiny))  # of an RBF kernel
    change *= K
    return np.array([np.vdot(change, G)])


def diagonal_slopes(kernel: Kernel, X: Any, c: np.ndarray) -> np.ndarray:
    """Return the derivative of sum_i c_i k(x_i, x_i) by ln gamma."""
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * (c @ X**2))
    return np.zeros(np.size(kernel.gamma) if isinstance(kernel, RBF | ARD) else 0)
