"""Model that `fit_stacking` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    NOT_NAN,
    POSITIVE,
    Array,
    Length,
)
from .._input.labels import optional_cost
from .._input.types import ArrayLike, MatrixLike, RowsLike
from .._model.column_names import with_names
from .._model.explanation import Named
from .._model.model import Model
from .._model.printing import Table
from .._model.threshold_model import predicted
from .._watch.convergence import Convergence
from ..model_selection.scoring import in_rank_order
from ..model_selection.search import mean_score, standard_error
from ..model_selection.spaces import described
from ..model_selection.work import status_of


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StackingModel(Model):
    """Linear pool of models: P(y = k | x) = sum_m weights[m] P_m(y = k | x).

    Attributes
    ----------
    models : tuple of models
        The members whose weight is not 0, fitted to all rows.
    methods : tuple of (p,) str
        Names of all members, in the order of `fit_stacking`.
    params : tuple of (p,) dict
        Hyperparameters that the searches of the members have chosen.
    weights : (p,) array
        Weights of all members, >= 0; their sum is 1.
    scores : (p, k) array
        Score of every member in each of the k folds, out of fold.
    scoring : {"rps", "log_loss"}
        The score, which the weights minimise.
    pool_score : float
        Score of the pool on the out-of-fold probabilities to which its weights were
        fitted. It is lower than on new rows: `compare(X, y, methods=["stacking"])`
        estimates that.
    left_out : dict
        Why other members are not among these: their first error, or the time.
    cost : (r, r) array, or None
        Cost matrix, if one was passed to the fit.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the weights: `primal` is the score and `violation` the duality gap.
        The status is MAX_TIME if time was short for a member, else that of the first
        member that has not converged, if there is one.
    """

    models: tuple[Any, ...]
    methods: Annotated[tuple[str, ...], Length("p")]
    params: Annotated[tuple[dict[str, Any], ...], Length("p")]
    weights: Annotated[np.ndarray, Array("f8", "p"), FINITE, NONNEGATIVE]
    scores: Annotated[np.ndarray, Array("f8", "p k"), NOT_NAN]
    scoring: Literal["rps", "log_loss"]
    pool_score: float
    left_out: dict[str, str]
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None
    n_features: Annotated[int, POSITIVE]
    feature_names: tuple[str, ...] | None
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    convergence: Convergence

    @property
    def members(self) -> Table:
        """Table of the members: method, weight, parameters, out-of-fold score with its
        standard error over the folds, and the status of the fit to all rows.
        """
        status = iter([status_of(model) for model in self.models])
        return Table(
            {
                "method": np.array(self.methods),
                "weight": self.weights,
                self.scoring: mean_score(self.scores),
                "error": standard_error(self.scores),
                "status": np.array([next(status) if w else "-" for w in self.weights]),
                "parameters": np.array([described(of) for of in self.params]),
            }
        )

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r): the mean of the members'.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Rows to predict, as for the members.
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        ValueError, TypeError
            As a member raises it.
        """
        X = with_names(X, self.feature_names)
        used = self.weights[self.weights > 0]
        P = sum(
            w * in_rank_order(np.asarray(m.predict_proba(X)), m, self.classes)
            for w, m in zip(used, self.models, strict=True)
        )
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["median", "mode", "cost"] | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Rows to predict, as for the members.
        rule : {"median", "mode", "cost"}, optional
            Default: the `rule` of the model, which is "cost" if a cost matrix was
            passed to the fit, or, without one, "median". The median has the least
            expected absolute error; the mode is the most probable rank; "cost" the rank
            of least expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j. Default: the `cost` of the
            model or, without one, |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `predict_proba`; also if the rule is unknown, or if `cost` is passed
            with another rule or does not have shape (r, r).
        """
        return predicted(self, X, rule, cost)

    def _score_terms(self, X: MatrixLike) -> Named | None:
        """Return weighted contributions if every member has them.

        A member's are in standard deviations of its sum over the rows, because members
        score in units of their own. Terms that it lacks contribute nothing.
        """
        X = with_names(X, self.feature_names)
        total: dict[str, np.ndarray] = {}
        used = self.weights[self.weights > 0]
        for w, model in zip(used, self.models, strict=True):
            terms = model._score_terms(X) if isinstance(model, Model) else None
            if terms is None:
                return None
            unit = terms.values.sum(axis=1).std() or 1.0
            for name, column in zip(terms.names, terms.values.T, strict=True):
                total[name] = total.get(name, 0.0) + w * column / unit
        return Named(tuple(total), np.stack(list(total.values()), axis=1))

    def _summary(self) -> dict[str, str]:
        used = [
            f"{w:.2g} {name}"
            for w, name in zip(self.weights, self.methods, strict=True)
            if w > 0
        ]
        lines = {
            "members": " + ".join(used),
            self.scoring: f"{self.pool_score:.4g} out of fold, where the weights were "
            "fitted; compare estimates the error",
        }
        if self.left_out:
            lines["not in pool"] = ", ".join(self.left_out)
        # With slots, dataclass makes a second class, which super() does not know.
        return lines | super(StackingModel, self)._summary()

    def _check(self) -> None:
        optional_cost(self.cost, self.classes.size)
        if len(self.models) != np.count_nonzero(self.weights):
            raise ValueError("there must be a model for every weight that is not 0")
        if abs(self.weights.sum() - 1) > 1e-9:
            raise ValueError("weights must have the sum 1")
        for model in self.models:
            classes = getattr(model, "classes", self.classes)
            d = getattr(model, "n_features", self.n_features)
            if d != self.n_features or not np.isin(classes, self.classes).all():
                raise ValueError("models must have the pool's features and classes")
