"""Average marginal effects: how the probabilities of the ranks move with a feature.

With weights v_i of sum 1, the effect of a feature on the mean of P(y <= j) is

    sum_i v_i f(eta_ij) deta_ij/dx         or, of a column of 0 and 1,
    sum_i v_i (F(eta_ij) at 1 - F(eta_ij) at 0)                                      (1)

and that on the probability of a rank is the difference of two of them. Their errors are
those of a linear function of the estimates (delta method): sqrt(g'Vg), g the gradient
of (1) by the parameters.

T. F. Liao, "Interpreting Probability Models", Sage, 1994.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .design import structure_of
from .likelihood import cumulative, density, slope

_BLOCK = 1 << 20  # entries of the rows held at a time


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows to average over.

    Attributes
    ----------
    Z : (n, c) array
        All columns of a model.
    offset : (n,) array
    share : (n,) array
        Weights of sum 1.
    """

    Z: np.ndarray
    offset: np.ndarray
    share: np.ndarray

    def blocks(self, T: int) -> Iterator[Rows]:
        """Some rows at a time."""
        step = max(1, _BLOCK // (T + self.Z.shape[1]))
        for first in range(0, len(self.Z), step):
            rows = slice(first, first + step)
            yield Rows(self.Z[rows], self.offset[rows], self.share[rows])


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

    def of_column(self, rows: Rows, column: int) -> tuple[np.ndarray, np.ndarray]:
        """(1), (T,), and its gradient by the parameters, (T, p)."""
        if np.isin(rows.Z[:, column], (0.0, 1.0)).all():
            return self._of_step(rows, {column: (0.0, 1.0)})
        return self._of_slope(rows, column)

    def _of_slope(self, rows: Rows, column: int) -> tuple[np.ndarray, np.ndarray]:
        m, T = self.model, self.theta.size
        value, gradient = np.zeros(T), np.zeros((T, m.parameters.size))
        unit = np.zeros((1, rows.Z.shape[1]))
        unit[0, column] = 1.0
        dN, dL, dS = unit[:, m.nominal], unit[:, m.location], unit[:, m.scale]
        moved = self.nu @ dN[0] + dL[0] @ m.coef  # of eta s, downwards, (T,)
        spread = float(dS[0] @ m.scale_coef)
        for part in rows.blocks(T):
            eta, s = self._predictors(part)
            v = part.share[:, None]
            f = v * density(m.link, eta)
            e = -moved / s - eta * spread
            value += (f * e).sum(axis=0)
            through = v * slope(m.link, eta) * e - f * spread  # by eta itself
            S = part.Z[:, m.scale]
            gradient += self._chain(part, through, eta, s)
            ones = np.ones((len(eta), 1))
            gradient += self._place(
                np.zeros(T), -(f / s).T @ ones * dN, -(f / s).T @ ones * dL,
                (f * moved / s).T @ S - (f * eta).T @ ones * dS,
            )  # fmt: skip
        return value, gradient

    def _of_step(self, rows: Rows, columns: dict[int, tuple[float, float]]) -> tuple[
        np.ndarray, np.ndarray
    ]:  # fmt: skip
        """Of columns that go from one value to another in all rows."""
        ends = [self._mean(rows, {j: v[k] for j, v in columns.items()}) for k in (0, 1)]
        return ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]

    def _mean(
        self, rows: Rows, held: dict[int, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of P(y <= j) where columns have the same value in all rows."""
        m, T = self.model, self.theta.size
        value, gradient = np.zeros(T), np.zeros((T, m.parameters.size))
        for part in rows.blocks(T):
            Z = part.Z.copy()
            for column, at in held.items():
                Z[:, column] = at
            part = Rows(Z, part.offset, part.share)
            eta, s = self._predictors(part)
            v = part.share[:, None]
            value += (v * cumulative(m.link, eta)).sum(axis=0)
            gradient += self._chain(part, v * density(m.link, eta), eta, s)
        return value, gradient

    def _predictors(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """eta, (n, T), and s, (n, 1)."""
        m, Z = self.model, rows.Z
        s = np.exp(Z[:, m.scale] @ m.scale_coef)[:, None]
        f = (Z[:, m.location] @ m.coef + rows.offset)[:, None]
        return (self.theta - Z[:, m.nominal] @ self.nu.T - f) / s, s

    def _chain(
        self, rows: Rows, by_eta: np.ndarray, eta: np.ndarray, s: np.ndarray
    ) -> np.ndarray:
        """sum_i by_eta_ij deta_ij/dparameters, (T, p)."""
        m, Z = self.model, rows.Z
        over = (by_eta / s).T
        return self._place(
            over.sum(axis=1), -over @ Z[:, m.nominal], -over @ Z[:, m.location],
            -(by_eta * eta).T @ Z[:, m.scale],
        )  # fmt: skip

    def _place(
        self, theta: np.ndarray, nu: np.ndarray, beta: np.ndarray, zeta: np.ndarray
    ) -> np.ndarray:
        """Gradients by theta_j (T,), nu_j (T, m), beta (T, d) and zeta (T, k) of the
        same threshold as those by the parameters, (T, p)."""
        by_nu = self.J[:, :, None] * nu[:, None, :]
        return np.hstack([
            theta[:, None] * self.J, by_nu.reshape(theta.size, -1), beta, zeta
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
