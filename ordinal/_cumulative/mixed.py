"""The marginal likelihood of cumulative link mixed models, with its exact gradient.

The linear predictor of row i is that of (1) in `design` less (M u)_i, where row i of M
is z_i'Lambda in the columns of its level of each factor, and u ~ N(0, I):

    L = int exp(h(u)) du,   h(u) = sum_i w_i l_i(u) - |u|^2 / 2 - const

Laplace: at the mode u^ of h, with W = -w d2l/deta2 and A = I + M'WM,

    log L = h(u^) - 1/2 log det A                                                    (1)

Adaptive Gauss-Hermite quadrature, for one factor, puts nodes u^ + sqrt(2) R z, with
R R' = A^-1, to every level. Gradients are of the very sums that are computed: nodes
move with u^ and R. For both

    dlog L = sum_m p_m dh(u_m) - 1/2 <P, dA> + e'du^,   P = A^-1 + 2 R T R'

where p are the shares of the nodes, e = sum_m p_m dh/du(u_m), and T is the symmetric
half of the lower triangle of sqrt(2) R' sum_m p_m (dh/du)(u_m) z_m'; one node is
Laplace, e = T = 0. With k = M A^-1 (M'w H l''' + 2 e), H = diag(M P M'), all
derivatives by what moves the ends of a row are sums over the rows of

    D_q = w (sum_m p_m dl/dq(u_m) + k/2 dl'/dq + H/2 dl''/dq)

The largest factor is eliminated level by level, and the others' Schur complement is
dense (D. Bates et al., "Fitting linear mixed-effects models using lme4", Journal of
Statistical Software 67(1), 2015; MixedModels.jl for the elimination).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from .._solvers import _cumulative, _third_derivatives
from .._watch.monitor import check_cancelled
from .design import Design
from .likelihood import Link

_INNER = 100  # Newton steps to a mode
_CLOSE = 1e-9  # of a step, in deviations of u: the next one is below rounding
_HALVINGS = 30


@dataclass(frozen=True, slots=True, eq=False)
class RandomTerm:
    """Effects of the levels of one factor.

    Attributes
    ----------
    group : (n,) int64
        Level of each row.
    n_levels : int
    Z : (n, q) array
        Columns that the effects multiply.
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
class Rows:
    """Ends of the rows at u = 0: those of `_cumulative` are (end - M u) / s."""

    upper: np.ndarray
    lower: np.ndarray
    width: np.ndarray
    unit: np.ndarray  # 1 / s


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """Mode of the random effects at some parameters, and what curves about it.

    Attributes
    ----------
    u : list of (G, q) arrays, one per term
    M : list of (n, q) arrays
    log_det : (units,) array
        Of A, by level of a single factor, or in one number.
    value : (units,) array
        h(u^).
    """

    u: list[np.ndarray]
    M: list[np.ndarray]
    terms: np.ndarray
    factor: Factor
    value: np.ndarray


class Factor:
    """A, factored: the first term level by level, the others by a dense complement.

    Raises numpy.linalg.LinAlgError if A is not positive definite.
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

    def solve(self, first: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the parts of A^-1 times a vector."""
        own = self.S @ (rest - np.tensordot(self.F, first, ((0, 1), (0, 1))))
        return (self.D @ first[:, :, None])[:, :, 0] - self.F @ own, own


