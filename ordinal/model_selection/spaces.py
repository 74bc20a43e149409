"""Search spaces: points of a grid, of two grids, or of two uniform designs.

A search space is an object with `stages(X)`, a generator of lists of points, which are
mappings from argument to value. After each list it is sent the best point so far. X are
the standardised training rows. The attribute `size`, if there is one, is the total
number of points, for the progress line.

W. Chu, S. S. Keerthi, "Support vector ordinal regression", Neural Computation
19(3):792-815, 2007, section 4.3. C.-M. Huang, Y.-J. Lee, D. K. J. Lin, S.-Y. Huang,
"Model selection for support vector machines via uniform design", Computational
Statistics and Data Analysis 52(1):335-346, 2007.

Uniform designs: few points that fill a box evenly, and how even they are.

The centred L2 discrepancy of n points x in the unit cube of d dimensions, with
z = |x - 1/2|,

    CD^2 = (13/12)^d - 2/n sum_i prod_k (1 + z_ik / 2 - z_ik^2 / 2)
         + 1/n^2 sum_ij prod_k (1 + z_ik / 2 + z_jk / 2 - |x_ik - x_jk| / 2)     (CD)

F. J. Hickernell, "A generalized discrepancy and quadrature error bound", Mathematics of
Computation 67(221):299-322, 1998, (5.1c). K.-T. Fang, D. K. J. Lin, "Uniform
experimental designs and their applications in industry", Handbook of Statistics 22,
2003: good lattice points, and those of n + 1 without the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice, product
from numbers import Real
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import (
    as_real,
    as_real_array,
    can_be_listed,
    check_count,
    check_entries,
    check_finite,
    check_flag,
    check_positive,
    check_range,
    check_share,
    listed,
    shortened,
    shown,
    suggest_in_methods,
    with_suggestions,
)
from .._input.features import read_features
from .._input.immutable import Immutable
from .._model.registry import method_of, unwrapped
from .._numerics.rows import inner_products, squared_norms, take
from .._rows.rows import Rows
from ..kernels.functions import named_with_gamma

_MOST_LATTICES = 20_000  # sets of generators that are compared: some seconds
_MOST_FACTORS = 5 * 10**8  # of the products in (CD) of all of them: so too
_BLOCK = 2**20  # pairs of points that are looked at together
_MOST_EXCHANGED = 21  # points; an exchange takes n^3 d operations
_STARTS = 12
_ROUNDING = 1e-12  # a discrepancy that falls by less has not fallen
_CLOSE = 1e-11  # changes of CD^2 this near the best one may be as good


@with_suggestions
def centred_discrepancy(points: ArrayLike) -> float:
    """Return the centred L2 discrepancy CD of points in the unit cube; O(n^2 d).

    Parameters
    ----------
    points : (n, d) array_like in [0, 1]

    Returns
    -------
    float > 0
        The smaller it is, the more evenly the points fill the cube.

    Raises
    ------
    ValueError
        If `points` is not such an array.

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


