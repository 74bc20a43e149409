"""The pivoted incomplete Cholesky factorisation K ~ L L' of a matrix given by tiles.

Pivots are taken in blocks: of the rows with the largest residuals on the diagonal,
those that remain large when the others of the block are accounted for. Or they are
drawn, each in proportion to what the pivots before it have left of its diagonal, which
is not misled by a few rows far from all others. K is asked for the columns of the
pivots, the candidates' own tiles, and nothing else.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable

import numpy as np

from .._watch.monitor import check_cancelled
from .rows import strips

Tile = Callable[[np.ndarray | slice, np.ndarray, np.ndarray], object]
Pick = Callable[[np.ndarray], "int | None"]  # the next pivot, by what is left of each

_CANDIDATES, _PIVOTS = 64, 32  # rows looked at for a block of pivots, and its size
_STRIP = 8192  # rows of L in one product: a few hundredths of a second


def pivoted_cholesky(
    diagonal: np.ndarray,
    tile: Tile,
    stop: int | float,
    most: int | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    """L (n, m), pivot rows and relative trace residual of K ~ L L'. O(n m^2).

    Parameters
    ----------
    diagonal : (n,) array
        That of K.
    tile : callable(rows, columns, out)
        Fills `out` with K[rows, columns]; rows may be a slice.
    stop : int or float
        The number of pivots, or the part of the trace of K that may be left.
    most : int, optional
        Pivots at which to stop in any case.
    rng : numpy.random.Generator, optional
        Draws the pivots, by rejection in blocks. Y. Chen, E. N. Epperly, J. A. Tropp,
        R. J. Webber, "Randomly pivoted Cholesky", CPAM 78(5):995-1041, 2025.
    """
    n, left = len(diagonal), diagonal.copy()  # of K - L L'
    if not left.min() >= 0:
        raise ValueError("kernel must be positive semi-definite: a k(x, x) is below 0")
    by_trace = isinstance(stop, float)
    most = min(n, (most or n) if by_trace else int(stop))
    # Below this what is left of a row is rounding of the updates.
    floor, trace = 1e-12 * left.max(), left.sum()
    # Columns are doubled as they are needed: few pivots suffice where `stop` is a
    # share.
    L = np.zeros((n, min(most, 128)))
    pivots = np.empty(0, np.intp)
    while pivots.size < most and left.max() > floor:
        if by_trace and left.sum() <= stop * trace:
            break
        check_cancelled()
        m = pivots.size
        new, small = _next_pivots(tile, left, L[:, :m], floor, most - m, rng)
        if m + new.size > L.shape[1]:
            wider = np.zeros((n, min(most, 2 * L.shape[1])))
            for rows in strips(n):  # its memory is new, which costs more than a copy
                wider[rows, :m] = L[rows, :m]
            L = wider
        if new.size:
            _append_columns(tile, L, m, new, small)
            columns = L[:, m : m + new.size]
            left -= np.einsum("ij,ij->i", columns, columns)
            # Rounding takes a little too much from rows that the pivots span.
            np.maximum(left, 0, out=left)
            pivots = np.concatenate([pivots, new])
            # Exactly 0, so that no row is a pivot twice.
            left[pivots] = 0
    if pivots.size == 0:
        raise ValueError("kernel is zero on every row")
    if pivots.size < L.shape[1]:
        L = np.ascontiguousarray(L[:, : pivots.size])
    return L, pivots, left.sum() / trace


def _next_pivots(
    tile: Tile,
    left: np.ndarray,
    L: np.ndarray,
    floor: float,
    most: int,
    rng: np.random.Generator | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the next pivot rows, and their block of L.

    Sets `left` to 0 where rounding is all that a row has left.
    """
    width = min(_CANDIDATES, len(left))
    if rng is None:
        # Rows with the most left: a block of kernel values at once, not a column per
        # pivot.
        candidates = np.argpartition(-left, width - 1)[:width]
    else:
        candidates = in_proportion(left, width, rng)
    block = np.empty((width, width))
    tile(candidates, candidates, block)
    block -= L[candidates] @ L[candidates].T
    diagonal = np.diagonal(block)
    pick = _largest(diagonal, floor) if rng is None else _drawn(diagonal, floor, rng)
    order, small = _pivoted_block(block, min(_PIVOTS, most), pick)
    if order.size == 0:
        left[candidates] = 0
    return candidates[order], small


def _append_columns(
    tile: Tile, L: np.ndarray, m: int, new: np.ndarray, small: np.ndarray
) -> None:
    """Columns m, m + 1, ... of L for the pivots `new`."""
    columns = slice(m, m + new.size)
    # Of 32 columns at most, and triangular: one product per strip is then all it takes.
    inverse = np.linalg.inv(small)
    for rows in strips(len(L), _STRIP):
        part = np.empty((rows.stop - rows.start, new.size))
        tile(rows, new, part)
        part -= L[rows, :m] @ L[new, :m].T
        L[rows, columns] = part @ inverse.T
    L[new, columns] = small  # triangular to the last bit


def in_proportion(
    weights: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Numbers of weights, (size,), each drawn in proportion to them."""
    # One search per draw in O(log n), where `choice` would make a table of all.
    ends = np.cumsum(weights)
    at = np.searchsorted(ends, rng.random(size) * ends[-1], side="right")
    last = np.searchsorted(ends, ends[-1])  # where the product is rounded up
    return np.asarray(np.minimum(at, last))


def _largest(diagonal: np.ndarray, floor: float) -> Pick:
    """Return the best pivot, until it falls to a quarter of the first: rows outside the
    block may then have more to give.
    """
    enough = max(floor, 0.25 * diagonal.max())

    def pick(left: np.ndarray) -> int | None:
        p = int(left.argmax())
        return p if left[p] > enough else None

    return pick


def _drawn(diagonal: np.ndarray, floor: float, rng: np.random.Generator) -> Pick:
    """Candidates in the order in which they were drawn, each with a chance of what is
    left of it over what was when it was drawn.
    """
    least = np.maximum(floor, rng.random(diagonal.size) * diagonal)
    candidates = iter(range(diagonal.size))

    def pick(left: np.ndarray) -> int | None:
        return next((p for p in candidates if left[p] > least[p]), None)

    return pick


def _pivoted_block(
    block: np.ndarray, most: int, pick: Pick
) -> tuple[np.ndarray, np.ndarray]:
    """Pivots of a small Cholesky factorisation, and its lower triangular factor."""
    left = np.diagonal(block).copy()
    factor = np.zeros((block.shape[0], most))
    order: list[int] = []
    while len(order) < most and (p := pick(left)) is not None:
        j = len(order)
        column = (block[:, p] - factor[:, :j] @ factor[p, :j]) / np.sqrt(left[p])
        factor[:, j] = column
        left -= column**2
        left[[*order, p]] = -np.inf
        order.append(p)
    return np.array(order, np.intp), np.tril(factor[order, : len(order)])
