"""Uniform designs: few points that fill a box evenly, and how even they are.

The centred L2 discrepancy of n points x in the unit cube of d dimensions, with
z = |x - 1/2|,

    CD^2 = (13/12)^d - 2/n sum_i prod_k (1 + z_ik / 2 - z_ik^2 / 2)
         + 1/n^2 sum_ij prod_k (1 + z_ik / 2 + z_jk / 2 - |x_ik - x_jk| / 2)     (CD)

F. J. Hickernell, "A generalized discrepancy and quadrature error bound", Mathematics of
Computation 67(221):299-322, 1998, (5.1c). K.-T. Fang, D. K. J. Lin, "Uniform
experimental designs and their applications in industry", Handbook of Statistics 22,
2003: good lattice points, and those of n + 1 without the last.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, islice

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import as_real_array, check_count, check_entries, shown

_MOST_LATTICES = 20_000  # sets of generators that are compared: some seconds
_MOST_FACTORS = 5 * 10**8  # of the products in (CD) of all of them: so too
_BLOCK = 2**20  # pairs of points that are looked at together
_MOST_EXCHANGED = 21  # points; an exchange takes n^3 d operations
_STARTS = 12
_ROUNDING = 1e-12  # a discrepancy that falls by less has not fallen
_CLOSE = 1e-11  # changes of CD^2 this near the best one may be as good


def centred_discrepancy(points: ArrayLike) -> float:
    """Return the centred L2 discrepancy CD of points in the unit cube; O(n^2 d).

    Parameters
    ----------
    points : (n, d) array_like in [0, 1]

    Returns
    -------
    float > 0
        The less, the more evenly the points fill the cube.

    Raises
    ------
    ValueError
        If `points` is no such array.

    See Also
    --------
    uniform_design : Return a uniform design of n points in the unit cube.

    Examples
    --------
    >>> round(centred_discrepancy([[0.25, 0.75], [0.75, 0.25]]), 4)
    0.2496
    """
    x = as_real_array(points, "points")
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"points must be (n, d) in [0, 1], got shape {x.shape}")
    check_entries("points", x, (x >= 0) & (x <= 1), "be in [0, 1]")
    n, d = x.shape
    z = np.abs(x - 0.5)
    own = np.prod(1 + (z - z**2) / 2, axis=1)
    total = 0.0
    for rows in np.split(np.arange(n), range(step := max(1, _BLOCK // n), n, step)):
        pairs = np.ones((rows.size, n))
        for k in range(d):
            between = np.abs(np.subtract.outer(x[rows, k], x[:, k]))
            pairs *= 1 + (np.add.outer(z[rows, k], z[:, k]) - between) / 2
        total += float(pairs.sum())
    square = (13 / 12) ** d - 2 * own.sum() / n + total / n**2
    return math.sqrt(max(square, 0.0))


def uniform_design(n: int, d: int) -> np.ndarray:
    """Return a uniform design of n points in the unit cube.

    Each coordinate takes each of n levels once. Of the good lattice points i (1, h_2,
    ..., h_d) modulo n, shifted so that one lies at the centre, and modulo n + 1 without
    the last, the set with the least centred L2 discrepancy at the middles of the
    levels. To 21 points, levels of the best dozen are exchanged as long as that lowers
    it: for two coordinates and 5, 9 and 13 points this reaches the published tables.
    For an odd n the centre is in the design.

    Parameters
    ----------
    n : int
        Number of points.
    d : int
        Number of coordinates.

    Returns
    -------
    (n, d) int64 array
        Levels 1 to n, in increasing order of the first coordinate. (2 level - 1) /
        (2 n) lies in the unit cube. The same arguments give the same design.

    Raises
    ------
    ValueError
        If the lattices have fewer than d different generators: n is too small; or if
        n^2 d is above 5 10^8.

    See Also
    --------
    centred_discrepancy : Return the centred L2 discrepancy CD of points in the unit
        cube; O(n^2 d).
    gamma_range : Return a range of gamma for the RBF kernel, derived from the data.

    Examples
    --------
    >>> uniform_design(5, 2).tolist()
    [[1, 4], [2, 1], [3, 3], [4, 5], [5, 2]]
    """
    n, d = check_count("n", n), check_count("d", d)
    return _design(n, d).copy()


@lru_cache(maxsize=32)
def _design(n: int, d: int) -> np.ndarray:
    at_most = min(_MOST_LATTICES, _MOST_FACTORS // (n * n * d))
    if at_most == 0 and d < n:
        most = math.isqrt(_MOST_FACTORS // d)
        raise ValueError(
            f"n={shown(n)} is too large in d={d} dimensions: at most {most}"
        )
    found = _lattices(n, d, at_most)
    lattices = [levels[np.argsort(levels[:, 0])] for levels in found]
    if not lattices:
        raise ValueError(f"n={n} is too small for a lattice in d={shown(d)} dimensions")
    # Values that are equal but for rounding must not be put in order by it.
    lattices.sort(key=lambda levels: round(_discrepancy(levels), 12))
    if n > _MOST_EXCHANGED:
        return lattices[0]
    better = [_exchanged(levels) for levels in lattices[:_STARTS]]
    return min(better, key=lambda levels: round(_discrepancy(levels), 12))


def _discrepancy(levels: np.ndarray) -> float:
    return centred_discrepancy((2 * levels - 1) / (2 * len(levels)))


def _lattices(n: int, d: int, at_most: int) -> Iterator[np.ndarray]:
    """Designs of n levels to choose from, (n, d) each."""
    for modulus, first, shift in ((n, 0, n // 2), (n + 1, 1, 0)):
        i = np.arange(first, first + n)[:, None]
        units = [h for h in range(2, modulus) if math.gcd(h, modulus) == 1]
        if d > len(units) + 1:
            continue
        for generators in islice(combinations(units, d - 1), at_most):
            levels = (i * np.array([1, *generators]) + shift) % modulus
            yield levels + (modulus == n)


def _exchanged(levels: np.ndarray) -> np.ndarray:
    """Return the design after all exchanges of two levels of a coordinate that lower
    its discrepancy, the best one first; the centre stays.
    """
    n, d = levels.shape
    value = _discrepancy(levels)
    rows = np.flatnonzero((2 * levels != n + 1).any(axis=1))
    pairs = np.array(list(combinations(rows, 2))).reshape(-1, 2)
    if d == 1 or len(pairs) == 0:
        return levels
    while True:
        changes = np.array([_changes(levels, k, pairs) for k in range(1, d)])
        best, least = None, value - _ROUNDING
        # the few that may be the best are compared as whole designs are
        for k, pair in np.argwhere(changes <= changes.min() + _CLOSE):
            other = levels.copy()
            other[pairs[pair], k + 1] = levels[pairs[pair, ::-1], k + 1]
            lower = _discrepancy(other)
            if lower < least:
                best, least = other, lower
        if best is None:
            return levels
        levels, value = best, least


def _changes(levels: np.ndarray, k: int, pairs: np.ndarray) -> np.ndarray:
    """Return the changes of CD^2 by exchanging levels of coordinate k in pairs of rows.

    They are exact but for rounding; O(n^3) for all pairs together.
    """
    n = len(levels)
    x = (2 * levels - 1) / (2 * n)
    z = np.abs(x - 0.5)
    of_row = 1 + (z - z**2) / 2  # (n, d), the factors of the first sum of (CD)
    of_pair = 1 + (z[:, None] + z - np.abs(x[:, None] - x)) / 2  # (n, n, d), the second
    others = np.delete(np.arange(levels.shape[1]), k)
    a, b = np.prod(of_row[:, others], axis=1), of_row[:, k]
    A, B = np.prod(of_pair[:, :, others], axis=2), of_pair[:, :, k]
    p, q = pairs.T
    first = (a[p] - a[q]) * (b[q] - b[p])
    # Rows p and q of B change places, and so do its columns: all other entries of these
    # rows twice, as A and B are symmetric, and those of the diagonal.
    M = A @ B
    all_columns = M[p, p] + M[q, q] - M[p, q] - M[q, p]
    own_columns = sum((A[p, j] - A[q, j]) * (B[p, j] - B[q, j]) for j in (p, q))
    diagonal = (A[p, p] - A[q, q]) * (B[p, p] - B[q, q])
    second = -2 * (all_columns - own_columns) - diagonal
    return np.asarray(second / n**2 - 2 * first / n)