@with_suggestions
def uniform_design(n: int, d: int) -> np.ndarray:
    """Return a uniform design of n points in the unit cube.

    Each coordinate takes each of n levels once. The candidates are the good lattice
    points i (1, h_2, ..., h_d) modulo n, shifted so that one lies at the centre, and
    modulo n + 1 without the last. The set with the smallest centred L2 discrepancy at
    the midpoints of the levels is returned. For up to 21 points, levels of the best
    dozen sets are exchanged while that lowers the discrepancy; for two coordinates and
    5, 9 and 13 points this reaches the published tables. For an odd n the centre is in
    the design.

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
        If n is too small, so that the lattices have fewer than d different generators,
        or if n^2 d is above 5 10^8.

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
    # Rounding must not decide between values that are mathematically equal.
    lattices.sort(key=lambda levels: round(_discrepancy(levels), 12))
    if n > _MOST_EXCHANGED:
        return lattices[0]
    better = [_exchanged(levels) for levels in lattices[:_STARTS]]
    return min(better, key=lambda levels: round(_discrepancy(levels), 12))


def _discrepancy(levels: np.ndarray) -> float:
    return centred_discrepancy((2 * levels - 1) / (2 * len(levels)))


def _lattices(n: int, d: int, at_most: int) -> Iterator[np.ndarray]:
    """Yield designs of n levels to choose from, (n, d) each."""
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


Point = dict[str, Any]  # values by the name of their argument

_FIRST = ("C", "C2", "gamma")  # arguments that decide first between equals


def point_key(point: Point, without: Sequence[str] = ()) -> Hashable:
    """Return a key that is equal for equal points, ignoring some arguments."""
    return tuple(
        sorted((k, value_key(v)) for k, v in point.items() if k not in without)
    )


def value_key(value: Any) -> tuple[str, Hashable]:
    """Return a hashable key of a value.

    1, 1.0 and True have different keys; a list or array equals only itself.
    """
    try:
        hash(value)
    except TypeError:
        return type(value).__name__, id(value)
    return type(value).__name__, value


def in_order_of_ties(points: Sequence[Point], numbers: Sequence[int]) -> list[int]:
    """Sort points by the rule for equal scores.

    Least C comes first, then least gamma, then the other arguments in the order in
    which they came; values that are not numbers count by that order, too.
    """
    names = list(dict.fromkeys(name for point in points for name in point))
    first = [name for name in _FIRST if name in names]
    names = [*first, *(name for name in names if name not in first)]
    seen: dict[Hashable, int] = {}

    def place(number: int) -> list[tuple[int, Any]]:
        values = (points[number].get(name) for name in names)
        return [
            (0, value)
            if isinstance(value, Real) and not isinstance(value, bool)
            else (1, seen.setdefault(value_key(value), len(seen)))
            for value in values
        ]

    places = [place(number) for number in range(len(points))]
    return sorted(numbers, key=lambda number: places[number])


def columns_of(points: Sequence[Point]) -> dict[str, np.ndarray]:
    """Return an array for every argument; None where a point does not have it."""
    names = dict.fromkeys(name for point in points for name in point)
    return {name: _column([point.get(name) for point in points]) for name in names}


def described(point: Point) -> str:
    """Return the point as text, such as "C=0.1, gamma=2"."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={shown(value)}"
        for name, value in point.items()
    )


def _column(values: list[Any]) -> np.ndarray:
    """Return numbers or strings as such, anything else as objects."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds == {str}:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


Stages: TypeAlias = Generator[list[Point], Point, None]

_LARGEST_EXPONENT = 300  # the fine grid reaches beyond it, and kappa is halved
_PAIRS_OF = 1000  # rows whose distances are looked at
_LEAST_SQUARE = 1e-300  # of a distance, whose reciprocal is a gamma


class Space(Protocol):
    """Space of a search; the module's docstring lists the kinds."""

    def stages(self, X: Any) -> Stages: ...


@suggest_in_methods
class Grid:
    """All combinations of the values of some arguments.

    Parameters
    ----------
    **values : sequence each
        Values of arguments of the `fit_*` function, of any kind.

    Raises
    ------
    ValueError
        If an argument has no values.

    Examples
    --------
    >>> search = Grid(C=[0.1, 1.0], gamma=["scale"])
    >>> next(search.stages(None))
    [{'C': 0.1, 'gamma': 'scale'}, {'C': 1.0, 'gamma': 'scale'}]
    """

    def __init__(self, **values: Sequence[Any]):
        self.values = {name: _value_list(name, given) for name, given in values.items()}
        if not values:
            raise ValueError("Grid needs at least one argument with its values")
        self.size = math.prod(len(given) for given in self.values.values())

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"Grid({given})"

    def stages(self, X: Any) -> Stages:
        """Return all points in one stage."""
        rows = product(*self.values.values())
        yield [dict(zip(self.values, row, strict=True)) for row in rows]


