"""Decomposition of a piecewise linear score into main effects and interactions.

With e_j = (u_j, v_j) the value of feature j's curve at x, (F) of `ordinal.xofm` is

    U = sum_j u_j + sum_{i<j} <v_i, v_j>,

but the pairs of this sum contain main effects: the mean of <v_i, v_j> over x_j is not
0. With the means c_j and m_j of u_j and v_j over the training rows, and m the sum of
the m_j, the same U is

    U = B + sum_j g_j + sum_{i<j} h_ij                                               (E)

    B    = sum_j c_j + 1/2 (|m|^2 - sum_j |m_j|^2)
    g_j  = u_j - c_j + <v_j - m_j, m - m_j>
    h_ij = <v_i - m_i, v_j - m_j>.

Every g_j has mean 0, and h_ij has mean 0 over either feature, whatever the value of the
other. (E) is the functional analysis of variance of U over the product of the marginal
distributions of the features, where its terms are uncorrelated. If the features are
independent, the variance of U is therefore the sum of the variances of the terms.

G. Hooker, "Generalized functional ANOVA diagnostics for high-dimensional functions of
dependent variables", Journal of Computational and Graphical Statistics 16:709-732,
2007; B. Lengerich, S. Tan, C.-H. Chang, G. Hooker, R. Caruana, "Purifying interaction
effects with the functional ANOVA", AISTATS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from .._input.immutable import read_only
from .._model.explanation import Named
from .._rows.sums import Parts
from .layout import Layout
from .objective import LocatedRows

_BINS = 32  # number of bins of the range of a numeric feature
_ROUNDING = 1e-6  # rounding error of sums of shares


class ScoreFunction(NamedTuple):
    """Main effect of one feature: g of (E), whose mean over the training rows is 0.

    Attributes
    ----------
    name : str
    at : (g,) array
        Breakpoints in units of the feature, between which the effect is linear; or the
        categories.
    score : (g,) array
        Effect at each entry of `at`, in units of U, in which `tau` is the margin.
    missing : float
        Effect of a missing value.
    share : array
        Weighted shares of the training rows: in bins of equal width from the first to
        the last entry of `at`, or of each category. The rest to 1 is the share of
        missing values.
    """

    name: str
    at: np.ndarray
    score: np.ndarray
    missing: float
    share: np.ndarray


class Interaction(NamedTuple):
    """Interaction of two features: h of (E), their joint effect without main effects.

    Attributes
    ----------
    names : (str, str)
    at : (array, array)
        Breakpoints or categories of both.
    values : array, one row per value of the first, one column per value of the second
        Interaction in units of U; it is bilinear between breakpoints.
    missing : (array, array)
        Interaction for a missing value of the first feature at each value of the
        second, and for a missing value of the second at each value of the first.
    both_missing : float
    strength : float
        Standard deviation over the product of the marginal distributions, as in
        `importance`.
    """

    names: tuple[str, str]
    at: tuple[np.ndarray, np.ndarray]
    values: np.ndarray
    missing: tuple[np.ndarray, np.ndarray]
    both_missing: float
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Weighted marginal distributions of the training rows, by feature.

    Attributes
    ----------
    mass : (N,) array
        Shares of the rows at the nodes; a row between two nodes is divided between
        them. The shares of a feature sum to 1.
    between : (N,) array
        Weighted mean of s (1 - s), over the rows that lie a share s of the way from a
        node to the next; other rows count as 0.
    histogram : tuple of (d,) arrays
        Shares of the rows in bins of equal width over the range of each numeric
        feature; empty for a categorical one.
    """

    mass: np.ndarray
    between: np.ndarray
    histogram: tuple[np.ndarray, ...]

    @classmethod
    def from_sums(cls, sums: Parts, total: float) -> Marginals:
        """Make the marginals from sums over all rows, with their total weight."""
        mass, _, between, *histogram = sums
        own = read_only(mass[:-1] / total), read_only(between[:-1] / total)
        return cls(*own, tuple(map(read_only, histogram)))

    def check(self, layout: Layout) -> None:
        """Raise ValueError unless they are possible for rows with this layout."""
        if self.mass.size != layout.node[-1]:
            raise ValueError("node_mass must have one entry per node")
        with np.errstate(over="ignore"):  # an infinite sum is refused
            total = np.add.reduceat(self.mass, layout.node[:-1])
            bars = [shares.sum() for shares in self.histogram]
        if np.abs(total - 1).max() > _ROUNDING:
            raise ValueError("node_mass must sum to 1 for each feature")
        if (self.between > self.mass).any():
            raise ValueError("node_between must be at most node_mass")
        missing = self.mass[layout.node[1:] - 1]
        for j, shares in enumerate(self.histogram):
            bins = (_BINS if layout.knots[j].size > 1 else 1) if layout.kind[j] else 0
            off = abs(bars[j] + missing[j] - 1) > _ROUNDING
            if shares.size != bins or (bins and off):
                raise ValueError("histogram must hold shares of features of numbers")


