"""Base classes of preprocessors: what fits and models know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

import numpy as np

from .._input.immutable import Immutable
from .._input.types import ArrayLike, MatrixLike
from .._model.storage import Storable
from .._rows.first_pass import ChunkedProblem


class Preprocessor(Storable):
    """Base class of fitted preprocessors, which map rows of a table to features.

    Attributes
    ----------
    n_features : int
        Number of columns of the table.
    feature_names : tuple of str, or None
        Their names.
    feature_names_out : tuple of str, or None
        Names of the features.
    raw_names_out : tuple of str, or None
        The column of the table that each feature is made of.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # as properties, dataclasses would take them for defaults

        @property
        def n_features(self) -> int: ...
        @property
        def feature_names(self) -> tuple[str, ...] | None: ...
        @property
        def feature_names_out(self) -> tuple[str, ...] | None: ...
        @property
        def raw_names_out(self) -> tuple[str, ...] | None: ...

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return the features of rows of a table, (n, m)."""
        raise NotImplementedError


class ColumnPreprocessor(Preprocessor):
    """Base class of numeric preprocessors without options.

    The class itself is passed to a fit, which may also read its rows in chunks.

    Attributes
    ----------
    by_column : bool
        Whether every feature is made of one column, and affine in its coding. Linear
        models are then stated in the columns of the table.
    """

    __slots__ = ()
    by_column: ClassVar[bool] = False

    @classmethod
    def fit(cls, X: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Return the preprocessor of a table."""
        raise NotImplementedError

    @classmethod
    def _fit_chunks(cls, problem: ChunkedProblem) -> tuple[Self, ChunkedProblem]:
        """Return the preprocessor of rows with moments, and the rows preprocessed."""
        raise NotImplementedError


class PreprocessorOptions(Immutable):
    """Base class of the options of a preprocessor that is fitted to a table.

    `by_column` is that of `ColumnPreprocessor`.
    """

    __slots__ = ()
    by_column: ClassVar[bool] = False

    def fit(
        self, X: MatrixLike, sample_weight: ArrayLike | None = None
    ) -> Preprocessor:
        """Return the preprocessor of a table."""
        raise NotImplementedError

    def _for_method(self, full_rank: bool) -> Self:
        """Return the options with defaults that a method needs.

        `full_rank` is whether no feature may be a combination of others.
        """
        raise NotImplementedError


_Columns = TypeVar("_Columns", bound=ColumnPreprocessor)
Preprocess = PreprocessorOptions | type[ColumnPreprocessor]  # fitted to training rows


def fit_to_chunks(
    how: type[_Columns], problem: ChunkedProblem
) -> tuple[_Columns, ChunkedProblem]:
    """Return the preprocessor of rows with moments, and the rows preprocessed."""
    return how._fit_chunks(problem)
