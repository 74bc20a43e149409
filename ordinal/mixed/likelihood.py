"""The marginal likelihood of cumulative link mixed models, with its exact gradient.

The linear predictor of row i is that of (1) in `ordinal.linear` less (M u)_i, where
row i of M is z_i'Lambda in the columns of its level of each factor, and u ~ N(0, I):

    L = int exp(h(u)) du,   h(u) = sum_i w_i l_i(u) - |u|^2 / 2 - const

The Laplace approximation is, at the mode u^ of h, with W = -w d2l/deta2 and
A = I + M'WM,

    log L = h(u^) - 1/2 log det A                                                    (1)

Adaptive Gauss-Hermite quadrature has the nodes u^ + sqrt(2) R z, with R R' = A^-1, at
each level of a single factor, or of the outer one of two nested factors (`hermite`).
Gradients are those of the computed sums, so that nodes move with u^ and R. For both
approximations

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

The factor with the most levels is eliminated level by level (`elimination`). Where this
leaves a large dense matrix, Newton's method takes steps by the factor of a point nearby
as long as they shorten quickly; one at the mode has the exact log det A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import Link
from .._watch.cancellation import check_cancelled
from .elimination import Blocks, EffectFactor, Elimination, RandomTerm
from .hermite import correction, quadrature
from .panels import PanelRule, levels_of_one_rank
from .rows import IntervalRows, Layout, RowsOf

_INNER = 100  # most Newton steps to a mode
_CLOSE = 1e-9  # length of a step, in deviations of u, whose successor is rounding
# The same for a step by the factor of a point nearby, after which an error remains.
_CLOSE_BY_OLD = 1e-11
_SLOW = 0.2  # ratio of steps by an old factor from which a new one is made
_HALVINGS = 30
_NONE = np.empty((4, 0))


class EffectSums(NamedTuple):
    """Sums over the rows at given effects: of w l, w l' z and -w l'' z z'.

    Attributes
    ----------
    value : (G,) array
        w l by level of the first term.
    first, rest : (G, q), (m,) arrays
        w l' z of the first term, and of all levels of the other terms.
    D : (G, q, q) array
        -w l'' z z' of each level of the first term.
    W : (n,) array
        -w l'' of the rows, of which the sums of the other terms are made if needed.
    """

    value: np.ndarray
    first: np.ndarray
    rest: np.ndarray
    D: np.ndarray
    W: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """Mode of the random effects at given parameters, and the curvature there.

    Attributes
    ----------
    u : list of (G, q) arrays, one per term
    sums : EffectSums
    curvature : Blocks
        Blocks of Z'WZ.
    factor : EffectFactor
    value : (G,) or (1,) array
        h(u^): by level of a single factor, or of several factors in one number.
    """

    u: list[np.ndarray]
    sums: EffectSums
    curvature: Blocks
    factor: EffectFactor
    value: np.ndarray


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
        Nodes per dimension; 1 is Laplace, which crossed factors have at any number.
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

    Attributes
    ----------
    places : list of (q, q) int arrays
        Number of the parameter that each entry of Lambda is, by term; -1 for none.
    order : (n,) int array
        Rows of the design, sorted by the levels of the first term.
    group, Z : (n,), (n, q + R) arrays
        Levels of the first term, and columns of all terms, of the sorted rows.
    structure : Elimination
    rows : IntervalRows or RatioRows
        The sorted rows, and the kernel of their terms.
    by_row : (2, n) array
        Numbers of the sorted rows that the last call of the kernel returned.
    share : (G,) array
        Weight of each level of the first term, 0 for a level with panels.
    last : list of (G, q) arrays, or None
        The last mode, from which the next search for one begins.
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
        self.is_single, first = len(terms) == 1, terms[0]
        self.group_weight, self.rows_of = group_weight, rows_of
        one = np.ones(first.n_levels)
        self.share = one if group_weight is None else group_weight
        self.by_panels = by_panels
        self.places, p = [], design.n_parameters
        for term in terms:
            places = np.full((term.q, term.q), -1)
            end = p + int(term.free.sum())
            places[term.free], p = np.arange(p, end), end
            self.places.append(places)
        self.order = order = np.argsort(first.group, kind="stable")
        self.structure = e = Elimination(terms, order, n_threads)
        if not self.is_single and e.outer is None:
            self.n_quadrature = 1
        self.Z = np.ascontiguousarray(np.hstack([t.Z for t in terms])[order])
        self.group = np.ascontiguousarray(first.group[order])
        levels = np.searchsorted(self.group, np.arange(first.n_levels + 1))
        layout = Layout(
            order, self.group, levels, self.Z, e.at, e.cell, e.m, e.width
        )  # fmt: skip
        self.rows = rows_of(design, link, layout, n_threads)
        self.by_row = np.empty((2, len(order)))
        self.last: list[np.ndarray] | None = None
        self.factored: EffectFactor | None = None  # near that of the next mode
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

    def lambdas(self, x: np.ndarray) -> list[np.ndarray]:
        """Return Lambda of each term, (q, q), at parameters x."""
        return [np.where(at >= 0, x[at], 0.0) for at in self.places]

    # Rows, and sums over them

    def effects(self, L: list[np.ndarray], u: list[np.ndarray]) -> np.ndarray:
        """Return b = Lambda u of all levels in one vector."""
        return np.concatenate(
            [(v @ own.T).ravel() for own, v in zip(L, u, strict=True)]
        )

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
        G, q = self.terms[0].n_levels, self.terms[0].q
        value, first, D = np.zeros(G), np.zeros((G, q)), np.zeros((G, q, q))
        self.rows.terms(ends, b, least, share, direct, value, first, D, self.by_row)
        slope, W = self.by_row
        return EffectSums(value, first, self.structure.by_rest(self.Z, slope), D, W)

    def factor(
        self, L: list[np.ndarray], sums: EffectSums
    ) -> tuple[Blocks, EffectFactor]:
        """Return Z'WZ and the factor of A, for the last sums that were computed."""
        curvature = Blocks(sums.D, *self.structure.cells(self.Z, sums.W))
        own, beside, rest = self.structure.with_lambda(L, curvature)
        A = Blocks(
            np.eye(self.terms[0].q) + own, beside, np.eye(rest.shape[1]) + rest
        )  # fmt: skip
        return curvature, EffectFactor(self.structure, A)

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
        r = self.structure.by_lambda(L, rest) - np.concatenate(
            [np.zeros(0), *(v.ravel() for v in u[1:])]
        )
        v, own = factor.solve(first @ L[0] - u[0], r)
        return [v, *self.by_term(own)]

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
            self.factored = None if self.is_single else found.factor
        return None if found is None else (ends, found)

    def _newton(
        self,
        ends: np.ndarray,
        L: list[np.ndarray],
        u: list[np.ndarray],
        sums: EffectSums,
    ) -> Mode | None:
        """Return the mode by Newton's method from u, whose sums are given, or None."""
        factor, near, before = self.factored, False, math.inf
        is_exact = False
        for _ in range(_INNER):
            check_cancelled()
            if near or factor is None:
                is_exact = True
                try:
                    curvature, factor = self.factor(L, sums)
                except np.linalg.LinAlgError:
                    if near:
                        return None
                    # With -l'' >= 0 the matrix A is positive definite.
                    damped = self.sums(ends, self.effects(L, u), 0.0)
                    curvature, factor = self.factor(L, damped)
                if near:
                    return Mode(u, sums, curvature, factor, self._h(sums, u))
            step = self._solved(L, factor, sums.first, sums.rest, u)
            u, sums = self._shortened(ends, L, u, step, sums)
            length = max(float(np.abs(s).max(initial=0.0)) for s in step)
            near = length < (_CLOSE if is_exact else _CLOSE_BY_OLD)
            # The factor of several terms takes longer than several steps by an old one.
            if self.is_single or not length <= _SLOW * before:
                factor = None
            is_exact, before = False, length
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

    def value(self, x: np.ndarray) -> float:
        """Return -log L without panels, in about half the time of the gradient.

        It is inf if a row has probability 0.
        """
        with np.errstate(all="ignore"):
            found = self.mode(x)
            if found is None:
                return math.inf
            ends, mode = found
            more = 0.0
            if self.n_quadrature > 1:
                more = correction(self, ends, self.lambdas(x), mode)
        return -self._laplace(mode) - more

    def _laplace(self, mode: Mode) -> float:
        """Return the log likelihood at a mode by Laplace's method, (1)."""
        value = float((self.share[: mode.value.size] * mode.value).sum())
        log_det = float((self.share * mode.factor.log_det).sum())
        return value - 0.5 * (log_det + mode.factor.rest_log_det)

    def part_gradients(
        self, x: np.ndarray, step: np.ndarray, part: np.ndarray, n_parts: int
    ) -> np.ndarray:
        """Return the change of the gradient from x - step to x + step, by parts of the
        levels of a single term, (n_parts, p).

        `part`, (G,), is the number of each level's part, or -1 for levels of none. A
        row has infinity or nan where the likelihood is 0.
        """
        ends = []
        for there in (x + step, x - step):
            with np.errstate(all="ignore"):
                found = self.mode(there)
                if found is None:
                    return np.full((n_parts, x.size), np.nan)
                _, direct, by_levels = self._derivatives(there, *found)
            ends.append((direct, by_levels[0][:, self.terms[0].free]))
        direct, by_level = (a - b for a, b in zip(*ends, strict=True))
        used = part >= 0
        # Levels of no part have not moved; theirs are rounding errors.
        direct, of_row = direct * used[self.group], np.maximum(part, 0)[self.group]
        by_parameters = self.rows.by_parameters(direct, of_row, n_parts)
        by_theta = [np.bincount(part[used], v[used], n_parts) for v in by_level.T]
        return -np.vstack([by_parameters, *(v[None] for v in by_theta)]).T

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
        share, value = self.share, self._laplace(mode)
        direct, b = (
            np.zeros((self.rows.n_direct, self.order.size)),
            self.effects(L, mode.u),
        )
        A, e = factor.inverse(), [np.zeros_like(u) for u in mode.u]
        P = A._replace(own=share[:, None, None] * A.own)
        if self.n_quadrature == 1 or not share.any():
            sums = self.sums(ends, b, share=share, direct=direct)
            theta = self.by_effects(share[:, None] * sums.first, sums.rest, mode.u)
        else:
            more, grown, e, theta = quadrature(self, ends, L, mode, direct)
            value += more
            P = Blocks(*(a + b for a, b in zip(P, grown, strict=True)))
            self.sums(ends, b)  # the terms at the mode, which `moves` takes
        right = np.zeros_like(mode.u[0])
        back = [own.T for own in L]
        self.rows.bends(
            ends, b, *self._of_kernel(self.structure.with_lambda(back, P)), right,
            self.by_row,
        )  # fmt: skip
        rest = self.structure.by_rest(self.Z, self.by_row[0])
        v = self._solved(L, factor, right, rest, [-2 * own for own in e])
        parts = zip(
            theta,
            self.structure.diagonal_of_product(mode.curvature, L, P),
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
        by_eta, by_columns = (self.structure.by_rest(self.Z, r) for r in self.by_row)
        through_eta = self.by_effects(first, by_eta, mode.u)
        of_columns = self.by_effects(second, by_columns, v)
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
        b = self.effects(L, mode.u)
        self.sums(ends, b)
        none = Blocks(*(np.zeros_like(a) for a in mode.curvature))
        self.rows.bends(
            ends, b, *self._of_kernel(none), np.zeros_like(mode.u[0]), self.by_row
        )
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

    def _of_kernel(self, blocks: Blocks) -> Blocks:
        """Return blocks in the shapes that `bends` of the rows takes."""
        rest = blocks.rest.reshape(self.structure.m, self.structure.width)
        return blocks._replace(rest=rest)

    def by_effects(
        self, first: np.ndarray, rest: np.ndarray, u: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the sums of d_i z_i u' by level, (G, q, q) per term.

        `first` and `rest` are the sums of d_i z_i, in the parts of `EffectSums`.
        """
        sums = [first, *self.by_term(rest)]
        return [d[:, :, None] * v[:, None, :] for d, v in zip(sums, u, strict=True)]

    def by_term(self, rest: np.ndarray) -> list[np.ndarray]:
        """Split (m,) by level of all terms but the first, (G, q) each."""
        parts = np.split(rest, self.structure.starts[1:-1])
        return [
            part.reshape(t.n_levels, t.q)
            for part, t in zip(parts, self.terms[1:], strict=False)
        ]
