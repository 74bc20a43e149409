"""The marginal likelihood of cumulative link mixed models, with its exact gradient.

The linear predictor of row i is that of (1) in `ordinal.linear` less (M u)_i, where
row i of M is z_i'Lambda in the columns of its level of each factor, and u ~ N(0, I):

    L = int exp(h(u)) du,   h(u) = sum_i w_i l_i(u) - |u|^2 / 2 - const

The Laplace approximation is, at the mode u^ of h, with W = -w d2l/deta2 and
A = I + M'WM,

    log L = h(u^) - 1/2 log det A                                                    (1)

Adaptive Gauss-Hermite quadrature, for a single factor, has the nodes u^ + sqrt(2) R z
at each level, with R R' = A^-1. Gradients are those of the computed sums, so that nodes
move with u^ and R. For both approximations

    dlog L = sum_m p_m dh(u_m) - 1/2 <P, dA> + e'du^,   P = A^-1 + 2 R T R'

where p are the shares of the nodes, e = sum_m p_m dh/du(u_m), and T is the symmetric
half of the lower triangle of sqrt(2) R' sum_m p_m (dh/du)(u_m) z_m'. Laplace is the
case of one node, with e = T = 0. Let k = M A^-1 (M'w H l''' + 2 e) and
H = diag(M P M'). The derivative of log L by a parameter is then a sum over the rows of
the derivatives of their ends a, b and of eta by it, times

    D_q = w (sum_m p_m dl/dq(u_m) + k/2 dl'/dq + H/2 dl''/dq)

where q is an end, eta or log s, l is log P of a row, and l', l'', l''' are its
derivatives by eta. Levels whose rows have one rank, and with cauchit all levels, can be
integrated by panels instead (`panels`).

The factor with the most levels is eliminated level by level, and the Schur complement
of the others is dense (D. Bates et al., "Fitting linear mixed-effects models using
lme4", Journal of Statistical Software 67(1), 2015; MixedModels.jl for the elimination).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import Link
from .._watch.cancellation import check_cancelled
from .panels import PanelRule, levels_of_one_rank
from .rows import IntervalRows, Layout, RowsOf

_INNER = 100  # most Newton steps to a mode
_CLOSE = 1e-9  # length of a step, in deviations of u, whose successor is rounding
_HALVINGS = 30
_NONE = np.empty((4, 0))


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


@dataclass(frozen=True, slots=True, eq=False)
class EffectSums:
    """Sums over the rows at given effects: of w l, w l' z and -w l'' z z'.

    Attributes
    ----------
    value : (G,) array
        w l by level of the first term.
    first, rest : (G, q), (m,) arrays
        w l' z of the first term, and of all levels of the other terms.
    D, B, C : (G, q, q), (G, q, m), (m, m) arrays
        -w l'' z z': of each level of the first term; of these with all levels of the
        other terms; of the latter among themselves.
    """

    value: np.ndarray
    first: np.ndarray
    rest: np.ndarray
    D: np.ndarray
    B: np.ndarray
    C: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """Mode of the random effects at given parameters, and the curvature there.

    Attributes
    ----------
    u : list of (G, q) arrays, one per term
    sums : EffectSums
    factor : EffectFactor
    value : (G,) or (1,) array
        h(u^): by level of a single factor, or of several factors in one number.
    """

    u: list[np.ndarray]
    sums: EffectSums
    factor: EffectFactor
    value: np.ndarray


class EffectFactor:
    """Factorisation of A = [D B; B' C] by its Schur complement S = C - B' D^-1 B.

    D is block diagonal, with a block per level of the first term.

    Attributes
    ----------
    D : (G, q, q) array
        Blocks of D^-1.
    F : (G, q, m) array
        D^-1 B.
    S : (m, m) array
        S^-1.
    log_det, rest_log_det : (G,) array, float
        log det of the blocks of D, and of S.

    Raises
    ------
    numpy.linalg.LinAlgError
        A is not positive definite.
    """

    def __init__(self, D: np.ndarray, B: np.ndarray, C: np.ndarray):
        L = np.linalg.cholesky(D)
        self.D = np.linalg.inv(D)
        self.log_det = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        self.F = self.D @ B  # (G, q, m)
        S = C - np.tensordot(B, self.F, ((0, 1), (0, 1)))
        L = np.linalg.cholesky(S)
        self.rest_log_det = 2 * float(np.log(np.diagonal(L)).sum())
        self.S = np.linalg.inv(S) if len(S) else S
        self._beside: np.ndarray | None = None

    @property
    def beside(self) -> np.ndarray:
        """Blocks of A^-1 of the first term with the others, (G, q, m)."""
        # Cached by hand: properties that functools caches share a lock in Python 3.11,
        # for which a forked child may wait for ever.
        if self._beside is None:
            self._beside = np.asarray(-self.F @ self.S)
        return self._beside

    def solve(self, first: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return A^-1 v in two parts, (G, q) and (m,), for v in the same parts."""
        own = self.S @ (rest - np.tensordot(self.F, first, ((0, 1), (0, 1))))
        return (self.D @ first[:, :, None])[:, :, 0] - self.F @ own, own

    def own(self) -> np.ndarray:
        """Return the blocks of A^-1 of the levels of the first term, (G, q, q)."""
        return np.asarray(self.D - np.einsum("gim,gjm->gij", self.beside, self.F))


class MixedLikelihood:
    """-log L of a training set, by (parameters of the design, theta).

    theta holds the free entries of Lambda of all terms. Rows are sorted by the levels
    of the first term.

    Parameters
    ----------
    design : Design
        Dense and in memory.
    link : Link
    terms : list of RandomTerm
        The term with the most levels comes first.
    n_quadrature : int
        Nodes per dimension; 1 is Laplace.
    n_threads : int
    group_weight : (G,) array or None
        Weights of the log likelihoods of the levels of a single term.
    rows_of : callable, default IntervalRows
        Makes the rows of a family of models, which the default takes for a cumulative
        one, from the design, the link, their `Layout` and the number of threads.
    by_panels : bool, default False
        Whether the levels whose rows all have one rank, and with cauchit all levels,
        are integrated by `PanelRule`, whatever `n_quadrature`. It needs a single term
        with one effect.
    """

    def __init__(
        self,
        design: Design,
        link: Link,
        terms: list[RandomTerm],
        n_quadrature: int = 1,
        n_threads: int = 1,
        group_weight: np.ndarray | None = None,
        rows_of: RowsOf = IntervalRows,
        by_panels: bool = False,
    ):
        self.design, self.link, self.terms = design, link, terms
        self.n_quadrature, self.n_threads = n_quadrature, n_threads
        self.is_single, (first, *others) = len(terms) == 1, terms
        self.group_weight, self.rows_of = group_weight, rows_of
        one = np.ones(first.n_levels)
        self.share = one if group_weight is None else group_weight
        self.by_panels = by_panels
        self.order = order = np.argsort(first.group, kind="stable")
        sizes = [term.n_levels * term.q for term in others]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.m = int(self.starts[-1])
        parts = zip(others, self.starts[:-1], strict=True)
        at = [s + t.group[order, None] * t.q + np.arange(t.q) for t, s in parts]
        none = np.empty((len(order), 0), dtype=np.int64)
        self.at = np.ascontiguousarray(np.hstack([none, *at]), dtype=np.int64)
        self.Z = np.ascontiguousarray(np.hstack([t.Z for t in terms])[order])
        self.group = np.ascontiguousarray(first.group[order])
        levels = np.searchsorted(self.group, np.arange(first.n_levels + 1))
        layout = Layout(order, self.group, levels, self.Z, self.at, self.m)
        self.rows = rows_of(design, link, layout, n_threads)
        self.by_row = np.empty((2, len(order)))
        self.nodes = _nodes(n_quadrature, first.q) if self.is_single else None
        self.last: list[np.ndarray] | None = None
        self.panels: PanelRule | None = None
        if by_panels:
            of_level = levels_of_one_rank(
                design.rank[order], design.weight[order], self.group, first.n_levels
            )
            # Their h is not concave: nodes by its curvature, which can be 0, miss it.
            of_level |= link == "cauchit"
            if of_level.any():
                self.panels = PanelRule(
                    design, link, layout, of_level, rows_of, n_threads
                )
                self.share = np.where(of_level, 0.0, self.share)

    def replaced(
        self,
        *,
        design: Design | None = None,
        terms: list[RandomTerm] | None = None,
        n_quadrature: int | None = None,
        by_panels: bool | None = None,
    ) -> MixedLikelihood:
        """Return the likelihood of the same rows with other columns, terms or rule."""
        return MixedLikelihood(
            self.design if design is None else design, self.link,
            self.terms if terms is None else terms,
            self.n_quadrature if n_quadrature is None else n_quadrature,
            self.n_threads, self.group_weight, self.rows_of,
            self.by_panels if by_panels is None else by_panels,
        )  # fmt: skip

    @property
    def n_theta(self) -> int:
        return sum(int(term.free.sum()) for term in self.terms)

    def lambdas(self, x: np.ndarray) -> list[np.ndarray]:
        """Return Lambda of each term, (q, q), at parameters x."""
        theta, out = x[self.design.n_parameters :], []
        for term in self.terms:
            own = np.zeros((term.q, term.q))
            k = int(term.free.sum())
            own[term.free], theta = theta[:k], theta[k:]
            out.append(own)
        return out

    # Rows, and sums over them

    def effects(self, L: list[np.ndarray], u: list[np.ndarray]) -> np.ndarray:
        """Return b = Lambda u of all levels in one vector."""
        return np.concatenate(
            [(v @ own.T).ravel() for own, v in zip(L, u, strict=True)]
        )

    def by_rest(self, v: np.ndarray) -> np.ndarray:
        """Return the sums of v_i z_i by level of all terms but the first, (m,)."""
        out, q = np.zeros(self.m), self.terms[0].q
        for j in range(self.at.shape[1]):
            out += np.bincount(self.at[:, j], v * self.Z[:, q + j], self.m)
        return out

    def sums(
        self,
        ends: np.ndarray,
        b: np.ndarray,
        least: float = -math.inf,
        share: np.ndarray = _NONE[0],
        direct: np.ndarray = _NONE,
    ) -> EffectSums:
        """Return the sums over the rows at effects b.

        -l'' is replaced by `least` where it is less. The derivatives of w l by the
        ends, times the share of the row's level, are added to `direct`, (4, n).
        """
        G, q, m = self.terms[0].n_levels, self.terms[0].q, self.m
        value, first, D = np.zeros(G), np.zeros((G, q)), np.zeros((G, q, q))
        self.rows.terms(ends, b, least, share, direct, value, first, D, self.by_row)
        slope, W = self.by_row
        B, C = np.zeros((G, q, m)), np.zeros((m, m))
        for k in range(self.at.shape[1]):
            column, part = self.at[:, k], W * self.Z[:, q + k]
            for i in range(q):
                flat = (self.group * q + i) * m + column
                new = np.bincount(flat, part * self.Z[:, i], B.size)
                B += new.reshape(B.shape)
            for j in range(self.at.shape[1]):
                flat = self.at[:, j] * m + column
                C += np.bincount(flat, part * self.Z[:, q + j], m * m).reshape(m, m)
        return EffectSums(value, first, self.by_rest(slope), D, B, C)

    def by_lambda(self, L: list[np.ndarray], A: np.ndarray) -> np.ndarray:
        """Return A times Lambda of all terms but the first, (..., m)."""
        out = np.empty_like(A)
        for own, t, (start, stop) in self._others(L):
            part = A[..., start:stop].reshape(*A.shape[:-1], t.n_levels, t.q) @ own
            out[..., start:stop] = part.reshape(*A.shape[:-1], stop - start)
        return out

    def _others(
        self, L: list[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, RandomTerm, tuple[int, int]]]:
        """Yield Lambda, the term and its range in (m,) of all terms but the first."""
        return zip(
            L[1:], self.terms[1:], itertools.pairwise(self.starts.tolist()), strict=True
        )

    def factor(self, L: list[np.ndarray], sums: EffectSums) -> EffectFactor:
        """Factor A = I + Lambda'Z'WZ Lambda."""
        C = self.by_lambda(L, self.by_lambda(L, sums.C).T)
        return EffectFactor(
            np.eye(self.terms[0].q) + L[0].T @ sums.D @ L[0],
            L[0].T @ self.by_lambda(L, sums.B),
            np.eye(self.m) + C,
        )

    def _h(self, sums: EffectSums, u: list[np.ndarray]) -> np.ndarray:
        """Return h(u) by level of a single factor, or of several factors in total."""
        if self.is_single:
            return np.asarray(sums.value - 0.5 * (u[0] ** 2).sum(axis=1))
        total = float(sums.value.sum()) - 0.5 * sum(float((v * v).sum()) for v in u)
        return np.array([total])

    def _solved(
        self, L: list[np.ndarray], factor: EffectFactor, first: np.ndarray,
        rest: np.ndarray, u: list[np.ndarray],
    ) -> list[np.ndarray]:  # fmt: skip
        """Return A^-1 (Lambda'(first, rest) - u), by term."""
        r = self.by_lambda(L, rest) - np.concatenate(
            [np.zeros(0), *(v.ravel() for v in u[1:])]
        )
        v, own = factor.solve(first @ L[0] - u[0], r)
        return [v] + [
            own[start:stop].reshape(t.n_levels, t.q)
            for _, t, (start, stop) in self._others(L)
        ]

    def mode(self, x: np.ndarray) -> tuple[np.ndarray, Mode] | None:
        """Return the ends of the rows, and the mode by Newton's method.

        Return None if there is no mode, because a row has probability 0.
        """
        ends, L = self.rows.ends(x), self.lambdas(x)
        if ends is None:
            return None
        starts = [self.last] if self.last is not None else []
        starts.append([np.zeros((t.n_levels, t.q)) for t in self.terms])
        for u in starts:
            sums = self.sums(ends, self.effects(L, u))
            if np.isfinite(self._h(sums, u)).all():
                break
        else:
            return None
        found = self._newton(ends, L, u, sums)
        if found is not None:
            self.last = found.u
        return None if found is None else (ends, found)

    def _newton(
        self,
        ends: np.ndarray,
        L: list[np.ndarray],
        u: list[np.ndarray],
        sums: EffectSums,
    ) -> Mode | None:
        """Return the mode by Newton's method from u, whose sums are given, or None."""
        near = False
        for _ in range(_INNER):
            check_cancelled()
            try:
                factor = self.factor(L, sums)
            except np.linalg.LinAlgError:
                if near:
                    return None
                # With -l'' >= 0 the matrix A is positive definite.
                damped = self.sums(ends, self.effects(L, u), 0.0)
                factor = self.factor(L, damped)
            if near:
                return Mode(u, sums, factor, self._h(sums, u))
            step = self._solved(L, factor, sums.first, sums.rest, u)
            u, sums = self._shortened(ends, L, u, step, sums)
            near = max(float(np.abs(s).max(initial=0.0)) for s in step) < _CLOSE
        return None

    def _shortened(
        self, ends: np.ndarray, L: list[np.ndarray], u: list[np.ndarray],
        step: list[np.ndarray], sums: EffectSums,
    ) -> tuple[list[np.ndarray], EffectSums]:  # fmt: skip
        """Return the effects after a step, and the sums there.

        The step is halved until it does not lower h: for each level of a single factor
        by itself.
        """
        h = self._h(sums, u)
        size = np.ones((h.size, 1))
        for _ in range(_HALVINGS):
            new = [v + size * s for v, s in zip(u, step, strict=True)]
            there = self.sums(ends, self.effects(L, new))
            lower = ~(self._h(there, new) >= h - 1e-10 * (1 + np.abs(h)))
            if not lower.any():
                return new, there
            size = np.where(lower[:, None], size / 2, size)
        return u, self.sums(ends, self.effects(L, u))

    # Value and gradient

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return -log L and its gradient; inf if a row has probability 0."""
        with np.errstate(all="ignore"):
            found = self.mode(x)
            if found is None:
                return math.inf, np.full(x.size, np.nan)
            value, direct, by_levels = self._derivatives(x, *found)
        by_theta = [
            own.sum(axis=0)[t.free]
            for own, t in zip(by_levels, self.terms, strict=True)
        ]
        by_parameters = self.rows.by_parameters(direct)[:, 0]
        return -value, -np.concatenate([by_parameters, *by_theta])

    def scores(self, x: np.ndarray, cluster: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return the gradient of log L of each cluster, (n_clusters, p).

        Clusters consist of whole levels of all terms, so that log L is a sum over them.

        Raises
        ------
        ValueError
            The effects have no mode at x.
        """
        found = self._existing_mode(x)
        with np.errstate(all="ignore"):
            _, direct, by_levels = self._derivatives(x, *found)
        of_row = cluster[self.order]
        parts = [self.rows.by_parameters(direct, of_row, n_clusters)]
        for term, own in zip(self.terms, by_levels, strict=True):
            of_level = np.zeros(term.n_levels, dtype=np.int64)
            of_level[term.group] = cluster
            for by_entry in own[:, term.free].T:
                parts.append(np.bincount(of_level, by_entry, n_clusters)[None])
        return np.vstack(parts).T

    def _derivatives(
        self, x: np.ndarray, ends: np.ndarray, mode: Mode
    ) -> tuple[float, np.ndarray, list[np.ndarray]]:
        """Return log L and its derivatives.

        These are D_q of the rows, (4, n), and for each term the contributions of its
        levels to the gradient by Lambda, (G, q, q).
        """
        factor, L = mode.factor, self.lambdas(x)
        share = self.share
        value = float((share[: mode.value.size] * mode.value).sum())
        value -= 0.5 * float((share * factor.log_det).sum()) + 0.5 * factor.rest_log_det
        direct, b = (
            np.zeros((self.rows.n_direct, self.order.size)),
            self.effects(L, mode.u),
        )
        P, e = share[:, None, None] * factor.own(), np.zeros_like(mode.u[0])
        if self.nodes is None or not share.any():
            sums = self.sums(ends, b, share=share, direct=direct)
            theta = self._by_lambda(share[:, None] * sums.first, sums.rest, mode.u)
        else:
            more, grown, e, by_u = self._quadrature(ends, L, mode, direct)
            value, P, theta = value + more, P + grown, [by_u]
            self.sums(ends, b)  # the terms at the mode, which `moves` takes
        right = np.zeros_like(e)
        V, beside, rest = self._covariances(L, factor, P)
        self.rows.bends(ends, b, V, beside, rest, right, self.by_row)
        u = [-2 * e, *(np.zeros_like(v) for v in mode.u[1:])]
        v = self._solved(L, factor, right, self.by_rest(self.by_row[0]), u)
        parts = zip(
            theta,
            self._by_curvature(L, mode, P),
            self._moved(ends, L, mode, v, direct),
            strict=True,
        )
        by_levels = [a - c + d for a, c, d in parts]
        if self.panels is not None:
            own = self.panels.levels
            weight = np.ones(own.size)
            if self.group_weight is not None:
                weight = self.group_weight[own]
            more, by_L = self.panels.add(
                x, float(L[0][0, 0]), mode.u[0][own, 0], weight, direct
            )
            value += more
            by_levels[0][own, 0, 0] += by_L
        return value, direct, by_levels

    def _moved(
        self, ends: np.ndarray, L: list[np.ndarray], mode: Mode, v: list[np.ndarray],
        direct: np.ndarray,
    ) -> list[np.ndarray]:  # fmt: skip
        """Add the terms of D_q with k = M v and with H to `direct`.

        Return their contributions to the gradient by Lambda, (G, q, q) per term. The
        kernel must have called `terms` and `bends` at the mode before.
        """
        first, second = np.zeros_like(mode.u[0]), np.zeros_like(mode.u[0])
        b, k = self.effects(L, mode.u), self.effects(L, v)
        self.rows.moves(ends, b, k, direct, first, second, self.by_row)
        through_eta = self._by_lambda(first, self.by_rest(self.by_row[0]), mode.u)
        of_columns = self._by_lambda(second, self.by_rest(self.by_row[1]), v)
        return [a + c for a, c in zip(through_eta, of_columns, strict=True)]

    def of_modes(
        self, x: np.ndarray, sums: Sequence[list[np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return variances and gradients of linear combinations c'b of the effects.

        Parameters
        ----------
        x : (p,) array
        sums : (k,) sequence of the coefficients c
            Each c is a list of (G, q) arrays, one per term.

        Returns
        -------
        variance : (k,) array
            c' Lambda A^-1 Lambda' c, the variance of c'b about its mode at x.
        gradient : (k, p) array
            Derivatives of c'b^ by x, for the delta method. With v = A^-1 Lambda'c they
            are those of v'Lambda'Z'w l' at fixed u, plus those of c'Lambda u^ by
            Lambda.

        Raises
        ------
        ValueError
            The effects have no mode at x.
        """
        ends, mode = self._existing_mode(x)
        L = self.lambdas(x)
        (G, q), m, b = mode.u[0].shape, self.m, self.effects(L, mode.u)
        self.sums(ends, b)
        none = np.zeros((G, q, q)), np.zeros((G, q, m)), np.zeros((m, m))
        self.rows.bends(ends, b, *none, np.zeros((G, q)), self.by_row)
        variance, gradient = np.empty(len(sums)), np.empty((len(sums), x.size))
        zero = [np.zeros_like(u) for u in mode.u]
        for i, c in enumerate(sums):
            rest = np.concatenate([np.zeros(0), *(own.ravel() for own in c[1:])])
            v = self._solved(L, mode.factor, c[0], rest, zero)
            parts = zip(c, L, v, strict=True)
            variance[i] = sum(float(((own @ S) * w).sum()) for own, S, w in parts)
            direct = np.zeros((self.rows.n_direct, self.order.size))
            moved = self._moved(ends, L, mode, [2 * w for w in v], direct)
            by_theta = [
                (own.T @ u + part.sum(axis=0))[t.free]
                for own, u, part, t in zip(c, mode.u, moved, self.terms, strict=True)
            ]
            by_parameters = self.rows.by_parameters(direct)[:, 0]
            gradient[i] = np.concatenate([by_parameters, *by_theta])
        return variance, gradient

    def _existing_mode(self, x: np.ndarray) -> tuple[np.ndarray, Mode]:
        """Return `mode(x)`; raise ValueError if there is none."""
        with np.errstate(all="ignore"):
            found = self.mode(x)
        if found is None:
            raise ValueError("the random effects have no mode at these parameters")
        return found

    def _covariances(
        self, L: list[np.ndarray], factor: EffectFactor, P: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the blocks of Lambda P Lambda' of the kernel's H.

        These are the blocks of each level of the first term, (G, q, q), of these with
        the other terms, (G, q, m), and of the others, (m, m). Beyond the first term P
        is A^-1.
        """
        back = [own.T for own in L]
        rest = self.by_lambda(back, self.by_lambda(back, factor.S).T.copy())
        beside = L[0] @ self.by_lambda(back, factor.beside)
        return np.ascontiguousarray(L[0] @ P @ L[0].T), beside, rest

    def _by_lambda(
        self, first: np.ndarray, rest: np.ndarray, u: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the sums of d_i z_i u' by level, (G, q, q) per term.

        `first` and `rest` are the sums of d_i z_i, in the parts of `EffectSums`.
        """
        ends = itertools.pairwise(self.starts.tolist())
        sums = [first, *(rest[i:j].reshape(v.shape) for v, (i, j) in zip(
            u[1:], ends, strict=True))]  # fmt: skip
        return [d[:, :, None] * v[:, None, :] for d, v in zip(sums, u, strict=True)]

    def _by_curvature(
        self, L: list[np.ndarray], mode: Mode, P: np.ndarray
    ) -> list[np.ndarray]:
        """Return the diagonal blocks of Z'WZ Lambda P, (G, q, q) per term."""
        sums, factor = mode.sums, mode.factor
        first = sums.D @ (L[0] @ P)
        first += self.by_lambda(L, sums.B) @ factor.beside.transpose(0, 2, 1)
        beside, CS = L[0] @ factor.beside, self.by_lambda(L, sums.C) @ factor.S
        out = [first]
        for _, t, (start, stop) in self._others(L):
            shape = *beside.shape[:2], t.n_levels, t.q
            B, F = (A[..., start:stop].reshape(shape) for A in (sums.B, beside))
            own = CS[start:stop, start:stop].reshape(t.n_levels, t.q, t.n_levels, t.q)
            out.append(np.einsum("gila,gilb->lab", B, F) + np.einsum("lalb->lab", own))
        return out

    def level_blocks(self, factor: EffectFactor) -> list[np.ndarray]:
        """Return the diagonal blocks of A^-1 by level, (G, q, q) per term."""
        out = [factor.own()]
        for t, start in zip(self.terms[1:], self.starts[:-1], strict=True):
            at = start + np.arange(t.n_levels * t.q).reshape(t.n_levels, t.q)
            out.append(factor.S[at[:, :, None], at[:, None, :]])
        return out

    def _quadrature(
        self, ends: np.ndarray, L: list[np.ndarray], mode: Mode, direct: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Return the correction of Laplace by quadrature, and parts of its gradient.

        These are 2 R T R', (G, q, q), e, (G, q), and the gradient by Lambda at fixed
        nodes, (G, q, q). The derivatives by the ends are added to `direct`.
        """
        assert self.nodes is not None
        z, log_weight = self.nodes
        (u,) = mode.u
        R = np.linalg.cholesky(mode.factor.D)
        logs = np.empty((len(z), len(u)))
        for node in range(len(z)):
            check_cancelled()
            there = u + math.sqrt(2) * (R @ z[node])
            sums = self.sums(ends, self.effects(L, [there]))
            logs[node] = log_weight[node] + self._h(sums, [there]) - mode.value
        most = logs.max(axis=0)
        shares = np.exp(logs - most)
        total = shares.sum(axis=0)
        shares *= self.share / total
        value = float((self.share * (most + np.log(total))).sum())
        e, E, by_u = np.zeros_like(u), np.zeros_like(R), np.zeros_like(R)
        for node, share in enumerate(shares):
            check_cancelled()
            there = u + math.sqrt(2) * (R @ z[node])
            b = self.effects(L, [there])
            first = share[:, None] * self.sums(ends, b, -math.inf, share, direct).first
            slope = first @ L[0] - share[:, None] * there
            e += slope
            E += math.sqrt(2) * slope[:, :, None] * z[node]
            by_u += first[:, :, None] * there[:, None, :]
        G = np.tril(R.transpose(0, 2, 1) @ E)
        T = 0.5 * (G + G.transpose(0, 2, 1) - G * np.eye(len(L[0])))
        return value, 2 * R @ T @ R.transpose(0, 2, 1), e, by_u


def _nodes(count: int, q: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the nodes z of a product rule, (count^q, q), and log weights plus |z|^2.

    Return None for one node, which is the Laplace approximation.
    """
    if count == 1:
        return None
    z, weight = np.polynomial.hermite.hermgauss(count)
    grid = np.array(list(itertools.product(z, repeat=q)))
    logs = np.array(
        [sum(part) for part in itertools.product(np.log(weight) + z * z, repeat=q)]
    )
    return grid, logs - 0.5 * q * math.log(math.pi)
