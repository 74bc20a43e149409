"""Scorers for `scoring=` of scikit-learn, which know the order of the ranks."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from .._input.checks import with_suggestions
from .._input.columns import warn_of_other_order
from ..model_selection.scoring import Metric, Scorer, score_of, scorers_of


@with_suggestions
def scorer(
    metric: str | Metric | _Scorer = "mae", *, greater_is_better: bool | None = None
) -> _Scorer:
    """Return a scorer for `scoring=` of scikit-learn that uses a metric.

    Parameters
    ----------
    metric : str or callable, default "mae"
        Name of a metric in `ordinal.metrics`: "mze", "mae", "amae", "mmae", "oci",
        "rps", "log_loss", "accuracy", "accuracy_off", "gm", "ms", "gmsec", "cem",
        "kappa", "kendall" or "spearman". "rps" and "log_loss" use
        `predict_proba` of the estimator. Or a function as for `select`, or a result
        of `scorer`.
    greater_is_better : bool, optional
        As for `select`.

    Returns
    -------
    callable (estimator, X, y, sample_weight=None) -> float
        Scorer whose larger values are better: losses are negated. The rank order is
        that of `ranks_` of the estimator, also inside pipelines and searches; otherwise
        that of `y` if it is an ordered categorical, or that of numbers. For strings
        without any of these it raises TypeError.

    Raises
    ------
    ValueError, TypeError
        If `metric` is unknown.

    See Also
    --------
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.
    ordinal.metrics.mae : Compute the mean absolute error of the predicted labels.
    ordinal.metrics.rps : Compute the ranked probability score: squared error of
        cumulative probabilities.

    Examples
    --------
    >>> import ordinal.sklearn
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> judge = ordinal.sklearn.scorer("mae")
    >>> scores = cross_val_score(ordinal.sklearn.SVORIM(), X, y, scoring=judge)
    >>> float(scores.mean().round(2))
    -0.1
    """
    (made,) = scorers_of([metric], greater_is_better)
    return _Scorer(made)


class _Scorer:
    """Scorer that `scorer` returns."""

    def __init__(self, metric: Scorer) -> None:
        self.metric = metric
        self._requests: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"scorer({self.metric.name!r})"

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None
    ) -> float:
        warn_of_other_order(X, y=y, sample_weight=sample_weight)
        if hasattr(estimator, "_scored"):
            X, y, sample_weight = estimator._scored(X, y, sample_weight)
        score = score_of(self.metric, estimator, X, y, sample_weight)
        return score if self.metric.greater_is_better else -score

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> _Scorer:
        """Request weights where metadata are routed; returns itself."""
        self._requests["sample_weight"] = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """Return the requests, as scikit-learn reads them."""
        request = MetadataRequest(owner=self)
        request.score.add_request(
            param="sample_weight", alias=self._requests.get("sample_weight")
        )
        return request
