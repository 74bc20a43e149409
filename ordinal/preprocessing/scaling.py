"""Tables of numbers: standardisation, imputation of missing entries, and binning.

Missing entries are replaced by those of the table of low rank that is nearest to the
known entries,

    min_A  sum_ij W_ij (X_ij - A_ij)^2   s.t.  A has rank at most `rank`             (E)

N. Srebro, T. Jaakkola, "Weighted low-rank approximations", ICML 2003, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, repeat
from typing import Annotated, ClassVar, cast

import numpy as np

from .._input.checks import (
    as_array,
    as_real_array,
    check_count,
    check_entries,
    check_positive,
    shown,
    with_suggestions,
)
from .._input.columns import feature_names, numbers_of
from .._input.features import read_dense
from .._input.fields import (
    FINITE,
    INCREASING,
    Array,
    Length,
    Rule,
    check_fields,
    field_values,
)
from .._input.immutable import read_only
from .._input.labels import sample_weights
from .._input.types import ArrayLike, MatrixLike
from .._input.warning import warn
from .._model.storage import Storable
from .._numerics.cholesky import pivoted_cholesky
from .._numerics.rows import inner, matmul, strips
from .._rows.first_pass import ChunkedProblem
from .._rows.source import CHUNK
from .._rows.sums import Moments, standardize
from .._watch.convergence import warn_of_unnamed
from ..exceptions import ConvergenceWarning
from .base import ColumnPreprocessor

_TINY = np.finfo(np.float64).tiny
_NORMAL = Rule("be positive and not subnormal", lambda a: a >= _TINY)


@dataclass(frozen=True, slots=True, eq=False)
class Standardizer(ColumnPreprocessor):
    """Standardisation (X - mean) / scale with moments of the training rows.

    A column that is constant in the training rows has an infinite scale: it becomes 0
    in all rows, whatever its value in new ones, because no fit can learn its effect. A
    column counts as constant if all values are equal, or if its standard deviation is
    at most 4 ulp of the mean or below 1e-307, whose reciprocal would overflow.

    Attributes
    ----------
    mean : (d,) float64
    scale : (d,) float64, > 0
        Population standard deviations (ddof 0), as is usual for features; infinite for
        a constant column.
    feature_names : tuple of (d,) str, or None
        Names of the columns of the training data frame, by which columns are found.

    Examples
    --------
    >>> s = Standardizer.fit([[1.0, 7.0], [3.0, 7.0]])
    >>> s.transform([[5.0, 7.0], [5.0, 9.0]])
    array([[3., 0.],
           [3., 0.]])
    """

    by_column: ClassVar[bool] = True
    mean: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    scale: Annotated[np.ndarray, Array("f8", "d"), _NORMAL]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "scale"):
            values = as_real_array(getattr(self, name), name)
            object.__setattr__(self, name, read_only(values))
        check_fields(type(self), field_values(self))

    def _check(self) -> None:
        if not self.mean.size:
            raise ValueError("mean must not be empty")

    @classmethod
    def fit(cls, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Standardizer:
        """Compute mean and standard deviation of each column, in O(n d).

        Parameters
        ----------
        X : (n, d) array_like or data frame
            Finite values; those near the largest double do not overflow.
        sample_weight : (n,) array_like, optional
            Weights >= 0, not all 0; weight 2 has the same effect as writing the row
            twice, weight 0 as leaving it out. Default: 1 for all rows.

        Raises
        ------
        ValueError
            If `X` is empty, not 2-dimensional or not finite, or if a weight is invalid.
        TypeError
            If `X` is sparse, because the result would not be.
        """
        names = feature_names(X)
        X = read_dense(X)
        w = sample_weights(sample_weight, X.shape[0])  # not all of which are 0
        # in the chunks in which rows of a source come
        chunks = (slice(i, i + CHUNK) for i in range(0, len(w), CHUNK))
        moments = Moments.of_parts((X[rows], w[rows]) for rows in chunks)
        return cls(*cast(Moments, moments).mean_and_scale(), names)

    @classmethod
    def _fit_chunks(
        cls, problem: ChunkedProblem
    ) -> tuple[Standardizer, ChunkedProblem]:
        """Measure rows that are read in chunks, by their moments.

        Returns the standardizer, and the rows as it makes them.
        """
        moments = cast(Moments, problem.moments)
        mean, scale = moments.mean_and_scale()
        made = cls(mean, scale, problem.feature_names)
        return made, problem.transformed(
            made.transform, moments.standardized(mean, scale)
        )

    @property
    def n_features(self) -> int:
        """Return the number of columns, d."""
        return self.mean.size

    @property
    def feature_names_out(self) -> tuple[str, ...] | None:
        """Names of the resulting columns, which are those of the table."""
        return self.feature_names

    @property
    def raw_names_out(self) -> tuple[str, ...] | None:
        """Every feature is a column of the table."""
        return self.feature_names

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return the standardised rows, a new C-contiguous (n, d) float64 array.

        Raises
        ------
        ValueError
            If `X` has another number of columns, lacks a column or is not finite, or
            holds a value so far from the mean that the result is not finite.
        """
        given = X
        X = read_dense(X, self.mean.size, feature_names=self.feature_names, empty=True)
        warn_of_unnamed(given, self.feature_names)
        return self._standardized(X, np.empty(X.shape))

    def _standardized(self, X: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Return X standardised in `out`, which may be X; errors as in `transform`."""
        for rows in strips(len(X), CHUNK):
            Z = standardize(X[rows], self.mean, self.scale)
            if not np.isfinite(Z).all():
                row, column = np.argwhere(~np.isfinite(Z))[0]
                raise ValueError(
                    f"X[{rows.start + row}, {column}] = {X[rows][row, column]} "
                    f"overflows: the column has mean {self.mean[column]} and deviation "
                    f"{self.scale[column]}"
                )
            out[rows] = Z
        return out


def units(scale: np.ndarray) -> np.ndarray:
    """Return scales as finite units of the columns, 1 for a constant column."""
    return np.where(np.isinf(scale), 1.0, scale)


_MORE = 8  # directions of the power method beside those of the approximation
_FIRST_STEPS = 20  # of it on the table to begin with: enough that where EM ends is the
# same as from singular vectors, on 60 of 60 random tables (with none, on 56)


def low_rank(
    X: np.ndarray, W: np.ndarray, rank: int, tol: float, max_iter: int
) -> tuple[np.ndarray, list[float], float]:
    """Replace the missing entries of a table by those of one of low rank.

    Find A of (E) by EM, for a finite X and weights W in [0, 1]. O(n d rank) per step.

    Every step puts A into the entries without weight and takes the best approximation
    of the table that this fills, by a step of the power method from the one before.
    That never makes (E) worse. A begins at the mean of all entries with a higher rank,
    which then falls by one a step; the steps at `rank` end with one that lowers (E) by
    at most the share `tol` of it, or after `max_iter`.

    Returns A, the value of (E) after every step at `rank`, and the share of it by which
    the last step lowered it; 0 where X is met to rounding.
    """
    exact = 1e-28 * float(np.vdot(W * X, X))  # rounding, from which nothing falls
    size = min(rank + _MORE, *X.shape)
    A = np.full(X.shape, np.average(X, weights=W))
    residual, table = np.empty_like(X), np.empty_like(X)

    def error() -> float:
        """Fill `residual` with X - A and `table` with A + W (X - A), and return (E).

        `table` is A where nothing is known. Strips of rows let Ctrl-C have its turn.
        """
        for rows in strips(len(X)):
            np.subtract(X[rows], A[rows], out=residual[rows])
            np.multiply(W[rows], residual[rows], out=table[rows])
        value = float(np.vdot(table, residual))
        for rows in strips(len(X)):
            table[rows] += A[rows]
        return value

    error()
    V = _first_directions(table, size)
    errors, fall = [np.inf], 1.0
    for k in chain(range(size, rank, -1), repeat(rank, max_iter)):
        U, s, V = _power_step(table, V)
        A = matmul(U[:, :k] * s[:k], V[:k])
        value = error()
        if k > rank:
            continue
        errors.append(value)
        fall = 1 - errors[-1] / errors[-2] if errors[-1] > exact else 0.0
        if fall <= tol:
            break
    return A, errors[1:], fall


def _power_step(
    table: np.ndarray, V: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the singular values and vectors of the best approximation of a table with
    columns from the span of table V'.

    Of any rank it is at least as good as one whose rows are in the span of V.
    """
    Q = np.linalg.qr(matmul(table, V.T))[0]
    P, s, V = np.linalg.svd(inner(Q, table), full_matrices=False)
    return matmul(Q, P), s, V


def _first_directions(table: np.ndarray, size: int) -> np.ndarray:
    """Orthonormal rows near the leading `size` right singular vectors of a table: from
    rows of it that tell most about the others, by the power method.

    A singular value decomposition would have them exactly, at a cost of n d min(n, d)
    in one call of LAPACK that nothing can interrupt.
    """

    def products(
        rows: np.ndarray | slice, columns: np.ndarray, out: np.ndarray
    ) -> None:
        np.matmul(table[rows], table[columns].T, out=out)

    norms = np.einsum("ij,ij->i", table, table)
    if not norms.any():
        return np.eye(size, table.shape[1])
    pivots = pivoted_cholesky(norms, products, size)[1]
    V = np.linalg.qr(table[pivots].T)[0].T
    for _ in range(_FIRST_STEPS):
        V = _power_step(table, V)[2]
    return V


@with_suggestions
def impute_low_rank(
    X: ArrayLike,
    rank: int = 2,
    *,
    weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 5000,
) -> np.ndarray:
    """Fill in missing values of a numeric table by a low-rank approximation A.

        min_A  sum_ij W_ij (X_ij - A_ij)^2   s.t.  A has rank at most `rank`.       (E)

    The EM algorithm finds a local minimum: in every step A becomes the best
    approximation of W X + (1 - W) A, which never increases (E). The approximation is
    one step of the power method from the previous one, in O(n d rank) operations.

    Parameters
    ----------
    X : (n, d) array_like
        Table in which NaN marks a missing entry.
    rank : int, default 2
        Rank of A, less than n and d. The table is not centred: a mean per row or per
        column takes one rank.
    weight : (n, d) array_like in [0, 1], optional
        Weights W of the entries, 1 by default; 0 is the same as missing.
    tol : float > 0, default 1e-6
        Tolerance: EM ends with a step that lowers (E) by at most this share of it. If
        few entries are known, steps are short, so that many may be needed to reach the
        minimum.
    max_iter : int, default 5000
        Limit on the number of EM steps.

    Returns
    -------
    (n, d) float64 array
        `X` where weights are positive, A elsewhere. If a row or column has fewer than
        `rank` entries of positive weight, (E) does not determine the others, which then
        depend on the starting point, the mean of all entries.

    Raises
    ------
    ValueError
        If `X` is not 2-dimensional or has infinite entries, if a row or column has no
        entry of positive weight, or if another argument is invalid.
    TypeError
        If `X` is sparse, because the entries that it does not store are 0, not missing.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps did not reach `tol`.

    See Also
    --------
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.

    Notes
    -----
    N. Srebro, T. Jaakkola, "Weighted low-rank approximations", ICML 2003, section 3.
    As they advise, A begins with a higher rank, which is lowered by one per step. With
    this and the mean of all entries as starting point, EM ended in a worse local
    minimum less often than with the means of columns or 0 as starting point, or with
    `rank` from the first step on.

    Examples
    --------
    >>> from ordinal.preprocessing import impute_low_rank
    >>> nan = float("nan")
    >>> impute_low_rank([[1, 2, 3], [2, 4, nan], [3, nan, 9]], rank=1).round(3)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """
    X = read_dense(X, missing=True)
    rank = check_count("rank", rank)
    max_iter = check_count("max_iter", max_iter)
    tol = check_positive("tol", tol)
    if rank >= min(X.shape):
        raise ValueError(
            f"rank must be less than {min(X.shape)}, the smaller side of X, got "
            f"{shown(rank)}"
        )
    W = np.where(np.isnan(X), 0.0, _entry_weights(weight, X.shape))
    for axis, line in enumerate(("column", "row")):
        empty = np.flatnonzero(~W.any(axis=axis))
        if empty.size:
            raise ValueError(
                f"{line} {empty[0]} of X has no observed entry to impute from: drop it"
            )
    # Squares of numbers in (-1, 1) neither overflow nor vanish.
    exponent = np.frexp(np.abs(X[W > 0]).max())[1]
    scaled = np.ldexp(np.where(W > 0, X, 0.0), -exponent)
    A, errors, fall = low_rank(scaled, W, rank, tol, max_iter)
    if fall > tol:
        warn(
            f"impute_low_rank: max_iter after {len(errors)} steps, the last of which "
            f"lowered the error by {fall:.2e} of it against tol {tol:.2e}; raise "
            "max_iter or tol, or lower rank",
            ConvergenceWarning,
        )
    return np.where(W > 0, X, np.ldexp(A, exponent))


def _entry_weights(weight: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    if weight is None:
        return np.ones(shape)
    w = read_dense(weight, name="weight")
    if w.shape != shape:
        raise ValueError(f"weight has shape {w.shape}, expected {shape} as X")
    check_entries("weight", w, (w >= 0) & (w <= 1), "be in [0, 1]")
    return w


_MOST_BINS = 10**6  # edges that fit in memory; no method fits as many ranks


@dataclass(frozen=True, slots=True, eq=False)
class Binning(Storable):
    """Division of a numeric target into ranks 1..n_bins by bins closed on the right.

    Rank k holds edges[k-2] < value <= edges[k-1]. The outer bins have no outer edge, so
    that new values beyond the training range get the first or the last rank.

    Attributes
    ----------
    edges : (n_bins - 1,) array_like, finite and strictly increasing

    Raises
    ------
    ValueError
        If `edges` are not finite and strictly increasing.

    Examples
    --------
    >>> Binning([1.0, 2.0]).transform([0.5, 1.0, 1.5, 9.0])
    array([1, 1, 2, 3])
    """

    edges: Annotated[np.ndarray, Array("f8", "_"), FINITE, INCREASING]

    def __post_init__(self) -> None:
        edges = as_real_array(self.edges, "edges")
        if edges.ndim != 1 or edges.size == 0 or not np.isfinite(edges).all():
            raise ValueError(
                f"edges must be a finite, non-empty vector, got {shown(edges)}"
            )
        if not np.all(edges[:-1] < edges[1:]):
            raise ValueError(f"edges must be strictly increasing, got {shown(edges)}")
        object.__setattr__(self, "edges", read_only(edges))

    @classmethod
    def equal_frequency(cls, values: ArrayLike, n_bins: int) -> Binning:
        """Return bins with numbers of `values` that are as equal as possible.

        Edge k is the smallest value that at least k/n_bins of all values do not exceed,
        so that ties always have the same rank.

        Parameters
        ----------
        values : (n,) array_like, finite
        n_bins : int, at least 2

        Raises
        ------
        ValueError
            If ties leave a bin empty (the message says how many bins remain), or if an
            argument is invalid.

        Examples
        --------
        >>> Binning.equal_frequency([5, 1, 2, 3, 8, 4], 3).edges
        array([2., 4.])
        """
        values = np.sort(_values(values, n_bins))
        # ceil(k n / n_bins) - 1 in integers, where rounding cannot move an edge; n bins
        # or more have all values for edges
        n = values.size
        k = np.arange(1, min(n_bins, n))
        edges = values[-(-k * n // min(n_bins, n)) - 1]
        distinct = np.unique(edges[edges < values[-1]])
        if distinct.size < n_bins - 1:
            raise ValueError(
                f"ties leave only {distinct.size + 1} distinct bins of the "
                f"n_bins={n_bins} asked for; take fewer bins or equal lengths"
            )
        return cls(edges)

    @classmethod
    def equal_length(cls, values: ArrayLike, n_bins: int) -> Binning:
        """Return bins of equal length between the smallest and the largest value.

        Inner bins may be empty; their ranks then do not occur.

        Parameters
        ----------
        values : (n,) array_like, finite
        n_bins : int, at least 2

        Raises
        ------
        ValueError
            If the values are too close together for edges between them, if there are
            more than a million bins, or if an argument is invalid.

        Examples
        --------
        >>> Binning.equal_length([0.0, 1.0, 9.0], 3).edges
        array([3., 6.])
        """
        values = _values(values, n_bins)
        if n_bins > _MOST_BINS:
            raise ValueError(
                f"n_bins must be at most {_MOST_BINS} for bins of equal length, got "
                f"{n_bins}"
            )
        low, high = values.min(), values.max()
        share = np.arange(1, n_bins) / n_bins
        edges = low * (1 - share) + high * share  # high - low could overflow
        if not np.all(np.diff(edges, prepend=low, append=high) > 0):
            raise ValueError(
                f"{n_bins} bins of equal length do not fit between {low} and {high}"
            )
        return cls(edges)

    def transform(self, values: ArrayLike) -> np.ndarray:
        """Return ranks 1..n_bins, (n,) int64.

        Raises ValueError, which names the row of an invalid value.
        """
        return 1 + np.searchsorted(self.edges, _values(values), side="left")


def _values(values: ArrayLike, n_bins: int | None = None) -> np.ndarray:
    if n_bins is not None:
        check_count("n_bins", n_bins, 2)
    values = as_array(values, "values")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"values must be 1-dimensional and non-empty, got shape {values.shape}"
        )
    values = numbers_of(values, "values")
    check_entries("values", values, np.isfinite(values), "be finite")
    return values
