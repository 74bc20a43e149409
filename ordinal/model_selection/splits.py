"""Splits of the rows into training and test sets, and of whole groups of rows."""

from __future__ import annotations  # numpy.random is slow to import

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import (
    as_array,
    as_real_array,
    can_be_listed,
    check_count,
    resolve_rng,
    shown,
    with_suggestions,
)
from .._model.folds import by_rank, held_out_size, hold_out
from .._model.grouping import distinct, group_folds, group_numbers, hold_out_groups

_MOST_SPLITS = 100_000  # hold-outs; more would be a slip
Splits = list[tuple[np.ndarray, np.ndarray]]  # (train_idx, test_idx)


class Splitter(Protocol):
    """An object that splits rows as those of scikit-learn do; `groups` are passed only
    if there are some.
    """

    def split(self, X: Any, y: Any, groups: Any = ...) -> Iterable[Any]: ...


SplitsLike: TypeAlias = int | Sequence[tuple[ArrayLike, ArrayLike]] | Splitter


@with_suggestions
def stratified_holdout(
    y: ArrayLike,
    n_splits: int = 30,
    *,
    test_size: float | int = 0.25,
    groups: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
) -> Splits:
    """Return repeated stratified hold-out splits.

    Every split has the same number of test rows, which are apportioned to the ranks by
    largest remainders (with random ties). Every rank keeps at least one training row,
    so that a rank with a single row is always in the training set. With `groups`, whole
    groups are drawn, and the shares of the ranks are matched as closely as possible.

    Parameters
    ----------
    y : (n,) array_like
        Labels of any kind that numpy can sort; their order does not matter here.
    n_splits : int, default 30
        Number of hold-outs, as usual for the benchmark sets of ordinal regression.
    test_size : float or int, default 0.25
        Share of the rows, rounded up as in the published partitions, or their number.
        With `groups` it is matched as closely as whole groups allow.
    groups : (n,) array_like, optional
        Group of each row, such as a patient or rater. No group is on both sides of a
        split. At least one group is held out, and every rank keeps at least one
        training group.
    rng : int or numpy.random.Generator, default 0
        Source of random numbers. The same seed gives the same splits.

    Returns
    -------
    list of (train_idx, test_idx)
        Increasing int64 row numbers: together they are 0..n-1, each once.

    Raises
    ------
    ValueError
        If `test_size` leaves no test row or fewer training rows than ranks, `y` is not
        a finite vector, or no group can be held out.

    See Also
    --------
    stratified_kfold : Return stratified cross-validation folds.
    learning_splits : Return hold-out splits with training sets of increasing size.

    Examples
    --------
    >>> train_idx, test_idx = stratified_holdout([1, 1, 1, 1, 2, 2, 2, 2, 3])[0]
    >>> train_idx.size, test_idx.size
    (6, 3)
    """
    rank = distinct(y, "y")[1]
    group = group_numbers(groups, rank.size)
    return drawn_holdouts("n_splits", y, n_splits, group, test_size=test_size, rng=rng)


@with_suggestions
def stratified_kfold(
    y: ArrayLike,
    n_splits: int = 5,
    *,
    groups: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
) -> Splits:
    """Return stratified cross-validation folds.

    The rows of each rank are shuffled and assigned to the folds in turn, so that the
    sizes of folds, and the numbers of rows of a rank in them, differ by at most one. A
    rank with fewer rows than folds is missing in some test sets. A rank with a single
    row is missing in the training set of one fold, whose models cannot predict it.

    With `groups`, whole groups are assigned to folds, which can therefore be less
    balanced. The assignment minimises the sum over folds and ranks of
    (rows - share)^2 / (rows of the rank) locally: moving a group or exchanging two
    would not lower it. A rank whose rows all belong to one group is missing in the
    training set of one fold.

    Parameters
    ----------
    y : (n,) array_like
        Labels of any kind that numpy can sort; their order does not matter here.
    n_splits : int, default 5
        Number of folds, from 2 to n; 5 is usual in papers on ordinal regression. With
        `groups`, at most the number of groups.
    groups : (n,) array_like, optional
        Group of each row, such as a patient or rater. No group is in two folds.
    rng : int or numpy.random.Generator, default 0
        Source of random numbers. The same seed gives the same folds.

    Returns
    -------
    list of (train_idx, test_idx)
        Increasing int64 row numbers, as from `stratified_holdout`.

    Raises
    ------
    ValueError
        If there are more folds than rows or groups, or `y` is not a finite vector.

    See Also
    --------
    stratified_holdout : Return repeated stratified hold-out splits.
    learning_splits : Return hold-out splits with training sets of increasing size.

    Examples
    --------
    >>> folds = stratified_kfold([1, 1, 1, 2, 2, 3], 3)
    >>> [test_idx.size for _, test_idx in folds]
    [2, 2, 2]
    """
    rank = distinct(y, "y")[1]
    return drawn_folds(
        "n_splits", y, n_splits, group_numbers(groups, rank.size), rng=rng
    )


