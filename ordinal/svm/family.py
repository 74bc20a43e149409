"""The programs of support vector machines for ranks, and their models.

Arrays by rank have one entry for each of the q ranks with training rows. A problem is
given by the side -1 or +1 of each rank, or 0 for ranks that it leaves out, and by the
width of the box of a row of weight 1 for C = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from .._input.immutable import read_only
from .._input.problem import Problem, around_ranks
from .._input.types import AnyBasis
from .._input.weights import absolute_cost, optional_cost
from .._quadratic.family import QuadraticFamily, Solved
from .._quadratic.losses import Losses, losses_by_rank
from .._quadratic.program import Program
from .._watch.convergence import Convergence
from .model import Decomposition, SvmModel, SvrModel, sides


def cheapest_thresholds(
    f: np.ndarray, rank: np.ndarray, weight: np.ndarray, cost: np.ndarray
) -> np.ndarray:
    """Return increasing thresholds (q - 1,) that minimise the cost of the rows.

    In the order of their scores, adjacent rows are predicted to have the same or the
    next rank. Dynamic programming finds the best partition: the least cost of the first
    p scores with the ranks up to k is

        least_k(p) = min { least_{k-1}(s) + cost of predicting k from s to p : s <= p }

    This takes O(n q) after the rows are sorted. Of several optima, the one with the
    lowest higher thresholds is returned. A threshold lies in the middle between two
    scores, or half a unit beyond all of them.

    Parameters
    ----------
    f : (n,) scores
    rank : (n,) values 0..q-1
    weight : (n,) weights of the rows
    cost : (q, q) array
        Cost of predicting column k for a row of rank j.
    """
    some = weight > 0
    values, place = np.unique(f[some], return_inverse=True)
    q = len(cost)
    held = np.bincount(place * q + rank[some], weight[some], values.size * q)
    # prefix[p, k] is the cost of predicting k for the first p scores.
    prefix = np.zeros((values.size + 1, q))
    np.cumsum(held.reshape(-1, q) @ cost, axis=0, out=prefix[1:])
    least, began = prefix[:, 0], []
    for k in range(1, q):
        before = least - prefix[:, k]
        lowest = np.minimum.accumulate(before)
        new = np.append(True, before[1:] < lowest[:-1])
        began.append(np.maximum.accumulate(np.where(new, np.arange(before.size), 0)))
        least = lowest + prefix[:, k]
    # Follow the optimal starts back from the highest rank.
    start, starts = values.size, []
    for best_start in reversed(began):
        start = int(best_start[start])
        starts.append(start)
    ends = np.concatenate([[values[0] - 1], values, [values[-1] + 1]])
    at = np.array(starts[::-1], dtype=int)
    below, above = ends[at], ends[at + 1]
    middle = below + 0.5 * (above - below)
    # The middle of two neighbouring floats rounds to one of them: take the upper one.
    return np.asarray(np.where(middle > below, middle, above))


SvmMethod: TypeAlias = Literal["svc", "svr", "cssvc", "svmop"]
Thresholds: TypeAlias = Literal["rounded", "fitted"]
Model: TypeAlias = SvmModel | SvrModel
_Terms: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Parameters(NamedTuple):
    """Parameters that may differ between the points of a path."""

    C: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class Svm(QuadraticFamily[Parameters, Any]):
    """A method with its options; `decomposition` is None for a regression."""

    method: SvmMethod
    decomposition: Decomposition | None
    cost: Any = None
    thresholds: Thresholds = "rounded"

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return f"fit_{self.method}"

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Check the cost matrix, whose shape follows from the number of classes."""
        cost = optional_cost(self.cost, problem.n_classes)
        rounded = self.decomposition is None and self.thresholds == "rounded"
        if cost is not None and rounded and not np.array_equal(cost, cost.T):
            raise ValueError(
                "cost must be symmetric where thresholds='rounded', which do not "
                "depend on its direction: pass thresholds='fitted', or the cost to "
                "predict(X, rule='cost', cost=...)"
            )
        return replace(self, cost=cost)

    def order(self, problem: Problem) -> np.ndarray | None:
        """Return an order in which the rows of each pair of ranks lie together."""
        if self.decomposition != "one_vs_one":
            return None
        return np.argsort(problem.rank, kind="stable")

    def programs(self, point: Parameters, problem: Problem) -> list[Program]:
        """Return (D) of every hyperplane."""
        rank, weight = problem.rank_among_present, problem.weight
        lo, hi, pn, pp = (a[:, None, rank] for a in self._terms(point, problem))
        slope = pn if self.decomposition else pp
        return [Program(lo=lo * weight, hi=hi * weight, pn=pn, pp=slope)]

    def losses(self, point: Parameters, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, for every hyperplane."""
        lo, hi, pn, pp = (a[:, None] for a in self._terms(point, problem))
        return losses_by_rank(Program(lo, hi, pn, pp))

    def model(self, point: Parameters, problem: Problem, solved: Solved) -> Model:
        """Return the model of one point."""
        common: dict[str, Any] = {
            "support": solved.support,
            "kernel": solved.options.kernel,
            "classes": read_only(problem.classes),
            "n_features": problem.n_features,
            "feature_names": problem.feature_names,
            "C": point.C,
            "cost": self.cost,
            "link": None,
        }
        intercept = np.array([-b[0] for b in solved.b])
        if self.decomposition is not None:
            return SvmModel(
                method=self.method,  # type: ignore[arg-type]
                decomposition=self.decomposition,
                coef=read_only(solved.coef),
                intercept=read_only(intercept),
                present=read_only(problem.present),
                convergence=Convergence.of_parts(solved.records()),
                **common,
            )
        fitted = self.thresholds == "fitted"
        f = solved.scores(problem) if fitted else None
        return SvrModel(
            coef=read_only(solved.coef[:, 0]),
            intercept=float(intercept[0]),
            thresholds=read_only(_thresholds(self.cost, problem, f)),
            fitted=fitted,
            epsilon=point.epsilon,
            convergence=solved.records()[0],
            **common,
        )

    def _terms(self, point: Parameters, problem: Problem) -> _Terms:
        """Return boxes and slopes of a row of weight 1 and each rank, (P, q)."""
        C, epsilon = point
        present = np.flatnonzero(problem.present)
        if self.decomposition is None:
            t = present[None].astype(float)
            box = np.full(t.shape, C)
            return -box, box, -t - epsilon, epsilon - t
        side = sides(self.decomposition, present.size)
        width = C * np.abs(side)
        if self.method != "svc":
            width = width * self._factors(problem, present, side)
        low, up = np.where(side < 0, -width, 0.0), np.where(side > 0, width, 0.0)
        return low, up, -side, -side

    def _factors(
        self, problem: Problem, present: np.ndarray, side: np.ndarray
    ) -> np.ndarray:
        """Return factors (P, q) by which the widths of the boxes are multiplied.

        They grow with the cost of predicting the other side. The sum of the weights of
        the rows remains the same and, if costs are symmetric, that of either side.
        """
        cost = self.cost
        if cost is None:
            cost = absolute_cost(problem.n_classes)
        cost = cost[np.ix_(present, present)]
        total = np.bincount(problem.rank, problem.weight, problem.n_classes)[present]
        mean = 0.5 * (cost + cost.T)
        skew = cost / np.where(mean > 0, mean, 1.0)
        if self.method == "cssvc":
            both = _keeping_sums(mean, side < 0, total) + np.eye(present.size)
            # A row that its own hyperplane misses goes to one of the next ranks.
            near = np.abs(np.subtract.outer(*2 * [np.arange(present.size)])) == 1
            toward = skew.T + np.diag((skew * near).sum(axis=1) / near.sum(axis=1))
        else:
            nearest = np.arange(present.size - 1)[:, None] + (side < 0)
            ranks = np.arange(present.size)
            distance, toward = mean[ranks, nearest], skew[ranks, nearest]
            both = _keeping_sums(distance, side < 0, total)
            both += _keeping_sums(distance, side > 0, total)
        # Each side keeps its sum under the mean of cost and cost.T; the direction of
        # the costs then divides the weight between the sides.
        directed = both * toward
        return np.asarray(directed * ((both @ total) / (directed @ total))[:, None])


def _keeping_sums(
    distance: np.ndarray, some: np.ndarray, total: np.ndarray
) -> np.ndarray:
    """Return scaled distances, (P, q), for `some` of the ranks, and 0 for the others.

    In each problem, the scale keeps the sum of the weights `total`, (q,), of these.
    """
    inside = np.where(some, distance, 0.0)
    return np.asarray(inside * ((some @ total) / (inside @ total))[:, None])


def _thresholds(
    cost: np.ndarray | None, problem: Problem, f: np.ndarray | None
) -> np.ndarray:
    """Return thresholds of least cost for scores f, or in the middle between ranks."""
    present, r = np.flatnonzero(problem.present), problem.n_classes
    if f is None:
        return around_ranks(0.5 * (present[1:] + present[:-1]), present, r)
    cost = absolute_cost(r) if cost is None else cost
    cost = cost[np.ix_(present, present)]
    b = cheapest_thresholds(f, problem.rank_among_present, problem.weight, cost)
    return around_ranks(b, present, r)
