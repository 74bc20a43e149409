"""Rounds of boosting by LightGBM, and the number of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, cast

import numpy as np

from .._cumulative.design import Design, structure_of
from .._cumulative.fitting import Minimum, likelihood_of, newton
from .._cumulative.likelihood import Link, terms_of
from .._cumulative.pooling import RankOrder, pooled
from .._cumulative.rowwise import RowwiseLikelihood
from .._input.immutable import read_only
from .._input.intervals import among_told_apart
from .._input.sparse import CSR, is_sparse
from .._input.types import Matrix
from .._solvers import _cumulative
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .forest import DEEPEST, Trees

Structure = Literal["score", "scores"]
# The thresholds move every 5 rounds, later whenever the rounds have grown by a quarter.
_EVERY = 5
_OPTIMUM = 1e-6  # length of the last step of the thresholds, in standard errors
_MANY = 50_000  # rows that suffice for the thresholds between rounds
_STEPS = 100
_ROUNDING = 1e-9  # of sums of weights
_SHARED = 4096  # with fewer rows, starting threads costs more than they save
_WAIT = 2.5  # over the learning rate: rounds that must lower the held-out loss
# A bin may hold a single row, so that small data sets with few values lose none of
# them. Bins are made from 50 000 rows, a quarter of LightGBM's default, which takes 4/5
# of the time for a million rows of 20 columns; each bin then has 1/255 of the rows to
# within a tenth.
_BINS = {
    "max_bin": 255,
    "min_data_in_bin": 1,
    "bin_construct_sample_cnt": 50_000,
    "feature_pre_filter": False,
}


@cache  # catch_warnings is not for several threads
def import_lightgbm() -> Any:
    """Return the module lightgbm; the ImportError without it names the extra."""
    try:
        with warnings.catch_warnings():  # its imports add filters of their own
            import lightgbm
    except ImportError:
        raise ImportError(
            "fit_boosting needs the package lightgbm 4 or newer to grow trees: pip "
            "install 'ordinal-regression[trees]'; models of it predict without"
        ) from None
    return lightgbm


@dataclass(frozen=True, slots=True, eq=False)
class ColumnOrder:
    """Distinct values of each column of numbers by their order, so that trees, folds
    and the number of rounds are the same in all units.

    A value has the number of edges below it. LightGBM and sparse matrices treat 0
    apart, so that is the number of the value that more than half of the weight has,
    or of the lowest one. LightGBM alone would merge all values within 1e-35 of 0.

    Attributes
    ----------
    edges : list of arrays
        Numbers halfway between neighbouring values.
    zero : list of int
        Number of edges below the value that counts as 0; -1 for categories.
    """

    edges: list[np.ndarray]
    zero: list[int]

    @classmethod
    def of_rows(
        cls, X: Matrix, weight: np.ndarray, categorical: Sequence[int]
    ) -> ColumnOrder:
        """Measure the columns of at most as many rows as LightGBM makes bins from."""
        step = math.ceil(len(X) / _BINS["bin_construct_sample_cnt"])
        out = cls([], [])
        for j, (rows, x) in enumerate(_columns(X)):
            some = (rows % step == 0) & ~np.isnan(x)
            x, w, known = x[some], weight[rows[some]], weight[::step]
            if x.size < known.size and is_sparse(X):
                x, w = np.append(x, 0.0), np.append(w, known.sum() - w.sum())
            edges, zero = _edges(x, w, 0.5 * known.sum())
            out.edges.append(edges)
            out.zero.append(-1 if j in categorical else zero)
        return out

    def transform(self, X: Matrix) -> Matrix:
        """Return the rows with values replaced by their numbers."""
        if isinstance(X, CSR):
            return self._transform_sparse(X)
        out = X.copy(order="C")
        for j, (edges, zero) in enumerate(zip(self.edges, self.zero, strict=True)):
            if zero >= 0:
                known = ~np.isnan(X[:, j])
                out[known, j] = np.searchsorted(edges, X[known, j]) - zero
        return out

    def _transform_sparse(self, X: CSR) -> CSR:
        parts = []
        for j, (rows, x) in enumerate(_columns(X)):
            edges, zero = self.edges[j], self.zero[j]
            of_zero = np.searchsorted(edges, 0.0)
            number = np.searchsorted(edges, x) - zero
            if of_zero != zero:  # stored nearly everywhere, so that more fits, too
                number_of_all = np.full(len(X), of_zero - zero)
                number_of_all[rows] = number
                rows, number = np.arange(len(X)), number_of_all
            parts.append((rows, np.full(rows.size, j, np.int32), number))
        row, column, number = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(row, kind="stable")
        size = np.bincount(row, minlength=len(X))
        indptr = np.append(0, np.cumsum(size))
        return CSR(number[order].astype(float), column[order], indptr, X.shape)

    def thresholds(self, trees: Trees) -> Trees:
        """Return trees of numbers as trees of the values themselves."""
        largest = np.finfo(float).max
        out = trees.threshold.copy()
        for j in np.unique(trees.feature):
            if (zero := self.zero[j]) >= 0:
                own = trees.feature == j
                edges = np.concatenate([[-largest], self.edges[j], [largest]])
                at = np.clip(np.floor(out[own]) + zero + 1, 0, edges.size - 1)
                out[own] = edges[at.astype(int)]
        return replace(trees, threshold=read_only(out))


def _columns(X: Matrix) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of the entries of each column, and the entries."""
    if not isinstance(X, CSR):
        rows = np.arange(len(X))
        yield from ((rows, x) for x in X.T)
        return
    row = np.repeat(np.arange(len(X)), np.diff(X.indptr))
    by_column = np.argsort(X.indices, kind="stable")
    ends = np.cumsum(np.bincount(X.indices, minlength=X.shape[1]))
    for at in np.split(by_column, ends[:-1]):
        yield row[at], X.data[at]


