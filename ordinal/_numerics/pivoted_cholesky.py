"""The pivoted incomplete Cholesky factorisation K ~ L L' of a matrix given by tiles.

Pivots are taken in blocks: of the rows with the largest residuals on the diagonal,
those that remain large when the others of the block are accounted for. K is asked for
the columns of the pivots, the candidates' own tiles, and nothing else.
"""

from collections.abc import Callable

import numpy as np

from .._model.monitor import turn
from .rows import strips

Tile = Callable[[np.ndarray | slice, np.ndarray, np.ndarray], object]

_CANDIDATES, _PIVOTS = 64, 32  # rows looked at for a block of pivots, and its size
_STRIP = 8192  # rows of L in one product: a few hundredths of a second


def pivoted_cholesky(
    diagonal: np.ndarray, tile: Tile, stop: int | float, most: int | None = None
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
    """
    n, left = len(diagonal), diagonal.copy()  # of K - L L'
    if not left.min() >= 0:
        raise ValueError("kernel must be positive semi-definite: a k(x, x) is below 0")
    by_trace = isinstance(stop, float)
    most = min(n, (most or n) if by_trace else int(stop))
    floor, trace = 1e-12 * left.max(), left.sum()
    L = np.zeros((n, min(most, 128)))
    pivots = np.empty(0, np.intp)
    while pivots.size < most and left.max() > floor:
        if by_trace and left.sum() <= stop * trace:
            break
        turn()
        m = pivots.size
        new, small = _next_pivots(tile, left, L[:, :m], floor, most - m)
        if m + new.size > L.shape[1]:
            wider = np.zeros((n, min(most, 2 * L.shape[1])))
            for rows in strips(n):  # its memory is new, which costs more than a copy
                wider[rows, :m] = L[rows, :m]
            L = wider
        if new.size:
            _append_columns(tile, L, m, new, small)
            columns = L[:, m : m + new.size]
            left -= np.einsum("ij,ij->i", columns, columns)
            np.maximum(left, 0, out=left)
            pivots = np.concatenate([pivots, new])
            left[pivots] = 0
    if pivots.size == 0:
        raise ValueError("kernel is zero on every row")
    if pivots.size < L.shape[1]:
        L = np.ascontiguousarray(L[:, : pivots.size])
    return L, pivots, left.sum() / trace


def _next_pivots(
    tile: Tile, left: np.ndarray, L: np.ndarray, floor: float, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """The next pivot rows, and their block of L. Sets `left` to 0 where rounding is all
    that a row has left."""
    width = min(_CANDIDATES, len(left))
    candidates = np.argpartition(-left, width - 1)[:width]
    block = np.empty((width, width))
    tile(candidates, candidates, block)
    block -= L[candidates] @ L[candidates].T
    order, small = _pivoted_block(block, floor, min(_PIVOTS, most))
    if order.size == 0:
        left[candidates] = 0
    return candidates[order], small


def _append_columns(
    tile: Tile, L: np.ndarray, m: int, new: np.ndarray, small: np.ndarray
) -> None:
    """Columns m, m + 1, ... of L for the pivots `new`."""
    columns = slice(m, m + new.size)
    inverse = np.linalg.inv(small)
    for rows in strips(len(L), _STRIP):
        part = np.empty((rows.stop - rows.start, new.size))
        tile(rows, new, part)
        part -= L[rows, :m] @ L[new, :m].T
        L[rows, columns] = part @ inverse.T
    L[new, columns] = small  # triangular to the last bit


def _pivoted_block(
    block: np.ndarray, floor: float, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pivots of a small Cholesky factorisation, and its lower triangular factor.

    Stops where the best pivot falls to a quarter of the first: rows outside the block
    may then have more to give.
    """
    left = np.diagonal(block).copy()
    factor = np.zeros((block.shape[0], most))
    order: list[int] = []
    enough = max(floor, 0.25 * left.max())
    while len(order) < most:
        p = int(left.argmax())
        if not left[p] > (enough if order else floor):
            break
        j = len(order)
        column = (block[:, p] - factor[:, :j] @ factor[p, :j]) / np.sqrt(left[p])
        factor[:, j] = column
        left -= column**2
        left[[*order, p]] = -np.inf
        order.append(p)
    return np.array(order, np.intp), np.tril(factor[order, : len(order)])
