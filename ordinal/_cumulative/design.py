"""The columns, the thresholds and the parameters of a linear cumulative model.

With s_i = exp(z_i'zeta), the linear predictors of row i are

    eta_ij = (theta_j - n_i'nu_j - x_i'beta - o_i) / s_i                            (1)
    theta = J alpha,  nu = J nu*

where x_i holds the columns of the location, n_i those of nominal effects, z_i those of
the scale, and o_i is the offset. The parameters (alpha, nu*, beta, zeta) have q, q m, d
and k entries. The structure of the T thresholds is J, (T, q).

Solvers see columns that are centred and scaled, (x - centre) / spread, so that their
problem is well conditioned. `Design.raw` converts the parameters back. This conversion
is linear, because columns of the scale are not centred: their centres would multiply
all other parameters by a factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, cast

import numpy as np

from .._input.checks import as_real_array, check_entries
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._input.types import ArrayLike, Matrix
from .._numerics.memory import check_memory
from .._numerics.rows import strips
from .._rows.columns import (
    block,
    check_beside,
    every_row,
    moments_of,
    product,
    rows_of,
    stack_of_chunks,
    sum_of_chunks,
)
from .._rows.rows import Rows
from .._rows.source import CHUNK
from .._rows.sums import Parts
from .._watch.cancellation import check_cancelled

HESSIAN_COLUMNS = 2000  # most columns of a matrix of (columns, columns) entries
_BYTES = 350  # bytes of a fit per column: vectors, and the history of L-BFGS
_COUNTED = 2**22  # rows at a time, of which bincount makes copies
_ENTRIES = 2**17  # entries of arrays of some rows, so that they stay in the cache
_EM_STEPS = 30  # starting values, so that a few suffice
_LEAST_SHARE = 1e-6
_LARGEST_PENALTY = 1e290  # finite with room, for columns with almost no spread
Threshold = Literal["flexible", "symmetric", "equidistant"]
Result = TypeVar("Result")


def check_columns(name: str, d: int) -> None:
    """Raise MemoryError if a fit of d columns needs more memory than there is.

    Fits ask only above `HESSIAN_COLUMNS`: fewer columns need less than a megabyte.
    """
    check_memory(name, _BYTES * d, f"{d} features")


def read_offset(offset: ArrayLike, n: int) -> np.ndarray:
    """Return offsets of n rows, (n,), or by threshold, (n, T).

    Raises
    ------
    ValueError, TypeError
        They are not numbers with finite squares, or not of n rows.
    """
    a = as_real_array(offset, "offset")
    if a.ndim not in (1, 2) or len(a) != n:
        raise ValueError(f"offset has shape {a.shape}, expected ({n},) as X")
    check_entries("offset", a, np.abs(a) <= 1e100, "lie between -1e100 and 1e100")
    return a


def mean_offset(offset: np.ndarray) -> np.ndarray:
    """Return offsets of rows, (n,), as means over the thresholds."""
    return offset if offset.ndim == 1 else np.asarray(offset.mean(axis=1))


def check_offset_columns(offset: np.ndarray, T: int) -> None:
    """Raise ValueError unless offsets by threshold have a column per threshold."""
    if offset.shape[1] != T:
        raise ValueError(
            f"offset must have a column for each of the {T} thresholds, or be a vector "
            f"with an entry per row, got shape {offset.shape}"
        )


def by_threshold(offset: np.ndarray) -> np.ndarray:
    """Return offsets as a matrix, (n, T), or (n, 1) if they are (n,)."""
    return offset[:, None] if offset.ndim == 1 else offset


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Structure J of T thresholds, (T, q), in (1).

    Attributes
    ----------
    T, q : int
    matrix : (T, q) array, or None
        None for flexible thresholds, where J = I: with as many ranks as rows, an
        identity matrix would take more memory than everything else.
    """

    T: int
    q: int
    matrix: np.ndarray | None = None

    def __matmul__(self, alpha: np.ndarray) -> np.ndarray:
        """Return J alpha for alpha of (q,) or (q, k)."""
        if self.matrix is None:
            return np.array(alpha)
        return np.asarray(self.matrix @ alpha)

    def adjoint(self, theta: np.ndarray) -> np.ndarray:
        """Return J'theta for theta of (T,) or (T, k)."""
        if self.matrix is None:
            return np.array(theta)
        return np.asarray(self.matrix.T @ theta)

    def rows(self, t: np.ndarray | int) -> np.ndarray:
        """Return some rows of J, of the shape of t and q."""
        if self.matrix is not None:
            return np.asarray(np.take(self.matrix, t, axis=0))
        one_hot = np.asarray(t)[..., None] == np.arange(self.T)
        return np.asarray(one_hot, np.float64)

    def dense(self) -> np.ndarray:
        """Return J as a dense array."""
        return np.eye(self.T) if self.matrix is None else self.matrix


