"""Members of a pool: a method, its search on shared folds, and what it says there.

The models of the chosen point in the folds are kept, and their predictions of the rows
that they were not fitted to serve three purposes: they choose the point, calibrate the
probabilities of methods that have none, and are what the weights are fitted to. The
calibration of a fold is learnt from the other folds, and that of the fit to all rows
from all of them, as `probability=True` does; no fit is made for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._input.sparse import is_sparse
from .._model.model import innermost
from .._model.registry import method_of, unwrapped
from .._rows.rows import map_rows
from .._watch.convergence import Status
from .._watch.progress import Progress
from ..model_selection.data import TrainingRows
from ..model_selection.scheduler import run
from ..model_selection.scoring import in_rank_order, scorers_of
from ..model_selection.search import Search, halving_from
from ..model_selection.spaces import Point, Points, Space, resolve_space
from ..model_selection.splits import Splits
from ..model_selection.work import Outcome, Task, Work
from ..model_selection.workers import Workers


@dataclass(frozen=True, slots=True)
class Fitted(Outcome):
    """Outcome of a point in a fold, with its model and the features of the test rows,
    as the model takes them.
    """

    model: Any = None
    X: Any = None


@dataclass(eq=False)
class MemberWork(Work):
    """Work of the search of a member, which keeps its models.

    Attributes
    ----------
    until : float
        Time, by `time.monotonic`, after which nothing more is fitted.
    """

    until: float = field(default=np.inf, kw_only=True)

    def run(self, task: Task, n_threads: int | None) -> list[Outcome]:
        """Fit and score, unless the time is up."""
        if time.monotonic() > self.until:
            return [self._failed(TimeoutError("max_time"))] * task.n_outcomes
        return super().run(task, n_threads)

    def _outcome(
        self, model: Any, values: Any, X_test: Any, test: np.ndarray
    ) -> Outcome:
        found = super()._outcome(model, values, X_test, test)
        if found.failure:
            return found
        if found.status == Status.MAX_TIME.value and time.monotonic() > self.until:
            return self._failed(TimeoutError("max_time"))
        return Fitted(found.scores, found.status, "", found.seconds, model, X_test)

    @property
    def calibrates(self) -> bool:
        """Return whether probabilities are learnt from the folds of the pool."""
        return "probability" in self.parameters and not self.scorers[0].needs_proba

    def _options(
        self, rows: TrainingRows, n_threads: int | None, points: Sequence[Point]
    ) -> dict[str, Any]:
        """Return the options of fits, without folds of their own for probabilities and
        with what is left of the time; a path has no `max_time`.
        """
        options = super()._options(rows, n_threads, points)
        if self.calibrates:
            options["probability"] = False
        if self.until < np.inf and "max_time" in self.parameters and not self.varying:
            left = max(self.until - time.monotonic(), 1e-3)
            options["max_time"] = min(left, self.given.get("max_time") or np.inf)
        return options

    def space(self, tune: bool, rng: np.random.Generator) -> Space:
        """Return the points to search: one where nothing is tuned."""
        if not tune or self.method is None:
            return Points([{}])
        return resolve_space(None, self.fit, self.options, None, rng)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A method at its chosen point.

    Attributes
    ----------
    work : MemberWork
    params : dict
    folds : list of Fitted
    splits : list of (train_idx, test_idx)
    """

    work: MemberWork
    params: Point
    folds: Sequence[Any]
    splits: Splits

    @classmethod
    def searched(
        cls,
        work: MemberWork,
        space: Space,
        splits: Splits,
        progress: Progress,
        n_threads: int | None,
    ) -> Member:
        """Return the member at the best point of the space.

        Raises ValueError if no point could be fitted in all folds.
        """
        rows = np.arange(len(work.data.y))
        job = Search(work, space, rows, splits, progress, halving_from(None, None))
        workers = Workers(work, space, None, n_threads)
        (trials,), _ = run([job], workers, None, progress)
        best = trials.best()
        assert best is not None
        params = trials.points[best]
        folds: list[Any] = trials.outcomes()[best]
        member = cls(work, params, folds, splits)
        if not work.calibrates or hasattr(innermost(folds[0].model), "link_input"):
            return member
        # Leave-one-out scores or a function's own way: `probability=True` does it.
        own = replace(
            work, options={**work.options, "probability": True},
            scorers=scorers_of("rps", None),
        )  # fmt: skip
        return cls.searched(own, Points([params]), splits, progress, n_threads)

    def probabilities(self) -> np.ndarray:
        """Return the out-of-fold probabilities, fold after fold, (m, r).

        Raises ValueError or TypeError if a model has none.
        """
        classes, parts = self.work.data.classes, []
        for k, fold in enumerate(self.folds):
            model = fold.model
            if self.work.calibrates:
                others = [j for j in range(len(self.folds)) if j != k] or [k]
                model = replace(model, link=self._link(model, others))
            if not hasattr(model, "predict_proba"):
                raise TypeError(f"a {type(model).__name__} has no predict_proba")
            P = np.asarray(map_rows(model.predict_proba, fold.X))
            P = in_rank_order(P, model, classes)
            if not np.isfinite(P).all():
                raise ValueError(f"a {type(model).__name__} has probabilities of nan")
            parts.append(P)
        return np.concatenate(parts)

    def refitted(self, n_threads: int | None, max_time: float | None) -> Any:
        """Return the model of all rows, calibrated by the predictions of the folds."""
        work = self.work
        if max_time is not None and "max_time" in work.parameters:
            left = {"max_time": max(max_time, 1e-3)}
            work = replace(work, options=work.options | left, until=np.inf)
        model = work.refitted(self.params, n_threads)
        if not self.work.calibrates:
            return model
        inner = innermost(model)
        linked = replace(inner, link=self._link(inner, range(len(self.folds))))
        return linked if model is inner else replace(model, model=linked)

    def _link(self, model: Any, folds: Sequence[int]) -> Any:
        """Return a link for a model, fitted to the rows of these folds."""
        found = [(self.folds[k], self.splits[k][1]) for k in folds]
        return self.work.link(model, [(of.model, of.X, test) for of, test in found])


def work_of(
    fit: Callable[..., Any],
    X: Any,
    y: Any,
    options: Mapping[str, Any],
    rows: Mapping[str, Any],
    until: float,
) -> MemberWork:
    """Return the work of a member; a search goes by the RPS where models have
    probabilities, and by the MAE of their labels elsewhere, which takes no calibration.
    """
    function = unwrapped(fit)[0]
    method = method_of(function)
    free = getattr(function if method is None else method, "probabilities", False)
    scorers = scorers_of("rps" if free else "mae", None)
    # As in `compare`, nothing fills a sparse matrix; methods that must are left out.
    filled = False if is_sparse(X) and rows["preprocess"] is None else None
    given: Any = {"standardize": filled, **rows}
    work = MemberWork.from_arguments(fit, X, y, scorers, dict(options), **given)
    return replace(work, until=until)
