"""Smooth terms of formulas: columns that are functions of one variable.

With knots t_1 < ... < t_k, of which t_1 and t_k are the boundary knots, the columns are

    bs    all B-splines of a degree but the first
    ns    natural cubic splines: B-splines whose second derivative is 0 at the boundary
    cr    natural cubic splines, parametrised by their values at the knots, centred
    rcs   x, and ((x - t_j)+^3 + ...) / (t_k - t_1)^2 for j < k - 1: natural as well
    poly  polynomials that are orthogonal over the training rows

Beyond the boundary, `bs` and `poly` are extrapolated as polynomials and the others as
straight lines. The columns are those of R's `splines::bs`, `splines::ns`,
`stats::poly`, `rms::rcs`, and of `smoothCon(s(x, bs = "cr"), absorb.cons = TRUE)` of
mgcv. Knots lie at quantiles of the training rows, where a row of weight w counts as w
rows; those of `cr` lie at quantiles of the distinct values, as in mgcv.

C. de Boor, "A Practical Guide to Splines", Springer, 2001. S. N. Wood, "Generalized
Additive Models", 2nd edition, CRC, 2017, 5.3.1. F. E. Harrell, "Regression Modeling
Strategies", 2nd edition, Springer, 2015, 2.4.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from .._input.checks import check_count, listed, shown
from .._input.fields import FINITE, INCREASING, Array
from .._input.immutable import read_only
from .._model.storage import Storable
from .._numerics.rows import counted, quantiles

Kind = Literal["bs", "ns", "cr", "rcs", "poly"]
OPTIONS: dict[str, tuple[str, ...]] = {
    "bs": ("df", "knots", "degree", "lower_bound", "upper_bound"),
    "ns": ("df", "knots", "lower_bound", "upper_bound"),
    "cr": ("df", "knots"),
    "rcs": ("knots",),
    "poly": ("degree",),
}
_HIGHEST = 20  # degree, above which orthogonal polynomials lose their digits
_ROUNDED = 1e-10  # share of a polynomial that its subtraction leaves at least
_SLACK = 1e-3  # tolerated extrapolation of `bs`, as a share of the range
_TIED = 0.05  # share of rows at an extreme value for which Hmisc moves the end knot


@dataclass(frozen=True, slots=True, eq=False)
class Basis(Storable):
    """Basis functions of a smooth term.

    Attributes
    ----------
    kind : {"bs", "ns", "cr", "rcs", "poly"}
    degree : int
        Degree of the polynomials; 3 for all but `bs` and `poly`.
    knots : (k,) array
        Increasing knots, including the boundary; for `poly` the least and the largest
        value of the training rows.
    numbers : (c,) array
        For `cr` the means of the columns, (k,). For `poly` the degree + 1 squared norms
        of the recurrence, followed by its degree centres, in the `exponent` of x. Empty
        for other kinds.
    """

    kind: Kind
    degree: int
    knots: Annotated[np.ndarray, Array("f8", "k"), FINITE, INCREASING]
    numbers: Annotated[np.ndarray, Array("f8", "c"), FINITE]

    @classmethod
    def fitted(
        cls,
        name: str,
        kind: Kind,
        options: Mapping[str, Any],
        x: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> Basis:
        """Choose the knots of a term from the values of the training rows.

        `name` is the term in the formula, for messages; weights are positive.

        Raises
        ------
        ValueError
            If an option is invalid, or if there are too few distinct values.
        """
        degree = options.get("degree", 1 if kind == "poly" else 3)
        x, counts = counted(x, weight)
        if check_count(f"degree of {name}", degree) > _HIGHEST:
            raise ValueError(f"degree of {name} must be at most {_HIGHEST}")
        numbers = np.empty(0)
        if kind == "poly":
            if x.size <= degree:
                raise ValueError(f"{name} needs more than {degree} distinct values")
            knots = x[[0, -1]]
            numbers = _recurrence(name, np.ldexp(x, -_exponent(knots)), counts, degree)
        else:
            knots = _knots(name, kind, options, x, counts, degree)
            if not (np.isfinite(knots).all() and (np.diff(knots) > 0).all()):
                raise ValueError(
                    f"{name} needs knots that rise between its ends, got "
                    f"{listed(knots)}; pass fewer, or knots=[...] between "
                    f"{x[0]:g} and {x[-1]:g}"
                )
        if kind == "cr":
            e = _exponent(knots)
            columns = _natural(np.ldexp(knots, -e), np.ldexp(x, -e))
            numbers = counts / counts.sum() @ columns
        made = cls(kind, degree, read_only(knots), read_only(numbers))
        made._check()
        return made

    @property
    def size(self) -> int:
        """Return the number of columns."""
        if self.kind == "poly":
            return self.degree
        return self.knots.size - 1 + (self.degree - 1 if self.kind == "bs" else 0)

    def first_beyond(self, x: np.ndarray) -> int | None:
        """Return the first row beyond the boundary knots of `bs`, as R's `bs` warns.

        A thousandth of the range is tolerated, because marginal effects are central
        differences and evaluate the basis a little beyond the boundary.
        """
        if self.kind != "bs":
            return None
        low, high = self.knots[[0, -1]]
        slack = _SLACK * (high - low)
        beyond = (x < low - slack) | (x > high + slack)
        return int(beyond.argmax()) if beyond.any() else None

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return the columns for values of the variable, (n, size).

        They are computed from values in a power of two for a unit, of which neither
        powers nor differences leave the range of double. This changes no bit of others.
        """
        e = _exponent(self.knots)
        with np.errstate(over="ignore"):  # far beyond the knots; seen by the caller
            x = np.ldexp(x, -e)
        t = np.ldexp(self.knots, -e)
        match self.kind:
            case "bs":
                B = _b_splines(_padded(t, self.degree), self.degree, x)
                return np.asarray(B[:, 1:])
            case "ns":
                return _natural_b_splines(t, x)
            case "cr":
                return np.asarray(_natural(t, x) @ _null_space(self.numbers[None]))
            case "rcs":
                return np.asarray(np.ldexp(_restricted(t, x), e))
        # poly: the three-term recurrence of orthogonal polynomials
        columns = [np.ones_like(x)]
        square, centre = np.split(self.numbers, [self.degree + 1])
        for k in range(self.degree):
            column = (x - centre[k]) * columns[-1]
            if k:
                column -= square[k] / square[k - 1] * columns[-2]
            columns.append(column)
        return np.asarray(np.column_stack(columns[1:]) / np.sqrt(square[1:]))

    def _check(self) -> None:
        least = {"bs": 2, "ns": 2, "cr": 3, "rcs": 3, "poly": 2}[self.kind]
        if not 1 <= self.degree <= _HIGHEST or self.knots.size < least:
            raise ValueError(f"{self.kind} needs a degree and {least} knots or more")
        size = {"cr": self.knots.size, "poly": 2 * self.degree + 1}.get(self.kind, 0)
        if self.numbers.size != size:
            raise ValueError(f"numbers must have {size} entries")
        if self.kind == "poly" and not (self.numbers[: self.degree + 1] > 0).all():
            raise ValueError("numbers must begin with squared norms, which are > 0")
        if self.kind == "cr" and not self.numbers.any():
            raise ValueError("numbers must hold means, which are not all 0")


