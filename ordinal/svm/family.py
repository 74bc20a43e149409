"""The programs of support vector machines for ranks, and their models.

Arrays by rank have one entry for each of the q ranks with training rows. A problem is
given by the side -1 or +1 of each rank, or 0 for ranks that it leaves out, and by the
width of the box of a row of weight 1 for C = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from .._input.checks import check_entries
from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, SHARED, Array
from .._input.immutable import read_only
from .._input.labels import absolute_cost, optional_cost
from .._input.predictions import values_of
from .._input.problem import Problem, around_ranks
from .._input.types import AnyBasis, ArrayLike, RowsLike
from .._model.links import PartitionLink, SoftmaxLink, require_link
from .._model.support import Hyperplanes, decision, finite_scores
from .._model.threshold_model import ON_PROBABILITIES, ScoreModel, predicted
from .._quadratic.family import QuadraticFamily, Solved
from .._quadratic.losses import Losses, losses_by_rank
from .._quadratic.program import Program
from .._watch.convergence import Convergence

Decomposition: TypeAlias = Literal["one_vs_one", "one_vs_all", "ordered"]


def sides(decomposition: Decomposition, q: int) -> np.ndarray:
    """Return the side of each of q ranks in every problem, (P, q).

    The problems are all pairs, each rank against the others, or the ranks above each
    rank but the last against those below.
    """
    if decomposition == "one_vs_one":
        low, high = np.triu_indices(q, 1)
        side = np.zeros((low.size, q))
        every = np.arange(low.size)
        side[every, low], side[every, high] = -1.0, 1.0
        return side
    if decomposition == "one_vs_all":
        return 2 * np.eye(q) - 1
    return np.where(np.arange(q) > np.arange(q - 1)[:, None], 1.0, -1.0)


Rule: TypeAlias = Literal["largest", "mode", "median", "cost"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SvmModel(Hyperplanes):
    """Several hyperplanes, f_p(x) = sum_i coef[i, p] k(support_i, x) + intercept[p].

    Attributes
    ----------
    method : str
        "svc", "cssvc" or "svmop".
    decomposition : str
        Division of the q ranks with training rows by the hyperplanes. "one_vs_one": the
        lower from the higher one of two ranks, for the pairs (0, 1), (0, 2), ..., (q -
        2, q - 1). "one_vs_all": each rank, on the positive side, from the others.
        "ordered": the ranks up to k from those above k, for each k but the last.
    support : (m, n_features) array or CSR
        Training rows that have a coefficient other than 0, or the basis rows of a fit
        with `basis`. For a precomputed kernel, the (m,) numbers of those rows.
    coef : (m, P) array
    intercept : (P,) array
    present : (r,) array of bool
        Whether each of the `classes` had training rows. Ranks without are never
        predicted.
    C : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    cost : (r, r) array, or None
        Cost matrix, if one was passed to the fit.
    link : SoftmaxLink or PartitionLink or None
        Link from the values of the hyperplanes to probabilities; None unless fitted
        with `probability=True`. For "ordered", each hyperplane has its own logistic
        curve for the probability of the ranks above it; isotonic regression makes these
        probabilities decrease with the rank, and the probability of a rank is the
        difference of two. For "one_vs_all", a softmax of the values of the ranks; for
        "one_vs_one", a softmax of their mean values against the others.
    convergence : Convergence
        Record of the fit; `parts` has one entry per hyperplane.
    """

    method: Literal["svc", "cssvc", "svmop"]
    decomposition: Decomposition
    coef: Annotated[np.ndarray, Array("f8", "m P"), FINITE]
    intercept: Annotated[np.ndarray, Array("f8", "P"), FINITE]
    present: Annotated[np.ndarray, Array("?", "r")]
    C: Annotated[float, FINITE, POSITIVE]
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None
    link: Annotated[SoftmaxLink | PartitionLink, SHARED] | None
    _rules = "largest", *ON_PROBABILITIES

    @property
    def link_type(self) -> type[SoftmaxLink] | type[PartitionLink]:
        """Return the type of the link, one of two kinds."""
        return PartitionLink if self.decomposition == "ordered" else SoftmaxLink

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the values f_p(x) of the hyperplanes.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n, P) array
            In units of the margin: up to slack, training rows on the upper side have
            values of at least 1, those on the lower side of at most -1. `decomposition`
            defines the sides.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    def _columns(self) -> np.ndarray:
        return self.coef

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """Return the values from sums over the support rows."""
        with np.errstate(over="ignore"):  # seen by the check
            return finite_scores(sums + self.intercept)

    def rank_values(self, f: np.ndarray) -> np.ndarray:
        """Return one value per rank; the rank of the largest is predicted.

        Parameters
        ----------
        f : (n, P) array
            From `decision_function`.

        Returns
        -------
        (n, r) array
            -inf for a rank without training rows. "one_vs_one": the votes of a rank;
            ties are broken by adding s / (3 (|s| + 1)), which is less than half a vote,
            where s is the sum of the values of the rank against all others divided by
            the number of pairs. "one_vs_all": the value of its hyperplane. "ordered":
            the sum of the values of the hyperplanes below the rank, divided by the
            number of hyperplanes. If the values decrease with the rank, the largest sum
            is that of the rank whose number is the number of positive values; if they
            do not, the same holds after isotonic regression.

        Raises
        ------
        ValueError, TypeError
            If f is not a finite real matrix with one column per hyperplane.
        """
        f = values_of(f, "f", self.intercept.size)
        check_entries("f", f, np.isfinite(f), "be finite")
        ranks = np.flatnonzero(self.present)
        q = ranks.size
        values = np.full((len(f), self.classes.size), -np.inf)
        if self.decomposition == "one_vs_all":
            values[:, ranks] = f
        elif self.decomposition == "ordered":
            sums = np.cumsum(f / (q - 1), axis=1)
            values[:, ranks] = np.insert(sums, 0, 0.0, axis=1)
        else:
            side = sides("one_vs_one", q)
            votes = (f > 0) @ np.maximum(side, 0) + (f < 0) @ np.maximum(-side, 0)
            s = (f / len(side)) @ side
            values[:, ranks] = votes + s / (1 + np.abs(s)) / 3
        return values

    def _linked(self, f: np.ndarray) -> np.ndarray:
        """Return the input of the link: values of hyperplanes, or of ranks."""
        if self.decomposition == "ordered":
            return f
        against = np.full((len(f), self.classes.size), np.inf)
        if self.decomposition == "one_vs_one":
            q = int(self.present.sum())
            f = (f / (q - 1)) @ sides("one_vs_one", q)
        against[:, self.present] = -f
        return against

    def _link_input(self, f: np.ndarray, like: Hyperplanes) -> np.ndarray:
        """Return `link_input`, with a column for each hyperplane of `like`.

        Ordered hyperplanes that this model lacks are the nearest that it has.
        """
        # With slots, dataclass makes a second class, which super() does not know.
        values = super(SvmModel, self)._link_input(f, like)
        if self.decomposition != "ordered" or not isinstance(like, SvmModel):
            return values
        below = self.present.cumsum()[np.flatnonzero(like.present)[:-1]] - 1
        return values[:, np.clip(below, 0, values.shape[1] - 1)]

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """Return `predict_proba` of rows with the values f."""
        P = np.asarray(require_link(self.link)(self._linked(f)))
        if self.decomposition != "ordered":
            return P
        out = np.zeros((len(f), self.classes.size))
        out[:, self.present] = P
        return out

    def predict(
        self, X: RowsLike, *, rule: Rule | None = None, cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Predict labels by a decision rule.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"largest", "mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "largest", the rank of the
            largest of `rank_values`, the lowest one of a tie. The others use
            `predict_proba`: the most probable rank, the median, or the rank of least
            expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default the `cost` of the
            model, or |j - k| if it has none.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError
            If the rule needs probabilities and the model has none, or if `cost` is not
            a finite (r, r) matrix.
        """
        return predicted(self, X, rule, cost)

    def _labels(self, f: np.ndarray) -> np.ndarray:
        """Return the labels of rows with the values f, by the largest rank value."""
        return np.asarray(self.classes[self.rank_values(f).argmax(axis=1)])

    def _check_values(self) -> None:
        optional_cost(self.cost, self.classes.size)
        q = int(self.present.sum())
        if q < 2:
            raise ValueError("two or more ranks must be present")
        if len(sides(self.decomposition, q)) != self.intercept.size:
            raise ValueError(f"there must be the hyperplanes of {q} ranks")
        link = self.link
        if link is None:
            return
        if not isinstance(link, self.link_type):
            raise ValueError("the link must be one of the decomposition")
        if isinstance(link, SoftmaxLink):
            if not np.array_equal(np.isfinite(link.offsets), self.present):
                raise ValueError("the link must know the ranks that are present")
        elif link.slopes.size != self.intercept.size:
            raise ValueError("the link must have a slope for each hyperplane")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SvrModel(ScoreModel):
    """Score f(x) = sum_i coef[i] k(support_i, x) + intercept, and thresholds on it.

    The score is in units of ranks.

    Attributes
    ----------
    support : (m, n_features) array or CSR
        The training rows with a dual other than 0, or the rows of the basis; for a
        precomputed kernel the (m,) numbers of those rows.
    coef : (m,) array
    intercept : float
    thresholds : (r - 1,) array
        They are -inf or +inf where no training rows lie beyond them, and equal on both
        sides of an inner rank without training rows, which is then never predicted.
    fitted : bool
        Whether the thresholds were fitted to minimise the cost of the training rows.
    C, epsilon : float
    cost : (r, r) array, or None
        Cost matrix, if one was passed to the fit.
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
    """

    intercept: Annotated[float, FINITE]
    fitted: bool
    C: Annotated[float, FINITE, POSITIVE]
    epsilon: Annotated[float, FINITE, NONNEGATIVE]
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the score f(x): a rank as a number, 0 for the lowest of `classes`.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n,) array

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """Return the score from the (n, 1) sums over the support rows."""
        with np.errstate(over="ignore"):  # seen by the check
            return finite_scores(sums[:, 0] + self.intercept)

    def _check_values(self) -> None:
        optional_cost(self.cost, self.classes.size)


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
