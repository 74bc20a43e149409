"""Splits of the rows into training and test sets."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import (
    as_array,
    check_count,
    check_entries,
    listed,
    resolve_rng,
    shown,
)
from .._input.columns import as_objects
from .._input.labels import is_missing
from .._model.folds import by_rank, held_out_size, hold_out

_MOST_SPLITS = 100_000  # hold-outs; more would be a slip
Splits = list[tuple[np.ndarray, np.ndarray]]  # (train_idx, test_idx)


class Splitter(Protocol):
    """An object that splits rows as those of scikit-learn do."""

    def split(self, X: Any, y: Any) -> Iterable[Any]: ...


SplitsLike: TypeAlias = int | Sequence[tuple[ArrayLike, ArrayLike]] | Splitter


def stratified_holdout(
    y: ArrayLike,
    n_splits: int = 30,
    *,
    test_size: float | int = 0.25,
    rng: int | np.random.Generator = 0,
) -> Splits:
    """Repeated random hold-outs with every rank in its share on both sides.

    Each split takes exactly `n_test` test rows, apportioned to the ranks by largest
    remainder (ties drawn anew for each split). No rank loses its last training row,
    so a rank with a single row is always trained on and never tested.

    Parameters
    ----------
    y : (n,) array_like
        Labels of any kind that numpy can sort; their order does not matter here.
    n_splits : int, default 30
        Number of hold-outs, as usual for the benchmark sets of ordinal regression.
    test_size : float or int, default 0.25
        A fraction of the rows, rounded up as the published partitions do, or their
        number.
    rng : int or numpy.random.Generator, default 0
        The same seed gives the same splits.

    Returns
    -------
    list of (train_idx, test_idx)
        Increasing int64 row numbers: together they are 0..n-1, each once.

    Raises
    ------
    ValueError
        If `test_size` leaves no test row or fewer training rows than ranks, or `y`
        is not a finite vector.

    Examples
    --------
    >>> train_idx, test_idx = stratified_holdout([1, 1, 1, 1, 2, 2, 2, 2, 3])[0]
    >>> train_idx.size, test_idx.size
    (6, 3)
    """
    return drawn_holdouts("n_splits", y, n_splits, test_size, rng)


def stratified_kfold(
    y: ArrayLike, n_splits: int = 5, *, rng: int | np.random.Generator = 0
) -> Splits:
    """Folds with every rank in its share: each row is tested once.

    The rows, in random order within their ranks, are dealt out to the folds in turn.
    So the sizes of folds, and the rows of a rank in them, differ by one at most. A
    rank with fewer rows than folds is absent from some test sets, one with a single
    row from the training rows of its fold, where no model can predict it.

    Parameters
    ----------
    y : (n,) array_like
        Labels of any kind that numpy can sort; their order does not matter here.
    n_splits : int, default 5
        Number of folds, 2 to n; 5 is what the papers of ordinal regression take.
    rng : int or numpy.random.Generator, default 0
        The same seed gives the same folds.

    Returns
    -------
    list of (train_idx, test_idx)
        Increasing int64 row numbers, as from `stratified_holdout`.

    Raises
    ------
    ValueError
        If there are more folds than rows, or `y` is not a finite vector.

    Examples
    --------
    >>> folds = stratified_kfold([1, 1, 1, 2, 2, 3], 3)
    >>> [test_idx.size for _, test_idx in folds]
    [2, 2, 2]
    """
    return drawn_folds("n_splits", y, n_splits, rng)


def drawn_holdouts(
    name: str,
    y: ArrayLike,
    n_splits: int,
    test_size: float | int,
    rng: int | np.random.Generator,
) -> Splits:
    """Those of `stratified_holdout`; errors give their number this name."""
    rank, count = _ranks(y)
    n_splits = check_count(name, n_splits)
    if n_splits > _MOST_SPLITS:
        raise ValueError(f"{name} must be at most {_MOST_SPLITS}, got {n_splits}")
    rng = resolve_rng(rng)
    n_test = held_out_size(test_size, rank.size, count.size)
    return [_split(hold_out(rank, n_test, rng)) for _ in range(n_splits)]


def drawn_folds(
    name: str, y: ArrayLike, n_splits: int, rng: int | np.random.Generator
) -> Splits:
    """Those of `stratified_kfold`; errors give their number this name."""
    rank, _ = _ranks(y)
    n_splits = check_count(name, n_splits)
    if not 2 <= n_splits <= rank.size:
        raise ValueError(
            f"{name} must be 2 to the number of rows, {rank.size}, got {n_splits}"
        )
    fold = np.empty(rank.size, dtype=np.int64)
    fold[by_rank(rank, resolve_rng(rng))] = np.arange(rank.size) % n_splits
    return [_split(fold == k) for k in range(n_splits)]


def own_splits(given: Any, name: str, X: Any, y: np.ndarray) -> Splits:
    """Splits of the rows of X and y that the caller gives in place of a number: a
    sequence, or what makes one. ValueError or TypeError names the argument."""
    if hasattr(given, "split") and not isinstance(given, str):
        given = given.split(X, y)
    elif not isinstance(given, Iterable) or isinstance(given, str):
        raise TypeError(
            f"{name} must be a number, splits (train_idx, test_idx), or an object with "
            f"a split method, got {shown(given)}"
        )
    out = [_checked(split, len(y), f"{name}[{k}]") for k, split in enumerate(given)]
    if not out:
        raise ValueError(f"{name} must hold at least one split")
    return out


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


def _ranks(y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The number of every row's label, (n,), and how many rows each label has."""
    y = as_objects(y, "y")
    if y.ndim != 1 or y.size == 0:
        raise ValueError(f"y must be 1-dimensional and non-empty, got shape {y.shape}")
    if y.dtype.kind == "f":
        check_entries("y", y, np.isfinite(y), "be finite")
    if y.dtype.kind == "O":
        missing = [row for row, label in enumerate(y) if is_missing(label)]
        if missing:
            raise ValueError(f"y has no label in row {missing[0]}")
    try:
        _, rank, count = np.unique(y, return_inverse=True, return_counts=True)
    except TypeError:  # of a comparison
        raise TypeError(f"y must hold labels that sort, got {listed(y)}") from None
    return rank, count


def _split(is_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