def _knots(
    name: str,
    kind: Kind,
    options: Mapping[str, Any],
    x: np.ndarray,
    counts: np.ndarray,
    degree: int,
) -> np.ndarray:
    """Return the knots that the options state, or quantiles of counted values x."""
    given, df = options.get("knots"), options.get("df")
    bounds = [options.get("lower_bound", x[0]), options.get("upper_bound", x[-1])]
    if given is not None and df is not None:
        raise ValueError(f"{name} takes df or knots, not both")
    if kind == "rcs":
        if isinstance(given, list):
            return np.array(given, np.float64)
        return _harrell(name, x, counts, 5 if given is None else given)
    if given is not None:
        if not isinstance(given, list):
            raise ValueError(f"knots of {name} must be a list, got {shown(given)}")
        inner = np.array(given, np.float64)
        if kind == "cr":
            return inner
        return np.concatenate([bounds[:1], inner, bounds[1:]])
    default, least = {"bs": (degree, degree), "ns": (1, 1), "cr": (9, 2)}[kind]
    df = default if df is None else check_count(f"df of {name}", df)
    if not least <= df < x.size + least:
        raise ValueError(
            f"df of {name} must be at least {least}, and its knots no more than the "
            f"{x.size} distinct values, got {df}"
        )
    if kind == "cr":
        return np.asarray(np.quantile(x, np.linspace(0, 1, df + 1)))
    inside = (x >= bounds[0]) & (x <= bounds[1])
    if not inside.any():
        raise ValueError(
            f"{name} needs values of x between its bounds {listed(bounds)}, got none"
        )
    p = np.linspace(0, 1, df - least + 2)[1:-1]
    inner = quantiles(x[inside], counts[inside], p)
    return np.concatenate([bounds[:1], inner, bounds[1:]])