def _edges(x: np.ndarray, weight: np.ndarray, half: float) -> tuple[np.ndarray, int]:
    """Return the numbers halfway between distinct values, and how many of them are
    below the value that has more than `half` of the weight, 0 without such a value.
    """
    values, inverse = np.unique(x, return_inverse=True)
    low, high = values[:-1], values[1:]
    edges = 0.5 * low + 0.5 * high
    # Halves of the smallest numbers are rounded.
    edges = np.where((low <= edges) & (edges < high), edges, low)
    if not values.size:
        return edges, 0
    most = np.bincount(inverse, weight)
    k = int(most.argmax())
    return edges, k if most[k] > half * (1 + _ROUNDING) else 0


@dataclass(frozen=True, slots=True, eq=False)
class BoostingOptions:
    """Checked options of a fit.

    Attributes
    ----------
    monotone : (d,) int8 array
    categorical : list of int
        Numbers of the columns of categories.
    interactions : sequence of groups of columns
        Groups of columns that may interact, which contain all columns; empty if all
        may interact.
    seed : int
        Seed of the random numbers that draw rows and features.
    tree_threads, n_threads : int
        Numbers of threads of LightGBM, and of the kernels of this package.
    """

    link: Link
    structure: Structure
    learning_rate: float
    n_leaves: int
    min_rows: int
    row_share: float
    feature_share: float
    l2: float
    monotone: np.ndarray
    categorical: list[int]
    interactions: Sequence[Sequence[int]]
    seed: int
    tree_threads: int
    n_threads: int

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of LightGBM.

        Row-wise histograms depend on the number of threads if weights are very unequal,
        even with `deterministic`. On one thread they are equal to column-wise ones to
        the last bit, and a tenth faster if every tree has all features.
        """
        by_rows = self.tree_threads == 1 and self.feature_share == 1
        seeds = "seed", "bagging_seed", "feature_fraction_seed", "data_random_seed"
        return {
            "objective": "none",
            "metric": "None",
            "verbosity": -1,
            "deterministic": True,
            "force_row_wise" if by_rows else "force_col_wise": True,
            "num_threads": self.tree_threads,
            **dict.fromkeys((*seeds, "extra_seed"), self.seed),
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "max_depth": DEEPEST,
            "min_data_in_leaf": self.min_rows,
            "min_data_per_group": self.min_rows,
            "min_sum_hessian_in_leaf": 1e-3,
            "lambda_l2": self.l2,
            "bagging_fraction": self.row_share,
            "bagging_freq": int(self.row_share < 1),
            "feature_fraction": self.feature_share,
            "monotone_constraints": self.monotone.tolist()
            if self.monotone.any()
            else None,
            "interaction_constraints": [list(group) for group in self.interactions]
            or None,
            **_BINS,
        }

    def dataset(self, X: Any) -> Any:
        """Return the binned rows, which all boosters of a fit share."""
        if is_sparse(X):
            from scipy.sparse import csr_array  # which LightGBM requires

            X = csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        made = import_lightgbm().Dataset(
            X, params=self.parameters(), categorical_feature=self.categorical
        )
        return made.construct()

    def ranks_by_score(self, rank: np.ndarray, q: int) -> list[np.ndarray]:
        """Return the ranks that each score separates, (n,) each: all, or two."""
        if self.structure == "score":
            return [rank]
        return [(rank > k).astype(np.int32) for k in range(q - 1)]


class Score:
    """One booster of LightGBM and its thresholds.

    Attributes
    ----------
    thresholds : list of (T,) arrays
        Thresholds at the start, and those with which each round was grown.
    size : int
        Number of trees, one per round until no split is left.
    ended : bool
        Whether no split is left.
    is_best : bool
        Whether the next round copies the scores of the training rows to `best`. To
        compute them by 100 trees takes 3 s for a million rows.
    best : (int, (n,) array)
        Number of trees, and these scores.
    """

    def __init__(
        self,
        data: Any,
        settings: BoostingOptions,
        rank: np.ndarray,
        weight: np.ndarray,
        lower: np.ndarray | None = None,
    ):
        lightgbm = import_lightgbm()
        self._settings, self._weight = settings, weight
        self._rank, self._lower = rank, lower
        self._link = _cumulative.LINKS.index(settings.link)
        # A fold may have too few rows for a share that suits all rows.
        share = max(settings.row_share, 1.001 / rank.size)
        parameters = replace(settings, row_share=min(1.0, share)).parameters()
        self._booster = lightgbm.Booster(parameters, data)
        self._design = design = _design(rank, weight, lower)
        n, self._step = rank.size, max(1, rank.size // _MANY)
        self._some = design.every(self._step)
        if lower is not None or np.unique(self._some.rank).size < design.T + 1:
            self._some, self._step = design, 1
        self.thresholds = [likelihood_of(design, settings.link, 0.0, 1).start()]
        self.size, self._next = 0, _EVERY
        columns = range(data.num_feature())
        self.ended = all(data.feature_num_bin(j) < 2 for j in columns)
        self._slope = np.empty(n, np.float32)
        self._curvature = np.empty(n, np.float32)
        self._held: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None = None
        self.is_best, self.best = False, (-1, np.empty(0))

    def hold_out(
        self,
        data: Any,
        rank: np.ndarray,
        weight: np.ndarray,
        lower: np.ndarray | None = None,
    ) -> None:
        """Let the booster update the scores of these rows after every round."""
        self._booster.add_valid(data, "held_out")
        self._held = rank, weight, lower

    def grow(self) -> None:
        """Add a tree, unless no split is left."""
        if self.ended:
            return
        self.ended = bool(self._booster.update(fobj=self._derivatives))
        if self.ended:
            del self.thresholds[self.size + 1 :]
        else:
            self.size += 1

    def _derivatives(self, f: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        b = self.thresholds[-1]
        if self.is_best:
            self.is_best, self.best = False, (self.size, f.copy())
        if self.size >= self._next:
            self._next = self.size + max(_EVERY, self.size // 4)
            some = f if self._step == 1 else f[:: self._step].copy()
            b = self._moved(self._some, some, b, 1).point.x
        self.thresholds.append(b)
        slopes = self._slope, self._curvature
        rows = self._rank, self._weight, self._lower
        self._evaluate(f, rows, slopes, np.empty(0))
        return slopes

    def _evaluate(
        self,
        f: np.ndarray,
        rows: tuple[np.ndarray, np.ndarray, np.ndarray | None],
        slopes: tuple[np.ndarray, np.ndarray],
        value: np.ndarray,
    ) -> None:
        """Write the derivatives of the weighted loss by the scores into `slopes`.

        Its sums over blocks of rows go to `value` unless that is empty, because they
        take as long again. `rows` are the last ranks, the weights and the first ranks.
        """
        edges = np.concatenate([[-np.inf], self.thresholds[-1], [np.inf]])
        rank, weight, lower = rows
        if lower is not None:
            above, below = edges[rank + 1] - f, edges[lower] - f
            log_p, g, _, c1, c2, _ = terms_of(self._settings.link, above, below)
            slopes[0][:], slopes[1][:] = weight * g, -weight * (c1 + c2)
            if value.size:
                value[:] = 0.0
                value[0] = -float(weight[weight > 0] @ log_p[weight > 0])
            return
        _cumulative.score_slopes(
            self._link, f, rank, weight, edges, *slopes, value,
            self._settings.n_threads if f.size >= _SHARED else 1,
        )  # fmt: skip

    def held_out_loss(self) -> float:
        """Return the sum of the weighted loss over the held-out rows."""
        assert self._held is not None
        rows = self._held
        lost = [math.inf]

        def judge(f: np.ndarray, data: Any) -> tuple[str, float, bool]:
            value = np.empty(_cumulative.blocks_of(f.size))
            slope, curvature = np.empty((2, f.size), np.float32)
            self._evaluate(f, rows, (slope, curvature), value)
            lost[0] = float(value.sum())
            return "loss", lost[0], False

        self._booster.eval_valid(feval=judge)
        return lost[0]

    def text(self, size: int) -> str:
        """Return the first trees as LightGBM writes them."""
        if size == 0:
            return ""
        return str(self._booster.model_to_string(num_iteration=size))

    def training_scores(self, size: int) -> np.ndarray | None:
        """Return the sums of the first trees for the training rows, as LightGBM had
        them, if these are all trees or those of the round that was the best so far.
        """
        if size == self.best[0]:
            return self.best[1]
        if size < self.size:
            return None
        held: list[np.ndarray] = []

        def keep(f: np.ndarray, data: Any) -> tuple[str, float, bool]:
            held.append(f.copy())
            return "kept", 0.0, False

        self._booster.eval_train(feval=keep)
        return held[0]

    def best_thresholds(
        self, f: np.ndarray, size: int
    ) -> tuple[np.ndarray, float, float]:
        """Return the optimum of the thresholds for the scores f of the first trees, its
        loss, and the length of the last step.

        Ranks of intervals that get no weight have equal thresholds.
        """
        best = self._moved(self._design, f, self.thresholds[size], _STEPS)
        if self._lower is None:
            return best.point.x, best.point.value, best.violation
        whole = replace(self._design, offset=f)
        loss = likelihood_of(whole, self._settings.link, 0.0, self._settings.n_threads)
        order = RankOrder(cast(RowwiseLikelihood, loss))
        while order.revise(best.point.x):
            part = pooled(whole, order.group)
            start = likelihood_of(part, self._settings.link, 0.0, 1).start()
            best = self._moved(part, f, start, _STEPS)
        return best.point.x[order.group], best.point.value, best.violation

    def _moved(
        self, design: Design, f: np.ndarray, b: np.ndarray, steps: int
    ) -> Minimum:
        link, n_threads = self._settings.link, self._settings.n_threads
        loss = likelihood_of(replace(design, offset=f), link, 0.0, n_threads)
        return newton(loss, b, steps, Monitor("thresholds", _OPTIMUM))


def _design(
    rank: np.ndarray, weight: np.ndarray, lower: np.ndarray | None = None
) -> Design:
    """Return a design without columns, whose offset will be the scores."""
    none, T = np.zeros(0, np.int64), int(rank.max())
    X = np.empty((rank.size, 0))
    total = float(weight.sum())
    return Design(
        X, none, none, none, None, rank, weight, total,
        J=structure_of("flexible", T), centre=np.zeros(0), spread=np.ones(0),
        lower=lower,
    )  # fmt: skip


class Ensemble:
    """One score, or one per threshold, of a set of rows; they are grown together."""

    def __init__(
        self,
        data: Any,
        settings: BoostingOptions,
        rank: np.ndarray,
        weight: np.ndarray,
        q: int,
        held: tuple[Any, np.ndarray, np.ndarray] | None = None,
        lower: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        self.rounds: int = 0
        self.scores: list[Score] = []
        self.held_weight = 0.0
        if lower is not None:
            self._begin_intervals(data, settings, (lower[0], rank), weight, q)
            if held is not None and self.scores:
                self._hold_intervals(held[0], (lower[1], held[1]), held[2])
            return
        tests = [rank] if held is None else [held[1]]
        others = settings.ranks_by_score(tests[0], q)
        for own, other in zip(settings.ranks_by_score(rank, q), others, strict=True):
            present = np.bincount(own, minlength=q) > 0
            if present.sum() < 2:
                continue  # the fold has no rank on one side of the threshold
            place = (np.cumsum(present) - 1).astype(np.int32)
            score = Score(data, settings, place[own], weight)
            if held is not None:
                known = np.where(present[other], held[2], 0.0)
                score.hold_out(held[0], np.maximum(place[other], 0), known)
                self.held_weight += known.sum()
            self.scores.append(score)

    def _begin_intervals(
        self,
        data: Any,
        settings: BoostingOptions,
        ends: tuple[np.ndarray, np.ndarray],
        weight: np.ndarray,
        q: int,
    ) -> None:
        """Make the score of rows with intervals of ranks, unless they are of one rank.

        The rows of a fold may tell fewer ranks apart than all rows.
        """
        low, high = among_told_apart(*ends, weight, q)
        self._ranks = np.unique(high)
        if self._ranks.size < 2:
            return
        low, high = (
            np.searchsorted(self._ranks, end).astype(np.int32) for end in (low, high)
        )
        self.scores.append(Score(data, settings, high, weight, low))

    def _hold_intervals(
        self, data: Any, ends: tuple[np.ndarray, np.ndarray], weight: np.ndarray
    ) -> None:
        """Hold out rows with intervals; those without a rank of the score have no
        weight.
        """
        low = np.searchsorted(self._ranks, ends[0]).astype(np.int32)
        high = np.searchsorted(self._ranks, ends[1], side="right").astype(np.int32) - 1
        known = np.where(low <= high, weight, 0.0)
        low = np.clip(low, 0, self._ranks.size - 1)
        self.scores[0].hold_out(data, np.maximum(low, high), known, low)
        self.held_weight += float(known.sum())

    @property
    def ended(self) -> bool:
        return all(score.ended for score in self.scores)

    def grow(self, late: Callable[[], bool]) -> bool:
        """Grow one tree of every score; return False if the time was up before that."""
        for score in self.scores:
            if late():
                return False
            score.grow()
        self.rounds += 1
        return True

    def held_out_loss(self) -> float:
        return sum(score.held_out_loss() for score in self.scores)

    def trees(self, rounds: int, order: ColumnOrder) -> GrownTrees:
        """Return the trees of the first rounds, read from the text of LightGBM."""
        sizes = [min(rounds, score.size) for score in self.scores]
        texts = [
            score.text(size) for score, size in zip(self.scores, sizes, strict=True)
        ]
        return GrownTrees(order.thresholds(Trees.from_texts(texts)), sizes)


@dataclass(frozen=True, slots=True, eq=False)
class GrownTrees:
    """Trees of all scores, one score after the other, in the order of their rounds.

    Attributes
    ----------
    trees : Trees
    sizes : list of int
        Number of trees of each score, one per round until no split was left.
    """

    trees: Trees
    sizes: list[int]

    def first(self, rounds: int) -> tuple[Trees, np.ndarray]:
        """Return the trees of the first rounds, and the position of the first tree of
        each score among them, (s + 1,).
        """
        grown_in = np.concatenate([np.arange(size) for size in self.sizes])
        start = np.cumsum([0, *np.minimum(self.sizes, rounds)])
        return self.trees.subset(grown_in < rounds), start


@dataclass(frozen=True, slots=True, eq=False)
class RoundsEnd:
    """End of the rounds, and the mean held-out loss after each of them."""

    rounds: int
    status: Status
    violation: float
    held_out: np.ndarray


def grow_rounds(main: Ensemble, rounds: int, monitor: Monitor) -> RoundsEnd:
    """Grow trees up to this number of rounds, or until the monitor stops."""
    status = monitor.stop(main.rounds, 0.0)
    while status is None and main.rounds < rounds and not main.ended:
        main.grow(monitor.late)
        status = monitor.stop(main.rounds, 0.0)
    if main.rounds >= rounds or main.ended:
        status = None
    return RoundsEnd(
        min(rounds, main.rounds), status or Status.CONVERGED, 0.0, np.zeros(0)
    )


def grow_by_folds(
    main: Ensemble,
    folds: Sequence[Ensemble],
    learning_rate: float,
    max_iter: int,
    monitor: Monitor,
) -> RoundsEnd:
    """Grow rounds until they no longer lower the held-out loss of the folds.

    The model has the number of rounds with the least held-out loss. All rows are
    boosted beside the folds, so that there is a model whenever the time is up.
    """
    wait = math.ceil(_WAIT / learning_rate)
    total = sum(fold.held_weight for fold in folds)
    losses = [sum(fold.held_out_loss() for fold in folds) / total]
    status, violation = monitor.stop(0, 1.0), 1.0
    while status is None and len(losses) <= max_iter and not main.ended:
        if all(ensemble.grow(monitor.late) for ensemble in (*folds, main)):
            losses.append(sum(fold.held_out_loss() for fold in folds) / total)
            for score in main.scores:
                score.is_best = losses[-1] < min(losses[1:-1], default=math.inf)
            violation = _fall(losses, wait)
            if len(losses) > wait and violation <= monitor.tol:
                break
        status = monitor.stop(main.rounds, violation)
    if status is None:
        ended = main.ended or violation <= monitor.tol
        status = Status.CONVERGED if ended else Status.MAX_ITER
        violation = min(violation, monitor.tol) if ended else violation
    best = int(np.argmin(losses[1:])) + 1 if len(losses) > 1 else 0
    return RoundsEnd(best, status, violation, np.array(losses[1:]))


def _fall(losses: Sequence[float], wait: int) -> float:
    """Return the relative decrease of the held-out loss by the last `wait` rounds."""
    before = min(losses[: max(1, len(losses) - wait)])
    return max(0.0, (before - min(losses)) / max(abs(before), 1e-300))
