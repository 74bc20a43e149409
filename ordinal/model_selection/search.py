"""One search as a job of the scheduler, which yields tasks and receives outcomes.

`Trials` are the points of a search with their outcomes in every fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np

from .._input.checks import check_flag, shortened, shown
from .._input.frame import Frame
from .._watch.progress import Progress
from .data import SearchData
from .scoring import Scorer, without_rows
from .spaces import Point, Space, described, in_order_of_ties, point_key
from .splits import Splits, SplitsLike, in_order, own_splits, spread_by_rank
from .work import SCORED, Outcome, Task, Work

_SHARE = 3  # factor between the training rows of two stages of halving
_KEPT = 0.5  # share of the points that go on to the next stage
_CLEAR = 4000  # training rows from which on a third of the points go on instead
_LEAST_SAMPLE = 300  # training rows; the scores of fewer do not separate points
_LEAST_SCORED = 5000  # test rows per fold: the mean of five folds then errs by .005
_LARGE = 1500  # training rows from which on halving saves time
_ROUNDING = 1e-12  # smaller differences of means over folds are rounding errors


class Trials:
    """Points in the order in which they are tried, with one outcome per fold.

    Attributes
    ----------
    scorers : tuple of Scorer
        The first decides.
    points : list of dict
    stage : list of int
        Stage of the search in which each point was added.
    rows : list of int
        Number of training rows of a fold to which each was last fitted.
    """

    def __init__(self, scorers: tuple[Scorer, ...], n_folds: int):
        self.scorers = scorers
        self.points: list[Point] = []
        self.stage: list[int] = []
        self.rows: list[int] = []
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
        self.rows.append(0)
        self._outcomes.append([None] * self._n_folds)
        return number

    def begin(self, numbers: Iterable[int], rows: int) -> None:
        """Drop the outcomes of points that are now fitted to more rows."""
        for number in numbers:
            self.rows[number] = rows
            self._outcomes[number] = [None] * self._n_folds

    def leaders(self, numbers: list[int], share: float, n_folds: int) -> list[int]:
        """Return the points with the best means over the first folds, a share of
        `numbers` rounded up.

        If none has a score, all are returned, because more rows may help.
        """
        # Not `_losses`: points of a later stage begin with fewer rows than the best.
        losses = self._mean_losses(n_folds)
        scored = [n for n in numbers if np.isfinite(losses[n])]
        order = in_order_of_ties(self.points, scored)
        order.sort(key=lambda number: losses[number])
        return sorted(order[: math.ceil(share * len(numbers))]) or numbers

    def record(self, number: int, fold: int, outcome: Outcome) -> None:
        """Record the outcome of a point in a fold."""
        self._outcomes[number][fold] = outcome.judged()

    def outcomes(self) -> list[list[Outcome]]:
        """Return the known outcomes of every point in every fold."""
        return [[o for o in of_point if o is not None] for of_point in self._outcomes]

    def scores(self, metric: int = 0) -> np.ndarray:
        """Return (p, k) scores by one of the metrics; nan where there is none."""
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

    def first_failure(self) -> tuple[str, int]:
        """Return why the first point without a score has none, and in which fold."""
        return next(
            (o.failure, k)
            for of in self.outcomes() for k, o in enumerate(of) if o.failure
        )  # fmt: skip

    def _losses(self) -> np.ndarray:
        """Return the mean loss of every point, (p,).

        It is nan if a score is missing, or if other points were fitted to more rows.
        """
        losses = self._mean_losses()
        losses[np.array(self.rows) < max(self.rows)] = np.nan
        return losses

    def _mean_losses(self, n_folds: int | None = None) -> np.ndarray:
        means = mean_score(self.scores()[:, :n_folds])
        return -means if self.scorers[0].greater_is_better else means


def mean_score(scores: np.ndarray) -> np.ndarray:
    """Return the mean over the k columns, (p,), even of unusual metrics."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(scores.mean(axis=1))


def standard_error(scores: np.ndarray) -> np.ndarray:
    """Return the standard error of that mean, (p,); 0 for a single column."""
    k = scores.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = scores.std(axis=1, ddof=1) if k > 1 else np.zeros(len(scores))
    return np.asarray(deviation / np.sqrt(k))


def halving_from(halving: bool | None, search: Any) -> float:
    """Return the number of training rows from which a search halves.

    By default the grids that methods declare are halved where rows are many, and a
    search that somebody has chosen is done in full.
    """
    if halving is None:
        return _LARGE if search is None else math.inf
    return 0 if check_flag("halving", halving) else math.inf


