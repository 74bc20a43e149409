"""What happens to a table before a fit: scaling, missing entries, bins of a target."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ._input.checks import (
    as_array,
    as_real_array,
    check_count,
    check_entries,
    check_positive,
    shown,
)
from ._input.columns import feature_names, numbers_of
from ._input.features import read_features
from ._input.sparse import CSR, frozen
from ._input.types import ArrayLike, MatrixLike
from ._input.weights import sample_weights
from ._model.convergence import Convergence, ConvergenceWarning, warn
from ._model.fields import (
    FINITE,
    INCREASING,
    Array,
    Length,
    Rule,
    check_fields,
    field_values,
)
from ._model.files import Storable
from ._model.model import Model
from ._numerics.imputation import low_rank

__all__ = ["Binning", "StandardizedModel", "Standardizer", "impute_low_rank"]


def __dir__() -> list[str]:
    return __all__


_EPS = np.finfo(np.float64).eps
_TINY = np.finfo(np.float64).tiny
_NORMAL = Rule("be positive and not subnormal", lambda a: a >= _TINY)


@dataclass(frozen=True, slots=True, eq=False)
class Standardizer(Storable):
    """Z = (X - mean) / scale, with the mean and deviation of the training rows.

    A constant column gets scale 1, so that it becomes 0 and no division blows up
    rounding noise. Constant means: all values equal, or a deviation of at most
    4 ulp of the mean, or one below 1e-307 (whose reciprocal would overflow).

    Attributes
    ----------
    mean : (d,) float64
    scale : (d,) float64, > 0
        Population deviation (ddof 0), as is usual for features.
    feature_names : tuple of (d,) str, or None
        Columns of the data frame that was measured, which are then found by name.

    Examples
    --------
    >>> s = Standardizer.fit([[1.0, 7.0], [3.0, 7.0]])
    >>> s.transform([[5.0, 7.0]])
    array([[3., 0.]])
    """

    mean: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    scale: Annotated[np.ndarray, Array("f8", "d"), FINITE, _NORMAL]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "scale"):
            values = as_real_array(getattr(self, name), name)
            object.__setattr__(self, name, frozen(values))
        check_fields(type(self), field_values(self))

    def _check(self) -> None:
        if not self.mean.size:
            raise ValueError("mean must not be empty")

    @classmethod
    def fit(
        cls, X: MatrixLike, sample_weight: ArrayLike | None = None
    ) -> "Standardizer":
        """Measure the mean and the deviation of each column, in O(n d).

        Parameters
        ----------
        X : (n, d) array_like or data frame
            Finite; values near the largest double do not overflow.
        sample_weight : (n,) array_like, optional
            Weights >= 0, not all 0; weight 2 is the row twice, weight 0 no row. By
            default every row counts once.

        Raises
        ------
        ValueError
            If `X` is empty, not 2-dimensional or not finite, or a weight is bad.
        TypeError
            If `X` is sparse: it would not stay so.
        """
        names = feature_names(X)
        X = _dense(read_features(X))
        w = sample_weights(sample_weight, X.shape[0])
        if not w.all():
            X, w = X[w > 0], w[w > 0]
        w = w / w.max()  # a sum of huge weights could overflow
        w /= w.sum()
        # Powers of two bring each column into (-1, 1) without rounding: no square
        # or sum of any finite column overflows or vanishes there.
        exponent = np.frexp(np.abs(X).max(axis=0))[1]
        Z = np.ldexp(X, -exponent)
        mean = w @ Z
        D = Z - mean
        shift = w @ D  # what rounding left of the first mean and of the weights' sum
        mean += shift
        scale = np.sqrt(np.maximum(w @ (D * D) - shift * shift, 0.0))
        # A deviation is at most the largest value; past it, rounding could overflow.
        scale = np.ldexp(np.minimum(scale, np.abs(Z).max(axis=0)), exponent)
        # Of many equal values, rounding could still make a deviation of some ulp.
        equal = (X == X[0]).all(axis=0)
        mean = np.where(equal, X[0], np.ldexp(mean, exponent))
        constant = equal | (scale <= np.maximum(4 * _EPS * np.abs(mean), 4 * _TINY))
        return cls(frozen(mean), frozen(np.where(constant, 1.0, scale)), names)

    def transform(self, X: MatrixLike) -> np.ndarray:
        """(n, d) float64, C-contiguous: a new array.

        Raises
        ------
        ValueError
            If `X` has another width, lacks a column or is not finite, or holds a value
            so far from the mean that its score is not finite.
        """
        X = _dense(read_features(X, self.mean.size, feature_names=self.feature_names))
        with np.errstate(over="ignore"):
            # Halves, as the difference of two huge numbers may overflow.
            Z = X * 0.5
            Z -= self.mean * 0.5
            Z /= self.scale * 0.5
        if not np.isfinite(Z).all():
            row, column = np.argwhere(~np.isfinite(Z))[0]
            raise ValueError(
                f"X[{row}, {column}] = {X[row, column]} overflows: the column has mean "
                f"{self.mean[column]} and deviation {self.scale[column]}"
            )
        return Z


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StandardizedModel(Model):
    """A model together with the scaling it was fitted behind: takes raw features.

    Attributes
    ----------
    standardizer : Standardizer
    model : NpsvorModel or any other model of this package
        Fitted on `standardizer.transform(X)`.

    Examples
    --------
    >>> from ordinal import datasets, fit_npsvor
    >>> X, y = datasets.make_gaussians()
    >>> s = Standardizer.fit(X)
    >>> both = StandardizedModel(s, fit_npsvor(s.transform(X), y))
    >>> both.predict([[10.0, 10.0], [20.0, 10.0]])
    array([1, 3])
    """

    standardizer: Standardizer
    model: Any

    def __post_init__(self) -> None:
        if not isinstance(self.standardizer, Standardizer):
            raise TypeError(
                f"standardizer must be a Standardizer, got {shown(self.standardizer)}"
            )
        if not hasattr(self.model, "predict"):
            raise ValueError(f"a {type(self.model).__name__} does not predict")
        if isinstance(self.model, Model) and self.model.n_features != self.n_features:
            raise ValueError(
                "standardizer and model differ in their number of features"
            )

    def _summary(self) -> dict[str, str]:
        lines = {"model": type(self.model).__name__}
        if isinstance(self.model, Model):
            # With slots, dataclass makes a second class, which super() does not know.
            own = super(StandardizedModel, self)._summary()
            lines |= self.model._summary() | own
        return lines

    @property
    def classes(self) -> np.ndarray:
        """(r,) labels in rank order."""
        return np.asarray(self.model.classes)

    @property
    def convergence(self) -> Convergence:
        """The record of the fit."""
        convergence: Convergence = self.model.convergence
        return convergence

    @property
    def n_features(self) -> int:
        """Columns of raw features."""
        return self.standardizer.mean.size

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Columns in the order of the features, if they had names."""
        return self.standardizer.feature_names

    def predict(self, X: MatrixLike, **rule: Any) -> np.ndarray:
        """(n,) labels for the rows of raw `X`, by the `rule` that `model.predict` is
        given; errors as for `Standardizer` and of the model."""
        return np.asarray(self.model.predict(self.standardizer.transform(X), **rule))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """What `model.predict_proba` gives for the rows of raw `X`."""
        return np.asarray(self.model.predict_proba(self.standardizer.transform(X)))

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """What `model.decision_function` gives for the rows of raw `X`."""
        return np.asarray(self.model.decision_function(self.standardizer.transform(X)))


