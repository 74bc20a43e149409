"""Curvature of the random effects, factored by elimination of the first factor.

A = I + Lambda'Z'WZ Lambda has the parts

    A = [D B; B' C],   S = C - B' D^-1 B,
    A^-1 = [D^-1 + F S^-1 F', -F S^-1; ., S^-1],   F = D^-1 B                        (1)

D consists of a block per level of the first factor, B of cells: a level of the first
factor together with an effect of the others that its rows have. Crossed factors have
few cells, from which S and the blocks of A^-1 follow. S itself is dense. Where the
first factor is nested in a second one, S consists of a block per level of the latter.

D. Bates et al., "Fitting linear mixed-effects models using lme4", Journal of
Statistical Software 67(1), 2015; MixedModels.jl for the elimination.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._numerics.cholesky import Cholesky
from .._solvers._level_sums import LevelCells


@dataclass(frozen=True, slots=True, eq=False)
class RandomTerm:
    """Random effects of the levels of one factor.

    Attributes
    ----------
    group : (n,) int64
        Level of each row.
    n_levels : int
        G.
    Z : (n, q) array
        Columns whose coefficients are random: q effects per level.
    free : (q, q) bool array
        Entries of the lower triangle of Lambda that are parameters.
    """

    group: np.ndarray
    n_levels: int
    Z: np.ndarray
    free: np.ndarray

    @property
    def q(self) -> int:
        return int(self.Z.shape[1])


def is_nested(terms: Sequence[RandomTerm]) -> bool:
    """Return whether there are two factors, of which the first is nested in the second.

    Each level of the first one then lies in a single level of the second one.
    """
    if len(terms) != 2:
        return False
    inner, outer = terms
    pairs = inner.group * outer.n_levels + outer.group
    return int(np.unique(pairs).size) == inner.n_levels


class Blocks(NamedTuple):
    """Blocks of a symmetric matrix of all effects, such as A or A^-1.

    Attributes
    ----------
    own : (G, q, q) array
        Of the levels of the first factor.
    beside : (cells, q) array
        Of the first factor with the others, by cell.
    rest : (b, k, k) array
        Of the m effects of the others: b = 1, k = m or, if the factor is nested, one
        block per level of the second factor.
    """

    own: np.ndarray
    beside: np.ndarray
    rest: np.ndarray


class Elimination:
    """Structure of the matrices of a model's effects.

    Parameters
    ----------
    terms : sequence of RandomTerm
        The factor that is eliminated comes first.
    order : (n,) int64
        Rows sorted by the levels of the first factor.
    n_threads : int

    Attributes
    ----------
    m, width : int
        Number of effects of all factors but the first, and per block of S.
    starts : list of int
        First effect of each of these factors; at the end m.
    at, cell : (n, R) int64
        Effect, and cell, of each of their columns in the sorted rows.
    level : (cells,) int64
        Level of the first factor of each cell.
    outer : (G,) int64 or None
        Level of the second factor that contains each level of the first one, if these
        are the only factors and the first one is nested in the second one.
    """

    def __init__(self, terms: Sequence[RandomTerm], order: np.ndarray, n_threads: int):
        first, *others = terms
        self.terms, self.n_threads = terms, n_threads
        sizes = [term.n_levels * term.q for term in others]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).tolist()
        self.m = self.width = self.starts[-1]
        parts = zip(others, self.starts[:-1], strict=True)
        at = [s + t.group[order, None] * t.q + np.arange(t.q) for t, s in parts]
        none = np.empty((order.size, 0), dtype=np.int64)
        self.at = np.ascontiguousarray(np.hstack([none, *at]), dtype=np.int64)
        G, self.outer = first.n_levels, None
        key = first.group[order, None] * max(self.m, 1) + self.at
        cells, cell = np.unique(key, return_inverse=True)
        self.cell = np.ascontiguousarray(cell.reshape(self.at.shape), dtype=np.int64)
        self.level, self.column = np.divmod(cells, max(self.m, 1))
        self.begins = np.searchsorted(self.level, np.arange(G + 1)).astype(np.int64)
        if is_nested(terms):
            self.width = others[0].q
            self.outer = self.column[self.begins[:-1]] // self.width
        if self.m:
            by_column = np.argsort(self.column, kind="stable")
            ends = np.searchsorted(self.column[by_column], np.arange(self.m + 1))
            self.kernel = LevelCells(
                first.q, self.width, self.begins, self.column,
                self.column % self.width, self.level, ends.astype(np.int64),
                by_column, n_threads,
            )  # fmt: skip
        # The effects of a level have successive cells.
        self.cells_of = [
            np.flatnonzero((self.column >= a) & (self.column < b)).reshape(-1, t.q)
            for t, a, b in zip(others, self.starts[:-1], self.starts[1:], strict=True)
        ]

    def cells(self, Z: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts B, (cells, q), and C, (b, k, k), of Z'WZ for sorted rows."""
        q, k, n = self.terms[0].q, self.width, self.level.size
        B, C = np.zeros((n, q)), np.zeros(self.m * k)
        if not self.m:
            return B, np.zeros((1, 0, 0))
        for a in range(self.at.shape[1]):
            part = W * Z[:, q + a]
            for i in range(q):
                B[:, i] += np.bincount(self.cell[:, a], part * Z[:, i], n)
            for b in range(self.at.shape[1]):
                flat = self.at[:, b] * k + self.at[:, a] % k
                C += np.bincount(flat, part * Z[:, q + b], self.m * k)
        return B, C.reshape(-1, k, k)

    def by_rest(self, Z: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the sums of v_i z_i by level of all factors but the first, (m,)."""
        out, q = np.zeros(self.m), self.terms[0].q
        for j in range(self.at.shape[1]):
            out += np.bincount(self.at[:, j], v * Z[:, q + j], self.m)
        return out

    def by_level(self, A: np.ndarray) -> np.ndarray:
        """Return the sums of (cells, ...) over the cells of each level, (G, ...)."""
        G, shape = self.terms[0].n_levels, (self.level.size, math.prod(A.shape[1:]))
        columns = A.reshape(shape).T
        sums = [np.bincount(self.level, column, G) for column in columns]
        return np.array(sums).T.reshape(G, *A.shape[1:])

    def by_lambda(self, L: Sequence[np.ndarray], A: np.ndarray) -> np.ndarray:
        """Return A times Lambda of all factors but the first, for the last axis of A,
        which holds all m effects or those of a block.
        """
        out, k = np.empty_like(A), A.shape[-1]
        for own, a, b in zip(L[1:], self.starts[:-1], self.starts[1:], strict=True):
            part = A[..., a : min(b, k)]
            if len(own) == 1:  # many times as fast as the product of matrices
                new = part * own[0, 0]
            else:
                new = (part.reshape(-1, len(own)) @ own).reshape(part.shape)
            out[..., a : min(b, k)] = new
        return out

    def cells_by_lambda(self, L: Sequence[np.ndarray], A: np.ndarray) -> np.ndarray:
        """Return A, (cells, q), times Lambda of all factors but the first."""
        out = np.empty_like(A)
        for own, cells in zip(L[1:], self.cells_of, strict=True):
            out[cells] = own.T @ A[cells]
        return out

    def with_lambda(self, L: Sequence[np.ndarray], blocks: Blocks) -> Blocks:
        """Return Lambda' M Lambda for the blocks M, with Lambda given by factor."""
        half = self.by_lambda(L, blocks.rest).transpose(0, 2, 1)
        return Blocks(
            np.ascontiguousarray(L[0].T @ blocks.own @ L[0]),
            np.ascontiguousarray(self.cells_by_lambda(L, blocks.beside @ L[0])),
            np.ascontiguousarray(self.by_lambda(L, half)),
        )

    def level_blocks(self, blocks: Blocks) -> list[np.ndarray]:
        """Return the diagonal blocks of the levels, (G, q, q) per factor."""
        out, k = [blocks.own], self.width
        for t, start in zip(self.terms[1:], self.starts[:-1], strict=True):
            at = start + np.arange(t.n_levels * t.q).reshape(t.n_levels, t.q)
            rest = blocks.rest.reshape(-1, k)
            out.append(rest[at[:, :, None], at[:, None, :] % k])
        return out

    def diagonal_of_product(
        self, M: Blocks, L: Sequence[np.ndarray], P: Blocks
    ) -> list[np.ndarray]:
        """Return the diagonal blocks of M Lambda P by level, (G, q, q) per factor.

        M and P are symmetric, and M has the zeros of A.
        """
        beside = self.cells_by_lambda(L, M.beside)[:, :, None] * P.beside[:, None]
        out = [M.own @ (L[0] @ P.own) + self.by_level(beside)]
        k, C = self.width, self.by_lambda(L, M.rest)
        parts = zip(self.terms[1:], self.starts[:-1], self.cells_of, strict=True)
        for t, start, cells in parts:
            rows, shape = slice(start, start + t.n_levels * t.q), (t.n_levels, t.q, k)
            left, right = (A.reshape(-1, k)[rows].reshape(shape) for A in (C, P.rest))
            own = left @ right.transpose(0, 2, 1)
            of_cells = M.beside[cells] @ L[0] @ P.beside[cells].transpose(0, 2, 1)
            level = (self.column[cells[:, 0]] - start) // t.q
            for i in range(t.q):
                for j in range(t.q):
                    own[:, i, j] += np.bincount(level, of_cells[:, i, j], t.n_levels)
            out.append(own)
        return out


class EffectFactor:
    """Factorisation of A by its Schur complement S, see (1).

    Attributes
    ----------
    D : (G, q, q) array
        Blocks of D^-1.
    F : (cells, q) array
        D^-1 B.
    S : (b, k, k) array
        S^-1.
    log_det, rest_log_det : (G,) array, float
        log det of the blocks of D, and of S.

    Raises
    ------
    numpy.linalg.LinAlgError
        A is not positive definite.
    """

    def __init__(self, structure: Elimination, A: Blocks):
        self.structure = structure
        L = np.linalg.cholesky(A.own)
        self.D = np.linalg.inv(A.own)
        self.log_det = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        self.F = np.ascontiguousarray(
            np.einsum("xij,xj->xi", self.D[structure.level], A.beside)
            if structure.m else A.beside
        )  # fmt: skip
        self.S, self.rest_log_det = A.rest, 0.0
        self._inverse: Blocks | None = None
        if not structure.m:
            return
        S = A.rest.copy()
        structure.kernel.subtract_products(
            self.F, A.beside, S.reshape(-1, structure.width)
        )
        if len(S) == 1:
            factor = Cholesky(S[0], structure.n_threads)
            self.rest_log_det = factor.log_det
            self.S = factor.inverse()[None]
        else:
            L = np.linalg.cholesky(S)
            diagonal = np.diagonal(L, axis1=1, axis2=2)
            self.rest_log_det = 2 * float(np.log(diagonal).sum())
            self.S = np.linalg.inv(S)

    def inverse(self) -> Blocks:
        """Return the blocks of A^-1."""
        # Cached by hand: properties that functools caches share a lock in Python 3.11,
        # for which a forked child may wait for ever.
        if self._inverse is None:
            own, beside, e = self.D, np.empty_like(self.F), self.structure
            if e.m:
                S = self.S.reshape(-1, e.width)
                e.kernel.products_by_cell(self.F, S, beside)
                more = np.einsum("xi,xj->xij", beside, self.F)
                own = own + e.by_level(more)
            self._inverse = Blocks(np.ascontiguousarray(own), -beside, self.S)
        return self._inverse

    def solve(self, first: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return A^-1 v in two parts, (G, q) and (m,), for v in the same parts."""
        e = self.structure
        own = (self.D @ first[:, :, None])[:, :, 0]
        if not e.m:
            return own, rest
        left = np.einsum("xi,xi->x", self.F, first[e.level])
        right = rest - np.bincount(e.column, left, e.m)
        out = (self.S @ right.reshape(len(self.S), -1, 1)).ravel()
        return own - e.by_level(self.F * out[e.column, None]), out
