"""Choice of basis rows, and of their number.

There are three ways to choose m rows; docs/decisions.md compares them.

* "random": at random, stratified by rank. This is the default, because no other way has
  lower errors.
* "kmeans++": each row with a probability proportional to its squared distance, in the
  feature space of the kernel, from the nearest row chosen before it. D. Arthur,
  S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
* "cholesky": each row with a probability proportional to its residual, the part of
  k(x, x) that the rows before it do not explain. This is a randomly pivoted Cholesky
  factorisation. For a given m it leaves the least trace of the kernel matrix, so it
  also chooses m by the share of the trace that may be left. (The row with the largest
  residual, instead of a random one, is often an outlier.)

The last two choose from a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._input.basis import BasisChoice
from .._input.types import Matrix
from .._numerics.cholesky import in_proportion, pivoted_cholesky
from .._numerics.rows import dense, take
from .._watch.cancellation import check_cancelled
from .features import RowFeatures
from .functions import KernelFunction
from .tiles import diagonal_of, on_itself

PARTS = 16, 4  # samples of n / 16 and n / 4 rows are fitted before all rows


def stratified(rank: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the increasing numbers of about `size` random rows, stratified by rank.

    Every rank that has rows keeps at least one.
    """
    count = np.bincount(rank)
    wanted = np.maximum(1, np.rint(count * (size / rank.size))).astype(np.intp)
    drawn = [
        np.flatnonzero(rank == k)[rng.choice(count[k], wanted[k], replace=False)]
        for k in np.flatnonzero(count)
    ]
    return np.sort(np.concatenate(drawn))


