"""Average marginal effects: how the probabilities of the ranks move with a feature.

With weights v_i of sum 1, the effect of a feature x on the mean of P(y <= j) is

    sum_i v_i f(eta_ij) deta_ij/dx      or, of two values that x may have in all rows,
    sum_i v_i (F(eta_ij) at one - F(eta_ij) at the other)                            (1)

and that on the probability of a rank is the difference of two of them. Their errors are
those of a linear function of the estimates (delta method): sqrt(g'Vg), g the gradient
of (1) by the parameters.

A column of a table may have made several columns of the design: its effect is through
all of them, whose slopes by it are differences of the design.

T. F. Liao, "Interpreting Probability Models", Sage, 1994. T. J. Leeper, "margins", R
package, for the differences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._input.checks import shown
from .._input.columns import default_names
from .._input.frame import Frame
from .._input.sparse import CSR
from .._numerics.rows import dense, take
from .contrasts import Coding
from .design import structure_of
from .expressions import columns_of, compares
from .likelihood import cumulative, density, slope

_BLOCK = 1 << 20  # entries of the rows held at a time
_STEP = float(np.cbrt(np.finfo(float).eps))  # of a central difference, relative to x


class At(NamedTuple):
    """All columns of some rows, (n, c), and their offsets, (n,)."""

    Z: np.ndarray
    offset: np.ndarray


class Step(NamedTuple):
    """From one to another value in all rows."""

    low: At
    high: At


class Slope(NamedTuple):
    """Where rows are, and how fast they move with a feature."""

    here: At
    by: At


class Feature(NamedTuple):
    """What an effect is of: a column of the table, and the two values of a step; none
    of a number that is free to move."""

    name: str
    column: int
    values: tuple[float, float] | None


class Source(Protocol):
    """Rows to average over, and what their features are."""

    @property
    def share(self) -> np.ndarray: ...
    @property
    def features(self) -> list[Feature]: ...
    def change(self, feature: Feature, rows: slice) -> Step | Slope: ...


@dataclass(frozen=True, slots=True, eq=False)
class MatrixRows:
    """Rows whose columns are those of the design.

    Attributes
    ----------
    X : (n, c) array or CSR
    offset : (n,) array
    share : (n,) array
        Weights of sum 1.
    names : tuple of (c,) str
    used : int array
        Columns that the model reads.
    """

    X: np.ndarray | CSR
    offset: np.ndarray
    share: np.ndarray
    names: tuple[str, ...]
    used: np.ndarray

    @property
    def features(self) -> list[Feature]:
        return [
            Feature(self.names[j], j, (0.0, 1.0) if _is_binary(self.X, j) else None)
            for j in self.used.tolist()
        ]

    def change(self, feature: Feature, rows: slice) -> Step | Slope:
        Z, offset = dense(take(self.X, rows)), self.offset[rows]
        column = np.arange(Z.shape[1]) == feature.column
        if feature.values is None:
            by = np.broadcast_to(column.astype(np.float64), Z.shape)
            return Slope(At(Z, offset), At(by, np.zeros(len(Z))))
        low, high = (At(np.where(column, v, Z), offset) for v in feature.values)
        return Step(low, high)


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Rows of a table that a coding makes the columns of the design of.

    Attributes
    ----------
    frame : Frame
    coding : Coding
    offset : (n,) array
        What is known beside the offsets of the coding.
    share : (n,) array
        Weights of sum 1.
    """

    frame: Frame
    coding: Coding
    offset: np.ndarray
    share: np.ndarray

    @property
    def features(self) -> list[Feature]:
        names = self.frame.names or default_names(self.frame.shape[1])
        labels = self.coding.categories
        found = []
        for j in self.coding.columns_read:
            known, own = labels[j], self.frame.values[:, j]
            if known is not None:
                reference = self.coding.reference_of(j)
                found += [
                    Feature(f"{names[j]}[{label}]", j, (float(reference), float(k)))
                    for k, label in enumerate(known.tolist())
                    if k != reference
                ]
            else:
                self._check_slope(names[j])
                binary = np.isin(own, (0.0, 1.0)).all()
                found.append(Feature(names[j], j, (0.0, 1.0) if binary else None))
        return found

    def change(self, feature: Feature, rows: slice) -> Step | Slope:
        part, offset, j = self.frame.rows(rows), self.offset[rows], feature.column
        if feature.values is not None:
            low, high = (
                self._at(self._with(part, j, v), offset) for v in feature.values
            )
            return Step(low, high)
        x = part.values[:, j]
        spread = float(self.frame.values[:, j].std())
        h = _STEP * np.where(x == 0, spread, np.abs(x))
        low, high = (
            self._at(self._with(part, j, x + sign * h), offset) for sign in (-1, 1)
        )
        width = (x + h) - (x - h)
        by = At((high.Z - low.Z) / width[:, None], (high.offset - low.offset) / width)
        return Slope(self._at(part, offset), by)

    def _check_slope(self, name: str) -> None:
        """Raise ValueError if what the coding makes of a column jumps."""
        for variable in self.coding.variables:
            text = variable.source
            if isinstance(text, str) and name in columns_of(text) and compares(text):
                raise ValueError(
                    f"marginal_effects needs slopes, and {shown(variable.name)} jumps "
                    f"with {shown(name)}: give the comparison as a column of its own"
                )

    def _at(self, frame: Frame, offset: np.ndarray) -> At:
        known = self.coding.offset(frame, offset)
        return At(self.coding.transform(frame), offset if known is None else known)

    def _with(self, frame: Frame, j: int, value: Any) -> Frame:
        """The rows with a number, or a level by its place, in a column."""
        known, labels = self.coding.categories[j], list(frame.labels)
        if known is not None and labels[j] is None:
            value = known[int(value)]  # of a column of numbers that are categories
        elif known is not None:
            labels[j] = known
        values = frame.values.copy()
        values[:, j] = value
        return replace(frame, values=values, labels=tuple(labels))