class MixedLikelihood:
    """-log L of one training set, by (parameters of the design, theta).

    Parameters
    ----------
    design : Design
        Dense and in memory.
    link : Link
    terms : list of RandomTerm
        The largest comes first.
    n_quadrature : int
        Nodes per dimension; 1 is Laplace.
    n_threads : int
    """

    def __init__(
        self,
        design: Design,
        link: Link,
        terms: list[RandomTerm],
        n_quadrature: int = 1,
        n_threads: int = 1,
    ):
        self.design, self.link, self.terms = design, link, terms
        self.n_quadrature = n_quadrature
        self.link_number = _cumulative.LINKS.index(link)
        self.n_threads = n_threads
        every = slice(None)
        self.X, self.N = (
            design.columns(every, columns)
            for columns in (design.location, design.nominal)
        )
        self.T = design.scale_columns(every)
        self.offset = 0.0 if design.offset is None else design.offset
        self.is_single = len(terms) == 1
        n, first = design.n_samples, terms[0]
        self.unit = first.group if self.is_single else np.zeros(n, np.int64)
        self.n_units = first.n_levels if self.is_single else 1
        sizes = [term.n_levels * term.q for term in terms[1:]]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.nodes = _nodes(n_quadrature, first.q) if self.is_single else None
        self.last: list[np.ndarray] | None = None

    @property
    def n_theta(self) -> int:
        return sum(int(term.free.sum()) for term in self.terms)

    def lambdas(self, x: np.ndarray) -> list[np.ndarray]:
        """Return Lambda of each term."""
        theta, out = x[self.design.n_parameters :], []
        for term in self.terms:
            own = np.zeros((term.q, term.q))
            k = int(term.free.sum())
            own[term.free], theta = theta[:k], theta[k:]
            out.append(own)
        return out

    # Ends and terms of rows

    def rows(self, x: np.ndarray) -> Rows:
        """Return the ends of all rows without random effects."""
        D = self.design
        alpha, nu, beta, zeta = D.split(x[: D.n_parameters])
        cuts = np.broadcast_to(D.J @ alpha, (D.n_samples, D.T))
        if D.nominal.size:
            cuts = cuts - self.N @ (D.J @ nu).T
        rank = D.rank.astype(np.int64)
        counted = D.weight > 0
        at = np.arange(D.n_samples)
        f = self.X @ beta + self.offset
        up = cuts[at, np.minimum(rank, D.T - 1)]
        low = cuts[at, np.maximum(rank - 1, 0)]
        inner = counted & (rank > 0) & (rank < D.T)
        width = np.where(inner, up - low, np.inf)
        unit = np.exp(-(self.T @ zeta)) if D.scale.size else np.ones(D.n_samples)
        upper = np.where(counted & (rank < D.T), up - f, np.inf)
        lower = np.where(counted & (rank > 0), low - f, -np.inf)
        return Rows(upper, lower, width, unit)

    def ends(
        self, rows: Rows, r: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return both ends of the rows and their distance at random parts r."""
        a, b = (rows.upper - r) * rows.unit, (rows.lower - r) * rows.unit
        return a, b, rows.width * rows.unit

    def row_terms(self, rows: Rows, r: np.ndarray) -> np.ndarray:
        """Log P, g, upper, c1, c2, h12 of the rows at random parts r, (6, n)."""
        out = np.empty((6, r.size))
        _cumulative.row_terms(
            self.link_number, *self.ends(rows, r), out, self.n_threads
        )
        return out

    # Sums over rows by level

    def effect(self, M: list[np.ndarray], u: list[np.ndarray]) -> np.ndarray:
        """Return M u, (n,)."""
        parts = zip(self.terms, M, u, strict=True)
        return sum(
            (np.einsum("ij,ij->i", m, v[t.group]) for t, m, v in parts),
            np.zeros(self.design.n_samples),
        )

    def by_level(self, M: list[np.ndarray], v: np.ndarray) -> list[np.ndarray]:
        """Return M'v, (G, q) per term."""
        return [
            np.column_stack(
                [np.bincount(t.group, m[:, j] * v, t.n_levels) for j in range(t.q)]
            )
            for t, m in zip(self.terms, M, strict=True)
        ]

    def factor(self, M: list[np.ndarray], W: np.ndarray) -> Factor:
        """Factor A = I + M'WM."""
        first, G, q, m = (
            self.terms[0], self.terms[0].n_levels, self.terms[0].q, self.starts[-1],
        )  # fmt: skip
        D = np.empty((G, q, q))
        for i, j in itertools.product(range(q), repeat=2):
            D[:, i, j] = np.bincount(first.group, W * M[0][:, i] * M[0][:, j], G)
        D += np.eye(q)
        B, C = np.zeros((G, q, m)), np.eye(m)
        others = [
            (start + t.group * t.q + j, M[k][:, j])
            for k, (t, start) in enumerate(
                zip(self.terms[1:], self.starts[:-1], strict=True), 1
            )
            for j in range(t.q)
        ]
        for column, part in others:
            for i in range(q):
                flat = (first.group * q + i) * m + column
                B += np.bincount(flat, W * M[0][:, i] * part, B.size).reshape(B.shape)
            for row, beside in others:
                C += np.bincount(row * m + column, W * part * beside, m * m).reshape(
                    m, m
                )
        return Factor(D, B, C)

    def _h(self, terms: np.ndarray, u: list[np.ndarray]) -> np.ndarray:
        """Return h by unit."""
        w = self.design.weight
        value = np.where(w > 0, w * terms[0], 0.0)
        h = np.bincount(self.unit, value, self.n_units)
        if self.is_single:
            return np.asarray(h - 0.5 * (u[0] ** 2).sum(axis=1))
        return np.asarray(h - 0.5 * sum(float((v * v).sum()) for v in u))

    def mode(self, x: np.ndarray) -> tuple[Rows, Mode] | None:
        """Find the mode by Newton's method; None where a row has no probability."""
        rows = self.rows(x)
        if not (rows.width > 0).all():
            return None
        M = [t.Z @ own for t, own in zip(self.terms, self.lambdas(x), strict=True)]
        starts = [self.last] if self.last is not None else []
        starts.append([np.zeros((t.n_levels, t.q)) for t in self.terms])
        for u in starts:
            terms = self.row_terms(rows, self.effect(M, u))
            h = self._h(terms, u)
            if np.isfinite(h).all():
                break
        else:
            return None
        found = self._newton(rows, M, u, terms, h)
        if found is not None:
            self.last = found.u
        return None if found is None else (rows, found)

    def _newton(
        self, rows: Rows, M: list[np.ndarray], u: list[np.ndarray],
        terms: np.ndarray, h: np.ndarray,
    ) -> Mode | None:  # fmt: skip
        w = self.design.weight
        near = False
        for _ in range(_INNER):
            check_cancelled()
            W = -w * (terms[3] + terms[4]) * rows.unit**2
            try:
                factor = self.factor(M, W)
            except np.linalg.LinAlgError:
                if near:
                    return None
                factor = self.factor(M, np.maximum(W, 0.0))
            if near:
                return Mode(u, M, terms, factor, h)
            slope = [
                s - v
                for s, v in zip(
                    self.by_level(M, -w * terms[1] * rows.unit), u, strict=True
                )
            ]
            rest = np.concatenate([np.zeros(0), *(s.ravel() for s in slope[1:])])
            first, own = factor.solve(slope[0], rest)
            step = [first] + [
                own[start : start + v.size].reshape(v.shape)
                for start, v in zip(self.starts[:-1], u[1:], strict=True)
            ]
            u, terms, h = self._shortened(rows, M, u, step, terms, h)
            near = max(float(np.abs(s).max(initial=0.0)) for s in step) < _CLOSE
        return None

    def _shortened(
        self, rows: Rows, M: list[np.ndarray], u: list[np.ndarray],
        step: list[np.ndarray], terms: np.ndarray, h: np.ndarray,
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:  # fmt: skip
        """Go along the step, in every unit by the first of 1, 1/2, 1/4, ... of it that
        does not lower h.
        """
        size = np.ones(self.n_units)
        for _ in range(_HALVINGS):
            new = [
                v + (size[:, None] if self.is_single else size[0]) * s
                for v, s in zip(u, step, strict=True)
            ]
            there = self.row_terms(rows, self.effect(M, new))
            value = self._h(there, new)
            lower = ~(value >= h - 1e-10 * (1 + np.abs(h)))
            if not lower.any():
                return new, there, value
            size = np.where(lower, size / 2, size)
        return u, terms, h

    # Value and gradient

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return -log L and its gradient; inf where a row has no probability."""
        with np.errstate(all="ignore"):
            found = self.mode(x)
            if found is None:
                return math.inf, np.full(x.size, np.nan)
            return self._at(x, *found)

    def _at(self, x: np.ndarray, rows: Rows, mode: Mode) -> tuple[float, np.ndarray]:
        value = float((mode.value).sum() - 0.5 * mode.factor.log_det.sum())
        value -= 0.5 * mode.factor.rest_log_det
        r = self.effect(mode.M, mode.u)
        D = self.design
        inverse = self._inverse(mode.factor)  # (n, Q, Q) of each row's columns
        if self.nodes is None:
            direct = self._by_ends(rows, r, mode.terms, np.ones(r.size))
            more, e = None, None
            by_u = [self._outer(t, direct[0], v) for t, v in zip(
                self.terms, mode.u, strict=True)]  # fmt: skip
        else:
            sums, direct, more, e, by_u = self._quadrature(rows, mode)
            value += sums
        t = np.empty((2, r.size))
        _third_derivatives.row_thirds(
            self.link_number, *self.ends(rows, r), t, self.n_threads
        )
        first, second = self._derivatives(rows, r, mode.terms, t)
        W = -D.weight * second[-1]
        m = np.hstack(mode.M)
        P = inverse if more is None else inverse + more[self.unit]
        mP = np.einsum("ij,ijk->ik", m, P)
        H = np.einsum("ij,ij->i", mP, m)
        right = self.by_level(mode.M, D.weight * H * second[0])
        if e is not None:
            right[0] = right[0] + 2 * e
        rest = np.concatenate([np.zeros(0), *(v.ravel() for v in right[1:])])
        v0, own = mode.factor.solve(right[0], rest)
        v = [v0] + [
            own[start : start + s.size].reshape(s.shape)
            for start, s in zip(self.starts[:-1], mode.u[1:], strict=True)
        ]
        k = self.effect(mode.M, v)
        through = [
            D.weight * (k / 2 * f + H / 2 * s)
            for f, s in zip(first[:4], second[:4], strict=True)
        ]
        total = [a + b for a, b in zip(direct, through, strict=True)]
        fixed = self._by_parameters(*total)
        slope = D.weight * first[-1]
        theta, at = [], 0
        for term, u, moved, base in zip(self.terms, mode.u, v, by_u, strict=True):
            own_P = mP[:, at : at + term.q]
            by = base + self._outer(term, through[0], u)
            by += term.Z.T @ (-W[:, None] * own_P)
            by += self._outer(term, slope / 2, moved)
            theta.append(by[term.free])
            at += term.q
        return -value, -np.concatenate([fixed, *theta])

    def _outer(self, term: RandomTerm, d: np.ndarray, u: np.ndarray) -> np.ndarray:
        """sum_i d_i z_i u_g', (q, q)."""
        return np.asarray(term.Z.T @ (d[:, None] * u[term.group]))

    def _by_ends(
        self, rows: Rows, r: np.ndarray, terms: np.ndarray, share: np.ndarray
    ) -> list[np.ndarray]:
        """W dl by eta, by both thresholds and by log s, times a share."""
        w = self.design.weight * share
        a, b, _ = self.ends(rows, r)
        g, up = w * terms[1], w * terms[2]
        low = g - up
        by_spread = -(_finite(a) * up + _finite(b) * low)
        return [-g * rows.unit, up * rows.unit, low * rows.unit, by_spread]

    def _derivatives(
        self, rows: Rows, r: np.ndarray, terms: np.ndarray, t: np.ndarray
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Differentiate l' and l'' by the same four; the last entries are both."""
        a, b, _ = self.ends(rows, r)
        a, b, s = _finite(a), _finite(b), rows.unit
        c1, c2 = terms[3], terms[4]
        by_eta, bend = -terms[1] * s, (c1 + c2) * s**2
        first = [bend, -c1 * s**2, -c2 * s**2, -by_eta + (a * c1 + b * c2) * s]
        second = [
            -(t[0] + t[1]) * s**3,
            t[0] * s**3,
            t[1] * s**3,
            -2 * bend - (a * t[0] + b * t[1]) * s**2,
        ]
        return [*first, by_eta], [*second, bend]

    def _by_parameters(
        self, eta: np.ndarray, up: np.ndarray, low: np.ndarray, spread: np.ndarray
    ) -> np.ndarray:
        """Return the gradient by alpha, nu*, beta and zeta."""
        D, rank = self.design, self.design.rank.astype(np.int64)
        M = 1 + D.nominal.size
        slots = np.zeros((D.T, M))
        for j in range(M):
            sign = 1.0 if j == 0 else -self.N[:, j - 1]
            slots[:, j] = np.bincount(rank, sign * up, D.T + 1)[:-1]
            slots[:, j] += np.bincount(rank, sign * low, D.T + 1)[1:]
        of_slots = D.of_slots(slots.reshape(-1, 1))[:, 0]
        return np.concatenate([of_slots, eta @ self.X, spread @ self.T])

    def _inverse(self, factor: Factor) -> np.ndarray:
        """Return the block of A^-1 of the columns of each row, (n, Q, Q)."""
        first, q = self.terms[0], self.terms[0].q
        if self.is_single:
            return np.asarray(factor.D[first.group])
        columns = np.column_stack(
            [
                start + t.group * t.q + j
                for t, start in zip(self.terms[1:], self.starts[:-1], strict=True)
                for j in range(t.q)
            ]
        )
        out = np.empty((len(columns), q + columns.shape[1], q + columns.shape[1]))
        beside = factor.F @ factor.S
        out[:, :q, :q] = self.level_blocks(factor)[0][first.group]
        for k in range(columns.shape[1]):
            out[:, :q, q + k] = -beside[first.group, :, columns[:, k]]
            out[:, q + k, :q] = out[:, :q, q + k]
            for j in range(columns.shape[1]):
                out[:, q + k, q + j] = factor.S[columns[:, k], columns[:, j]]
        return out

    def level_blocks(self, factor: Factor) -> list[np.ndarray]:
        """Return the blocks of A^-1 of the levels of each term, (G, q, q)."""
        beside = factor.F @ factor.S
        out = [factor.D + np.einsum("gim,gjm->gij", beside, factor.F)]
        for t, start in zip(self.terms[1:], self.starts[:-1], strict=True):
            at = start + np.arange(t.n_levels * t.q).reshape(t.n_levels, t.q)
            out.append(factor.S[at[:, :, None], at[:, None, :]])
        return out

    def _quadrature(
        self, rows: Rows, mode: Mode
    ) -> tuple[
        float, list[np.ndarray], np.ndarray, np.ndarray, list[np.ndarray]
    ]:  # fmt: skip
        """Return the correction of Laplace by quadrature, and parts of its gradient."""
        assert self.nodes is not None
        z, log_weight = self.nodes
        (u,), (term,) = mode.u, self.terms
        R = np.linalg.cholesky(mode.factor.D)
        D, n_nodes = self.design, len(z)
        logs = np.empty((n_nodes, self.n_units))

        def at(node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            there = u + math.sqrt(2) * (R @ z[node])
            r = self.effect(mode.M, [there])
            return there, r, self.row_terms(rows, r)

        for node in range(n_nodes):
            check_cancelled()
            there, _, terms = at(node)
            logs[node] = log_weight[node] + self._h(terms, [there]) - mode.value
        most = logs.max(axis=0)
        share = np.exp(logs - most)
        total = share.sum(axis=0)
        share /= total
        value = float((most + np.log(total)).sum())
        direct = [np.zeros(D.n_samples) for _ in range(4)]
        e, E = np.zeros_like(u), np.zeros_like(R)
        by_u = np.zeros((term.q, term.q))
        for node in range(n_nodes):
            there, r, terms = at(node)
            parts = self._by_ends(rows, r, terms, share[node][self.unit])
            for own, part in zip(direct, parts, strict=True):
                own += part
            (slope,) = self.by_level(mode.M, parts[0])
            slope = slope - share[node][:, None] * there
            e += slope
            E += math.sqrt(2) * slope[:, :, None] * z[node]
            by_u += self._outer(term, parts[0], there)
        G = np.tril(R.transpose(0, 2, 1) @ E)
        T = 0.5 * (G + G.transpose(0, 2, 1) - G * np.eye(term.q))
        more = 2 * R @ T @ R.transpose(0, 2, 1)
        return value, direct, more, e, [by_u]


def _finite(a: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(a), a, 0.0)


def _nodes(count: int, q: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Nodes of a product rule, (count^q, q), and log weights with exp(|z|^2); None for
    one node.
    """
    if count == 1:
        return None
    z, weight = np.polynomial.hermite.hermgauss(count)
    grid = np.array(list(itertools.product(z, repeat=q)))
    logs = np.array(
        [sum(part) for part in itertools.product(np.log(weight) + z * z, repeat=q)]
    )
    return grid, logs - 0.5 * q * math.log(math.pi)
