"""Splits of the rows into training and test sets."""

from __future__ import annotations  # numpy.random is slow to import

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from ._problem import check_count, resolve_rng


def stratified_holdout(
    y: ArrayLike,
    n_splits: int = 30,
    *,
    test_size: float | int = 0.25,
    rng: int | np.random.Generator = 0,
) -> list[tuple[np.ndarray, np.ndarray]]:
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
    y = np.asarray(y)
    if y.ndim != 1 or y.size == 0:
        raise ValueError(f"y must be 1-dimensional and non-empty, got shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = np.flatnonzero(~np.isfinite(y))[0]
        raise ValueError(f"y must be finite, got {y[row]} in row {row}")
    check_count(n_splits=n_splits)
    rng = resolve_rng(rng)
    _, rank, count = np.unique(y, return_inverse=True, return_counts=True)
    n_test = _test_rows(test_size, y.size, count.size)
    # of rows grouped by rank: the place of each within its group
    place = np.arange(y.size) - np.repeat(np.cumsum(count) - count, count)

    splits = []
    for _ in range(n_splits):
        take = _apportion(n_test, count, rng)
        # A stable sort of shuffled rows: grouped by rank, in random order within.
        order = rng.permutation(y.size)
        order = order[np.argsort(rank[order], kind="stable")]
        is_test = np.zeros(y.size, dtype=bool)
        is_test[order[place < np.repeat(take, count)]] = True
        splits.append((np.flatnonzero(~is_test), np.flatnonzero(is_test)))
    return splits


def _test_rows(test_size: float | int, n: int, n_ranks: int) -> int:
    if isinstance(test_size, Integral) and not isinstance(test_size, bool):
        n_test = int(test_size)
    elif isinstance(test_size, Real) and 0 < test_size < 1:
        # 0.07 * 100 is 7.000000000000001: a product this near an integer is one
        n_test = math.ceil(test_size * n - 1e-9)
    else:
        raise ValueError(
            f"test_size must be a fraction in (0, 1) or a count, got {test_size!r}"
        )
    if not 1 <= n_test <= n - n_ranks:
        raise ValueError(
            f"test_size={test_size!r} asks for {n_test} test rows; with {n} rows and "
            f"one training row kept for each of the {n_ranks} ranks there can be 1 to "
            f"{n - n_ranks}"
        )
    return n_test


def _apportion(n_test: int, count: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Test rows of each rank: sum n_test, at most count - 1, by largest remainder."""
    n = int(count.sum())
    take = n_test * count // n  # < count, as n_test < n
    shuffled = rng.permutation(count.size)  # argmax then breaks ties at random
    while take.sum() < n_test:
        owed = np.where(take < count - 1, n_test * count - n * take, -n * n)
        take[shuffled[np.argmax(owed[shuffled])]] += 1
    return take
