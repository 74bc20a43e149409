"""Mean probabilities and marginal effects with random effects, and their errors.

A row of known groups has the conditional modes b^ as effects, which add z'b^ to its
offset. In new groups, z'b is normal with variance sd^2 = |Lambda'z|^2, summed over the
new factors, and a probability is an integral over it, computed by quadrature with N
nodes t_k: a row becomes N rows, with sd t_k added to the offset (`GroupRows`). `Means`
thus serves all kinds of groups. Its further parameters, on which offsets depend, are
the lower triangle of Lambda of every factor, and the effects b of the levels.

Given the training rows, b is normal about b^ with the covariance C = Lambda A^-1
Lambda', and b^ depends on the estimates psi of covariance V. With g and c the
derivatives by psi and by b, the variance of a probability is

    (g + J'c)' V (g + J'c) + c' C c,   J = db^/dpsi                                  (1)

(K. Kristensen, A. Nielsen, C. W. Berg, H. Skaug, B. M. Bell, "TMB: automatic
differentiation and Laplace approximation", Journal of Statistical Software 70(5), 2016,
for the errors of random effects). The first part alone is the delta method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..inference.margins import (
    Change,
    Derivative,
    DesignRows,
    DiscreteChange,
    Feature,
    MatrixRows,
    OffsetGradient,
    TableRows,
)
from .random_terms import RandomEffects


@dataclass(frozen=True, slots=True, eq=False)
class GroupTerm:
    """Effects of one factor in some rows.

    Attributes
    ----------
    effects : RandomEffects
    Z : (n, q) array
        Columns that the effects multiply.
    level : (n,) int64
        Number of the level of each row, or -1 for a new one.
    """

    effects: RandomEffects
    Z: np.ndarray
    level: np.ndarray

    @property
    def n_known(self) -> int:
        """Number of further parameters: all effects b, or 0 if all levels are new."""
        return self.effects.modes.size if (self.level >= 0).any() else 0


def spread(
    terms: Sequence[GroupTerm], Z: list[np.ndarray], rows: slice
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return the distribution of z'b in rows, given the columns Z of each term.

    These are z'b^ of the known groups, (n,), the standard deviation of z'b of the new
    ones, (n,), and Lambda'z for each term, (n, q), which is 0 for known groups.
    """
    n = len(Z[0])
    known, deviation, loadings = np.zeros(n), np.zeros(n), []
    for term, z in zip(terms, Z, strict=True):
        level, e = term.level[rows], term.effects
        is_known = level >= 0
        known += np.where(is_known, np.einsum("ij,ij->i", z, e.modes[level]), 0.0)
        loadings.append(np.where(is_known[:, None], 0.0, z @ e.factor))
        for loading in loadings[-1].T:  # no square, which could overflow
            np.hypot(deviation, loading, out=deviation)
    return known, deviation, loadings