def _harrell(name: str, x: np.ndarray, counts: np.ndarray, k: int) -> np.ndarray:
    """Return the k knots that `Hmisc::rcspline.eval` chooses for counted values x.

    They are Harrell's quantiles: equally spaced from `outer` to 1 - outer. An end knot
    moves to the next value where many rows have the extreme one, and in small samples
    to the fifth row from the end.
    """
    if not isinstance(k, int) or not 3 <= k < x.size - 2:
        raise ValueError(
            f"{name} needs 3 knots or more, and more than two distinct values beside "
            f"them, got {shown(k)} for {x.size}; pass a list of knots"
        )
    outer = 0.1 if k == 3 else 0.05 if k < 7 else 0.025
    share = counts / counts.sum()
    ends = share[[0, -1]] >= _TIED if share[1:-1].max() < _TIED else [False, False]
    first, last = x[1 : 1 + int(ends[0])], x[x.size - 1 - int(ends[1]) : x.size - 1]
    inside = (x > first.max(initial=-np.inf)) & (x < last.min(initial=np.inf))
    x, counts = x[inside], counts[inside]
    inner = k - first.size - last.size
    at = {1: [0.5], 2: [0.5, 1 - outer]}.get(
        inner, np.linspace(outer, 1 - outer, inner)
    )
    knots, n = quantiles(x, counts, at), np.cumsum(counts)
    if 4 < n[-1] < 100 and inner > 1:
        if not first.size:
            knots[0] = x[np.searchsorted(n, 4, "right")]
        if not last.size:
            knots[-1] = x[np.searchsorted(n, n[-1] - 4)]
    return np.concatenate([first, knots, last])


def _exponent(knots: np.ndarray) -> int:
    """Return the exponent of the power of two next to the range of the knots."""
    return int(np.frexp(knots[-1] / 2 - knots[0] / 2)[1]) + 1


def _padded(knots: np.ndarray, degree: int) -> np.ndarray:
    """Return the knots with the boundary repeated, as B-splines of a degree need it."""
    return np.concatenate([[knots[0]] * degree, knots, [knots[-1]] * degree])


def _b_splines(t: np.ndarray, degree: int, x: Any, order: int = 0) -> np.ndarray:
    """Return all B-splines of knots t at x, or their derivatives of an order, (n, c).

    This is de Boor's recurrence. Values beyond the boundary belong to the outermost
    intervals, whose polynomials extrapolate.
    """
    x = np.asarray(x, np.float64)[:, None]
    interval = np.searchsorted(t, x[:, 0], "right") - 1
    B = np.zeros((len(x), t.size - 1))
    B[np.arange(len(x)), np.clip(interval, degree, t.size - degree - 2)] = 1.0
    for k in range(1, degree + 1):
        width = t[k:] - t[:-k]
        B = B / np.where(width > 0, width, 1.0)  # B is 0 where knots coincide
        if k > degree - order:
            B = k * (B[:, :-1] - B[:, 1:])
        else:
            B = (x - t[: -k - 1]) * B[:, :-1] + (t[k + 1 :] - x) * B[:, 1:]
    return B