def structure_of(threshold: str, T: int) -> Structure:
    """Return J of (1) for a structure of the thresholds.

    They are "flexible", "symmetric" about a centre, or "equidistant", and have the
    parameters of R's `ordinal::clm`.
    """
    # One threshold has no structure: all three are the same model. Two that are
    # symmetric are free, too.
    if threshold == "flexible" or T == 1 or (threshold == "symmetric" and T == 2):
        return Structure(T, T)
    if threshold == "equidistant":  # parameters: the first threshold, and the distance
        return Structure(T, 2, np.column_stack([np.ones(T), np.arange(T)]))
    # parameters: one or two central thresholds, and distances of the others from them
    half = T // 2
    far = np.eye(T)[:, T - half :] if T % 2 else np.eye(T)[:, half + 1 :]
    mirrored = far - far[::-1]
    if T % 2:
        return Structure(T, 1 + half, np.column_stack([np.ones(T), mirrored]))
    upper = (np.arange(T) >= half).astype(float)
    return Structure(T, 1 + half, np.column_stack([1 - upper, upper, mirrored]))


def threshold_parameter_names(
    threshold: str, threshold_names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names of alpha in R's `ordinal::clm`."""
    T = len(threshold_names)
    if threshold == "flexible" or T == 1:
        return threshold_names
    if threshold == "equidistant":
        return "threshold.1", "spacing"
    centre = ("central",) if T % 2 else ("central.1", "central.2")
    spacings = structure_of(threshold, T).q - len(centre)
    return centre + tuple(f"spacing.{k}" for k in range(1, spacings + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Columns, parameters and rows of a cumulative model.

    Attributes
    ----------
    X : (n, D) array, CSR, or Rows
        All columns, in the units of the data.
    location, nominal, scale : (d,), (m,), (k,) int arrays
        Indices of the columns that have coefficients beta, nu and zeta.
    offset : (n,) or (n, T) array, or None
        One for all thresholds of a row, or one per threshold.
    rank : (n,) int32
        0..T among the ranks that are present; rows of weight 0 may have any of these.
    lower : (n,) int32, or None
        First possible rank of each row, where `rank` is the last one; None if all ranks
        are known.
    weight : (n,) array
    total : float
        Sum W of the weights.
    J : Structure
    centre, spread : (D,) arrays
    unit : (D,) array, or None
        Units of the columns in which coefficients are penalised; None for those of X.
    """

    X: Any
    location: np.ndarray
    nominal: np.ndarray
    scale: np.ndarray
    offset: np.ndarray | None
    rank: np.ndarray
    weight: np.ndarray
    total: float
    J: Structure
    centre: np.ndarray
    spread: np.ndarray
    unit: np.ndarray | None = None
    lower: np.ndarray | None = None

    @classmethod
    def from_problem(
        cls,
        problem: Problem,
        location: np.ndarray,
        nominal: np.ndarray,
        scale: np.ndarray,
        offset: np.ndarray | None,
        threshold: str,
        unit: np.ndarray | None = None,
    ) -> Design:
        """Make the design of the rows of a problem."""
        total, X = float(problem.weight.sum()), cast(Any, problem.X)
        centre, spread = moments_of(problem, total)
        J = structure_of(threshold, int(np.count_nonzero(problem.present)) - 1)
        if offset is not None:
            check_beside(X, "offset")
        codes = problem.among_present
        if isinstance(X, Rows):  # others have their ranks beside them
            X = X.with_codes(codes)
        return cls(
            X, location, nominal, scale, offset,
            codes[problem.rank], problem.weight, total, J=J, centre=centre,
            spread=spread, unit=unit,
            lower=None if problem.lower is None else codes[problem.lower],
        )  # fmt: skip

    def every(self, step: int) -> Design:
        """Return the design of every `step`-th row of a dense X."""
        rows = slice(None, None, step)
        # The kernels take contiguous arrays, which a stride is not.
        weight = np.ascontiguousarray(self.weight[rows])
        return replace(
            self,
            X=every_row(self.X, step),
            offset=None if self.offset is None else self.offset[rows].copy(),
            rank=np.ascontiguousarray(self.rank[rows]),
            lower=None if self.lower is None else self.lower[rows].copy(),
            weight=weight,
            total=float(weight.sum()),
        )

    def of_columns(self, which: np.ndarray) -> Design:
        """Return the design with a copy of some columns of the location.

        Columns of nominal effects and of the scale stay.

        Raises
        ------
        OutOfTime
            The time of the caller is up (`check_cancelled`).
        """
        some = replace(self, location=self.location[which])
        # A column that is in several parts is copied once.
        parts = some.location, some.nominal, some.scale
        return some.with_columns(np.unique(np.concatenate(parts)))

    def with_columns(self, columns: np.ndarray) -> Design:
        """Return the design with a copy of some columns only.

        `columns` are increasing, and include all that have a coefficient.
        """
        X = np.empty((self.n_samples, columns.size))
        for rows in strips(self.n_samples, CHUNK):
            check_cancelled()
            X[rows] = block(self.X, rows, columns)
        return replace(
            self,
            X=X,
            location=np.searchsorted(columns, self.location),
            nominal=np.searchsorted(columns, self.nominal),
            scale=np.searchsorted(columns, self.scale),
            centre=self.centre[columns],
            spread=self.spread[columns],
            unit=None if self.unit is None else self.unit[columns],
        )

    def summed(self, call: Callable[[Design], Parts], n_threads: int = 1) -> Parts:
        """Return the sum of call(design of a chunk) over all chunks of rows.

        The function may be sent to workers. `total` of its design is that of all rows.
        """
        beside = tuple(self._row_vectors.values())
        return sum_of_chunks(self.X, self._of_part(call), beside, n_threads)

    def of_chunks(self, call: Callable[[Design], np.ndarray]) -> np.ndarray:
        """Return call(design of a chunk) of all chunks, stacked, (chunks, k)."""
        beside = tuple(self._row_vectors.values())
        return stack_of_chunks(self.X, self._of_part(call), beside)

    @property
    def _row_vectors(self) -> dict[str, np.ndarray]:
        """The fields with an entry per row, by name: ranks and weights come first."""
        more = {"offset": self.offset, "lower": self.lower}
        known = {name: a for name, a in more.items() if a is not None}
        return {"rank": self.rank, "weight": self.weight, **known}

    def _of_part(self, call: Callable[[Design], Result]) -> Callable[..., Result]:
        """Return a function of the rows of a chunk from one of its design."""
        # Workers have the rows, which must not be sent along.
        none = np.empty(0)
        empty = replace(self, X=none, rank=none, weight=none, offset=None, lower=None)
        return partial(_call_of_part, call, empty, tuple(self._row_vectors))

    @property
    def is_chunked(self) -> bool:
        """Return whether the rows are read again at every pass."""
        return isinstance(self.X, Rows)

    @property
    def is_sparse(self) -> bool:
        """Return whether the columns are sparse, in memory or in chunks."""
        return bool(self.X.is_sparse) if self.is_chunked else is_sparse(self.X)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def T(self) -> int:
        """The number of thresholds."""
        return self.J.T

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The numbers of parameters alpha, nu*, beta and zeta."""
        q, m = self.J.q, self.nominal.size
        return q, q * m, self.location.size, self.scale.size

    @property
    def penalised_spread(self) -> np.ndarray:
        """Spreads of the columns of beta in the units of the penalties, (d,)."""
        unit = 1.0 if self.unit is None else self.unit[self.location]
        return np.asarray(self.spread[self.location] / unit)

    @property
    def n_parameters(self) -> int:
        return sum(self.sizes)

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """Split parameters (p,) into alpha (q,), nu* (q, m), beta (d,), zeta (k,)."""
        alpha, nu, beta, zeta = np.split(x, np.cumsum(self.sizes)[:3])
        return [alpha, nu.reshape(alpha.size, -1), beta, zeta]

    def raw(self, x: np.ndarray) -> np.ndarray:
        """Convert parameters of scaled columns to those of the columns in their units.

        `x` is (p,), or (p, k) for k vectors of parameters; the map is linear.
        """
        q, qm, d, _ = self.sizes
        factor = np.concatenate(
            [
                np.ones(q),
                np.tile(1 / self.spread[self.nominal], q),
                1 / self.spread[self.location],
                1 / self.spread[self.scale],
            ]
        )
        out: np.ndarray = (x.T * factor).T
        shift = self.centre[self.location] @ out[q + qm : q + qm + d]
        # Solvers see centred columns: x - centre moves every threshold by beta'centre.
        out[:q] += np.multiply.outer(self.unit_shift(), shift)
        if qm:
            slopes = out[q : q + qm].reshape(q, self.nominal.size, *out.shape[1:])
            out[:q] += np.einsum("qm...,m->q...", slopes, self.centre[self.nominal])
        return out

    def unit_shift(self) -> np.ndarray:
        """Return the alpha with J alpha = 1, (q,), which every structure has.

        It shifts all thresholds by 1, and in nu* it is one slope at all of them.
        """
        # Rounded, because least squares leave 1e-16 where the structure has 0.
        return np.asarray(self.alpha_of(np.ones(self.T)).round(12))

    def alpha_of(self, theta: np.ndarray) -> np.ndarray:
        """Return the alpha, (q,), with J alpha nearest to theta, (T,)."""
        if self.is_flexible:
            return theta.copy()
        return np.asarray(np.linalg.lstsq(self.J.dense(), theta, rcond=None)[0])

    def columns(self, rows: slice, which: np.ndarray) -> np.ndarray:
        """Return some columns of some rows, centred and scaled for the solvers."""
        centred = block(self.X, rows, which) - self.centre[which]
        return np.asarray(centred / self.spread[which])

    def score(self, beta: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Return x'beta of some rows, where x is centred and scaled."""
        slopes = np.zeros(self.centre.size)
        slopes[self.location] = beta / self.spread[self.location]
        # All rows at once may come in chunks, or from workers.
        X = self.X if rows == slice(None) else rows_of(self.X, rows)
        return product(X, slopes) - self.centre @ slopes

    def scale_columns(self, rows: slice) -> np.ndarray:
        """Return the columns of the scale for some rows, scaled but not centred."""
        return np.asarray(block(self.X, rows, self.scale) / self.spread[self.scale])

    def of_slots(self, A: np.ndarray) -> np.ndarray:
        """Convert derivatives by (theta_t, nu_t) to derivatives by (alpha, nu*).

        A has the former in its rows, (T (1 + m), k), threshold by threshold; the result
        is (q + q m, k).
        """
        M, width = 1 + self.nominal.size, A.shape[1]
        by_u = A.reshape(self.T, M, width)
        # The product with J = I would cost T^2 operations per column.
        if not self.is_flexible:
            by_u = np.tensordot(self.J.dense(), by_u, (0, 0))
        slopes = by_u[:, 1:].reshape(len(by_u) * (M - 1), width)
        return np.vstack([by_u[:, 0], slopes])

    def slots(self) -> np.ndarray:
        """Return the indices of (alpha_t, nu_t) among the parameters, (q (1 + m),).

        They come threshold by threshold. The thresholds must be flexible.
        """
        q, m = self.J.q, self.nominal.size
        nu = q + np.arange(q * m).reshape(q, m)
        return np.column_stack([np.arange(q), nu]).ravel()

    @property
    def is_flexible(self) -> bool:
        """Return whether J is I; two equidistant thresholds have another square J."""
        return self.J.matrix is None

    @property
    def has_many(self) -> bool:
        """Return whether there are too many features for a Hessian.

        Intervals of ranks couple thresholds that are not neighbours, so that all
        parameters count.
        """
        counted = self.sizes if self.lower is not None else self.sizes[1:]
        return sum(counted) > HESSIAN_COLUMNS

    @property
    def is_rowwise(self) -> bool:
        """Return whether the derivatives of the loss are computed row by row."""
        by_row = self.has_many or self.is_shifted or self.lower is not None
        return self.is_sparse or by_row

    @property
    def first(self) -> np.ndarray:
        """The first possible rank of each row, (n,)."""
        return self.rank if self.lower is None else self.lower

    @property
    def is_shifted(self) -> bool:
        """Return whether offsets differ by threshold."""
        return self.offset is not None and self.offset.ndim == 2

    def offset_ends(
        self, rows: slice = slice(None)
    ) -> tuple[np.ndarray | float, np.ndarray | float]:
        """Return the offsets of rows at the thresholds above and below their ranks.

        At the first and the last rank, which have only one, the other offset is 0.
        """
        if self.offset is None:
            return 0.0, 0.0
        known, rank = self.offset[rows], self.rank[rows]
        if known.ndim == 1:
            return known, known
        padded, row = np.pad(known, ((0, 0), (1, 1))), np.arange(rank.size)
        return padded[row, rank + 1], padded[row, self.first[rows]]

    def uncrossed(self, alpha: np.ndarray) -> np.ndarray:
        """Return alpha with thresholds far enough apart to cross at no row.

        Offsets by threshold make them cross where they grow faster than thresholds do.
        """
        if not self.is_shifted or self.T == 1:
            return alpha
        assert self.offset is not None
        theta = self.J @ alpha
        most = np.diff(self.offset[self.weight > 0]).max(axis=0)
        gaps = np.diff(theta)
        if (gaps > most).all():
            return alpha
        gaps = np.where(gaps > most, gaps, most + 1)
        if not self.is_flexible:  # equal distances exist in all structures
            gaps[:] = gaps.max()
        return self.alpha_of(
            theta.mean() + np.append(0.0, np.cumsum(gaps)) - gaps.sum() / 2
        )

    def level(self, size: int) -> np.ndarray:
        """Return `size` parameters of 0, but thresholds at the mean of the offset."""
        x = np.zeros(size)
        if self.offset is not None:
            mean = self.weight @ self.offset / self.total
            q = self.J.q
            x[:q] = self.alpha_of(mean) if self.is_shifted else mean * self.unit_shift()
        return x

    def enlarged(self, x: np.ndarray, factor: float) -> np.ndarray:
        """Multiply parameters without zeta, relative to the mean offset."""
        level = self.level(x.size)
        return np.asarray(level + factor * (x - level))

    def crossings(self, alpha: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """Count the rows with weight where a threshold exceeds the next one, (T - 1,).

        `alpha` (q,) and `nu` (q, m) are those of the columns in their units.
        """
        theta, slopes = self.J @ alpha, self.J @ nu
        return self.summed(partial(_crossings, theta, slopes))[0]

    def mass(self) -> np.ndarray:
        """Return the weight of each rank, (T + 1,); of intervals, an estimate of it."""
        if self.lower is not None:
            return masses(self.lower, self.rank, self.weight, self.T + 1)
        mass = np.zeros(self.T + 1)
        for rows in strips(self.n_samples, _COUNTED):
            mass += np.bincount(self.rank[rows], self.weight[rows], self.T + 1)
        return mass


def masses(
    lower: np.ndarray, upper: np.ndarray, weight: np.ndarray, r: int
) -> np.ndarray:
    """Return weights of r ranks near Turnbull's estimate, (r,), by a few steps of EM.

    All of them are positive.
    """
    used = weight > 0  # others may hold only ranks whose mass is lost by rounding
    numbers = lower[used] * np.int64(r) + upper[used]
    pairs, place = np.unique(numbers, return_inverse=True)
    low, high = np.divmod(pairs, r)
    weight = np.bincount(place, weight[used])
    mass = np.full(r, weight.sum() / r)
    for _ in range(_EM_STEPS):
        below = np.append(0.0, np.cumsum(mass))
        density = weight / (below[high + 1] - below[low])
        change = np.bincount(low, density, r + 1) - np.bincount(
            high + 1, density, r + 1
        )
        # An interval that adds and subtracts its density may leave less than 0.
        mass = mass * np.maximum(np.cumsum(change[:r]), _LEAST_SHARE)
    return mass


def _call_of_part(
    call: Callable[[Design], Result],
    empty: Design,
    names: Sequence[str],
    X: Matrix,
    *by_row: np.ndarray,
) -> Result:
    """Call a function of the design of one chunk, perhaps on a worker.

    `by_row` are the fields `names` of the rows of the chunk.
    """
    parts: dict[str, Any] = dict(zip(names, by_row, strict=True))
    parts["weight"] = np.ascontiguousarray(parts["weight"])
    return call(replace(empty, X=X, **parts))


def _crossings(theta: np.ndarray, slopes: np.ndarray, D: Design) -> Parts:
    """Return the contribution of a chunk to `Design.crossings`."""
    count = np.zeros(D.T - 1, dtype=np.int64)
    for rows in strips(len(D.weight), max(1, _ENTRIES // D.T)):
        used = D.weight[rows] > 0
        thresholds = theta - block(D.X, rows, D.nominal)[used] @ slopes.T
        if D.is_shifted:
            assert D.offset is not None
            thresholds -= D.offset[rows][used]
        count += np.count_nonzero(thresholds[:, :-1] > thresholds[:, 1:], axis=0)
    return (count,)


def l2_penalties(l2: float, spread: np.ndarray) -> np.ndarray:
    """Return the ridge penalties of scaled columns, (d,).

    `l2` is the penalty of columns in their units. The result is finite even for columns
    with almost no spread, where 0 times an infinite penalty would be NaN.
    """
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(l2 / spread / spread, _LARGEST_PENALTY))


def l1_penalties(l1: float, spread: np.ndarray) -> np.ndarray:
    """Return the lasso penalties of scaled columns, (d,), finite as `l2_penalties`."""
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(l1 / spread, _LARGEST_PENALTY))