class Points:
    """Points that are listed: those of a method without a grid, or drawn from one."""

    def __init__(self, points: Sequence[Point]):
        self.points = list(points)
        self.size = len(self.points)

    def __repr__(self) -> str:
        return f"Points({shown(self.points)})"

    @classmethod
    def drawn(cls, grid: Grid, n_iter: int, rng: np.random.Generator) -> Points:
        """Draw points of a grid, each once, and keep the order of the grid."""
        chosen = np.sort(rng.choice(grid.size, min(n_iter, grid.size), replace=False))
        places = np.unravel_index(chosen, [len(v) for v in grid.values.values()])
        rows = zip(*(place.tolist() for place in places), strict=True)
        return cls(
            [
                {
                    name: v[k]
                    for (name, v), k in zip(grid.values.items(), row, strict=True)
                }
                for row in rows
            ]
        )

    def stages(self, X: Any) -> Stages:
        """Return all points in one stage."""
        yield [dict(point) for point in self.points]


def open_grid(
    fit: Callable[..., Any], options: Mapping[str, Any]
) -> dict[str, Sequence[Any]]:
    """Return the registered grid of a method without the arguments that have a value,
    and without `gamma` for a kernel that does not take it.

    It is empty for a method without a grid, and for a function of the caller.
    """
    function, fixed = unwrapped(fit)
    method = method_of(function)
    grid = {} if method is None else method.grid
    given = {**fixed, **options}
    closed = set(given)
    if not named_with_gamma(given.get("kernel", "rbf")):
        closed.add("gamma")
    return {k: v for k, v in grid.items() if k not in closed}


def resolve_space(
    search: Any,
    fit: Callable[..., Any],
    options: Mapping[str, Any],
    n_iter: int | None,
    rng: np.random.Generator,
) -> Space:
    """Return the space that the arguments `search` and `n_iter` of a search mean.

    None stands for the grid of the method, without the arguments that have a value
    already: one point for a method that has no grid. A mapping is a grid.

    Raises
    ------
    TypeError, ValueError
        No search for a function without a grid, or `n_iter` for what is no grid.
    """
    if search is None:
        function = unwrapped(fit)[0]
        if method_of(function) is None:
            raise TypeError(
                "search must be given, such as {'C': [1.0, 10.0]}, for a function that "
                f"is no method of this package, got {shown(function)}"
            )
        search = open_grid(fit, options) or Points([{}])
    if isinstance(search, Mapping):
        if not all(isinstance(name, str) for name in search):
            raise TypeError(
                f"search must have names of parameters as its keys, got {shown(search)}"
            )
        search = Grid(**search)
    if not callable(getattr(search, "stages", None)):
        raise TypeError(
            "search must be a dict of lists, a Grid, another object with `stages`, or "
            f"None, got {shown(search)}"
        )
    if n_iter is None or isinstance(search, Points):
        return search  # type: ignore[no-any-return]
    if not isinstance(search, Grid):
        raise ValueError(
            f"n_iter draws points of a grid, and search is {shown(search)}: leave "
            "n_iter out, or give a dict of lists"
        )
    return Points.drawn(search, check_count("n_iter", n_iter), rng)


@dataclass(frozen=True, slots=True)
class CoarseToFine(Immutable):
    """The two grids of the GPOR and SVOR papers, over log10 C and log10 kappa.

    The first grid has 7 x 7 points with both logarithms in -3..3, the second 9 x 9
    points in steps of 0.2 around the best one. This point is in both, so that there are
    129 different ones. gamma = kappa / 2.

    Parameters
    ----------
    C : (low, high), default (-3, 3)
        Range of log10 C of the coarse grid, which has steps of 1; integers.
    kappa : (low, high), default (-3, 3)
        Range of log10 kappa of the coarse grid.
    fine : bool, default True
        Whether to use the second grid.

    Examples
    --------
    >>> search = CoarseToFine()
    >>> search.size
    129
    >>> next(search.stages(None))[0]
    {'C': 0.001, 'gamma': 0.0005}
    """

    C: tuple[int, int] = (-3, 3)
    kappa: tuple[int, int] = (-3, 3)
    fine: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "C", _exponents("C", self.C))
        object.__setattr__(self, "kappa", _exponents("kappa", self.kappa))
        object.__setattr__(self, "fine", check_flag("fine", self.fine))

    @property
    def size(self) -> int:
        """Return the number of points that are fitted in all."""
        coarse = math.prod(b - a + 1 for a, b in (self.C, self.kappa))
        return coarse + 80 * self.fine

    def stages(self, X: Any) -> Stages:
        """Return the coarse grid, then the fine one around its best point."""
        ranges = (np.arange(a, b + 1.0) for a, b in (self.C, self.kappa))
        best = yield _on_log_grid(*ranges)
        if self.fine:
            centre = math.log10(best["C"]), math.log10(2 * best["gamma"])
            steps = 0.2 * np.arange(-4, 5)
            yield _on_log_grid(*(np.round(x + steps, 1) for x in centre))