@dataclass(frozen=True, slots=True, eq=False)
class Binning(Storable):
    """Cuts a numeric target into ranks 1..n_bins; bins are closed on the right.

    Rank k holds edges[k-2] < value <= edges[k-1]; the outer bins have no outer edge,
    so new values beyond the training range get the first or the last rank.

    Attributes
    ----------
    edges : (n_bins - 1,) array_like, finite and strictly increasing

    Raises
    ------
    ValueError
        If `edges` are not so.

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
        object.__setattr__(self, "edges", frozen(edges))

    @classmethod
    def equal_frequency(cls, values: ArrayLike, n_bins: int) -> "Binning":
        """Bins of as equal a number of `values` as can be.

        Edge k is the smallest value that at least k/n_bins of all values do not
        exceed, so tied values always share a rank.

        Parameters
        ----------
        values : (n,) array_like, finite
        n_bins : int, at least 2

        Raises
        ------
        ValueError
            If ties leave a bin empty (the message says how many bins are left), or
            an argument is bad.

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
    def equal_length(cls, values: ArrayLike, n_bins: int) -> "Binning":
        """Bins of equal length between the least and the largest value.

        A bin in between may hold no value; its rank then does not occur.

        Parameters
        ----------
        values : (n,) array_like, finite
        n_bins : int, at least 2

        Raises
        ------
        ValueError
            If the values are too close together to have edges in between, or an
            argument is bad.

        Examples
        --------
        >>> Binning.equal_length([0.0, 1.0, 9.0], 3).edges
        array([3., 6.])
        """
        values = _values(values, n_bins)
        low, high = values.min(), values.max()
        share = np.arange(1, n_bins) / n_bins
        edges = low * (1 - share) + high * share  # high - low could overflow
        if not np.all(np.diff(edges, prepend=low, append=high) > 0):
            raise ValueError(
                f"{n_bins} bins of equal length do not fit between {low} and {high}"
            )
        return cls(edges)

    def transform(self, values: ArrayLike) -> np.ndarray:
        """(n,) int64 ranks 1..n_bins; ValueError names the row of a bad value."""
        return 1 + np.searchsorted(self.edges, _values(values), side="left")


