"""What a score in pieces is made of: curves, interactions, contributions of a row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .layout import Layout


class ScoreFunction(NamedTuple):
    """The main effect of one feature, centred: its mean over the training rows is 0.

    Attributes
    ----------
    name : str
    at : (g + 1,) array
        Breakpoints in the unit of the feature, with lines between; or the categories.
    score : (g + 1,) array
        In the unit of U, of which `tau` is the margin.
    missing : float
        Of a missing value.
    """

    name: str
    at: np.ndarray
    score: np.ndarray
    missing: float


class Interaction(NamedTuple):
    """The effect of two features beside their score functions.

    Attributes
    ----------
    names : (str, str)
    at : (array, array)
        Breakpoints or categories of both.
    values : array, a row a piece of the first, a column a piece of the second
        <v_a, v_b>: what U gains where both values have passed their pieces.
    strength : float
        Range of <e_a, e_b>, the part of U that both have together, over all values.
    """

    names: tuple[str, str]
    at: tuple[np.ndarray, np.ndarray]
    values: np.ndarray
    strength: float


class Named(NamedTuple):
    """Values, a name for each along the last axis."""

    names: tuple[str, ...]
    values: np.ndarray


class Explained:
    """The pieces of a fitted score, with the names of its features.

    Parameters
    ----------
    layout : Layout
    names : tuple of (d,) str
    at : tuple of (d,) arrays
        Breakpoints or categories.
    W : (P, m) array
        Main effects and factors of the pieces, as `packed` makes it.
    n_factors : int
    centre : (d,) array
        Weighted mean of each main effect over the training rows.
    """

    def __init__(
        self,
        layout: Layout,
        names: tuple[str, ...],
        at: tuple[np.ndarray, ...],
        W: np.ndarray,
        n_factors: int,
        centre: np.ndarray,
    ):
        self.names, self.at, self.centre = names, at, centre
        self._table = layout.table(W)[:, : 1 + n_factors]
        # of each feature the main effect and the factors at its nodes, (nodes, 1 + k);
        # the last node is that of missing values
        self._curves = np.split(self._table[:-1], layout.node[1:-1])
        factors = np.split(W[:, 1 : 1 + n_factors], layout.first[1:-1])
        self._factors = [V[:-1] for V in factors]

    def score_functions(self) -> tuple[ScoreFunction, ...]:
        each = zip(self.names, self.at, self._curves, self.centre, strict=True)
        return tuple(
            ScoreFunction(name, at, E[:-1, 0] - c, float(E[-1, 0] - c))
            for name, at, E, c in each
        )

    def importance(self) -> Named:
        ranges = [np.ptp(E[:-1, 0]) if len(E) > 1 else 0 for E in self._curves]
        return Named(self.names, np.array(ranges))

    def interaction(self, i: int, j: int) -> Interaction:
        together = self._curves[i][:-1, 1:] @ self._curves[j][:-1, 1:].T
        return Interaction(
            (self.names[i], self.names[j]),
            (self.at[i], self.at[j]),
            self._factors[i] @ self._factors[j].T,
            float(np.ptp(together)) if together.size else 0.0,
        )

    def interactions(self, top: int | None) -> tuple[Interaction, ...]:
        d = len(self.names)
        found = [self.interaction(i, j) for j in range(d) for i in range(j)]
        return tuple(sorted(found, key=lambda pair: -pair.strength)[:top])

    def contributions(self, node: np.ndarray, share: np.ndarray) -> Named:
        """Of rows where `Layout.locate` found them."""
        low, high = self._table[node], self._table[node + 1]
        E = low + share[:, :, None] * (high - low)
        a, b = np.triu_indices(len(self.names), 1)
        pairs = [
            (E[:, i, 1:] * E[:, j, 1:]).sum(axis=1) for i, j in zip(a, b, strict=True)
        ]
        base = np.full(len(E), self.centre.sum())
        names = [f"{self.names[i]}:{self.names[j]}" for i, j in zip(a, b, strict=True)]
        return Named(
            ("base", *self.names, *names),
            np.column_stack([base, E[:, :, 0] - self.centre, *pairs]),
        )
