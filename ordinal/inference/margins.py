"""Sums of the probabilities of rows, effects of features on them, and gradients.

With weights v_i of sum 1, the mean of P(y <= j) is

    sum_i v_i F(eta_ij)                                                              (1)

and the effect on it of a numeric feature x, or of a step of x between two values, is

    sum_i v_i f(eta_ij) deta_ij/dx,   sum_i v_i (F(eta_ij) at high - F(eta_ij) at low)
                                                                                     (2)

The values for a rank are differences of two of these. Standard errors are sqrt(g'Vg)
with g the gradient by the parameters (delta method). Where nominal effects make
thresholds cross at a row, its eta_ij are sorted first, as for predictions.

If a column of a table makes several columns of the design, its effect is through all of
them, and their slopes by it are finite differences of the design. A row in which a
numeric column is missing does not change with it, and adds 0 to the mean of its slopes.

T. F. Liao, "Interpreting Probability Models", Sage, 1994. T. J. Leeper, "margins", R
package, for the finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .._cumulative.design import mean_offset, read_offset, structure_of
from .._cumulative.likelihood import (
    cumulative,
    density,
    exceeding,
    slope,
)
from .._formula.coding import Coding
from .._formula.expressions import columns_of, compares
from .._input.checks import shown
from .._input.columns import check_shape
from .._input.frame import Frame
from .._input.labels import sample_weights, shares
from .._input.sparse import CSR
from .._input.types import ArrayLike, Index, MatrixLike
from .._model.model import read_for
from .._numerics.rows import dense, strips, take
from .covariance import StructuredCovariance
from .fitted import Fitted, predictors, remembered

_FARTHEST = 700.0  # log of a factor of odds, whose exponential is finite
_BLOCK = 1 << 17  # entries of the rows in memory at a time: they stay in the cache
# The relative step that balances rounding and curvature in a central difference.
_STEP = float(np.cbrt(np.finfo(float).eps))


class OffsetGradient(NamedTuple):
    """Derivatives of the offsets of rows by parameters that are not those of `Means`.

    Row i depends on k of these parameters: `at`, (n, k), holds their numbers and `by`,
    (n, k), the derivatives. `mixed.margins` uses them for random effects.
    """

    at: np.ndarray
    by: np.ndarray


class DesignRows(NamedTuple):
    """Design columns of some rows, (n, c), and their offsets, (n,) or (n, T).

    `offset_gradient` holds derivatives of the offsets by further parameters, if any.
    """

    Z: np.ndarray
    offset: np.ndarray
    offset_gradient: OffsetGradient | None = None

    def take(self, rows: Index) -> DesignRows:
        by = self.offset_gradient
        own = by and OffsetGradient(by.at[rows], by.by[rows])
        return DesignRows(self.Z[rows], self.offset[rows], own)


class DiscreteChange(NamedTuple):
    """Step of a feature from one value to another in all rows."""

    low: DesignRows
    high: DesignRows


class Derivative(NamedTuple):
    """Rows, and the derivatives of their columns and offsets by a feature."""

    here: DesignRows
    by: DesignRows

    def take(self, rows: Index) -> Derivative:
        return Derivative(self.here.take(rows), self.by.take(rows))


Change: TypeAlias = DiscreteChange | Derivative
Summand: TypeAlias = DesignRows | Derivative


class Feature(NamedTuple):
    """Feature whose effect is computed: its column, and the two values of a step.

    `values` is None for the effect of a slope. `variable` is the number of a variable
    of the coding that is made of a date, whose slope is meant.
    """

    name: str
    column: int
    values: tuple[float, float] | None
    variable: int | None = None


class MarginRows(Protocol):
    """Rows to average over, with their weights and features.

    A row consists of N consecutive copies, whose weights `copies`, (N,), have sum 1.
    `changes` has one per feature; those from the same value share their rows `low`.
    """

    def __len__(self) -> int: ...
    @property
    def features(self) -> list[Feature]: ...
    @property
    def copies(self) -> np.ndarray: ...
    def shares(self, rows: slice) -> np.ndarray: ...
    def at(self, rows: slice) -> DesignRows: ...
    def changes(self, rows: slice) -> Iterator[Change]: ...


@dataclass(frozen=True, slots=True, eq=False)
class _WeightedRows:
    """Rows with offsets, (n,) or (n, T), and weights of sum 1, (n,)."""

    offset: np.ndarray
    share: np.ndarray

    def __len__(self) -> int:
        return int(self.share.size)

    @property
    def copies(self) -> np.ndarray:
        return np.ones(1)

    def shares(self, rows: slice) -> np.ndarray:
        return self.share[rows]


@dataclass(frozen=True, slots=True, eq=False)
class MatrixRows(_WeightedRows):
    """Rows whose features are the columns of the design.

    Attributes
    ----------
    X : (n, c) array or CSR
    names : tuple of (c,) str
    used : int array
        Numbers of the columns that the model uses.
    binary : (c,) bool array
        As in `LinearPredictor`.
    """

    X: np.ndarray | CSR
    names: tuple[str, ...]
    used: np.ndarray
    binary: np.ndarray

    @property
    def features(self) -> list[Feature]:
        return [
            Feature(self.names[j], j, (0.0, 1.0) if self.binary[j] else None)
            for j in self.used.tolist()
        ]

    def at(self, rows: slice) -> DesignRows:
        return DesignRows(dense(take(self.X, rows)), self.offset[rows])

    def changes(self, rows: slice) -> Iterator[Change]:
        here = self.at(rows)
        Z, offset, _ = here
        for feature in self.features:
            column = np.arange(Z.shape[1]) == feature.column
            if feature.values is None:
                by = np.broadcast_to(column.astype(np.float64), Z.shape)
                yield Derivative(here, DesignRows(by, np.zeros(len(Z))))
                continue
            low, high = (np.where(column, v, Z) for v in feature.values)
            yield DiscreteChange(DesignRows(low, offset), DesignRows(high, offset))


@dataclass(frozen=True, slots=True, eq=False)
class TableRows(_WeightedRows):
    """Rows of a table, from which a coding makes the columns of the design.

    `offset` is that in addition to the offset of the coding.

    Attributes
    ----------
    frame : Frame
    coding : Coding
    binary : (d,) bool array
    spread : (d,) array
        As in `LinearPredictor`.
    """

    frame: Frame
    coding: Coding
    binary: np.ndarray
    spread: np.ndarray

    @property
    def features(self) -> list[Feature]:
        names = self.frame.shown_names
        labels = self.coding.categories
        found = []
        for j in self.coding.columns_read:
            if parts := self._parts_of(j):
                # They are step functions of the date.
                found += [
                    Feature(self.coding.variables[k].name, j, None, k) for k in parts
                ]
                continue
            if (known := labels[j]) is not None:
                reference = self.coding.reference_of(j)
                found += [
                    Feature(f"{names[j]}[{label}]", j, (float(reference), float(k)))
                    for k, label in enumerate(known.tolist())
                    if k != reference
                ]
            else:
                self._check_slope(names[j])
                ends = (0.0, 1.0) if self.binary[j] else None
                found.append(Feature(names[j], j, ends))
        return found

    def at(self, rows: slice) -> DesignRows:
        return self._coded(self.frame.rows(rows), self.offset[rows])

    def changes(self, rows: slice) -> Iterator[Change]:
        part = self.frame.rows(rows)
        here = self._coded(part, self.offset[rows])
        lows: dict[int, DesignRows] = {}
        for feature in self.features:
            j = feature.column
            if feature.values is None:
                yield self._derivative(feature, part, rows, here)
                continue
            low, high = feature.values
            if j not in lows:
                # The levels of a column have the same reference.
                lows = {j: self._changed(here, part, rows, j, low)}
            yield DiscreteChange(lows[j], self._changed(here, part, rows, j, high))

    def _derivative(
        self, feature: Feature, part: Frame, rows: slice, here: DesignRows
    ) -> Derivative:
        """Return the derivative of the design `here` of `part` by a feature."""
        j = feature.column
        x = part.values[:, j]
        if (k := feature.variable) is not None:
            slope = self.coding.columns_with(k, {k: np.ones(len(x))})
            slope[np.isnan(x)] = 0.0
            return Derivative(here, DesignRows(slope, np.zeros(len(x))))
        missing = np.isnan(x)  # such a value does not change, nor do its predictions
        x = np.where(missing, 0.0, x)
        # 0 has no relative step: the spread of the column takes its place.
        h = _STEP * np.where(x == 0, self.spread[j], np.abs(x))
        low, high = (
            self._changed(here, part, rows, j, np.where(missing, np.nan, x + sign * h))
            for sign in (-1, 1)
        )
        # This is the step in floating point, from which 2 h differs by rounding.
        width = (x + h) - (x - h)
        moved = mean_offset(high.offset - low.offset)  # the same at all thresholds
        by = DesignRows((high.Z - low.Z) / width[:, None], moved / width)
        return Derivative(here, by)

    def _parts_of(self, j: int) -> list[int]:
        """Return the variables that are made of the dates of a column."""
        every = enumerate(self.coding.variables)
        return [k for k, v in every if v.part is not None and v.source == j]

    def _check_slope(self, name: str) -> None:
        """Raise ValueError if a formula makes a step function of a column."""
        for variable in self.coding.variables:
            text = variable.source
            if isinstance(text, str) and name in columns_of(text) and compares(text):
                raise ValueError(
                    f"marginal_effects needs a slope, and {shown(variable.name)} "
                    f"is a step function of {shown(name)}: pass the comparison as "
                    "a column of its own"
                )

    def _coded(self, frame: Frame, offset: np.ndarray) -> DesignRows:
        """Return the design of some rows of the table."""
        known = self.coding.offset(frame, offset)
        return DesignRows(
            self.coding.transform(frame), offset if known is None else known
        )

    def _changed(
        self, here: DesignRows, part: Frame, rows: slice, j: int, value: Any
    ) -> DesignRows:
        """Return the design `here` of `part` with another value in column j."""
        made, known = self._with(part, j, value), None
        if self.coding.offsets:
            known = self.coding.offset(made, self.offset[rows])
        return DesignRows(
            self.coding.recoded(here.Z, made, j),
            here.offset if known is None else known,
        )

    def _with(self, frame: Frame, j: int, value: Any) -> Frame:
        """Return rows with another value in column j: a number, or a level's number."""
        known = self.coding.categories[j]
        if known is not None and frame.labels[j] is None:
            # A formula has made categories of numbers, as C(x) does.
            value, known = known[int(value)], None
        return frame.with_column(j, value, known)


