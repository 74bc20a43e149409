"""Features of mean 0 and deviation 1."""

from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np

from .._input.checks import as_real_array
from .._input.columns import feature_names
from .._input.features import read_dense
from .._input.fields import FINITE, Array, Length, Rule, check_fields, field_values
from .._input.sparse import read_only
from .._input.types import ArrayLike, MatrixLike
from .._input.weights import sample_weights
from .._model.storage import Storable
from .._rows.moments import Moments
from .._rows.source import CHUNK
from .._watch.convergence import warn_of_unnamed

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
            object.__setattr__(self, name, read_only(values))
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
        X = read_dense(X)
        w = sample_weights(sample_weight, X.shape[0])  # not all of which are 0
        # in the chunks in which rows of a source come
        chunks = (slice(i, i + CHUNK) for i in range(0, len(w), CHUNK))
        moments = Moments.of_parts((X[rows], w[rows]) for rows in chunks)
        return standardizer_of(cast(Moments, moments), names)

    @property
    def n_features(self) -> int:
        """Return the number of columns, d."""
        return self.mean.size

    @property
    def feature_names_out(self) -> tuple[str, ...] | None:
        """The columns keep their names."""
        return self.feature_names

    def transform(self, X: MatrixLike) -> np.ndarray:
        """(n, d) float64, C-contiguous: a new array.

        Raises
        ------
        ValueError
            If `X` has another width, lacks a column or is not finite, or holds a value
            so far from the mean that its score is not finite.
        """
        warn_of_unnamed(X, self.feature_names)
        X = read_dense(X, self.mean.size, feature_names=self.feature_names, empty=True)
        with np.errstate(over="ignore", under="ignore"):
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


def standardizer_of(moments: Moments, names: tuple[str, ...] | None) -> Standardizer:
    """Make a standardizer from the moments of the rows."""
    mean, scale = moments.mean_and_scale()
    return Standardizer(mean, scale, names)