def _natural_b_splines(knots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the columns of `ns`: B-splines in the null space of the curvature at both
    ends, extrapolated along the tangents.
    """
    t, ends = _padded(knots, 3), knots[[0, -1]]
    nearest = np.clip(x, *ends)
    B = _b_splines(t, 3, nearest)
    for end in ends:
        beyond = (nearest == end) & (x != end)
        B[beyond] += (x[beyond] - end)[:, None] * _b_splines(t, 3, [end], 1)
    return np.asarray(B[:, 1:] @ _null_space(_b_splines(t, 3, ends, 2)[:, 1:]))


def _null_space(constraints: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the vectors v with constraints @ v = 0, by QR."""
    Q = np.linalg.qr(constraints.T, mode="complete")[0]
    return np.asarray(Q[:, len(constraints) :])


def _natural(knots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the natural cubic splines that are 1 at one knot and 0 at others, (n, k).

    In the symbols of Wood (5.3.1), B m = D f gives the second derivatives m at the
    inner knots from the values f at all knots.
    """
    h, k = np.diff(knots), knots.size
    D, B = np.zeros((k - 2, k)), np.zeros((k - 2, k - 2))
    for i in range(k - 2):
        D[i, i : i + 3] = 1 / h[i], -1 / h[i] - 1 / h[i + 1], 1 / h[i + 1]
        B[i, i] = (h[i] + h[i + 1]) / 3
        if i:
            B[i, i - 1] = B[i - 1, i] = h[i] / 6
    curvature = np.zeros((k, k))  # second derivatives at the knots, 0 at the ends
    curvature[1:-1] = np.linalg.solve(B, D)
    j = np.clip(np.searchsorted(knots, x, "right") - 1, 0, k - 2)
    nearest = np.clip(x, knots[0], knots[-1])
    left, right = (knots[j + 1] - nearest) / h[j], (nearest - knots[j]) / h[j]
    unit = np.eye(k)
    out = left[:, None] * unit[j] + right[:, None] * unit[j + 1]
    for share, at in ((left, j), (right, j + 1)):
        out += ((share**3 - share) * h[j] ** 2 / 6)[:, None] * curvature[at]
    # Beyond the boundary, the columns continue along their slopes there.
    outer = (x - nearest)[:, None]
    rise = (unit[j + 1] - unit[j]) / h[j][:, None]
    low = rise - h[j][:, None] / 6 * (2 * curvature[j] + curvature[j + 1])
    high = rise + h[j][:, None] / 6 * (curvature[j] + 2 * curvature[j + 1])
    return np.asarray(out + outer * np.where(outer < 0, low, high))


def _restricted(knots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the columns of `rcs`: x, and sums of truncated cubes that are linear
    beyond the outer knots.
    """
    last, before = knots[-1], knots[-2]
    cubed = np.maximum((x[:, None] - knots) / (last - knots[0]) ** (2 / 3), 0) ** 3
    own = (before - knots[:-2]) / (last - before) * cubed[:, -1:]
    own -= (last - knots[:-2]) / (last - before) * cubed[:, -2:-1]
    return np.column_stack([x, cubed[:, :-2] + own])


def _recurrence(
    name: str, x: np.ndarray, counts: np.ndarray, degree: int
) -> np.ndarray:
    """Return squared norms and centres of the recurrence that makes polynomials
    orthogonal over the counted values x.

    Raises ValueError if only rounding is left of one, as with an outlier far away.
    """
    square, centre = [float(counts.sum())], []
    column, earlier = np.ones_like(x), np.zeros_like(x)
    for k in range(degree):
        centre.append(float(counts * x @ column**2) / square[-1])
        drop = square[-1] / square[-2] if k else 0.0
        longer = (x - centre[-1]) * column
        column, earlier = longer - drop * earlier, column
        square.append(float(counts @ column**2))
        if square[-1] <= _ROUNDED**2 * float(counts @ longer**2):
            raise ValueError(
                f"{name} needs values that differ on the scale of their range, and "
                f"most of them are equal beside the largest: pass degree {k} or less, "
                "or transform the column, as by its logarithm"
            )
    return np.array(square + centre)