class Means:
    """Sums (1) and (2), with their gradients by the parameters.

    Parameters
    ----------
    model : PomModel
    n_more : int
        Number of further parameters, on which the offsets of rows depend: an
        `OffsetGradient`. They come last in the gradients.
    """

    def __init__(self, model: Fitted, n_more: int = 0):
        self.model, self.n_more = model, n_more
        T = int(model.predictor.observed.sum()) - 1
        self.J = structure_of(model.predictor.threshold, T)
        self.nu = self.J @ model.nominal_coef

    def evaluate(
        self, source: MarginRows, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums (1) of F and of 1 - F, (2, T), and the gradient of the linear
        functions W, (k, T), of the first, (k, p).
        """
        sums = self._zeros(W)
        for rows in self._rows(source):
            self._add(sums, 1.0, source.at(rows), source.shares(rows)[:, None], W)
        return sums

    def effects(
        self, source: MarginRows, W: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the sums (2), (T,), and the gradient of their functions W, (k, p), for
        each feature.
        """
        every = [self._zeros(W) for _ in source.features]
        for rows in self._rows(source):
            share = source.shares(rows)[:, None]
            low, below = None, self._zeros(W)
            for sums, change in zip(every, source.changes(rows), strict=True):
                if isinstance(change, Derivative):
                    self._add(sums, 1.0, change, share, W)
                    continue
                if change.low is not low:
                    low, below = change.low, self._zeros(W)
                    self._add(below, -1.0, low, share, W)
                for own, more in zip(sums, below, strict=True):
                    own += more
                self._add(sums, 1.0, change.high, share, W)
        return [(value[0], gradient) for value, gradient in every]

    def sides(self, at: DesignRows) -> tuple[np.ndarray, np.ndarray]:
        """Return F and 1 - F of rows, (n, T) each, sorted where predictors cross."""
        eta, _ = predictors(self.model, at.Z, at.offset)
        if self._may_cross(at):
            eta.sort(axis=1)
        return cumulative(self.model.link, eta), exceeding(self.model.link, eta)

    def gradients(self, at: DesignRows, W: np.ndarray) -> np.ndarray:
        """Return the gradients of linear functions of the F of each row, (n, k, p).

        W is (k, T), or (n, k, T) with other functions for each row.
        """
        m = self.model
        eta, unit = predictors(m, at.Z, at.offset)
        if self._may_cross(at):
            place = eta.argsort(axis=1, kind="stable").argsort(axis=1)
            every = np.broadcast_to(W, (len(eta), *W.shape[-2:]))
            W = np.take_along_axis(every, place[:, None], axis=2)
        over = W * (density(m.link, eta) * unit)[:, None]
        by_scale = over @ (_finite(eta) / unit)[..., None] if m.scale_coef.size else 0.0
        return self._by_rows(at, over, by_scale)

    def scores(self, at: DesignRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the latent means of rows above the mean threshold, (n, 1), and their
        gradients, (n, 1, p): minus the means of predictors before they are scaled.
        """
        eta, unit = predictors(self.model, at.Z, at.offset)
        mean = np.full((len(eta), 1, self.J.T), -1 / self.J.T)
        return -(eta / unit).mean(axis=1)[:, None], self._by_rows(at, mean, 0.0)

    def _by_rows(
        self, at: DesignRows, over: np.ndarray, by_scale: np.ndarray | float
    ) -> np.ndarray:
        """Return gradients by the parameters, (n, k, p), from those by the predictors
        before they are scaled, (n, k, T), and by minus the log spread, (n, k, 1).
        """
        m, (n, k, _) = self.model, over.shape
        theta = self._by_alpha(over)
        score = -over.sum(axis=2, keepdims=True)
        N, X, S = (
            at.Z[:, None, part]
            for part in (m.predictor.nominal, m.predictor.location, m.predictor.scale)
        )
        parts = [
            theta,
            -(theta[..., None] * N[:, :, None]).reshape(n, k, -1),
            score * X,
            -by_scale * np.broadcast_to(S, (n, k, S.shape[2])),
        ]
        if self.n_more:
            more = np.zeros((n, self.n_more))
            if at.offset_gradient is not None:
                # The parameters of one row are distinct.
                np.put_along_axis(more, *at.offset_gradient, axis=1)
            parts.append(score * more[:, None])
        return np.concatenate(parts, axis=2)

    def _zeros(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of no rows, (2, T), and their gradient, (k, p)."""
        p = self.model.parameters.size + self.n_more
        return np.zeros((2, self.J.T)), np.zeros((len(W), p))

    def _rows(self, source: MarginRows) -> Iterator[slice]:
        """Return slices of rows: the design of all may not fit in memory."""
        step = _BLOCK // (self.J.T + self.model.predictor.location.size)
        return strips(len(source), max(1, step))

    def _add(
        self, sums: tuple[np.ndarray, np.ndarray], sign: float, part: Summand,
        share: np.ndarray, W: np.ndarray,
    ) -> None:  # fmt: skip
        """Add a signed part to sums, and the gradient of its functions W to theirs."""
        value, gradient = sums
        for own, order in self._orders(part):
            a, b = self._terms(part.take(own), share[own], _placed(W, order))
            value += sign * a[:, order]
            gradient += sign * b

    def _may_cross(self, at: DesignRows) -> bool:
        """Return whether predictors of these rows may cross."""
        return self.model.predictor.nominal.size > 0 or at.offset.ndim == 2

    def _orders(self, part: Summand) -> Iterator[tuple[Index, Index]]:
        """Yield groups of rows whose predictors have the same order, and this order.

        Predictors that cross are sorted, as for predictions. Rows with the same order
        share their formulas.
        """
        here = part.here if isinstance(part, Derivative) else part
        if self._may_cross(here):
            eta, _ = predictors(self.model, here.Z, here.offset)
            if not (eta[:, :-1] <= eta[:, 1:]).all():
                each = np.argsort(eta, axis=1, kind="stable")
                orders, which = np.unique(each, axis=0, return_inverse=True)
                for k, order in enumerate(orders):
                    yield np.flatnonzero(which.ravel() == k), order
                return
        yield slice(None), slice(None)

    def _terms(
        self, part: Summand, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the contributions of rows with weights v, (n, 1), to the sums.

        These are sums of F and 1 - F, (2, T), and the gradient of the functions W,
        (k, T), of the first, (k, p).
        """
        if isinstance(part, Derivative):
            effect, gradient = self._of_slope(part, v, W)
            return np.stack([effect, -effect]), gradient
        link = self.model.link
        eta, unit = predictors(self.model, part.Z, part.offset)
        sums = [(v * F(link, eta)).sum(axis=0) for F in (cumulative, exceeding)]
        by_eta = v * density(link, eta)
        return np.stack(sums), self._chain(part, by_eta, _finite(eta), unit, W)

    def _of_slope(
        self, change: Derivative, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_i v_i f(eta_ij) e_ij with e = deta/dx, (T,), and the gradient of
        its functions W.

        The gradient has two parts, because both f(eta) and e depend on the parameters.
        """
        m, (here, by) = self.model, change
        eta, unit = predictors(m, here.Z, here.offset)
        f, bend = v * density(m.link, eta), v * slope(m.link, eta)
        eta = _finite(eta)
        nominal, location, scale = (
            m.predictor.nominal, m.predictor.location, m.predictor.scale
        )  # fmt: skip
        S, dS = here.Z[:, scale], by.Z[:, scale]
        coef = np.zeros((by.Z.shape[1], self.J.T))
        np.add.at(coef, location, m.coef[:, None])
        np.add.at(coef, nominal, self.nu.T)
        moved = by.Z @ coef + by.offset[:, None]  # -d(s eta)/dx
        spread = (dS @ m.scale_coef)[:, None]
        e = -moved * unit - eta * spread
        through = bend * e - f * spread  # derivative by eta
        over = (f * unit).T
        by_column = -over @ by.Z
        direct = self._place(  # derivative by the parameters in e
            np.zeros(self.J.T),
            by_column[:, nominal],
            by_column[:, location],
            (f * moved * unit).T @ S - (f * eta).T @ dS,
            self._more(-W @ over, by.offset_gradient),
            W,
        )
        gradient = self._chain(here, through, eta, unit, W) + direct
        return (f * e).sum(axis=0), gradient

    def _chain(
        self, at: DesignRows, by_eta: np.ndarray, eta: np.ndarray, unit: np.ndarray,
        W: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Return sum_ij W_kj by_eta_ij deta_ij/dparameters, (k, p)."""
        m = self.model
        over = (by_eta * unit).T
        by_column = -over @ at.Z  # a product with some columns would copy them
        return self._place(
            over.sum(axis=1),
            by_column[:, m.predictor.nominal],
            by_column[:, m.predictor.location],
            -(by_eta * eta).T @ at.Z[:, m.predictor.scale],
            self._more(-W @ over, at.offset_gradient),
            W,
        )

    def _more(self, by_offset: np.ndarray, moved: OffsetGradient | None) -> np.ndarray:
        """Return the gradients by the further parameters, (k, n_more), from those by
        the offsets of rows, (k, n).
        """
        out = np.zeros((len(by_offset), self.n_more))
        if moved is not None:
            at = moved.at.ravel()
            for row, slopes in zip(out, by_offset, strict=True):
                by = (moved.by * slopes[:, None]).ravel()
                row += np.bincount(at, by, self.n_more)
        return out

    def _place(
        self, theta: np.ndarray, nu: np.ndarray, beta: np.ndarray, zeta: np.ndarray,
        more: np.ndarray, W: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Assemble the gradient of functions W by the parameters, (k, p).

        That of the sum at threshold j comes from the derivatives by theta_j (T,), nu_j
        (T, m), beta (T, d) and zeta (T, l). `more`, (k, n_more), is that of the
        functions by the further parameters.
        """
        by_nu = self._by_alpha((W[:, :, None] * nu).swapaxes(1, 2)).swapaxes(1, 2)
        by_nu = by_nu.reshape(len(W), self.J.q * nu.shape[1])
        return np.hstack([self._by_alpha(W * theta), by_nu, W @ beta, W @ zeta, more])

    def _by_alpha(self, by_theta: np.ndarray) -> np.ndarray:
        """Return derivatives by alpha, (..., q), from those by theta, (..., T)."""
        J = self.J.matrix
        return by_theta if J is None else np.asarray(by_theta @ J)


def _placed(W: np.ndarray, order: Index) -> np.ndarray:
    """Return functions of sums as functions of sums that come in another order."""
    if isinstance(order, slice):
        return W
    out = np.empty_like(W)
    out[:, order] = W
    return out


def _finite(eta: np.ndarray) -> np.ndarray:
    """Replace infinite predictors, where F is flat, by 0."""
    return np.where(np.isfinite(eta), eta, 0.0)


def errors_of(
    covariance: np.ndarray | StructuredCovariance, gradient: np.ndarray
) -> np.ndarray:
    """Return sqrt(g'Vg) for every row g of a gradient."""
    variance = ((gradient @ covariance) * gradient).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def logit_interval(
    p: np.ndarray, error: np.ndarray, z: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of confidence intervals of probabilities, between 0 and 1.

    They are symmetric, z standard errors to either side, on the scale log p / (1 - p).
    """
    inside = (p > 0) & (p < 1)
    # The logit of 0 and 1 is infinite: their interval is the point itself.
    q = np.where(inside, p, 0.5)
    # Factors of the odds keep their digits where p is close to 0 or 1.
    far = np.exp(np.minimum(z * error / (q * (1 - q)), _FARTHEST))
    low, high = q / (q + (1 - q) * far), q * far / (q * far + (1 - q))
    return np.where(inside, low, p), np.where(inside, high, p)


def rows_to_average(
    model: Fitted,
    asked: str,
    X: MatrixLike | None,
    offset: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> MatrixRows | TableRows:
    """Return the rows to average over: the given ones, or the training rows.

    Messages name the method `asked`.
    """
    own, coding = model.predictor, model.predictor.coding
    held: Any  # a Frame if there is a coding, otherwise a matrix
    if X is None:
        for name, given in (("offset", offset), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"{name} must be None without X, because the training rows have "
                    "their own"
                )
        fit = remembered(model, f"{asked} without X")
        D = fit.loss.design
        held, known, weight = D.X, D.offset, D.weight
        if coding is not None:
            held = fit.frame
            # The offset of the design includes the formula's, which `TableRows` adds.
            known_of = coding.offset(held)
            if known_of is not None and known is not None:
                known = known - (known_of if known.ndim == 1 else known_of[:, None])
    else:
        held = read_for(model, X) if coding is None else coding.read(X)
        check_shape(held.shape)
        known = None if offset is None else read_offset(offset, len(held))
        weight = sample_weights(sample_weight, len(held))
    share = shares(weight)
    beside = np.zeros(share.size) if known is None else known
    if coding is not None:
        return TableRows(beside, share, held, coding, own.binary, own.spread)
    used = np.unique(np.concatenate([own.location, own.nominal, own.scale]))
    return MatrixRows(beside, share, held, own.column_names, used, own.binary)


Errors: TypeAlias = Callable[[np.ndarray], np.ndarray]  # (k, p) gradients to (k,)
