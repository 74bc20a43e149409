"""Rows of a search: how they are read, and the training rows of one fit.

A table is kept as a matrix if it holds only numbers, else as a `Frame`. Rows that a fit
reads in chunks stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypedDict, Unpack

import numpy as np

from .._input.checks import check_flag, enumerated, shown
from .._input.features import read_features, read_frame_of
from .._input.frame import Frame
from .._input.intervals import RankIntervals
from .._input.labels import ranks_of, total_weights
from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._input.types import ArrayLike, Matrix
from .._model.column_names import named
from .._model.grouping import group_numbers
from .._model.preparation import warn_of_identifiers
from .._model.registry import Content, check_intervals, method_of, unwrapped
from .._numerics.rows import take
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import read_chunks
from .._rows.rows import Rows
from ..kernels.tiles import Products
from ..preprocessing import Standardizer, TablePreprocessor
from ..preprocessing.base import Preprocess, Preprocessor, fit_to_chunks
from ..preprocessing.model import as_named, preprocess_for, reads_chunks
from .scoring import Scorer

_FILLED = "X is sparse, and standardising would fill it: pass standardize=False"
_ANYTHING: Set[Content] = frozenset({"missing", "categories", "sparse"})
_PRODUCTS_MB = 100  # memory of the cached inner products: enough for 5000 rows


class RowArguments(TypedDict):
    """Arguments of searches that say how the rows are read."""

    classes: Sequence[Any] | None
    sample_weight: ArrayLike | None
    groups: ArrayLike | None
    standardize: bool | None
    preprocess: Preprocess | None


@dataclass(frozen=True, slots=True, eq=False)
class SearchData:
    """Rows of a search, which all of its tasks share.

    Attributes
    ----------
    X : (n, d) array, CSR, Frame or Rows
        A Frame only if there are columns of categories.
    feature_names : tuple of (d,) str, or None
    y : (n,) array of labels, or RankIntervals
    classes : (r,) array
    weight : (n,) array or None
    group : (n,) int array or None
        Number of each row's group; rows of a group are in the same fold.
    preprocess : TablePreprocessor, the class Standardizer, or None
        Preprocessor that is fitted to the training rows of every fit.
    chunked : ChunkedProblem or None
        Source of X, y and weight if rows are read in chunks.
    """

    X: np.ndarray | CSR | Frame | Rows
    feature_names: tuple[str, ...] | None
    y: np.ndarray | RankIntervals
    classes: np.ndarray
    weight: np.ndarray | None = None
    group: np.ndarray | None = None
    preprocess: Preprocess | None = None
    chunked: ChunkedProblem | None = None

    @classmethod
    def from_arguments(
        cls,
        fit: Callable[..., Any],
        given: Mapping[str, Any],
        X: Any,
        y: Any,
        **rows: Unpack[RowArguments],
    ) -> SearchData:
        """Read the rows once for all folds and points, whose fits get parts of them.

        `given` are the options of every fit. A source of chunks is read here and again
        by every fit; so is a memmap if the fits read it in chunks. The rows of dask
        stay at its workers.

        Raises
        ------
        ValueError, TypeError
            If the rows cannot be read, or hold what the fit, or a preprocessor that was
            asked for, does not accept; the message names the columns.
        """
        check_intervals(fit, y)
        how = _chosen_preprocess(fit, rows["standardize"], rows["preprocess"])
        weight = rows["sample_weight"]
        labels: dict[str, Any] = {"classes": rows["classes"], "sample_weight": weight}
        names: tuple[str, ...] | None
        if reads_chunks(X, fit, given):
            chunked = _read_chunks(X, y, fit, how, labels)
            problem: Problem | ChunkedProblem = chunked
            table, names = chunked.X, chunked.feature_names
            # Chunks that come without weights have one number for all of them.
            weighted = chunked.sample_weight.strides != (0,)
        else:
            chunked = None
            by_default = rows["standardize"] is None and rows["preprocess"] is None
            table, names, how = _read_table(X, fit, given, how, by_default)
            values = table.values if isinstance(table, Frame) else table
            problem = Problem.from_arrays(values, y, missing=True, **labels)
            weighted = weight is not None
        return cls(
            X=table,
            feature_names=names,
            y=labels_of(problem, y),
            classes=problem.classes,
            weight=problem.sample_weight if weighted else None,
            group=group_numbers(rows["groups"], len(problem.rank)),
            preprocess=how,
            chunked=chunked,
        )

    @property
    def rank(self) -> np.ndarray:
        """Ranks of the rows, (n,), which do not depend on how labels are spelt.

        That of an interval is its middle, by which folds are stratified.
        """
        if isinstance(self.y, RankIntervals):
            lower, upper = self.y.ranks(self.classes)
            return np.asarray((lower + upper) // 2)
        return ranks_of(self.y, self.classes)

    def warn_of_identifiers(self) -> None:
        """Warn of columns that number the rows, where no fit to all rows will."""
        X, names = self.X, self.feature_names
        if isinstance(X, Frame):
            warn_of_identifiers(X.values, X.shown_names, X.labels)
        elif isinstance(X, np.ndarray) and names is not None:
            warn_of_identifiers(X, names, (None,) * len(names))

    def features(self, rows: np.ndarray) -> Any:
        """Return the features of the rows of these numbers, of the same type as X."""
        if isinstance(self.X, Rows):
            return self.X.subset(rows)
        return take(self.X, rows)

    def weights(self, rows: np.ndarray, class_weight: Any) -> np.ndarray:
        """Return the weights of the rows of these numbers times those of classes."""
        own = np.ones(rows.size) if self.weight is None else self.weight[rows]
        return total_weights(own, class_weight, self.classes, self.rank[rows])

    def score(
        self, scorer: Scorer, model: Any, X: Any, test: np.ndarray, values: Any = None
    ) -> float:
        """Return the score of a model on the rows `test`, whose features are X.

        `values` are their decision values, if they came with the model.
        """
        weight = None if self.weight is None else self.weight[test]
        return scorer(model, X, values, self.y[test], self.classes, weight)


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Training rows of one fit, preprocessed.

    Attributes
    ----------
    X : (n, m) array, CSR, Frame or Rows
    named : the same as X, with column names if there are any, as the fit takes it
    y : (n,) array of labels, RankIntervals, or None if `named` holds labels and weights
        as well
    weight, group : (n,) array or None
    preprocessor : Standardizer, TableCoding or None
    products : Products of X, or None
    """

    X: np.ndarray | CSR | Frame | Rows
    named: Any
    y: np.ndarray | RankIntervals | None
    weight: np.ndarray | None
    group: np.ndarray | None
    preprocessor: Preprocessor | None
    products: Products | None

    @classmethod
    def from_data(
        cls,
        data: SearchData,
        train: np.ndarray,
        fit: Callable[..., Any],
        wants_products: bool,
    ) -> TrainingRows:
        """Return the rows `train` of the data as `fit` takes them.

        With `wants_products`, their inner products are shared by the fits of a path.
        """
        if data.chunked is not None:
            n = data.chunked.n_samples
            part = data.chunked if train.size == n else data.chunked.subset(train)
            part, standardizer = part.with_moments(), None
            if data.preprocess is Standardizer and part.moments is not None:
                standardizer, part = fit_to_chunks(Standardizer, part)
            return cls(part.X, part, None, None, None, standardizer, None)
        X, names = data.features(train), data.feature_names
        weight = None if data.weight is None else data.weight[train]
        group = None if data.group is None else data.group[train]
        preprocessor = None
        if data.preprocess is not None:
            preprocessor = data.preprocess.fit(X, weight)
            X = preprocessor.transform(X)
            names = preprocessor.feature_names_out or names
        named = as_named(fit, X, names) if isinstance(X, np.ndarray) else X
        products = None
        small = 4e-6 * train.size**2 <= _PRODUCTS_MB  # 4 bytes each
        if wants_products and small and isinstance(X, Matrix):
            has_missing = isinstance(X, np.ndarray) and bool(np.isnan(X).any())
            products = None if has_missing else Products(X)
        return cls(X, named, data.y[train], weight, group, preprocessor, products)

    def transformed(self, X: Any) -> Any:
        """Return the features of other rows, preprocessed as the training rows."""
        if isinstance(X, Rows):
            known = self.preprocessor
            return X if known is None else X.transformed(known.transform)
        if self.preprocessor is not None:
            X = self.preprocessor.transform(X)
        return named(X, getattr(self.named, "names", None))