def _exponents(name: str, value: Any) -> tuple[int, int]:
    """Return (low, high) of a coarse grid, checked."""
    vector = isinstance(value, np.ndarray) and value.ndim == 1
    pair = (vector or isinstance(value, Sequence)) and len(value) == 2
    ends = [as_real(end) for end in value] if pair else []
    whole = all(abs(end) <= _LARGEST_EXPONENT and end == int(end) for end in ends)
    if len(ends) != 2 or not whole or ends[0] > ends[1]:
        raise ValueError(
            f"{name} must be two whole powers of ten, low <= high, between "
            f"-{_LARGEST_EXPONENT} and {_LARGEST_EXPONENT}, got {shown(value)}"
        )
    return int(ends[0]), int(ends[1])


def _on_log_grid(log_C: np.ndarray, log_kappa: np.ndarray) -> list[Point]:
    return [
        {"C": 10.0**a, "gamma": 10.0**b / 2}
        for a, b in product(log_C.tolist(), log_kappa.tolist())
    ]


@dataclass(frozen=True, slots=True)
class UniformDesign(Immutable):
    """Two uniform designs, the second in a box of half the width around the best point.

    For two or three arguments, 21 points achieve what takes a hundred or more in a
    grid. The centre of the second design is the best point of the first one, which is
    not fitted again. In Algorithm 1 of the TLS-SVOR paper, every fold has its own
    search and the winners are compared afterwards; here the best point is that of all
    folds together.

    Parameters
    ----------
    C : (low, high), default (1e-3, 1e3)
        Range of C in the first design, on a logarithmic scale.
    gamma : (low, high) or None, default None
        Range of gamma in the first design, on a logarithmic scale. Default:
        `gamma_range` of the training rows.
    others : mapping of argument to (low, high), optional
        Ranges of further arguments, on a linear scale, such as {"epsilon": (0.1, 0.3)}.
    n_points : (int, int), default (13, 9)
        Numbers of points of the two designs, as in the papers; odd, so that the centre
        is a point.

    Raises
    ------
    ValueError
        If a range is not a pair of increasing numbers, which must be positive on a
        logarithmic scale, or if a number of points is not odd.

    Examples
    --------
    >>> search = UniformDesign(gamma=(1e-3, 1.0))
    >>> stages = search.stages(None)
    >>> points = next(stages)
    >>> len(points), len(stages.send(points[3]))
    (13, 9)
    """

    C: tuple[float, float] = (1e-3, 1e3)
    gamma: tuple[float, float] | None = None
    others: Mapping[str, tuple[float, float]] | None = None
    n_points: tuple[int, int] = (13, 9)

    def __post_init__(self) -> None:
        C, gamma, others = self.C, self.gamma, self.others
        object.__setattr__(self, "C", check_range("C", C, check_positive))
        if gamma is not None:
            object.__setattr__(
                self, "gamma", check_range("gamma", gamma, check_positive)
            )
        if others is not None:
            if not isinstance(others, Mapping):
                raise ValueError(f"others must be a mapping, got {shown(others)}")
            if not all(isinstance(k, str) and k not in ("C", "gamma") for k in others):
                raise ValueError(
                    "others must name parameters other than C and gamma, got "
                    f"{listed(others)}"
                )
            ranges = {
                name: check_range(shortened(name), given, check_finite)
                for name, given in others.items()
            }
            object.__setattr__(self, "others", ranges)
        n_points = self.n_points
        if not isinstance(n_points, Sequence) or len(n_points) != 2:
            raise ValueError(f"n_points must be two numbers, got {shown(n_points)}")
        for n in n_points:
            if check_count("n_points", n) % 2 == 0:
                raise ValueError(f"n_points must be odd, got {shown(n)}")

    @property
    def size(self) -> int:
        """Return the number of points that are fitted in all."""
        return sum(self.n_points) - 1

    def stages(self, X: Any) -> Stages:
        """Return the design of the whole box, then that of the smaller one."""
        gamma = gamma_range(X) if self.gamma is None else self.gamma
        logs = np.log10([self.C, gamma])
        box = np.vstack([logs, *(self.others or {}).values()])  # (d, 2)
        names = ["C", "gamma", *(self.others or {})]
        first, second = (uniform_design(n, len(names)) for n in self.n_points)
        centre, width = box.mean(axis=1), np.ptp(box, axis=1)
        points = _of_design(names, first, centre, width)
        best = yield points
        chosen = points.index(best)
        centre = _coordinates(first, centre, width)[chosen]
        around = _of_design(names, second, centre, width / 2)
        # The centre must be the same to the last bit, as a point that has been fitted
        # is known again by its values.
        middle = (second == second.mean(axis=0)).all(axis=1).argmax()
        around[middle] = points[chosen]
        yield around


