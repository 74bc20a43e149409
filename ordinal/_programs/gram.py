"""The kernel matrix of the training rows: float32 rows within a memory limit.

`Gram` holds all rows where `cache_mb` allows it, or else the most recently used ones.
Solvers step on the float32 rows; `product` gives what tolerances look at, in double
and from the kernel itself.
"""

from threading import Lock
from typing import Any

import numpy as np

from .. import kernels
from .._input.types import Kernel
from .._numerics.pool import Pool
from .._numerics.rows import TILE, strips, take
from .._solvers import _kernel_values
from .._watch.monitor import Monitor, OutOfTime, check_cancelled
from ..kernels.tiles import Evaluator, Products, diagonal_of, on_itself

_MOST_IN_DOUBLE = 4096  # rows of K that are computed in double when they are wanted


class Gram:
    """Rows of K = k(X, X) for the SMO kernels.

    Attributes
    ----------
    K : (capacity, n) float32
    slot : (n,) int32
        Row i of the kernel matrix is K[slot[i]]; -1 where it is not held.
    diagonal : (n,) float64
    full : bool
        Every row is held, row i at slot i.
    exact : (n, n) float64 or None
        K in double, once it was made and shared. It is what `block` and `product`
        take their numbers from, whose rounding differs from that of the kernel: they
        must not depend on when a thread made it.
    room_for_double : bool
        There is room for that.
    doubles : bool
        And it is worth holding, for several uses.
    concurrent : bool
        Several threads may ask for rows and blocks.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        cache_mb: float,
        n_threads: int,
        least: int,
        products: Products | None = None,
    ):
        """`least` rows are held even if that takes more than `cache_mb`; `products` are
        the `Products` of X, if there are any: for a path of fits, each of which
        asks for `product` more than once, K is then held in double as well.
        """
        n = len(X)
        self.kernel, self.X, self.n_threads = kernel, X, n_threads
        rows = int(min(cache_mb * 1e6 / (4 * n), 3 * n))  # no use of more
        self.full = rows >= n
        products = products if self.full else None  # of tiles, and not of single rows
        self._values = on_itself(kernel, X, n_threads, products)
        # first of all: it names a row that is too long. What a float cannot hold is
        # refused with its tile
        with np.errstate(over="ignore"):
            self.diagonal = diagonal_of(kernel, X).astype(np.float32).astype(float)
        self.concurrent = self.full and self._values.concurrent
        self.capacity = n if self.full else min(n, max(rows, least))
        self.K = np.empty((self.capacity, n), dtype=np.float32)
        self.exact: np.ndarray | None = None
        self._double: np.ndarray | None = None
        self.room_for_double = self.doubles = False
        self._lock = Lock()
        if self.full:
            self.slot = np.arange(n, dtype=np.int32)
            small = n <= _MOST_IN_DOUBLE or products is not None
            # that fits in `cache_mb` too
            self.room_for_double = small and rows >= 3 * n
            self.doubles = self.room_for_double and isinstance(kernel, kernels.RBF)
            if self.doubles and products is not None:
                self.K[:] = self.in_double()
                self.share_double()
            else:
                self._values.triangle(self.K, mirror=True)
            # as rounded as K, so that equal rows have a distance of exactly 0
            self.diagonal = np.diagonal(self.K).astype(float)
        else:
            self.slot = np.full(n, -1, dtype=np.int32)
            self._holder = np.full(self.capacity, -1)  # which row a slot holds
            self._used = np.zeros(self.capacity, dtype=np.int64)  # when it was asked
            self._clock = 0

    def in_double(self) -> np.ndarray:
        """K in double, kept from now on; for `doubles` only."""
        with self._lock:
            if self._double is None:
                n = len(self.X)
                exact = np.empty((n, n))
                self._values.triangle(exact, mirror=False)
                for part in strips(n):
                    below = slice(part.stop, n)
                    exact[below, part] = exact[part, below].T
                self._double = exact
            return self._double

    def share_double(self) -> None:
        """Let `block` and `product` use K in double if it was made.

        Called while no thread is at work: whether it was made is then a matter of the
        input alone.
        """
        self.exact = self._double

    def ensure(self, rows: np.ndarray) -> None:
        """Hold these rows, at most `capacity` of them, in place of the least used.

        After OutOfTime some of either are not held.
        """
        if self.full:
            return
        self._clock += 1
        held = self.slot[rows]
        self._used[held[held >= 0]] = self._clock
        missing = rows[held < 0]
        if missing.size == 0:
            return
        oldest = np.argsort(self._used, kind="stable")[: missing.size]
        evicted = self._holder[oldest]
        self.slot[evicted[evicted >= 0]] = -1
        for part in strips(missing.size, 64):
            into = oldest[part]
            for columns in strips(self.slot.size, 4096):
                check_cancelled()
                tile = np.empty((into.size, columns.stop - columns.start), np.float32)
                self.K[into, columns] = self._values.tile(missing[part], columns, tile)
        self._holder[oldest] = missing
        self._used[oldest] = self._clock
        self.slot[missing] = oldest

    def add_rows(self, rows: np.ndarray, change: np.ndarray, G: np.ndarray) -> None:
        """G += sum_a change[a] K[rows[a]], where the change is not 0; G is (n,)."""
        moved = change != 0
        rows = rows[moved].astype(np.int32)
        self.ensure(rows)
        _kernel_values.add_rows(self.K, self.slot[rows], change[moved], G)

    def block(self, index: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """k(X[index], X[index]) in double and from the kernel itself.

        The tiles that hold its lower triangle.
        """
        if self.exact is not None:
            return np.asarray(self.exact[np.ix_(index, index)])
        out = np.empty((index.size, index.size))

        def fill(rows: slice) -> None:
            for columns in strips(rows.stop):
                tile = out[rows, columns]
                self._values.tile(index[rows], index[columns], tile)

        several = self._values.concurrent and index.size > TILE
        with Pool(n_threads if several else 1) as pool:
            pool.run(fill, strips(index.size))
        return out

    def product(self, g: np.ndarray) -> np.ndarray:
        """Return g K for g (r, n), in double and from the kernel itself."""
        if self.exact is not None:
            return np.asarray(g @ self.exact)
        used = np.flatnonzero((g != 0).any(axis=0))
        if isinstance(self.kernel, kernels.Precomputed):
            parts = (g[:, rows] @ self.X[rows] for rows in strips(len(self.X)))
            return sum(parts, np.zeros(g.shape))
        values = Evaluator(self.kernel, self.X, take(self.X, used), self.n_threads)
        return np.ascontiguousarray(values.product(g[:, used].T).T)


def gram_in_time(
    monitor: Monitor,
    kernel: Kernel,
    X: Any,
    cache_mb: float,
    n_threads: int,
    least: int,
    products: Products | None,
) -> Gram:
    """Return a Gram, which holds no rows of K as yet if it is late before it has all of
    them: enough to judge the point that a fit begins with.
    """
    try:
        with monitor.stage("kernel matrix"), monitor.limited():
            return Gram(kernel, X, cache_mb, n_threads, least, products)
    except OutOfTime:
        return Gram(kernel, X, 0.0, n_threads, least)
