"""The points of a search and what became of them in every fold."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from .points import Point, in_order_of_ties, point_key
from .scoring import Scorer
from .work import Outcome

_ROUNDING = 1e-12  # means that differ by less are equal: the sum over folds is rounded


class Trials:
    """Points in the order in which they are tried, with an outcome a fold.

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
        """The number of a new point, None for one that has been tried before."""
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
        """Of every point in every fold, as far as they are known."""
        return [[o for o in of_point if o is not None] for of_point in self._outcomes]

    def scores(self, metric: int = 0) -> np.ndarray:
        """(p, k) scores by one of the metrics; nan where there is none."""
        table = [
            [np.nan if o is None or o.failure else o.scores[metric] for o in of_point]
            for of_point in self._outcomes
        ]
        return np.array(table).reshape(len(self.points), self._n_folds)

    def best(self) -> int | None:
        """The point of the best mean among those that every fold has a score of."""
        losses = self._losses()
        if np.isnan(losses).all():
            return None
        least = np.nanmin(losses)
        return self.first(losses <= least + _ROUNDING * max(1.0, abs(least)))

    def one_se(self) -> int:
        """The first point, in the order of ties, whose mean is within one standard
        error of the best; there must be a best one."""
        best = self.best()
        assert best is not None
        losses, error = self._losses(), standard_error(self.scores())
        return self.first(losses <= losses[best] + error[best] + _ROUNDING)

    def first(self, among: np.ndarray) -> int:
        """Of the points in a mask, the first in the order of ties."""
        return in_order_of_ties(self.points, np.flatnonzero(among).tolist())[0]

    def first_failure(self) -> str:
        """Why the first fit without a score has none."""
        return next(o.failure for of in self.outcomes() for o in of if o.failure)

    def _losses(self) -> np.ndarray:
        """(p,) mean of every point, greater meaning worse; nan where one is missing."""
        means: np.ndarray = self.scores().mean(axis=1)
        return -means if self.scorers[0].greater_is_better else means


def standard_error(scores: np.ndarray) -> np.ndarray:
    """(p,) of the mean over the k columns; 0 if there is one column only."""
    k = scores.shape[1]
    deviation = scores.std(axis=1, ddof=1) if k > 1 else np.zeros(len(scores))
    return np.asarray(deviation / np.sqrt(k))
