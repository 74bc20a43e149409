"""What the features do to the predictions of a model: `explain` of every model."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._input.checks import check_count, resolve_rng, shown
from .._input.features import read_features, read_frame_of
from .._input.frame import Frame, default_names
from .._input.labels import ranks_of, read_labels
from .._input.sparse import Immutable, is_sparse, read_only
from .._input.types import Labels, MatrixLike, Rng
from .._public import find_public
from .printing import Table, html_notes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation(Immutable):
    """What features do to the predictions of a model, the strongest first.

    Attributes
    ----------
    method : {"contributions", "permutation"}
        How the importances came about.
    names : tuple of (m,) str
        Features, and "a:b" for a pair of a model that has effects of pairs.
    importance, standard_error : (m,) arrays
        By "contributions" the standard deviation of each term of the score over the
        rows; by "permutation" the mean change of a row's prediction, in ranks, when the
        feature is shuffled. The standard errors are those of these means over the rows.
    unit : str
        What `importance` is measured in.
    contributions : (n, m) array or None
        Terms of the score of each row, which differ from the score by a constant.
    """

    method: str
    names: tuple[str, ...]
    importance: np.ndarray
    standard_error: np.ndarray
    unit: str
    contributions: np.ndarray | None = None

    def table(self) -> Table:
        """Return the columns name, importance and standard_error."""
        return Table(
            {
                "name": np.array(self.names),
                "importance": self.importance,
                "standard_error": self.standard_error,
            }
        )

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame."""
        return self.table().to_pandas()

    def plot(self, ax: Any = None, *, top: int | None = None) -> Any:
        """Draw it by `ordinal.plot.importance`; ImportError without matplotlib."""
        return find_public("plot").importance(self, ax, top=top)

    def __repr__(self) -> str:
        return f"{self.table()!r}\n{self.unit}, by {self.method}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() + html_notes([f"{self.unit}, {self.method}"])


def explain(
    model: Any, X: MatrixLike, y: Labels | None, n_repeats: int, rng: Rng
) -> Explanation:
    """Return the explanation of a model on rows; `Model.explain` documents it."""
    n_repeats = check_count("n_repeats", n_repeats)
    rng = resolve_rng(rng)
    terms = None if y is not None else _terms(model, X)
    if terms is not None:
        names, contributions = terms
        importance, error = _spread(contributions)
        return _sorted(
            "contributions",
            names,
            importance,
            error,
            "unit of the score",
            contributions,
        )
    if is_sparse(X):
        raise TypeError(
            "X must be dense for permutation importance: explain some of its rows as "
            "an array, X[:1000].toarray()"
        )
    frame = read_frame_of(X)
    changes = _permuted(model, frame, y, n_repeats, rng)
    n = max(len(frame), 1)
    error = changes.std(axis=1) / np.sqrt(n)
    names = frame.names or model.feature_names or default_names(frame.shape[1])
    what = "change of the prediction" if y is None else "increase of the MAE"
    return _sorted(
        "permutation", tuple(names), changes.mean(axis=1), error, f"{what} in ranks"
    )


def _sorted(
    method: str,
    names: Sequence[str],
    importance: np.ndarray,
    error: np.ndarray,
    unit: str,
    contributions: np.ndarray | None = None,
) -> Explanation:
    order = np.argsort(-importance, kind="stable")
    return Explanation(
        method,
        tuple(names[j] for j in order),
        read_only(importance[order]),
        read_only(error[order]),
        unit,
        None if contributions is None else read_only(contributions[:, order]),
    )


def _terms(model: Any, X: Any) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Return the names and values of the terms that a model's score is the sum of, or
    None where it is no such sum.
    """
    if hasattr(model, "contributions"):
        found = model.contributions(X)
        return found.names[1:], found.values[:, 1:]  # but for the base
    if hasattr(model, "preprocessor") and hasattr(model, "model"):
        return _terms(model.model, model.preprocessor.transform(X))
    coef = np.asarray(getattr(model, "coef", ()))
    if coef.ndim != 1 or is_sparse(X) or len(coef) != model.n_features:
        return None
    try:
        Z = read_features(X, model.n_features, feature_names=model.feature_names)
        score = np.asarray(model.decision_function(X), dtype=float)
    except (TypeError, ValueError):
        return None  # a formula, or what the model alone can read
    assert isinstance(Z, np.ndarray)
    values = (Z - Z.mean(axis=0)) * coef
    rest = score - values.sum(axis=1) if score.ndim == 1 else np.array([np.inf])
    if not np.ptp(rest) <= 1e-8 * max(1.0, float(abs(score).max())):
        return None  # the score is not linear in these columns
    return tuple(model.feature_names or default_names(Z.shape[1])), values


def _spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard deviation of every column and its standard error, by the
    delta method.
    """
    n = max(len(values), 1)
    centred = values - values.mean(axis=0)
    second = (centred**2).mean(axis=0)
    fourth = (centred**4).mean(axis=0)
    deviation = np.sqrt(second)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.maximum(fourth - second**2, 0.0) / n) / (2 * deviation)
    return deviation, np.where(deviation > 0, error, 0.0)


def _permuted(
    model: Any, frame: Frame, y: Any, n_repeats: int, rng: np.random.Generator
) -> np.ndarray:
    """(d, n) mean change of every row's prediction when a column is shuffled: its
    distance in ranks from the prediction before or, with labels, from the label, less
    that of before.
    """
    classes = np.asarray(model.classes)
    predict = _predictor(model, classes)
    before = predict(frame)
    goal, base = before, np.zeros(len(frame))
    if y is not None:
        goal = ranks_of(read_labels(y, "y"), classes, "y", "classes of the model")
        if len(goal) != len(frame):
            raise ValueError(
                f"y must have one label per row of X, {len(frame)}, got {len(goal)}"
            )
        base = abs(before - goal)
    changes = np.zeros((frame.shape[1], len(frame)))
    for j in range(frame.shape[1]):
        for _ in range(n_repeats):
            values = frame.values.copy()
            values[:, j] = rng.permutation(values[:, j])
            told = predict(replace(frame, values=values))
            changes[j] += (abs(told - goal) - base) / n_repeats
    return changes


def _predictor(model: Any, classes: np.ndarray) -> Callable[[Frame], np.ndarray]:
    """Return a function of rows that gives the rank predicted for each."""

    def predict(frame: Frame) -> np.ndarray:
        return ranks_of(
            read_labels(model.predict(frame), "predictions"),
            classes,
            "predictions",
            "classes of the model",
        )

    if not hasattr(model, "predict"):
        raise TypeError(f"model must predict, got {shown(model)}")
    return predict