def sums_of(
    layout: Layout, rows: LocatedRows, X: np.ndarray, share: np.ndarray
) -> Parts:
    """Return the sums of some rows for `Marginals`, whose arrays they are, and the mass
    of their ranks.

    Parameters
    ----------
    layout : Layout
    rows : LocatedRows
    X, share : (n, d), (n,) arrays
        The values of these rows, and the shares of their weights.
    """
    histogram = [
        _histogram(x, share, knots) if kind else np.empty(0)
        for x, knots, kind in zip(X.T, layout.knots, layout.kind, strict=True)
    ]
    sums = rows.mass(layout), rows.mass_of_ranks(layout), rows.between(layout)
    return *sums, *histogram


def _histogram(x: np.ndarray, share: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return the shares of the rows in bins from the first to the last knot, (bins,).

    Rows with a missing value are in no bin.
    """
    known = ~np.isnan(x)
    x, share = x[known], share[known]
    if knots.size < 2:
        return np.array([share.sum()])
    # With tiny knots numpy 1.26 reports overflows that are not in the result.
    with np.errstate(over="ignore"):
        place = (np.clip(x, knots[0], knots[-1]) - knots[0]) / (knots[-1] - knots[0])
    number = np.minimum((place * _BINS).astype(np.intp), _BINS - 1)
    return np.bincount(number, share, _BINS)


class Explained:
    """The terms of (E) at the nodes of a fitted score, with the names of its features.

    Parameters
    ----------
    layout : Layout
    names : tuple of (d,) str
    at : tuple of (d,) arrays
        Breakpoints or categories.
    W : (P, m) array
        Main effects and factors of the pieces, as `packed` makes it.
    n_factors : int
    marginals : Marginals
    """

    def __init__(
        self,
        layout: Layout,
        names: tuple[str, ...],
        at: tuple[np.ndarray, ...],
        W: np.ndarray,
        n_factors: int,
        marginals: Marginals,
    ):
        self.names, self.at, self._marginals = names, at, marginals
        table = layout.table(W)[:, : 1 + n_factors]
        mean = layout.means(table, np.append(marginals.mass, 0.0))
        of_others = mean[:, 1:].sum(axis=0) - mean[:, 1:]
        # B of (E), which is (F) at the means
        self.base = float(mean[:, 0].sum() + 0.5 * (mean[:, 1:] * of_others).sum())
        feature = np.repeat(np.arange(len(names)), np.diff(layout.node))
        table[:-1] -= mean[feature]
        table[:-1, 0] += (table[:-1, 1:] * of_others[feature]).sum(axis=1)
        self._table = table  # g_j in column 0, v_j - m_j in the others
        self._nodes = [slice(a, b) for a, b in pairwise(layout.node)]
        # The last row of a curve is that of missing values.
        self._curves = [table[nodes] for nodes in self._nodes]

    def score_functions(self) -> tuple[ScoreFunction, ...]:
        """Return the main effects g_j."""
        return tuple(
            ScoreFunction(name, at, E[:-1, 0], float(E[-1, 0]), self._share(j))
            for j, (name, at, E) in enumerate(
                zip(self.names, self.at, self._curves, strict=True)
            )
        )

    def importance(self) -> Named:
        """Return standard deviations of the terms of (E)."""
        scale, second = self._moments(slice(0, 1))
        of_curves = scale * np.sqrt(np.maximum(second[:, 0, 0], 0))
        of_pairs = self._strengths()[np.triu_indices(len(self.names), 1)]
        return Named((*self.names, *self._pair_names()), np.append(of_curves, of_pairs))

    def interaction(self, i: int, j: int) -> Interaction:
        """Return the interaction h_ij of two features."""
        return self._interaction(i, j, self._strengths()[i, j])

    def interactions(self, top: int | None) -> tuple[Interaction, ...]:
        """Return the strongest h_ij, or all of them, the strongest first."""
        strengths = self._strengths()
        first, second = np.triu_indices(len(self.names), 1)
        order = np.argsort(-strengths[first, second], kind="stable")[:top]
        return tuple(
            self._interaction(i, j, strengths[i, j])
            for i, j in zip(first[order], second[order], strict=True)
        )

    def contributions(self, node: np.ndarray, share: np.ndarray) -> Named:
        """Return the terms of (E) for rows, given by positions of `Layout.locate`."""
        low, high = self._table[node], self._table[node + 1]
        E = low + share[:, :, None] * (high - low)
        pairs = [
            (E[:, i, 1:] * E[:, j, 1:]).sum(axis=1)
            for i, j in zip(*np.triu_indices(len(self.names), 1), strict=True)
        ]
        base = np.full(len(E), self.base)
        return Named(
            ("base", *self.names, *self._pair_names()),
            np.column_stack([base, E[:, :, 0], *pairs]),
        )

    def _share(self, j: int) -> np.ndarray:
        """Return the shares of the rows in the bins or categories of feature j."""
        found = self._marginals.histogram[j]
        return found if found.size else self._marginals.mass[self._nodes[j]][:-1]

    def _strengths(self) -> np.ndarray:
        """Return the standard deviations of all h_ij, (d, d)."""
        # The mean of <v_i, v_j>^2 over the product of the marginals is the inner
        # product of the two matrices of second moments.
        scale, second = self._moments(slice(1, None))
        flat = second.reshape(len(second), -1)
        together = np.sqrt(np.maximum(flat @ flat.T, 0))
        return np.asarray(np.outer(scale, scale) * together)

    def _moments(self, columns: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the second moments of some columns of each feature's curve.

        Returns
        -------
        scale : (d,) array
            Largest absolute value of each curve, whose square may overflow.
        second : (d, k, k) array
            Second moments of the curves, divided by `scale`.
        """
        # On a line from a to b the value at the share s of the way has the square
        # (1 - s) a^2 + s b^2 - s (1 - s) (b - a)^2.
        scale, second = [], []
        for nodes, curve in zip(self._nodes, self._curves, strict=True):
            scale.append(np.abs(curve[:, columns]).max(initial=0.0) or 1.0)
            E = curve[:, columns] / scale[-1]
            D = np.diff(E, axis=0)
            mass = self._marginals.mass[nodes, None]
            between = self._marginals.between[nodes, None][:-1]
            second.append(E.T @ (mass * E) - D.T @ (between * D))
        return np.array(scale), np.array(second)

    def _pair_names(self) -> list[str]:
        """Return the names of all pairs, in the order of `np.triu_indices`."""
        return [f"{a}:{b}" for a, b in combinations(self.names, 2)]

    def _interaction(self, i: int, j: int, strength: float) -> Interaction:
        """Return h_ij, with its standard deviation."""
        h = self._curves[i][:, 1:] @ self._curves[j][:, 1:].T
        return Interaction(
            (self.names[i], self.names[j]),
            (self.at[i], self.at[j]),
            h[:-1, :-1],
            (h[-1, :-1], h[:-1, -1]),
            float(h[-1, -1]),
            float(strength),
        )