def impute_low_rank(
    X: ArrayLike,
    rank: int = 2,
    *,
    weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 5000,
) -> np.ndarray:
    """Fill in the missing entries of a table from a table A of low rank,

        min_A  sum_ij W_ij (X_ij - A_ij)^2   s.t.  A has rank at most `rank`.       (E)

    By EM, which finds a local minimum: A becomes the best approximation of W X +
    (1 - W) A, and that never makes (E) worse. The approximation is a step of the power
    method from the one before, in O(n d rank).

    Parameters
    ----------
    X : (n, d) array_like
        NaN where an entry is missing.
    rank : int, default 2
        Less than n and d. Nothing is centred: a level for every row, or one for every
        column, takes one rank.
    weight : (n, d) array_like in [0, 1], optional
        W, 1 by default; 0 is the same as missing.
    tol : float > 0, default 1e-6
        EM ends with a step that lowers (E) by at most this share of it. Where few
        entries are known steps are short, and it may take many to gain what is left.
    max_iter : int, default 5000
        Steps of EM.

    Returns
    -------
    (n, d) float64 array
        `X` where it has weight, elsewhere A. Of a row or column with fewer than `rank`
        entries that have weight, (E) leaves the others open; they depend on the start,
        which is the mean of all entries.

    Raises
    ------
    ValueError
        If `X` is infinite somewhere or not 2-dimensional, a row or column of it has no
        entry with weight, or another argument is bad.
    TypeError
        If `X` is sparse: what it leaves out is 0, not missing.

    Warns
    -----
    ConvergenceWarning
        `max_iter` steps did not reach `tol`.

    Notes
    -----
    N. Srebro, T. Jaakkola, "Weighted low-rank approximations", ICML 2003, section 3.
    As they advise, A begins with a higher rank, which then falls by one a step. This
    and the mean of all entries as the start end in a worse local minimum less often
    than the means of columns, 0, or `rank` from the first step.

    Examples
    --------
    >>> from ordinal.preprocessing import impute_low_rank
    >>> nan = float("nan")
    >>> impute_low_rank([[1, 2, 3], [2, 4, nan], [3, nan, 9]], rank=1).round(3)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """
    X = _dense(read_features(X, missing=True))
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
            raise ValueError(f"{line} {empty[0]} of X has no entry to go by: drop it")
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
    w = _dense(read_features(weight, name="weight"), "weight")
    if w.shape != shape:
        raise ValueError(f"weight has shape {w.shape}, expected {shape} as X")
    check_entries("weight", w, (w >= 0) & (w <= 1), "be in [0, 1]")
    return w


def _dense(X: np.ndarray | CSR, name: str = "X") -> np.ndarray:
    if isinstance(X, CSR):
        raise TypeError(f"{name} is sparse, and the result would not be: make it dense")
    return X


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