def labels_of(problem: Problem, y: Any) -> np.ndarray | RankIntervals:
    """Return the labels of the rows of a problem, or the intervals that y holds."""
    if isinstance(y, RankIntervals):
        return y
    return np.asarray(problem.classes[problem.rank])


def _chosen_preprocess(
    fit: Callable[..., Any], standardize: bool | None, preprocess: Any
) -> Preprocess | None:
    """Return the preprocessor of a search.

    The default is a Standardizer, unless the method does not depend on scale.
    """
    if standardize is not None:
        standardize = check_flag("standardize", standardize)
    if preprocess is not None:
        how = preprocess_for(fit, preprocess)
        if standardize is not None:
            raise ValueError(
                "standardize must be left out where preprocess is a "
                "TablePreprocessor, which has a standardize of its own"
            )
        return how
    method = method_of(unwrapped(fit)[0])
    if standardize is None:
        standardize = method is None or not method.scale_free
    return Standardizer if standardize else None


# Rows in memory


def _read_table(
    X: Any,
    fit: Callable[..., Any],
    given: Mapping[str, Any],
    preprocess: Preprocess | None,
    by_default: bool,
) -> tuple[np.ndarray | CSR | Frame, tuple[str, ...] | None, Preprocess | None]:
    """Return the table of a search, its column names, and the preprocessor.

    Missing values are NaN. If `preprocess` is a default that does not accept what the
    table holds, a TablePreprocessor takes its place, as in `compare`.
    """
    if is_sparse(X):
        if preprocess is not None:
            raise TypeError(_FILLED)
        return read_features(X), None, None
    columns = given.get("categorical", ())
    if isinstance(preprocess, TablePreprocessor):
        columns = preprocess.declared_in(X)
    table = read_frame_of(X, columns)
    if given.get("missing") == "drop" and np.isnan(table.values).any():
        raise ValueError(
            "missing='drop' leaves out training rows, and rows of a test fold that "
            "lack values have no prediction: drop these rows first, or pass "
            "preprocess=TablePreprocessor(), which imputes, and no missing="
        )
    method = method_of(unwrapped(fit)[0])
    accepts, taker = _ANYTHING, ""
    if preprocess is Standardizer:
        accepts, taker = frozenset(), "standardising"
    elif preprocess is None and method is not None:
        accepts, taker = method.accepts_with(given), f"fit_{method.name}"
    refused = _refused_content(table, accepts)
    if refused and by_default:
        preprocess, accepts = preprocess_for(fit, TablePreprocessor()), _ANYTHING
    elif refused:
        raise ValueError(
            f"X holds {refused}, and {taker} takes only finite numbers: "
            "pass preprocess=ordinal.preprocessing.TablePreprocessor()"
        )
    # A caller's own function is given a plain array if there are only numbers.
    has_use = "categories" in accepts and (preprocess is not None or method is not None)
    values = table if has_use or not table.is_of_numbers else table.values
    return values, table.names, preprocess