@with_suggestions
def learning_splits(
    y: ArrayLike,
    sizes: int | Sequence[int] | Sequence[float] = 5,
    *,
    n_splits: int = 10,
    test_size: float | int = 0.25,
    groups: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
) -> Splits:
    """Return hold-out splits with training sets of increasing size.

    Every hold-out is used with each size of training set, on the same test rows.
    Smaller training sets are subsets of larger ones; they are stratified and have at
    least one row of every rank. Pass the splits to `select` as `cv` or to `nested` as
    `outer`, and the result to `ordinal.plot.learning_curve`.

    Parameters
    ----------
    y : (n,) array_like
        Labels of any kind that numpy can sort; their order does not matter here.
    sizes : int or sequence, default 5
        Number of sizes, which then increase geometrically from a tenth of the training
        rows to all of them. Or a sequence of numbers of rows, or of shares in (0, 1].
    n_splits : int, default 10
        Number of hold-outs.
    test_size, groups, rng : as for `stratified_holdout`

    Returns
    -------
    list of (train_idx, test_idx)
        Splits of the first hold-out in increasing order of size, then those of the
        second.

    Raises
    ------
    ValueError
        As in `stratified_holdout`; also if a size is smaller than the number of ranks
        or larger than the training set.

    See Also
    --------
    stratified_holdout : Return repeated stratified hold-out splits.
    ordinal.plot.learning_curve : Plot scores on test rows by the number of training
        rows.

    Examples
    --------
    >>> splits = learning_splits([1, 2] * 20, [4, 10, 30], n_splits=2)
    >>> [train_idx.size for train_idx, _ in splits]
    [4, 10, 30, 4, 10, 30]
    """
    rank = distinct(y, "y")[1]
    rng = resolve_rng(rng)
    holdouts = stratified_holdout(
        y, n_splits, test_size=test_size, groups=groups, rng=rng
    )
    # Groups make hold-outs of unequal size: every one must have the largest number.
    n = min(train.size for train, _ in holdouts)
    counts = _training_sizes(sizes, n, int(rank.max()) + 1)
    splits = []
    for train, test in holdouts:
        order = train[spread_by_rank(rank[train], rng)]
        splits += [(np.sort(order[:count]), test) for count in counts]
    return splits


def _training_sizes(sizes: Any, n: int, n_ranks: int) -> list[int]:
    """Return increasing numbers of the n training rows."""
    if not np.ndim(sizes):
        k = check_count("sizes", sizes, 2)
        least = max(n_ranks, math.ceil(n / 10))
        return [int(m) for m in np.unique(np.geomspace(least, n, min(k, n)).round())]
    given = as_real_array(sizes, "sizes")
    if given.ndim != 1 or given.size == 0:
        raise ValueError(
            f"sizes must be a number or a sequence of numbers, got {shown(sizes)}"
        )
    of_rows = np.asarray(sizes).dtype.kind in "iu"
    with np.errstate(invalid="ignore"):  # refused below
        # 0.07 * 100 is 7.000000000000001, which means 7 rows.
        counts = np.unique(given if of_rows else np.ceil(given * n - 1e-9))
    if not n_ranks <= counts[0] <= counts[-1] <= n:
        raise ValueError(
            f"sizes must be {n_ranks}, the number of ranks, to the {n} training rows, "
            f"or shares of these, got {shown(sizes)}"
        )
    return [int(count) for count in counts]