class Search:
    """Hyperparameter search on some rows.

    In every stage: the space proposes points; those that are new become tasks, a path
    in a fold each; their outcomes are noted; the best point so far goes back to the
    space. With successive halving the points of a stage are first fitted to a sample of
    the training rows, and the better half of them goes on to three times as many rows,
    until these are all; after samples of `_CLEAR` rows or more the better third. Fits
    to a sample are scored on the same share of the test rows, or on `_LEAST_SCORED` of
    them if that is more (K. Jamieson, A. Talwalkar, "Non-stochastic best arm
    identification and hyperparameter optimization", AISTATS 2016). With
    `first_folds`, and unless folds calibrate one another, the points that are left are
    compared in so many folds before the better half is fitted in the others.

    Attributes
    ----------
    rows : (n,) array
        Numbers of the rows to which the chosen point will be fitted.
    splits : list of (train_idx, test_idx)
        Row numbers of the whole table.
    trials : Trials
    """

    def __init__(
        self,
        work: Work,
        space: Space,
        rows: np.ndarray,
        splits: Splits,
        progress: Progress,
        halve_from: float = math.inf,
        first_folds: int | None = None,
    ):
        self.rows, self.splits = rows, splits
        self._n_train = min(train.size for train, _ in splits)
        self._halves = self._n_train >= halve_from
        self._links = work.shares_links and are_apart(splits)
        # Folds that calibrate one another are fitted together.
        fewer = first_folds if self._halves and not self._links else None
        self._first = range(len(splits))[:fewer]
        self._orders: dict[tuple[int, int], np.ndarray] = {}
        self.trials = Trials(work.scorers, len(splits))
        self._work, self._space, self._progress = work, space, progress
        self._proposed: list[Point] = []  # points as the space has made them
        self._requested: list[tuple[int, list[int]]] = []  # fold and points of a task
        progress.total += getattr(space, "size", 0) * len(splits)

    def steps(self) -> Generator[list[Task], object, Trials]:
        """Yield lists of tasks; `note` receives their outcomes before the next one."""
        stages = self._space.stages(self._work.training_rows(self.rows).X)
        if not isinstance(stages, Generator):
            raise TypeError(f"search.stages must be a generator, got {shown(stages)}")
        points = next(stages, [])
        n_later = len(self.splits) - len(self._first)
        for stage in count():
            numbers = self._add(points, stage)
            if not self.trials.points:
                raise ValueError("search.stages must give points, got none")
            for share in self._samples(len(numbers)):
                yield self._as_tasks(numbers, self._first, share)
                clear = self._n_train >= _CLEAR * share
                self._progress.total -= n_later * len(numbers)
                numbers = self._leaders(numbers, 1 / _SHARE if clear else _KEPT)
                self._progress.total += len(numbers) * len(self.splits)
            yield self._as_tasks(numbers, self._first)
            if n_later:
                later = range(len(self._first), len(self.splits))
                better = self._leaders(numbers, _KEPT)
                others = [number for number in numbers if number not in better]
                self._progress.total -= n_later * len(others)
                yield self._as_tasks(better, later)
                if others and self.trials.best() is None:  # each failed in a later fold
                    self._progress.total += n_later * len(others)
                    yield self._as_tasks(others, later)
            best = self.trials.best()
            if best is None:
                raise ValueError(self._failure())
            try:
                points = stages.send(dict(self._proposed[best]))
            except StopIteration:
                break
        return self.trials

    def _leaders(self, numbers: list[int], share: float) -> list[int]:
        """Return the best points by the folds in which all of them have been fitted."""
        return self.trials.leaders(numbers, share, len(self._first))

    def _failure(self) -> str:
        """Return the message for a search without a point to choose."""
        reason, fold = self.trials.first_failure()
        if not reason.startswith(SCORED):
            return f"no point could be fitted: {reason}"
        data = self._work.data
        why = without_rows(data.y, data.classes, self.splits[fold])
        return (
            f"no point has a finite {self.trials.scorers[0].name} in every fold: the "
            f"first {reason} in fold {fold + 1} of {len(self.splits)}{why}"
        )

    def note(self, place: int, outcomes: list[Outcome]) -> None:
        """Note the outcomes of one of the tasks of the last list."""
        fold, numbers = self._requested[place]
        folds = range(len(self.splits)) if self._links else [fold]
        places = [(number, k) for k in folds for number in numbers]
        for (number, k), outcome in zip(places, outcomes, strict=True):
            self.trials.record(number, k, outcome)
        best = self.trials.best() if self._progress.shown else None
        if best is not None:
            name, score = self.trials.scorers[0].name, self.trials.scores()[best].mean()
            point = described(self.trials.points[best])
            at = f" at {point}" if point else ""
            self._progress.best = f"best {name} {score:.4g}{at}"

    def _add(self, points: Iterable[Mapping[str, Any]], stage: int) -> list[int]:
        """Add new points, and return their numbers."""
        new = []
        for proposed in points:
            point = dict(proposed)
            self._work.check_point(point)
            twice = [name for name in point if name in self._work.options]
            if twice:
                raise ValueError(
                    f"{shortened(twice[0])} must not be both tuned and given for "
                    "every fit: leave one of them out"
                )
            number = self.trials.add(point, stage)
            if number is not None:
                new.append(number)
                self._proposed.append(dict(proposed))
        return new

    def _samples(self, n_points: int) -> list[int]:
        """Return the stages of halving: 9 for a ninth of the training rows, then 3 for
        a third.
        """
        shares = []
        share = _SHARE
        while self._halves and share < _SHARE * n_points:
            if self._n_train < share * _LEAST_SAMPLE:
                break
            shares.append(share)
            share *= _SHARE
        return shares[::-1]

    def _sample(self, fold: int, share: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a sample of 1 / `share` of the training rows of a fold, and the test
        rows on which its fits are scored.
        """
        train, test = self.splits[fold]
        scored = max(_LEAST_SCORED, math.ceil(test.size / share))
        return (
            self._beginning(fold, 0, math.ceil(train.size / share)),
            self._beginning(fold, 1, min(scored, test.size)),
        )

    def _beginning(self, fold: int, side: int, size: int) -> np.ndarray:
        """Return a stratified sample of the training rows (side 0) or test rows (1).

        Larger samples contain the smaller ones.
        """
        rows = self.splits[fold][side]
        if size == rows.size:
            return rows
        if (fold, side) not in self._orders:
            rank = np.unique(self._work.data.rank[rows], return_inverse=True)[1]
            # The seed is fixed because the folds have been drawn at random.
            order = spread_by_rank(rank, np.random.default_rng(0))
            self._orders[fold, side] = rows[order]
        return np.sort(self._orders[fold, side][:size])

    def _as_tasks(self, numbers: list[int], folds: range, share: int = 1) -> list[Task]:
        """Make a task per fold and path, on a sample of 1 / `share` of the rows.

        Folds that calibrate one another are one task.
        """
        if folds.start == 0:
            self.trials.begin(numbers, math.ceil(self._n_train / share))
        points = self.trials.points
        varying = self._work.varying
        paths: dict[Hashable, list[int]] = {}
        for number in in_order_of_ties(points, numbers):
            key = point_key(points[number], without=varying) if varying else number
            paths.setdefault(key, []).append(number)
        samples = {fold: self._sample(fold, share) for fold in folds}
        others = tuple(samples[fold] for fold in folds[1:]) if self._links else ()
        folds = folds[:1] if self._links else folds
        self._requested = [(fold, path) for fold in folds for path in paths.values()]
        replaced = {}
        if share > 1:
            replaced = self._work.sample_options(self.trials.rows[numbers[0]])
        return [
            Task(*samples[fold], tuple({**replaced, **points[k]} for k in path), others)
            for fold, path in self._requested
        ]


def are_apart(splits: Splits) -> bool:
    """Return whether folds may calibrate one another: no row is tested twice."""
    tests = np.concatenate([test for _, test in splits])
    return len(splits) > 1 and np.unique(tests).size == tests.size


def splits_of(
    given: SplitsLike,
    name: str,
    rows: np.ndarray,
    data: SearchData,
    drawn: Callable[[str, np.ndarray, int, np.ndarray | None], Splits],
) -> Splits:
    """Return the splits of some rows, as row numbers of the whole table.

    `drawn` makes them where their number is given. A caller's splitter sees the
    features of the rows (categories by their places) or, of a sparse table, their
    numbers. Raises ValueError if a side of a split has no weight.
    """
    group = None if data.group is None else data.group[rows]
    if isinstance(given, int | np.integer):
        splits = drawn(name, data.rank[rows], given, group)
    else:
        X = data.X.values if isinstance(data.X, Frame) else data.X
        seen = X[rows] if isinstance(X, np.ndarray) else rows[:, None]
        # A splitter sees the middle ranks of intervals.
        y = data.y[rows] if isinstance(data.y, np.ndarray) else data.rank[rows]
        splits = own_splits(given, name, seen, y, group)
    splits = [(rows[train], rows[test]) for train, test in splits]
    if data.weight is not None:
        _check_weights(splits, name, data.weight)
    return splits if data.chunked is None else in_order(splits, name)


def _check_weights(splits: Splits, name: str, weight: np.ndarray) -> None:
    for k, sides in enumerate(splits):
        for side, part in zip(("training", "test"), sides, strict=True):
            if not weight[part].any():
                raise ValueError(
                    f"sample_weight is 0 for all {side} rows of fold {k} of {name}: "
                    "leave rows of weight 0 out, or pass other folds"
                )