def sample_sizes(n: int, least: int) -> list[int]:
    """Return the sizes of samples: n / 16 and n / 4, unless below `least`."""
    return [n // part for part in PARTS if n // part >= least]


_SAMPLE = 8000  # candidates for a basis that is chosen by its share of the trace
_PER_ROW = 10  # candidates per basis row


def choose(
    choice: BasisChoice,
    kernel: KernelFunction,
    rows_of: Callable[[np.ndarray], Matrix],
    rank: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
    n_threads: int = 1,
) -> RowFeatures:
    """Return features on the basis rows of a `BasisChoice`.

    Parameters
    ----------
    choice : BasisChoice
        Any way but "auto", whose m is found by `sufficient_size`.
    rows_of : callable
        Function of increasing row numbers that returns these rows as a matrix, for a
        precomputed kernel those of its matrix. It is called at most once.
    rank, weight : (n,) arrays
        Rows of weight 0 are not chosen.
    """
    if choice.way == "own":
        if kernel.by_number:
            raise ValueError("basis must be a count or row numbers with precomputed")
        return RowFeatures(kernel, choice.rows, n_threads=n_threads)
    numbers, S = chosen_rows(choice, kernel, rows_of, rank, weight, rng, n_threads)
    of_matrix = numbers if kernel.by_number else None
    return RowFeatures(kernel, S, of_matrix, n_threads)


def chosen_rows(
    choice: BasisChoice,
    kernel: KernelFunction,
    rows_of: Callable[[np.ndarray], Matrix],
    rank: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
    n_threads: int = 1,
) -> tuple[np.ndarray, Matrix]:
    """Return the numbers of the basis rows of a `BasisChoice`, and these rows.

    For a precomputed kernel, the kernel values between them take the place of the rows.
    The arguments are those of `choose`.
    """
    if choice.way == "numbers":
        sample = choice.rows
    else:
        sample = drawn(np.flatnonzero(weight > 0), rank, _sample_size(choice), rng)
    S = _own_columns(kernel, rows_of(sample), sample)
    if choice.way in ("kmeans++", "cholesky"):
        if choice.way == "kmeans++":
            chosen = _spread(kernel, S, min(choice.m, len(S)), rng)
        else:
            chosen = _pivots(kernel, S, choice, rng, n_threads)
        sample, S = sample[chosen], _own_columns(kernel, take(S, chosen), chosen)
    return sample, S


def drawn(
    rows: np.ndarray, rank: np.ndarray, m: int, rng: np.random.Generator
) -> np.ndarray:
    """Return m of the row numbers `rows` in increasing order, or all if m is larger.

    They are drawn at random and stratified by rank.
    """
    m = min(m, rows.size)
    # Shuffled before a stable sort: random within ranks, and ranks in order.
    rows = rng.permutation(rows)
    rows = rows[np.argsort(rank[rows], kind="stable")]
    return np.sort(rows[np.arange(m) * rows.size // m])


def sufficient_size(
    losses_at: Callable[[int], np.ndarray], least: int, most: int
) -> int:
    """Return a sufficient number of basis rows.

    The number is doubled, starting from `least`, as long as this lowers the mean
    hold-out loss by more than the standard error of the difference.

    Parameters
    ----------
    losses_at : callable
        Function of the number of basis rows that returns the losses, (k,), of k >= 2
        held-out rows, always of the same ones.
    least, most : int
        First number that is tried, and upper limit.
    """
    m = min(least, most)
    losses = losses_at(m)
    # The fits before the last one cost no more than that in all.
    while 2 * m <= most:
        check_cancelled()
        more = losses_at(2 * m)
        fall = losses - more
        # The difference of paired losses has far less variance than the losses.
        if not fall.mean() > fall.std(ddof=1) / np.sqrt(fall.size):
            break
        m, losses = 2 * m, more
    return m


def _sample_size(choice: BasisChoice) -> int:
    """Return the number of candidates from which the basis is chosen."""
    if choice.left is not None:
        return _SAMPLE
    return choice.m if choice.way == "random" else _PER_ROW * choice.m


def _own_columns(kernel: KernelFunction, rows: Matrix, numbers: np.ndarray) -> Matrix:
    """Return the rows, restricted to their own columns if the kernel is precomputed."""
    return dense(rows)[:, numbers] if kernel.by_number else rows


def _pivots(
    kernel: KernelFunction,
    S: Matrix,
    choice: BasisChoice,
    rng: np.random.Generator,
    n_threads: int,
) -> np.ndarray:
    """Return the pivots for choice.m rows, or the fewest that leave `choice.left`."""
    diagonal, tile = diagonal_of(kernel, S), on_itself(kernel, S, n_threads).tile
    if choice.left is None:
        return pivoted_cholesky(diagonal, tile, choice.m, rng=rng)[1]
    L, pivots, _ = pivoted_cholesky(diagonal, tile, choice.left, rng=rng)
    # Pivots are chosen in blocks, so there may be more than needed.
    taken = np.cumsum(np.einsum("ij,ij->j", L, L))
    m = 1 + int(np.searchsorted(taken, (1 - choice.left) * diagonal.sum()))
    return pivots[:m]


def _spread(
    kernel: KernelFunction, S: Matrix, m: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the numbers of m rows chosen by k-means++ in the kernel's feature space.

    There |x - x'|^2 is k(x, x) + k(x', x') - 2 k(x, x'). The result has fewer than m
    rows if all others are equal to one of them.
    """
    diagonal, values = diagonal_of(kernel, S), on_itself(kernel, S, 1)
    away = np.full(len(S), np.inf)  # squared distance from the nearest chosen row
    column = np.empty((len(S), 1))
    chosen = [int(rng.integers(len(S)))]
    while True:
        check_cancelled()
        i = chosen[-1]
        values.tile(slice(0, len(S)), np.array([i]), column)
        np.minimum(away, diagonal + diagonal[i] - 2 * column[:, 0], out=away)
        # Rounding may give equal rows a negative squared distance.
        np.maximum(away, 0, out=away)
        away[i] = 0
        if len(chosen) == m or not away.any():
            return np.sort(chosen)
        chosen.append(int(in_proportion(away, 1, rng)[0]))
