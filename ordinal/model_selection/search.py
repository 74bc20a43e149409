"""One search as a job of the scheduler: which tasks it asks for, and what they show.

`Trials` are the points of a search and what became of them in every fold.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np

from .._input.checks import shortened, shown
from .._input.frame import Frame
from .points import Point, described, in_order_of_ties, point_key
from .progress import Progress
from .scoring import Scorer
from .spaces import Space
from .splits import Splits, SplitsLike, in_order, own_splits
from .work import Outcome, Task, TrainingRows, Work

_ROUNDING = 1e-12  # means that differ by less are equal: the sum over folds is rounded


class Trials:
    """Points in the order in which they are tried, with one outcome per fold.

    Attributes
    ----------
    scorers : tuple of Scorer
        The first decides.
    points : list of dict
    stage : list of int
        In which stage of the search each was added.
    """

    def __init__(self, scorers: tuple[Scorer, ...], n_folds: int):
        self.scorers = scorers
        self.points: list[Point] = []
        self.stage: list[int] = []
        self._n_folds = n_folds
        self._number: dict[Hashable, int] = {}
        self._outcomes: list[list[Outcome | None]] = []

    def add(self, point: Point, stage: int) -> int | None:
        """Add a new point and return its number, or None if it was tried before."""
        key = point_key(point)
        if key in self._number:
            return None
        number = self._number[key] = len(self.points)
        self.points.append(point)
        self.stage.append(stage)
        self._outcomes.append([None] * self._n_folds)
        return number

    def record(self, number: int, fold: int, outcome: Outcome) -> None:
        """Take in the outcome of a point in a fold."""
        self._outcomes[number][fold] = outcome.judged()

    def outcomes(self) -> list[list[Outcome]]:
        """Return the known outcomes of every point in every fold."""
        return [[o for o in of_point if o is not None] for of_point in self._outcomes]

    def scores(self, metric: int = 0) -> np.ndarray:
        """(p, k) scores by one of the metrics; nan where there is none."""
        table = [
            [np.nan if o is None or o.failure else o.scores[metric] for o in of_point]
            for of_point in self._outcomes
        ]
        return np.array(table).reshape(len(self.points), self._n_folds)

    def best(self) -> int | None:
        """Return the point of the best mean among those with a score in every fold."""
        losses = self._losses()
        if np.isnan(losses).all():
            return None
        least = np.nanmin(losses)
        return self.first(losses <= least + _ROUNDING * max(1.0, abs(least)))

    def one_se(self) -> int:
        """Return the first point, in the order of ties, whose mean is within one
        standard error of the best; there must be a best one.
        """
        best = self.best()
        assert best is not None
        losses, error = self._losses(), standard_error(self.scores())
        return self.first(losses <= losses[best] + error[best] + _ROUNDING)

    def first(self, among: np.ndarray) -> int:
        """Return the first point of a mask, in the order of ties."""
        return in_order_of_ties(self.points, np.flatnonzero(among).tolist())[0]

    def first_failure(self) -> str:
        """Why the first fit without a score has none."""
        return next(o.failure for of in self.outcomes() for o in of if o.failure)

    def _losses(self) -> np.ndarray:
        """(p,) mean of every point, greater meaning worse; nan where one is missing."""
        means = mean_score(self.scores())
        return -means if self.scorers[0].greater_is_better else means


def mean_score(scores: np.ndarray) -> np.ndarray:
    """(p,) mean over the k columns; a metric of the caller's may score anything."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(scores.mean(axis=1))


def standard_error(scores: np.ndarray) -> np.ndarray:
    """(p,) of that mean; 0 if there is one column only."""
    k = scores.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = scores.std(axis=1, ddof=1) if k > 1 else np.zeros(len(scores))
    return np.asarray(deviation / np.sqrt(k))


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
        if not callable(getattr(space, "stages", None)):
            raise TypeError(
                f"search must be a Grid, or have its `stages`, got {shown(space)}"
            )
        self.rows, self.splits = rows, splits
        self.trials = Trials(work.scorers, len(splits))
        self._work, self._space, self._progress = work, space, progress
        self._proposed: list[Point] = []  # the points as the space names arguments
        self._requested: list[tuple[int, list[int]]] = []  # fold and points of a task
        progress.total += getattr(space, "size", 0) * len(splits)

    def steps(self) -> Generator[list[Task], object, Trials]:
        """Yield lists of tasks; `note` receives their outcomes before the next one."""
        stages = self._space.stages(TrainingRows.from_work(self._work, self.rows).X)
        if not isinstance(stages, Generator):
            raise TypeError(f"search.stages must be a generator, got {shown(stages)}")
        points = next(stages, [])
        for stage in count():
            numbers = self._add(points, stage)
            if not self.trials.points:
                raise ValueError("search.stages must give points, got none")
            yield self._as_tasks(numbers)
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
        """Note the outcomes of one of the tasks of the last list."""
        fold, numbers = self._requested[place]
        for number, outcome in zip(numbers, outcomes, strict=True):
            self.trials.record(number, fold, outcome)
        best = self.trials.best() if self._progress.shown else None
        if best is not None:
            name, score = self.trials.scorers[0].name, self.trials.scores()[best].mean()
            point = described(self.trials.points[best])
            self._progress.best = f"best {name} {score:.4g} at {point}"

    def _add(self, points: Iterable[Mapping[str, Any]], stage: int) -> list[int]:
        """Add new points, and return their numbers."""
        new = []
        for proposed in points:
            point = self._renamed(proposed)
            self._work.check_point(point)
            twice = [name for name in point if name in self._work.options]
            if twice:
                raise ValueError(
                    f"{shortened(twice[0])} is searched, and given for every fit"
                )
            number = self.trials.add(point, stage)
            if number is not None:
                new.append(number)
                self._proposed.append(dict(proposed))
        return new

    def _renamed(self, proposed: Mapping[str, Any]) -> Point:
        """Return the point in names of the function: some call their first C `C1`."""
        known = self._work.parameters
        if "C" in known or "C1" not in known:
            return dict(proposed)
        return {"C1" if k == "C" else k: value for k, value in proposed.items()}

    def _as_tasks(self, numbers: list[int]) -> list[Task]:
        """Make a task for each fold and path."""
        points = self.trials.points
        varying = self._work.varying
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


def splits_of(
    given: SplitsLike,
    name: str,
    rows: np.ndarray,
    work: Work,
    group: np.ndarray | None,
    drawn: Callable[[str, np.ndarray, int, np.ndarray | None], Splits],
) -> Splits:
    """Return the splits of some rows, as row numbers of the whole table.

    `drawn` makes them where their number is given. A caller's splitter sees the
    features of the rows (categories by their places) or, of a sparse table, their
    numbers. `group` numbers the groups of the whole table.
    """
    y = work.y[rows]
    group = None if group is None else group[rows]
    if isinstance(given, int | np.integer):
        splits = drawn(name, y, given, group)
    else:
        X = work.X.values if isinstance(work.X, Frame) else work.X
        seen = X[rows] if isinstance(X, np.ndarray) else rows[:, None]
        splits = own_splits(given, name, seen, y, group)
    splits = [(rows[train], rows[test]) for train, test in splits]
    return splits if work.chunked is None else in_order(splits, name)
