"""Views of models and results: explanations, reports, summaries and figures.

importances  importance of the features of a model
page         page about a model on rows with known labels
figures      figures of that page
summary      what a notebook shows of a model

Models and comparisons delegate their methods to the functions below through
`_model.views`, because a model knows nothing of what stands above it.
"""

from typing import Any

from .importances import explain
from .summary import summary_html

__all__ = [
    "errors_by_method",
    "explain",
    "importance",
    "report",
    "score",
    "search",
    "summary_html",
]


# Figures and prediction sets are imported where they are asked for: they import every
# method that they know.
def report(model: Any, X: Any, y: Any, path: Any, title: str) -> Any:
    """Return or write a page about a model; `Model.report` documents it."""
    from .page import report

    return report(model, X, y, path, title)


def score(model: Any, X: Any, y: Any, scoring: Any, sample_weight: Any) -> float:
    """Return a metric of the predictions of rows; `Model.score` documents it."""
    from ..model_selection.scoring import score_of, scorers_of

    (metric,) = scorers_of([scoring], True if callable(scoring) else None)
    return score_of(metric, model, X, y, sample_weight)


def importance(explanation: Any, ax: Any, top: int | None) -> Any:
    """Draw the importances of an explanation."""
    from .. import plot

    return plot.importance(explanation, ax, top=top)


def search(found: Any, ax: Any, x: str | None, y: str | None) -> Any:
    """Draw the scores of a search."""
    from .. import plot

    return plot.search(found, ax, x=x, y=y)


def errors_by_method(scores: Any, methods: Any, axes: Any, xlabel: str) -> Any:
    """Draw the scores of a comparison."""
    from .. import plot

    return plot.errors_by_method(scores, methods, axes, xlabel=xlabel)