def _coordinates(
    levels: np.ndarray, centre: np.ndarray, width: np.ndarray
) -> np.ndarray:
    """Return the points of a design in a box; the outer levels lie on its sides."""
    n = len(levels)
    return centre + width * ((levels - 1) / max(n - 1, 1) - 0.5 * (n > 1))


def _of_design(
    names: list[str], levels: np.ndarray, centre: np.ndarray, width: np.ndarray
) -> list[Point]:
    at = _coordinates(levels, centre, width)
    at[:, :2] = 10.0 ** at[:, :2]
    return [dict(zip(names, row, strict=True)) for row in at.tolist()]


@with_suggestions
def gamma_range(X: Any, *, quantile: float = 0.05) -> tuple[float, float]:
    """Return a range of gamma for the RBF kernel, derived from the data.

    If q is a low quantile of the squared distances between different rows, exp(-gamma
    q) decreases from 0.999 to 0.15 over the range. Labels are not used.

    Parameters
    ----------
    X : (n, d) array-like or CSR matrix
        Features, standardised as for the fit. If there are more than 1000 rows, 1000
        evenly spaced ones are used.
    quantile : float in (0, 1), default 0.05
        Quantile of the squared distances. Huang et al. use the smallest distance, which
        depends on chance and on ties.

    Returns
    -------
    (low, high)

    Raises
    ------
    ValueError, TypeError
        If all rows are equal, or if X or `quantile` is invalid.

    See Also
    --------
    uniform_design : Return a uniform design of n points in the unit cube.
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.

    Examples
    --------
    >>> low, high = gamma_range([[0.0], [1.0], [2.0]])
    >>> round(low, 6), round(high, 3)
    (0.001001, 1.897)
    """
    quantile = check_share("quantile", quantile)
    X = X if isinstance(X, Rows) else read_features(X)
    n = X.shape[0]
    some = np.arange(min(n, _PAIRS_OF)) * n // min(n, _PAIRS_OF)
    X = take(X, some)
    norms = squared_norms(X)
    square = np.add.outer(norms, norms) - 2 * inner_products(X, X)
    square = square[np.triu_indices(len(norms), 1)]
    rounding = 1e-12 * float(norms.max())
    square = square[square > max(rounding, _LEAST_SQUARE)]
    if square.size == 0:
        raise ValueError("X must have two different rows, further apart than 1e-150")
    q = float(np.sort(square)[int(quantile * square.size)])
    return -math.log(0.999) / q, -math.log(0.15) / q


def _value_list(name: str, values: Any) -> list[Any]:
    if not can_be_listed(values):
        raise ValueError(
            f"{shortened(name)} must be a sequence of values, got {shown(values)}"
        )
    given = [v.item() if isinstance(v, np.generic) else v for v in values]
    if not given:
        raise ValueError(f"{shortened(name)} must have at least one value")
    return given
