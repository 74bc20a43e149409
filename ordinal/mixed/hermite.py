"""Adaptive Gauss-Hermite quadrature over the effects of one or two nested factors.

The nodes are u^ + sqrt(2) R z, with R the lower triangular factor of A^-1 that has the
effects u of the outer factor first. With the effects v of the inner one, the blocks of
`elimination`, R_s R_s' = S^-1 of a level s of the outer factor, and R_c R_c' = D^-1 of
a level c of the inner one,

    u = u^ + sqrt(2) R_s z_k,   v = v^ - F (u - u^) + sqrt(2) R_c z_l

Given u the levels c are independent, so K nodes per dimension take K^2 passes over the
rows, not K^(1 + levels per s). J. Pinheiro, E. Chao, "Efficient Laplacian and adaptive
Gaussian quadrature algorithms for multilevel generalized linear mixed models", Journal
of Computational and Graphical Statistics 15:58-81, 2006.

For the gradient, T of `likelihood` has the blocks of the half of G + G', with
E = sqrt(2) sum_m p_m dh/d(u, v)(m) z_m', of which the blocks of A are needed:

    G_ss = tril(R_s'(E_ss - sum_c F' E_cs))
    G_cs = R_c' E_cs,   G_cc = tril(R_c' E_cc)

One factor is the case of one outer node without effects.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from .._watch.cancellation import check_cancelled
from .elimination import Blocks

if TYPE_CHECKING:
    from .likelihood import MixedLikelihood, Mode

_ROOT2 = math.sqrt(2)


class _Nodes:
    """Nodes of both factors at given modes.

    Attributes
    ----------
    z_outer, z : (K, k), (N, q) arrays
    log_outer, log_inner : (K,), (N,) arrays
        Log weights plus |z|^2.
    Rs, R : (b, k, k), (G, q, q) arrays
    F : (G, q, k) array
    outer : (G,) int64
        Level of the outer factor; 0 without one.
    """

    def __init__(self, loss: MixedLikelihood, mode: Mode):
        factor, e = mode.factor, loss.structure
        G, q = mode.u[0].shape
        self.mode, self.loss = mode, loss
        self.z, self.log_inner = product_rule(loss.n_quadrature, q)
        self.z_outer, self.log_outer = product_rule(loss.n_quadrature, e.width)
        self.Rs = np.linalg.cholesky(factor.S) if e.m else factor.S
        self.R = np.linalg.cholesky(factor.D)
        self.F = factor.F.reshape(G, e.width, q).transpose(0, 2, 1)
        self.outer = np.zeros(G, dtype=np.int64) if e.outer is None else e.outer

    def at_outer(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return u of the outer node k, (b, k), and the centres of v, (G, q)."""
        move = _ROOT2 * (self.Rs @ self.z_outer[k])
        u = np.concatenate([np.zeros(0), *(a.ravel() for a in self.mode.u[1:])])
        centre = self.mode.u[0] - (self.F @ move[self.outer, :, None])[:, :, 0]
        return u.reshape(move.shape) + move, centre

    def effects(self, v: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        """Return the effects by term of v and u."""
        return [v, *self.loss.by_term(u.ravel())]

    def at(self, centre: np.ndarray, node: int) -> np.ndarray:
        """Return v of an inner node, (G, q)."""
        return np.asarray(centre + _ROOT2 * (self.R @ self.z[node]))

    def by_outer(self, A: np.ndarray) -> np.ndarray:
        """Return sums over levels of the inner factor, by level of the outer one."""
        out = np.zeros((len(self.Rs), *A.shape[1:]))
        np.add.at(out, self.outer, A)
        return out


def correction(
    loss: MixedLikelihood, ends: np.ndarray, L: list[np.ndarray], mode: Mode
) -> float:
    """Return the correction of Laplace's log L by quadrature."""
    return _shares(_Nodes(loss, mode), ends, L)[0]


def quadrature(
    loss: MixedLikelihood, ends: np.ndarray, L: list[np.ndarray], mode: Mode,
    direct: np.ndarray,
) -> tuple[float, Blocks, list[np.ndarray], list[np.ndarray]]:  # fmt: skip
    """Return the correction of Laplace by quadrature, and parts of its gradient.

    These are 2 R T R' by blocks, e and the gradient by Lambda at fixed nodes, by term.
    The derivatives by the ends are added to `direct`.
    """
    nodes = _Nodes(loss, mode)
    value, of_outer, of_inner = _shares(nodes, ends, L)
    E, by_lambda = _moments(nodes, ends, L, of_outer, of_inner, direct)
    (v, u), (cc, cs, ss) = E[:2], E[2:]
    return value, _added_to_P(nodes, cc, cs, ss), nodes.effects(v, u), by_lambda


def _shares(
    nodes: _Nodes, ends: np.ndarray, L: list[np.ndarray]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the correction, and the shares of the nodes: (K, b) of the outer ones,
    and (K, N, G) of the inner ones given these.
    """
    loss, mode = nodes.loss, nodes.mode
    G = len(mode.u[0])
    K, N = len(nodes.z_outer), len(nodes.z)
    at_mode = mode.sums.value - 0.5 * (mode.u[0] ** 2).sum(axis=1)
    logs, outer = np.empty((K, N, G)), np.empty((K, len(nodes.Rs)))
    for k in range(K):
        u, centre = nodes.at_outer(k)
        for node in range(N):
            check_cancelled()
            v = nodes.at(centre, node)
            sums = loss.sums(ends, loss.effects(L, nodes.effects(v, u)))
            h = sums.value - 0.5 * (v**2).sum(axis=1)
            logs[k, node] = nodes.log_inner[node] + h - at_mode
        most = logs[k].max(axis=0)
        logs[k] = np.exp(logs[k] - most)
        total = logs[k].sum(axis=0)
        logs[k] /= total
        inner = loss.share * (most + np.log(total))
        outer[k] = nodes.log_outer[k] + nodes.by_outer(inner)
        here = np.concatenate([np.zeros(0), *(a.ravel() for a in mode.u[1:])])
        outer[k] += 0.5 * (here.reshape(u.shape) ** 2 - u**2).sum(axis=1)
    most = outer.max(axis=0)
    outer = np.exp(outer - most)
    total = outer.sum(axis=0)
    return float((most + np.log(total)).sum()), outer / total, logs


def _moments(
    nodes: _Nodes, ends: np.ndarray, L: list[np.ndarray], of_outer: np.ndarray,
    of_inner: np.ndarray, direct: np.ndarray,
) -> tuple[list[np.ndarray], list[np.ndarray]]:  # fmt: skip
    """Return the means of dh/dv and dh/du, and E_cc, E_cs and E_ss, and the gradient by
    Lambda at fixed nodes, by term.
    """
    loss, (G, q), (b, k) = nodes.loss, nodes.mode.u[0].shape, nodes.Rs.shape[:2]
    ev, eu = np.zeros((G, q)), np.zeros((b, k))
    cc, cs, ss = np.zeros((G, q, q)), np.zeros((G, q, k)), np.zeros((b, k, k))
    by_lambda = [np.zeros((t.n_levels, t.q, t.q)) for t in loss.terms]
    for i, z_outer in enumerate(nodes.z_outer):
        u, centre = nodes.at_outer(i)
        slope_u = -of_outer[i, :, None] * u
        for node, z in enumerate(nodes.z):
            check_cancelled()
            share = loss.share * of_outer[i, nodes.outer] * of_inner[i, node]
            there = nodes.effects(nodes.at(centre, node), u)
            sums = loss.sums(ends, loss.effects(L, there), share=share, direct=direct)
            first = share[:, None] * sums.first
            rest = loss.structure.by_rest(loss.Z, share[loss.group] * loss.by_row[0])
            slope = first @ L[0] - share[:, None] * there[0]
            ev += slope
            cc += _ROOT2 * slope[:, :, None] * z
            cs += _ROOT2 * slope[:, :, None] * z_outer
            slope_u += loss.structure.by_lambda(L, rest.reshape(b, k))
            parts = loss.by_effects(first, rest, there)
            by_lambda = [a + c for a, c in zip(by_lambda, parts, strict=True)]
        eu += slope_u
        ss += _ROOT2 * slope_u[:, :, None] * z_outer
    return [ev, eu, cc, cs, ss], by_lambda


def _added_to_P(
    nodes: _Nodes, cc: np.ndarray, cs: np.ndarray, ss: np.ndarray
) -> Blocks:
    """Return the blocks of 2 R T R', by which P of `likelihood` differs from A^-1."""
    R, Rs, F = nodes.R, nodes.Rs[nodes.outer], nodes.F
    back, Fs = F.transpose(0, 2, 1), Rs.transpose(0, 2, 1)
    inner = R @ _half(R.transpose(0, 2, 1) @ cc) @ R.transpose(0, 2, 1)
    across = 0.5 * (R @ (R.transpose(0, 2, 1) @ cs) @ Fs)
    ss = ss - nodes.by_outer(back @ cs)
    T = nodes.Rs @ _half(nodes.Rs.transpose(0, 2, 1) @ ss) @ nodes.Rs.transpose(0, 2, 1)
    outer = T[nodes.outer]
    left = across @ back
    own = F @ outer @ back - left - left.transpose(0, 2, 1) + inner
    beside = (across - F @ outer).transpose(0, 2, 1).reshape(-1, R.shape[1])
    return Blocks(2 * own, 2 * beside, 2 * T)


def _half(A: np.ndarray) -> np.ndarray:
    """Return the symmetric half of the lower triangles of matrices."""
    G = np.tril(A)
    return np.asarray(0.5 * (G + G.transpose(0, 2, 1) - G * np.eye(G.shape[1])))


def product_rule(count: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes z of a product rule, (count^q, q), and log weights plus |z|^2."""
    z, weight = np.polynomial.hermite.hermgauss(count)
    logs = np.array(
        [sum(part) for part in itertools.product(np.log(weight) + z * z, repeat=q)]
    )
    grid = np.array(list(itertools.product(z, repeat=q))).reshape(logs.size, q)
    return grid, logs - 0.5 * q * math.log(math.pi)
