"""Stratified folds and hold-out splits, and links fitted to out-of-fold scores."""

from __future__ import annotations  # numpy.random is slow to import

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from .._input.checks import shown
from .._input.problem import Problem
from .._input.types import Matrix
from .._numerics.rows import content_hash, dense, place_hash, take
from .._rows.columns import rows_of
from .._rows.first_pass import ChunkedProblem
from .._watch.convergence import Status, worse
from .._watch.monitor import Monitor
from ..kernels.functions import KernelFunction
from .column_names import named

N_FOLDS = 5
_ROUNDING = 1e-9  # rounding error of a sum of weights, in units
_MOST = 50_000  # rows that are assigned to folds, where not all are needed
_LEAST = 10  # of these, least number per rank


@dataclass(frozen=True, slots=True, eq=False)
class FoldSplit:
    """A problem without one fold, and the rows of that fold.

    Attributes
    ----------
    problem : Problem
        Training set of the fold.
    train : (n_train,) array
        Numbers of its rows in the whole problem.
    test : (n_test,) array
        Numbers of the rows of the fold, which are scored.
    weight : (n_test,) array
        Share of their weight that is scored in this fold.
    X_test : (n_test, d) matrix
    """

    problem: Problem
    train: np.ndarray
    test: np.ndarray
    weight: np.ndarray
    X_test: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class FewFolds:
    """Folds of some rows.

    They are for very many rows, of which a sample determines a link as well as all do.
    The other rows are in the training set of every fold.

    Attributes
    ----------
    rows : (k,) numbers of rows, increasing
    share : (k, N_FOLDS) array
        Shares as returned by `fold_shares`.
    factor : (k,) array
        Weight of each rank in all rows, divided by its weight in these rows.
    """

    rows: np.ndarray
    share: np.ndarray
    factor: np.ndarray


Shares: TypeAlias = np.ndarray | FewFolds


