"""One search as a job of the scheduler: which tasks it asks for, and what they show."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np

from .._numerics.rows import take
from ..preprocessing import Standardizer
from .points import Point, described, in_order_of_ties, point_key
from .progress import Progress
from .spaces import Space
from .splits import Splits
from .trials import Trials
from .work import Outcome, Task, Work, check_arguments, parameters, varying_arguments


class Search:
    """The search for arguments on some rows of a work.

    In every stage: the space proposes points; those that are new become tasks, a path
    in a fold each; their outcomes are noted; the best point so far goes back to the
    space.

    Attributes
    ----------
    rows : (n,) array
        On which the point that is chosen is to be fitted.
    splits : list of (train_idx, test_idx)
        Rows of the whole table.
    trials : Trials
    """

    def __init__(
        self,
        work: Work,
        space: Space,
        rows: np.ndarray,
        splits: Splits,
        progress: Progress,
    ):
        self.rows, self.splits = rows, splits
        self.trials = Trials(work.scorers, len(splits))
        self._work, self._space, self._progress = work, space, progress
        self._proposed: list[Point] = []  # the points as the space names arguments
        self._requested: list[tuple[int, list[int]]] = []  # fold and points of a task
        progress.total += getattr(space, "size", 0) * len(splits)

    def steps(self) -> Generator[list[Task], object, Trials]:
        """Lists of tasks; `note` is told of their outcomes before the next one."""
        stages = self._space.stages(self._features())
        points = next(stages)
        for stage in count():
            yield self._as_tasks(self._add(points, stage))
            best = self.trials.best()
            if best is None:
                reason = self.trials.first_failure()
                raise ValueError(f"no point could be fitted: {reason}")
            try:
                points = stages.send(dict(self._proposed[best]))
            except StopIteration:
                break
        return self.trials

    def note(self, place: int, outcomes: list[Outcome]) -> None:
        """The outcomes of one of the tasks of the last list."""
        fold, numbers = self._requested[place]
        for number, outcome in zip(numbers, outcomes, strict=True):
            self.trials.record(number, fold, outcome)
        best = self.trials.best() if self._progress.shown else None
        if best is not None:
            name, score = self.trials.scorers[0].name, self.trials.scores()[best].mean()
            point = described(self.trials.points[best])
            self._progress.best = f"best {name} {score:.4g} at {point}"

    def _features(self) -> Any:
        """The rows as the fits see them, from which a space may take its ranges."""
        X = take(self._work.X, self.rows)
        if not self._work.standardize:
            return X
        weight = self._work.weight
        weight = None if weight is None else weight[self.rows]
        return Standardizer.fit(X, weight).transform(X)

    def _add(self, points: Iterable[Mapping[str, Any]], stage: int) -> list[int]:
        """The numbers of those points that are new."""
        new = []
        for proposed in points:
            point = self._renamed(proposed)
            check_arguments(self._work.fit, point)
            twice = [name for name in point if name in self._work.options]
            if twice:
                raise ValueError(f"{twice[0]} is searched, and given for every fit")
            number = self.trials.add(point, stage)
            if number is not None:
                new.append(number)
                self._proposed.append(dict(proposed))
        return new

    def _renamed(self, proposed: Mapping[str, Any]) -> Point:
        """The point by the names of the function: some call their first C `C1`."""
        known = parameters(self._work.fit)
        if "C" in known or "C1" not in known:
            return dict(proposed)
        return {"C1" if k == "C" else k: value for k, value in proposed.items()}

    def _as_tasks(self, numbers: list[int]) -> list[Task]:
        """A task for each fold and path."""
        points = self.trials.points
        varying = varying_arguments(self._work.fit, self._work.options)
        paths: dict[Hashable, list[int]] = {}
        for number in in_order_of_ties(points, numbers):
            key = point_key(points[number], without=varying) if varying else number
            paths.setdefault(key, []).append(number)
        self._requested = [
            (fold, path) for fold in range(len(self.splits)) for path in paths.values()
        ]
        return [
            Task(*self.splits[fold], tuple(points[number] for number in path))
            for fold, path in self._requested
        ]