def spread_by_rank(rank: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the rows in an order whose first n rows are stratified for every n.

    It begins with one row of each rank.
    """
    order = by_rank(rank, rng)
    count = np.bincount(rank)
    place = np.arange(rank.size) - np.repeat(np.cumsum(count) - count, count)
    # A random phase per rank, lest the same rank come first at every size.
    phase = np.repeat(rng.random(count.size), count)
    share = (place + phase) / np.repeat(count, count)
    # First one row of each rank, then all others by the share of their rank before
    # them.
    return order[np.lexsort((share, place > 0))]


def drawn_holdouts(
    name: str,
    y: ArrayLike,
    n_splits: int,
    group: np.ndarray | None,
    *,
    test_size: float | int,
    rng: int | np.random.Generator,
) -> Splits:
    """Draw splits of `stratified_holdout` by group numbers.

    Errors give their number this name.
    """
    _, rank, count = distinct(y, "y")
    n_splits = check_count(name, n_splits)
    if n_splits > _MOST_SPLITS:
        raise ValueError(f"{name} must be at most {_MOST_SPLITS}, got {n_splits}")
    rng = resolve_rng(rng)
    n_test = held_out_size(test_size, rank.size, count.size)
    if group is None:
        return [_split(hold_out(rank, n_test, rng)) for _ in range(n_splits)]
    return [_split(hold_out_groups(rank, group, n_test, rng)) for _ in range(n_splits)]


def drawn_folds(
    name: str,
    y: ArrayLike,
    n_splits: int,
    group: np.ndarray | None,
    *,
    rng: int | np.random.Generator,
) -> Splits:
    """Draw splits of `stratified_kfold` by group numbers.

    Errors give their number this name.
    """
    rank = distinct(y, "y")[1]
    n_splits = check_count(name, n_splits)
    if group is not None:
        group = np.unique(group, return_inverse=True)[1]  # some may have no row here
    most = rank.size if group is None else int(group.max()) + 1
    if not 2 <= n_splits <= most:
        of = "rows" if group is None else "groups"
        fewer = f"pass fewer folds, or more {of}"
        raise ValueError(
            f"{name} must be 2 to the number of {of}, {most}, got {n_splits}: "
            f"{fewer if n_splits > 1 else 'pass 2 folds or more'}"
        )
    rng = resolve_rng(rng)
    if group is not None:
        fold = group_folds(rank, group, n_splits, rng)
    else:
        fold = np.empty(rank.size, dtype=np.int64)
        # All ranks are dealt in one sequence, so that sizes of folds differ by at most
        # one row.
        fold[by_rank(rank, rng)] = np.arange(rank.size) % n_splits
    return [_split(fold == k) for k in range(n_splits)]


def is_splitter(given: object) -> bool:
    """Return whether an object splits rows; text and a class have a `split`, too."""
    unlike = isinstance(given, str | bytes | bytearray | type)
    return hasattr(given, "split") and not unlike


def own_splits(
    given: Any, name: str, X: Any, y: np.ndarray, group: np.ndarray | None
) -> Splits:
    """Return the splits that a caller gives as a sequence, or by a splitter.

    Raises ValueError or TypeError that names the argument, also if a group is on both
    sides of a split.
    """
    if is_splitter(given):
        given = given.split(X, y) if group is None else given.split(X, y, group)
    elif not can_be_listed(given):
        raise TypeError(
            f"{name} must be a number, splits (train_idx, test_idx), or an object with "
            f"a split method, got {shown(given)}"
        )
    out = [_checked(split, len(y), f"{name}[{k}]") for k, split in enumerate(given)]
    if not out:
        raise ValueError(f"{name} must hold at least one split")
    if group is not None:
        _check_groups(out, name, group)
    return out


def in_order(splits: Splits, name: str) -> Splits:
    """Sort the row numbers of each split, as rows are read.

    ValueError for a row twice on one side.
    """
    out = []
    for k, split in enumerate(splits):
        train, test = map(np.sort, split)
        for side in (train, test):
            twice = np.flatnonzero(np.diff(side) == 0)
            if twice.size:
                raise ValueError(
                    f"{name}[{k}] must name a row once where X is read in chunks, but "
                    f"row {side[twice[0]]} is there twice"
                )
        out.append((train, test))
    return out


def _check_groups(splits: Splits, name: str, group: np.ndarray) -> None:
    for k, (train, test) in enumerate(splits):
        shared = np.isin(group[test], group[train])
        if shared.any():
            row = test[np.argmax(shared)]
            other = train[np.argmax(group[train] == group[row])]
            raise ValueError(
                f"{name}[{k}] has a group on both sides: it trains on row {other} and "
                f"tests on row {row}"
            )


def _checked(split: Any, n: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    if not hasattr(split, "__len__") or len(split) != 2:
        raise ValueError(f"{name} must be (train_idx, test_idx), got {shown(split)}")
    train, test = (as_array(rows, name) for rows in split)
    for rows in (train, test):
        if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
            raise ValueError(f"{name} must hold two vectors of row numbers")
        if rows.min() < 0 or rows.max() >= n:
            raise ValueError(f"{name} has a row outside 0 to {n - 1}")
    shared = np.intersect1d(train, test)
    if shared.size:
        raise ValueError(f"{name} trains on row {shared[0]} and tests on it")
    return train.astype(np.int64), test.astype(np.int64)


def _split(is_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