def _refused_content(table: Frame, accepts: Set[Content]) -> str:
    """Return the columns with categories or missing values that are not accepted, such
    as "categories in 'a' and missing values in 'b'"; an empty string if there are none.
    """
    content: dict[Content, list[bool]] = {
        "categories": [labels is not None for labels in table.labels],
        "missing": np.isnan(table.values).any(axis=0).tolist(),
    }
    return " and ".join(
        f"{what.replace('missing', 'missing values')} in {enumerated(where)}"
        for what, held in content.items()
        if (where := list(compress(table.shown_names, held))) and what not in accepts
    )


# Rows in chunks


def _read_chunks(
    X: Any,
    y: Any,
    fit: Callable[..., Any],
    preprocess: Preprocess | None,
    labels: Mapping[str, Any],
) -> ChunkedProblem:
    """Return the rows of a source after one pass over them, whose features must be
    numbers. `labels` are the arguments `classes` and `sample_weight`.
    """
    if method_of(unwrapped(fit)[0]) is None:
        raise TypeError(
            "X comes in chunks, which only the methods of this package read: pass "
            f"the name of one, or X in memory; got fit={shown(fit)}"
        )
    if preprocess not in (None, Standardizer):
        raise ValueError(
            "preprocess must be None where X is read in chunks: standardize scales "
            "its features"
        )
    problem = read_chunks(X, y, **labels)
    if preprocess is Standardizer and problem.moments is None:
        raise TypeError(_FILLED)
    return problem
