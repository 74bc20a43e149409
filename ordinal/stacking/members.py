"""Members of a pool: a method, its search on shared folds, and what it says there.

The models of the chosen point in the folds are kept, and their predictions of the rows
that they were not fitted to serve three purposes: they choose the point, calibrate the
probabilities of methods that have none, and are what the weights are fitted to. The
calibration of a fold is learnt from the other folds, and that of the fit to all rows
from all of them, as `probability=True` does; no fit is made for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._input.sparse import is_sparse
from .._model.column_names import innermost
from .._model.model import Model
from .._model.registry import method_of, unwrapped
from .._watch.cancellation import Stopped, check_stopped, stopped_by
from .._watch.convergence import Status, held_back
from .._watch.progress import Progress
from ..model_selection.data import RowArguments, TrainingRows
from ..model_selection.scheduler import run
from ..model_selection.scoring import scorers_of
from ..model_selection.search import Search, are_apart, halving_from
from ..model_selection.spaces import Point, Points, Space
from ..model_selection.splits import Splits
from ..model_selection.work import Outcome, Task, Work, with_values
from ..model_selection.workers import Workers

_LATE = Status.MAX_TIME.value
# Folds in which points compete before the better half goes on to the others. With this
# and the shorter grid of XOFM, fits to 2000 rows of eight sets took 0.59 times as long;
# the RPS was 1.0004 times as high (standard error 0.0005). Halving after every later
# fold would save another seventh, but run the folds one after the other. A tolerance of
# 3e-3 for XOFM on samples would save a fifth of its search only.
_FIRST_FOLDS = 2


@dataclass(frozen=True, slots=True)
class Fitted(Outcome):
    """Outcome of a point in a fold, with its model.

    `X` are the features of the test rows, as the model takes them, and `values` its
    decision function there, if it came with the model.
    """

    model: Any = None
    X: Any = None
    values: Any = None


@dataclass(eq=False)
class MemberWork(Work):
    """Work of the search of a member, which keeps its models.

    Attributes
    ----------
    until : float
        Time, by `time.monotonic`, after which nothing more is fitted.
    shares : int
        Number of fits that share the time until then, if every fit must give a model;
        each may take its share of what is left. 0 if fits that are late are useless.
    """

    until: float = field(default=np.inf, kw_only=True)
    shares: int = field(default=0, kw_only=True)

    @classmethod
    def from_fit(
        cls,
        fit: Callable[..., Any],
        X: Any,
        y: Any,
        options: dict[str, Any],
        rows: RowArguments,
        until: float,
    ) -> MemberWork:
        """Return the work of a member.

        Its search goes by the RPS where models have probabilities, and elsewhere by the
        MAE of their labels, which takes no calibration.
        """
        function = unwrapped(fit)[0]
        free = getattr(method_of(function) or function, "probabilities", False)
        scorers = scorers_of("rps" if free else "mae", None)
        if is_sparse(X) and rows["preprocess"] is None:
            # As in `compare`, nothing fills X; methods that must are left out.
            rows = {**rows, "standardize": False}
        work = cls.from_arguments(fit, X, y, scorers, options, **rows)
        return replace(work, until=until)

    @property
    def calibrates(self) -> bool:
        """Return whether probabilities are learnt from the folds of the pool."""
        return "probability" in self.parameters and not self.scorers[0].needs_proba

    @property
    def _late(self) -> Outcome:
        return replace(self._failed(TimeoutError("max_time")), status=_LATE)

    def _is_late(self) -> bool:
        return not self.shares and time.monotonic() > self.until

    def run(self, task: Task, n_threads: int | None) -> list[Outcome]:
        """Fit and score until the time is up, also within a path of fits."""
        try:
            with stopped_by(self._is_late):
                check_stopped()
                return super().run(task, n_threads)
        except Stopped:
            check_stopped()  # raises it again if nobody waits for the task
            return [self._late] * task.n_outcomes

    def _outcome(
        self, model: Any, values: Any, X_test: Any, test: np.ndarray
    ) -> Outcome:
        found = super()._outcome(model, values, X_test, test)
        if not found.failure and self._is_late():
            found = self._late
        if found.failure:
            return found
        if isinstance(model, Model):
            model = copy(model)  # without the training rows of a linear model
        return Fitted(found.scores, found.status, "", 0.0, model, X_test, values)

    def _options(
        self, rows: TrainingRows, n_threads: int | None, points: Sequence[Point]
    ) -> dict[str, Any]:
        """Return the options of fits, without folds of their own for probabilities and
        with what is left of the time; a path has no `max_time`.
        """
        options = super()._options(rows, n_threads, points)
        if self.calibrates:
            options["probability"] = False
        return options if self.varying else options | self._time_left()

    def _time_left(self) -> dict[str, float]:
        """Return the option `max_time` of the next fit."""
        if self.until == np.inf or "max_time" not in self.parameters:
            return {}
        left = max((self.until - time.monotonic()) / max(self.shares, 1), 1e-3)
        return {"max_time": min(left, self.given.get("max_time") or np.inf)}

    def to_end(self, until: float, shares: int) -> MemberWork:
        """Return the work of fits that share the time until then, one by one."""
        work = replace(self, until=until, shares=shares)
        return replace(work, options=work.options | work._time_left())

    def searched(
        self,
        name: str,
        space: Space,
        splits: Splits,
        score: Callable[[np.ndarray, np.ndarray], float],
        progress: bool | None,
        n_threads: int | None,
    ) -> Member:
        """Return the member at the best point of the space.

        Progress is reported as that of the method `name`. `score` judges probabilities
        of the rows of given numbers. Raises ValueError or TypeError if no point could
        be fitted in all folds, or if a model has no probabilities, or what are none.
        """
        if self._is_late():  # samples of folds take seconds, too
            raise TimeoutError("max_time")
        rows, line = np.arange(len(self.data.y)), Progress.from_argument(progress, name)
        halving = halving_from(None, None), _FIRST_FOLDS
        job = Search(self, space, rows, splits, line, *halving)
        workers = Workers(self, space, None, n_threads)
        (trials,), _ = run([job], workers, None, line)
        best = trials.best()
        assert best is not None
        params, of_points = trials.points[best], trials.outcomes()
        is_cut = any(o.status == _LATE for of in of_points for o in of)
        fitted: list[Any] = of_points[best]
        with held_back():  # a category may have test rows alone
            folds = [
                with_values(fold.model, fold.values, fold.X, test)
                for fold, (_, test) in zip(fitted, splits, strict=True)
                if self.calibrates and are_apart(splits)
            ]
        if self.calibrates and (not folds or any(v is None for _, v, _ in folds)):
            # Fits calibrate themselves: test sets overlap, or scores leave one out.
            options = {**self.options, "probability": True}
            own = replace(self, options=options, scorers=scorers_of("rps", None))
            space = Points([params])
            return own.searched(name, space, splits, score, progress, n_threads)
        (scorer,), P = scorers_of("rps", None), []
        for k, fold in enumerate(fitted):
            model = self.linked(folds, k) if folds else fold.model
            if not hasattr(model, "predict_proba"):
                raise TypeError(f"a {type(model).__name__} has no predict_proba")
            values = folds[k][1] if folds else None
            with held_back():
                P.append(scorer.predicted(model, fold.X, values, self.data.classes))
        scores = [score(of, test) for of, (_, test) in zip(P, splits, strict=True)]
        return Member(self, params, np.concatenate(P), scores, folds, is_cut)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A method at its chosen point.

    Attributes
    ----------
    work : MemberWork
    params : dict
    P : (m, r) array
        Probabilities of the test rows, fold after fold, by models that have not seen
        them.
    scores : list of float
        Their score in each fold.
    folds : list of FoldValues
        Decision values of the test rows, by which probabilities are calibrated; empty
        for a member that needs no calibration.
    is_cut : bool
        Whether `max_time` ended the search, or a fit of it.
    """

    work: MemberWork
    params: Point
    P: np.ndarray
    scores: list[float]
    folds: list[Any]
    is_cut: bool

    def refitted(self, n_threads: int | None, until: float) -> Any:
        """Return the model of all rows, calibrated by the predictions of the folds."""
        work = self.work.to_end(until, 1)
        model = work.refitted(self.params, n_threads)
        if not self.folds:
            return model
        inner = innermost(model)
        linked = replace(inner, link=work.link(inner, self.folds))
        return linked if model is inner else replace(model, model=linked)