def draw_few_folds(
    problem: Problem, rng: np.random.Generator, kernel: KernelFunction | None = None
) -> FewFolds:
    """Return folds of some 50 000 rows at most, drawn at random from each rank.

    Ranks are represented in proportion, with at least ten rows each. If there are fewer
    rows, all of them are assigned, as by `fold_shares`.
    """
    n, rank = problem.n_samples, problem.rank
    if n <= _MOST:
        rows = np.arange(n)
    else:
        drawn = []
        for k in np.flatnonzero(problem.present):
            of_rank: np.ndarray = np.flatnonzero(
                (rank == k) & (problem.sample_weight > 0)
            )
            size = max(_LEAST, of_rank.size * _MOST // n)
            if of_rank.size > size:
                of_rank = of_rank[rng.choice(of_rank.size, size, replace=False)]
            drawn.append(of_rank)
        rows = np.sort(np.concatenate(drawn))
    some = problem
    if isinstance(problem, ChunkedProblem) or n > _MOST:
        some = sample_problem(problem, kernel, rows)
    share = fold_shares(some, rng, kernel)
    r = problem.n_classes
    of_all = np.bincount(rank, problem.weight, r)
    of_some = np.bincount(some.rank, some.weight, r)
    factor = np.where(of_some > 0, of_all, 1.0) / np.where(of_some > 0, of_some, 1.0)
    return FewFolds(rows, share, factor[rank[rows]])


def fold_shares(
    problem: Problem, rng: np.random.Generator, kernel: KernelFunction | None = None
) -> np.ndarray:
    """Return the share of every row's weight that each fold scores, (n, N_FOLDS).

    The shares are 0 for rows that are only trained on. Weights count observations: a
    row of weight 2 is two rows, which may be in two folds. The folds depend on `rng`
    and on the contents of the rows, not on their order or the units of columns, nor on
    the order of columns unless these are distributed alike within the ranks: rows of
    one rank are assigned in the order of a hash of the places of their features within
    the ranges of the columns (of their number if K is precomputed).
    Identical rows form one heap of weight, which is divided into as many equal units as
    it holds whole ones. A unit has weight 1, or the weight of the lightest heap of its
    rank if that is more, so that multiplying all weights by 10 does not change the
    folds. It has at most a fifth of the weight of its rank, so that few heaps suffice
    for all folds.

    Every fold has all ranks in proportion. The only unit of a rank is never held out,
    because its rank would then be missing: the model of all rows must score it. Rows
    without weight are in no fold.
    """
    share = dealt_shares(problem, rng, kernel)
    if not share.any():
        raise ValueError(
            "probability=True needs a class with 2 rows or more, which can be divided "
            "between folds: add rows, or pass probability=False"
        )
    return share


def dealt_shares(
    problem: Problem, rng: np.random.Generator, kernel: KernelFunction | None = None
) -> np.ndarray:
    """Return the shares of `fold_shares`, which are all 0 if no rank has two units."""
    by_number = kernel is not None and kernel.by_number
    X = np.arange(1.0, 1 + problem.n_samples)[:, None] if by_number else problem.X
    seed = int(rng.integers(2**63))
    content = content_hash(X, seed)
    # ranks without rows make no difference
    number = np.cumsum(problem.present) - 1
    of_rows = number[problem.rank], problem.sample_weight, seed
    place = content if by_number else place_hash(X, *of_rows)
    share, dealt = np.zeros((problem.n_samples, N_FOLDS)), 0
    for k in np.flatnonzero(problem.present):
        rows = np.flatnonzero((problem.rank == k) & (problem.sample_weight > 0))
        rows = rows[np.lexsort((content[rows], place[rows]))]
        heap = np.cumsum(np.diff(content[rows], prepend=content[rows[:1]]) != 0)
        weight = np.bincount(heap, problem.sample_weight[rows])
        unit = max(1.0, min(weight.min(), weight.sum() / N_FOLDS))
        units = np.maximum(1, np.floor(weight / unit + _ROUNDING))
        if units.sum() < 2:
            continue
        # The units of the rank lie on a line one after the other, and every row covers
        # an interval of it.
        ends = np.cumsum(problem.sample_weight[rows] * (units / weight)[heap])
        whole = np.rint(ends)
        ends = np.where(np.abs(ends - whole) < _ROUNDING * whole, whole, ends)
        pieces = np.diff(_scored(dealt + np.append(0.0, ends)), axis=0)
        # Rounding leaves an empty interval to a light row beside heavy ones.
        lost = ~pieces.any(axis=1)
        pieces[lost, (dealt + ends[lost]).astype(int) % N_FOLDS] = 1.0
        share[rows] = pieces / pieces.sum(axis=1, keepdims=True)
        dealt += int(units.sum())
    return share


def _scored(units: np.ndarray) -> np.ndarray:
    """Return how many of the first units belong to each fold, (len(units), N_FOLDS).

    Units are assigned to the folds in turn; part of a unit counts as a fraction.
    """
    rounds, rest = np.divmod(units[:, None], N_FOLDS)
    return np.asarray(rounds + np.clip(rest - np.arange(N_FOLDS), 0, 1))


def never_scored(problem: Problem, share: Shares) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and weights of rows in no fold, which are alone in their rank."""
    rows, share, factor = _dealt(problem, share)
    single = ~share.any(axis=1) & (problem.weight[rows] > 0)
    return rows[single], (problem.weight[rows] * factor)[single]


def _dealt(
    problem: Problem, share: Shares
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows that are assigned to folds, their shares, and weight factors."""
    if isinstance(share, FewFolds):
        return share.rows, share.share, share.factor
    return np.arange(problem.n_samples), share, np.ones(1)


def out_of_fold(
    problem: Problem, kernel: KernelFunction | None, share: Shares
) -> Iterator[FoldSplit]:
    """Yield the split of a problem for every fold that scores rows."""
    rows, share, factor = _dealt(problem, share)
    for scored in share.T:
        if not scored.any():
            continue
        kept = np.ones(problem.n_samples, bool)
        kept[rows[scored == 1]] = False
        train, test = np.flatnonzero(kept), rows[scored > 0]
        left, cut = None, (scored > 0) & (scored < 1)
        if cut.any():
            left = np.ones(train.size)
            left[np.searchsorted(train, rows[cut])] = 1 - scored[cut]
        weight = (problem.weight[rows] * scored * factor)[scored > 0]
        part, X_test = split_problem(problem, kernel, train, test, left)
        yield FoldSplit(part, train, test, weight, X_test)


def split_problem(
    problem: Problem,
    kernel: KernelFunction | None,
    train: np.ndarray,
    test: np.ndarray,
    share: np.ndarray | None = None,
) -> tuple[Problem, Matrix]:
    """Return a problem restricted to the rows `train`, and the features of `test`.

    `share` multiplies the weights of the rows. From a precomputed kernel matrix, the
    columns of other rows are removed.
    """
    part, X_test = problem.subset(train, share), rows_of(problem.X, test)
    if kernel is not None and kernel.by_number:
        X = np.ascontiguousarray(dense(part.X)[:, train])
        return replace(part, X=X), dense(X_test)[:, train]
    return part, X_test


def sample_problem(
    problem: Problem, kernel: KernelFunction | None, rows: np.ndarray
) -> Problem:
    """Return the problem of some rows in memory, also if those of `problem` are not."""
    if isinstance(problem, ChunkedProblem):
        return problem.part(rows)
    return split_problem(problem, kernel, rows, rows[:0])[0]


def by_rank(rank: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of the rows in the order of their ranks, random within one."""
    order = rng.permutation(rank.size)
    return order[np.argsort(rank[order], kind="stable")]


def hold_out(rank: np.ndarray, n_test: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the rows of a hold-out set, (n,) bool.

    `n_test` rows are apportioned to the ranks by largest remainder, with random ties.
    No rank that has rows loses its last one.
    """
    count = np.bincount(rank)
    # position of each row within its rank, for rows grouped by rank
    place = np.arange(rank.size) - np.repeat(np.cumsum(count) - count, count)
    take = _apportion(n_test, count, rng)
    held = np.zeros(rank.size, dtype=bool)
    held[by_rank(rank, rng)[place < np.repeat(take, count)]] = True
    return held


def held_out_size(test_size: float | int, n: int, n_ranks: int) -> int:
    """Return the size of a hold-out set from a share or a count.

    ValueError unless every rank can keep one row.
    """
    if isinstance(test_size, Integral) and not isinstance(test_size, bool):
        n_test = int(test_size)
    elif isinstance(test_size, Real) and 0 < test_size < 1:
        # 0.07 * 100 is 7.000000000000001: a product so near an integer counts as one
        n_test = math.ceil(test_size * n - 1e-9)
    else:
        raise ValueError(
            f"test_size must be a fraction in (0, 1) or a count, got {shown(test_size)}"
        )
    if not 1 <= n_test <= n - n_ranks:
        raise ValueError(
            f"test_size={shown(test_size)} asks for {shown(n_test)} test rows; with "
            f"{n} rows and one training row kept for each of the {n_ranks} ranks there "
            f"can be 1 to {n - n_ranks}: pass another test_size, or fewer ranks, as "
            "ordinal.preprocessing.Binning makes of numbers"
        )
    return n_test


def _apportion(n_test: int, count: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return numbers of test rows per rank: their sum is n_test, each < its count."""
    n = int(count.sum())
    take = n_test * count // n  # < count, as n_test < n
    shuffled = rng.permutation(count.size)  # argmax then breaks ties at random
    while take.sum() < n_test:
        owed = np.where(take < count - 1, n_test * count - n * take, -n * n)
        take[shuffled[np.argmax(owed[shuffled])]] += 1
    return take


def calibrate(
    models: Sequence[Any],
    problem: Problem,
    share: Shares | None,
    fit: Callable[[Problem, np.ndarray], Sequence[Any]],
    monitor: Monitor,
) -> list[Any]:
    """Return the models with links fitted to out-of-fold scores.

    Without folds, they are returned unchanged. If time is up, the link is fitted to the
    folds so far, provided that they score every rank. For very many rows, some folds
    always suffice.

    Parameters
    ----------
    models : sequence of models of one class
        One per point of a path. `link_input(X, like)` of a model returns the input of a
        link for rows X, in the units of the model `like`; `link_type` fits the link.
    problem : Problem
        Training set of the models.
    share : (n, N_FOLDS) array, FewFolds, or None
        From `fold_shares` or `draw_few_folds`.
    fit : callable
        Fits the models to a part of the problem, given the numbers of its rows.
    monitor : Monitor
        Monitor of the fit.
    """
    if share is None:
        return list(models)
    few = isinstance(share, FewFolds)
    single, weight_of_single = never_scored(problem, share)
    values: list[list[np.ndarray]] = [[] for _ in models]
    if single.size:
        X = named(take(problem.X, single), problem.feature_names)
        values = [[model.link_input(X, model)] for model in models]
    rows, weight = [single], [weight_of_single]
    convergence = [model.convergence for model in models]
    kernel = getattr(models[0], "kernel", None)
    for k, part in enumerate(out_of_fold(problem, kernel, share)):
        X_test = named(part.X_test, problem.feature_names)
        with monitor.numbered("fold", k, N_FOLDS), closing(part.problem):
            for i, of_fold in enumerate(fit(part.problem, part.train)):
                values[i].append(of_fold.link_input(X_test, models[i]))
                convergence[i] = worse(convergence[i], of_fold.convergence)
        rows.append(part.test)
        weight.append(part.weight)
        scored = np.unique(problem.rank[np.concatenate(rows)])
        every_rank = scored.size == np.count_nonzero(problem.present)
        if few and every_rank:
            break
        if monitor.late() and every_rank and k + 1 < N_FOLDS:
            cut = [replace(c, status=Status.MAX_TIME) for c in convergence]
            convergence = list(map(worse, convergence, cut))
            break
    observed = problem.rank[np.concatenate(rows)], np.concatenate(weight)
    return [
        replace(
            model,
            link=model.link_type.fit(
                np.concatenate(values[i]), *observed, problem.n_classes
            ),
            convergence=replace(convergence[i], seconds=monitor.seconds),
        )
        for i, model in enumerate(models)
    ]
