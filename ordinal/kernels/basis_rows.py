"""Choice of the basis rows, and of their number.

Three ways to choose so many rows, measured by `tools/bench/basis_ways.py` (what came of
it is in docs/decisions.md):

* "random": at random, of each rank its share. The default: no other way errs less.
* "kmeans++": each next row with a probability in proportion to its squared distance, as
  the kernel has it, from the nearest row that was taken. D. Arthur, S. Vassilvitskii,
  "k-means++: the advantages of careful seeding", SODA 2007.
* "cholesky": each next row in proportion to what those before it leave of k(x, x): a
  randomly pivoted Cholesky factorisation. It leaves the least of the trace of the
  kernel matrix for so many rows, and so is the way to choose by the part of it that may
  be left. (Taking the row with the most left each time looks for outliers.)

The last two look at a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._input.basis import BasisChoice
from .._input.types import Kernel, Matrix
from .._numerics.cholesky import in_proportion, pivoted_cholesky
from .._numerics.rows import dense, take
from .._watch.monitor import check_cancelled
from . import Precomputed
from .features import RowFeatures
from .tiles import diagonal_of, on_itself

PARTS = 16, 4  # which shares of the rows are fitted before all of them


def stratified(rank: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return numbers of about `size` rows, increasing: of each rank its share, but one
    at least, at random. Rows that are sorted by rank or otherwise are drawn as fairly.
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


_SAMPLE = 8000  # rows looked at for a part of the trace
_PER_ROW = 10  # rows looked at for one that is chosen


def choose(
    choice: BasisChoice,
    kernel: Kernel,
    rows_of: Callable[[np.ndarray], Matrix],
    rank: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
    n_threads: int = 1,
) -> RowFeatures:
    """Return features on the rows that a choice means.

    Parameters
    ----------
    choice : BasisChoice
        Any but "auto", whose m is found by `sufficient_size`.
    rows_of : callable
        The rows of these numbers, increasing, as a matrix; it is called at most once.
        Of a precomputed kernel those of its matrix.
    rank, weight : (n,) arrays
        Rows of weight 0 are not chosen.
    """
    if choice.way == "own":
        if isinstance(kernel, Precomputed):
            raise ValueError("basis must be a count or row numbers with precomputed")
        return RowFeatures(kernel, choice.rows, n_threads=n_threads)
    numbers, S = chosen_rows(choice, kernel, rows_of, rank, weight, rng, n_threads)
    of_matrix = numbers if isinstance(kernel, Precomputed) else None
    return RowFeatures(kernel, S, of_matrix, n_threads)


def chosen_rows(
    choice: BasisChoice,
    kernel: Kernel,
    rows_of: Callable[[np.ndarray], Matrix],
    rank: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
    n_threads: int = 1,
) -> tuple[np.ndarray, Matrix]:
    """Return the numbers of the rows that a choice means, and these rows.

    Of a precomputed kernel the values among them.

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
    """Return the numbers of m of these rows, increasing, or of all if they are fewer:
    evenly from the rows in the order of their ranks, otherwise random, so that every
    rank has its share.
    """
    m = min(m, rows.size)
    # Shuffled before a stable sort: random within ranks, and ranks in order.
    rows = rng.permutation(rows)
    rows = rows[np.argsort(rank[rows], kind="stable")]
    return np.sort(rows[np.arange(m) * rows.size // m])


def sufficient_size(
    losses_at: Callable[[int], np.ndarray], least: int, most: int
) -> int:
    """Find how many basis rows are enough.

    Their number is doubled, starting from `least`, while that lowers the mean hold-out
    loss by more than the standard error of the difference.

    Parameters
    ----------
    losses_at : callable
        For a number of basis rows the loss of each row held out, (k,), k >= 2, always
        of the same ones.
    least, most : int
        The first number that is tried, and one that is not exceeded.
    """
    m = min(least, most)
    losses = losses_at(m)
    # Doubling costs at most twice the last fit, whatever number is enough.
    while 2 * m <= most:
        check_cancelled()
        more = losses_at(2 * m)
        fall = losses - more
        # Paired losses of the same rows: their difference has far less noise than each.
        if not fall.mean() > fall.std(ddof=1) / np.sqrt(fall.size):
            break
        m, losses = 2 * m, more
    return m


def _sample_size(choice: BasisChoice) -> int:
    if choice.left is not None:
        return _SAMPLE
    return choice.m if choice.way == "random" else _PER_ROW * choice.m


def _own_columns(kernel: Kernel, rows: Matrix, numbers: np.ndarray) -> Matrix:
    """Return rows as they stand for themselves: those of a precomputed matrix without
    the columns of others.
    """
    return dense(rows)[:, numbers] if isinstance(kernel, Precomputed) else rows


def _pivots(
    kernel: Kernel,
    S: Matrix,
    choice: BasisChoice,
    rng: np.random.Generator,
    n_threads: int,
) -> np.ndarray:
    """Choose pivots for a share of the trace, no more than leave that share."""
    diagonal, tile = diagonal_of(kernel, S), on_itself(kernel, S, n_threads).tile
    if choice.left is None:
        return pivoted_cholesky(diagonal, tile, choice.m, rng=rng)[1]
    L, pivots, _ = pivoted_cholesky(diagonal, tile, choice.left, rng=rng)
    # Pivots come in blocks, which may overshoot the share.
    taken = np.cumsum(np.einsum("ij,ij->j", L, L))
    m = 1 + int(np.searchsorted(taken, (1 - choice.left) * diagonal.sum()))
    return pivots[:m]


def _spread(kernel: Kernel, S: Matrix, m: int, rng: np.random.Generator) -> np.ndarray:
    """Choose rows by k-means++ in the space of the kernel.

    There |x - x'|^2 is k(x, x) + k(x', x') - 2 k(x, x'). Fewer than m rows are returned
    if all others equal some of them.
    """
    diagonal, values = diagonal_of(kernel, S), on_itself(kernel, S, 1)
    away = np.full(len(S), np.inf)  # squared distance from the nearest that was taken
    column = np.empty((len(S), 1))
    chosen = [int(rng.integers(len(S)))]
    while True:
        check_cancelled()
        i = chosen[-1]
        values.tile(slice(0, len(S)), np.array([i]), column)
        np.minimum(away, diagonal + diagonal[i] - 2 * column[:, 0], out=away)
        # Rounding of equal rows must not give a negative probability.
        np.maximum(away, 0, out=away)
        away[i] = 0
        if len(chosen) == m or not away.any():
            return np.sort(chosen)
        chosen.append(int(in_proportion(away, 1, rng)[0]))