def _is_binary(X: np.ndarray | CSR, j: int) -> bool:
    entries = X.data[X.indices == j] if isinstance(X, CSR) else X[:, j]
    return bool(np.isin(entries, (0.0, 1.0)).all())


class Effects:
    """Mean effects of features on P(y <= j), with their gradients by the parameters.

    Parameters
    ----------
    model : PomModel
    """

    def __init__(self, model: Any):
        self.model = model
        self.J = structure_of(model.threshold, int(model.observed.sum()) - 1)
        self.theta = self.J @ model.alpha
        self.nu = self.J @ model.nominal_coef

    def of(self, source: Source, feature: Feature) -> tuple[np.ndarray, np.ndarray]:
        """(1), (T,), and its gradient by the parameters, (T, p)."""
        T, p = self.theta.size, self.model.parameters.size
        value, gradient = np.zeros(T), np.zeros((T, p))
        step = max(1, _BLOCK // (T + self.model.location.size))
        for first in range(0, source.share.size, step):
            rows = slice(first, min(first + step, source.share.size))
            change, v = source.change(feature, rows), source.share[rows][:, None]
            if isinstance(change, Slope):
                parts = [(1.0, self._of_slope(change, v))]
            else:
                parts = [
                    (sign, self._mean(at, v))
                    for sign, at in zip((-1.0, 1.0), change, strict=True)
                ]
            for sign, (a, b) in parts:
                value += sign * a
                gradient += sign * b
        return value, gradient

    def _mean(self, at: At, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sum_i v_i F(eta_ij)."""
        link = self.model.link
        eta, s = self._predictors(at)
        value = (v * cumulative(link, eta)).sum(axis=0)
        return value, self._chain(at, v * density(link, eta), eta, s)

    def _of_slope(self, change: Slope, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sum_i v_i f(eta_ij) e_ij, with e = deta/dx."""
        m, (here, by) = self.model, change
        eta, s = self._predictors(here)
        dN, dL, dS = (by.Z[:, part] for part in (m.nominal, m.location, m.scale))
        S = here.Z[:, m.scale]
        moved = dN @ self.nu.T + (dL @ m.coef + by.offset)[:, None]  # of -eta s
        spread = (dS @ m.scale_coef)[:, None]
        f = v * density(m.link, eta)
        e = -moved / s - eta * spread
        through = v * slope(m.link, eta) * e - f * spread  # by eta itself
        over = (f / s).T
        beside = self._place(  # where e has the parameters in it
            np.zeros(self.theta.size), -over @ dN, -over @ dL,
            (f * moved / s).T @ S - (f * eta).T @ dS,
        )  # fmt: skip
        gradient = self._chain(here, through, eta, s) + beside
        return (f * e).sum(axis=0), gradient

    def _predictors(self, at: At) -> tuple[np.ndarray, np.ndarray]:
        """eta, (n, T), and s, (n, 1)."""
        m = self.model
        s = np.exp(at.Z[:, m.scale] @ m.scale_coef)[:, None]
        f = (at.Z[:, m.location] @ m.coef + at.offset)[:, None]
        return (self.theta - at.Z[:, m.nominal] @ self.nu.T - f) / s, s

    def _chain(
        self, at: At, by_eta: np.ndarray, eta: np.ndarray, s: np.ndarray
    ) -> np.ndarray:
        """sum_i by_eta_ij deta_ij/dparameters, (T, p)."""
        m = self.model
        over = (by_eta / s).T
        return self._place(
            over.sum(axis=1), -over @ at.Z[:, m.nominal], -over @ at.Z[:, m.location],
            -(by_eta * eta).T @ at.Z[:, m.scale],
        )  # fmt: skip

    def _place(
        self, theta: np.ndarray, nu: np.ndarray, beta: np.ndarray, zeta: np.ndarray
    ) -> np.ndarray:
        """Gradients by theta_j (T,), nu_j (T, m), beta (T, d) and zeta (T, k) of the
        same threshold as those by the parameters, (T, p)."""
        by_nu = self.J[:, :, None] * nu[:, None, :]
        size = self.J.shape[1] * nu.shape[1]
        return np.hstack([
            theta[:, None] * self.J, by_nu.reshape(theta.size, size), beta, zeta
        ])  # fmt: skip


def of_ranks(
    value: np.ndarray, gradient: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Effects on the probabilities of the ranks and their errors, (T + 1,) each, from
    those on P(y <= j)."""
    effect = np.diff(value, prepend=0.0, append=0.0)
    zero = np.zeros_like(gradient[:1])
    G = np.diff(np.vstack([zero, gradient, zero]), axis=0)
    variance = ((G @ covariance) * G).sum(axis=1)
    return effect, np.sqrt(np.maximum(variance, 0.0))