@dataclass(frozen=True, slots=True, eq=False)
class GroupRows:
    """Rows of known and new groups, repeated N times for the nodes of a quadrature.

    Attributes
    ----------
    base : MatrixRows or TableRows
    terms : tuple of GroupTerm
    nodes, weights : (N,) arrays
        Nodes of a standard normal variable, and their weights.
    """

    base: MatrixRows | TableRows
    terms: tuple[GroupTerm, ...]
    nodes: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.base) * self.nodes.size

    @property
    def features(self) -> list[Feature]:
        return self.base.features

    @property
    def copies(self) -> np.ndarray:
        return self.weights

    def shares(self, rows: slice) -> np.ndarray:
        every, copies, node = self._copies(rows)
        return np.asarray(self.base.shares(every)[copies] * self.weights[node])

    def at(self, rows: slice) -> DesignRows:
        every, copies, node = self._copies(rows)
        Z = [term.Z[every] for term in self.terms]
        return self._shifted(self.base.at(every), Z, every, copies, node)

    def changes(self, rows: slice) -> Iterator[Change]:
        every, copies, node = self._copies(rows)
        base = self.base
        names = base.frame.shown_names if isinstance(base, TableRows) else base.names
        slopes = [term.effects.slopes for term in self.terms]
        for feature, change in zip(base.features, base.changes(every), strict=True):
            name, Z = names[feature.column], [term.Z[every] for term in self.terms]
            own = [np.array([slope.column == name for slope in of]) for of in slopes]
            if isinstance(change, DiscreteChange):
                ends = []
                for value, at in zip(self._values(feature), change, strict=True):
                    there = [z.copy() for z in Z]
                    for of, columns, z in zip(slopes, own, there, strict=True):
                        for j in np.flatnonzero(columns).tolist():
                            z[:, j] = of[j].at(value)
                    ends.append(self._shifted(at, there, every, copies, node))
                yield DiscreteChange(*ends)
                continue
            by = [
                np.where(c, np.ones(z.shape), 0.0) for c, z in zip(own, Z, strict=True)
            ]
            offset, moved = self._slope(Z, by, every, copies, node)
            beside = change.by.take(copies)
            yield Derivative(
                self._shifted(change.here, Z, every, copies, node),
                DesignRows(beside.Z, beside.offset + offset, moved),
            )

    def _copies(self, rows: slice) -> tuple[slice, np.ndarray, np.ndarray]:
        """Return the rows of `base` that some rows repeat, the place of each among
        these, and the number of its node.
        """
        # Row i is repeated as rows i N to i N + N - 1.
        row, node = np.divmod(np.arange(rows.start, rows.stop), self.nodes.size)
        every = slice(int(row[0]), int(row[-1]) + 1)
        return every, row - every.start, node

    def _values(self, feature: Feature) -> Sequence[Any]:
        """Return the two values of a column in a step: numbers or labels."""
        values = feature.values or ()
        coding = self.base.coding if isinstance(self.base, TableRows) else None
        labels = None if coding is None else coding.categories[feature.column]
        if labels is None:
            return values
        known = labels.tolist()
        return [known[int(v)] for v in values]

    def _shifted(
        self, at: DesignRows, Z: list[np.ndarray], every: slice, copies: np.ndarray,
        node: np.ndarray,
    ) -> DesignRows:  # fmt: skip
        """Add the effects of groups to the offsets of rows."""
        known, sd, loadings = spread(self.terms, Z, every)
        # d sd / d Lambda_ac = z_a (Lambda'z)_c / sd
        by = [
            np.einsum("ia,ic->iac", z, w / _positive(sd)[:, None])
            for z, w in zip(Z, loadings, strict=True)
        ]
        t = self.nodes[node]
        offset = (at.offset + known)[copies] + t * sd[copies]
        return DesignRows(
            at.Z[copies], offset, self._offset_gradient(Z, by, every, copies, t)
        )

    def _slope(
        self, Z: list[np.ndarray], by: list[np.ndarray], every: slice,
        copies: np.ndarray, node: np.ndarray,
    ) -> tuple[np.ndarray, OffsetGradient]:  # fmt: skip
        """Return the derivative of offsets when the columns Z change in direction `by`,
        and its own derivatives by the further parameters.
        """
        _, sd, loadings = spread(self.terms, Z, every)
        known, _, along = spread(self.terms, by, every)
        sd = _positive(sd)
        both = zip(loadings, along, strict=True)
        S = sum((a * c).sum(axis=1) for a, c in both) / sd  # derivative of sd
        parts = []
        for z, dz, w, dw in zip(Z, by, loadings, along, strict=True):
            bend = np.einsum("ia,ic->iac", z, dw) + np.einsum("ia,ic->iac", dz, w)
            bend -= np.einsum("i,ia,ic->iac", S / sd, z, w)
            parts.append(bend / sd[:, None, None])
        t = self.nodes[node]
        offset = known[copies] + t * np.asarray(S)[copies]
        return offset, self._offset_gradient(by, parts, every, copies, t)

    def _offset_gradient(
        self, by_effects: list[np.ndarray], by_factor: list[np.ndarray], every: slice,
        copies: np.ndarray, t: np.ndarray,
    ) -> OffsetGradient:  # fmt: skip
        """Return the derivatives of offsets by the further parameters.

        `by_factor` are those of sd by Lambda, which the nodes t multiply, and
        `by_effects` those by the effects of each row's level.
        """
        # `joint_covariance` has the lower triangles by rows.
        triangles = [part[:, *np.tril_indices(part.shape[1])] for part in by_factor]
        first = np.hstack(triangles)[copies] * t[:, None]
        K = first.shape[1]
        at, by, start = [np.broadcast_to(np.arange(K), first.shape)], [first], K
        for term, part in zip(self.terms, by_effects, strict=True):
            level, q = term.level[every][copies], part.shape[1]
            if term.n_known:
                at.append(start + np.maximum(level, 0)[:, None] * q + np.arange(q))
                by.append(np.where(level[:, None] >= 0, part[copies], 0.0))
                start += term.n_known
        return OffsetGradient(np.hstack(at), np.hstack(by))


def _positive(sd: np.ndarray) -> np.ndarray:
    """Return sd as a divisor, infinite instead of 0.

    The derivative of sd is undefined at 0; by symmetry in Lambda it counts as 0.
    """
    return np.where(sd > 0, sd, np.inf)
