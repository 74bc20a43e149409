"""Stopping ratio and adjacent categories models: likelihood and its derivatives.

With eta_ij = theta_j - n_i'nu_j - x_i'beta - o_i for the T thresholds j, u = log F(eta)
and v = log(1 - F(eta)), the families are

    stopping  P(y = j | y >= j) = F(eta_j):    log P(y) = sum_(j < y) v_j + u_y
    backward  P(y <= j | y <= j + 1) = F(eta_j):
                                               log P(y) = v_(y-1) + sum_(j >= y) u_j
    adjacent  P(y = j | y in {j, j + 1}) = F(eta_j):
                                               log P(y) = sum_(j >= y) g_j - log sum

without u_T and v_(-1), and with the log odds g = u - v, which are eta for the logit.
A larger x with a positive coefficient makes higher ranks more probable in all of them.
Probabilities are positive whatever the thresholds and slopes, so that nominal effects
need no order.

A. Agresti, "Analysis of Ordinal Categorical Data", Wiley, 2010, chapter 4. G. Tutz,
"Sequential models in categorical regression", Computational Statistics & Data Analysis
11:275-295, 1991. T. W. Yee, "The VGAM package", R News 8(2):28-39, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, cast

import numpy as np

from .._cumulative.design import Design, by_threshold, l2_penalties
from .._cumulative.likelihood import (
    NONE,
    Bordered,
    Link,
    Point,
    RowDerivatives,
    RowLoss,
    for_all_ranks,
    quantile,
    terms_of,
)
from .._cumulative.matrices import DenseColumns, SparseColumns, columns_of
from .._rows.columns import row_strips
from ..inference.fitted import Fitted, predictors, refit
from ..inference.margins import Derivative, DesignRows, Means, Summand

Family = Literal["stopping", "backward", "adjacent"]
BLOCK = 1 << 18  # entries of the rows held at a time


class RatioLikelihood(RowLoss):
    """Mean loss of one training set, over the parameters of a design.

    Parameters
    ----------
    design : Design
        With free thresholds and without scale effects.
    family : Family
    link : Link
    l2 : float, default 0
        Penalty of beta in the units of the features, as of `Likelihood`.
    """

    n_threads = 1

    def __init__(self, design: Design, family: Family, link: Link, l2: float = 0.0):
        self.design, self.family, self.link = design, family, link
        self.n_predictors = design.T
        self.penalties = np.zeros(design.n_parameters)
        q, qm, _, _ = design.sizes
        self.penalties[q + qm :] = l2_penalties(l2, design.penalised_spread)
        T, m = design.T, design.nominal.size
        beta = design.n_parameters - design.location.size
        self._order = np.concatenate(
            [design.slots(), beta + np.arange(design.location.size)]
        )
        self._slots = T, 1 + m
        self._columns: SparseColumns | DenseColumns | None = None

    @property
    def is_convex(self) -> bool:
        """Return whether every local minimum is the global one."""
        by_odds = self.family == "adjacent" and self.link != "logit"
        return self.link != "cauchit" and not by_odds

    def start(self) -> np.ndarray:
        """Return the parameters of no effects."""
        D, x = self.design, np.zeros(self.design.n_parameters)
        mass = D.mass()
        if self.family == "stopping":
            rest = np.cumsum(mass[::-1])[::-1]
            p = mass[:-1] / rest[:-1]
        elif self.family == "backward":
            total = np.cumsum(mass)
            p = total[:-1] / total[1:]
        else:
            p = mass[:-1] / (mass[:-1] + mass[1:])
        least = np.finfo(float).eps
        x[: D.T] = quantile(self.link, np.clip(p, least, 1 - least))
        return np.asarray(x + D.level(x.size))

    def predictors(self, x: np.ndarray, rows: slice, known: bool = True) -> np.ndarray:
        """Return eta of some rows, (rows, T), with the offset if it is `known`."""
        D = self.design
        alpha, nu, beta, _ = D.split(x)
        eta = alpha - D.columns(rows, D.nominal) @ nu.T
        eta -= D.score(beta, rows)[:, None]
        if known and D.offset is not None:
            eta -= by_threshold(D.offset[rows])
        return np.asarray(eta)

    @property
    def of_design(self) -> Callable[[Design], RatioLikelihood]:
        """Return a function that makes the loss of other rows."""
        return partial(RatioLikelihood, family=self.family, link=self.link)

    def of_columns(self, which: np.ndarray) -> RatioLikelihood:
        """Return the loss without penalty of some columns of the location."""
        return self.of_design(self.design.of_columns(which))

    def at_best_thresholds(
        self, u: np.ndarray, beta: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the best theta and nu for beta, the loss and its slopes by beta,
        without penalty.
        """
        D, f = self.design, self.design.score(beta)
        if D.offset is not None:
            f = (D.offset.T + f).T
        free = replace(D, location=np.zeros(0, np.int64), offset=f)
        best = refit(self.of_design(free), u, "fit_ratio").point
        x, by_score = np.concatenate([best.x, beta]), np.zeros(D.n_samples)
        for rows in row_strips(D.X, max(1, BLOCK // D.T**2)):
            with np.errstate(all="ignore"):  # of rows without weight
                eta = self.predictors(x, rows)
                _, G, _ = row_terms(self.family, self.link, eta, D.rank[rows])
            by_score[rows] = np.where(D.weight[rows] > 0, G.sum(axis=1), 0.0)
        slope = self._location_columns().rmatvec(D.weight * by_score / D.total)
        return best.x, best.value, slope

    def _location_columns(self) -> SparseColumns | DenseColumns:
        """Return the columns of the location, of which sparse ones stay sparse."""
        # Cached by hand: properties that functools caches share a lock in Python 3.11,
        # for which a forked child may wait for ever.
        if self._columns is None:
            D = self.design
            every = columns_of(D.X, D.centre, D.spread, self.n_threads)
            whole = D.location.size == D.X.shape[1]
            self._columns = every if whole else every.chosen(D.location)
        return self._columns

    def row_derivatives(self, x: np.ndarray, rows: slice) -> RowDerivatives:
        """Return the derivatives of rows by their predictors at all thresholds."""
        D, T = self.design, self.design.T
        with np.errstate(all="ignore"):  # of rows without weight
            eta = self.predictors(x, rows)
            _, g, H = row_terms(self.family, self.link, eta, D.rank[rows])
        if H.ndim == 2:
            H = H[:, :, None] * np.eye(T)
        used = D.weight[rows] > 0
        N, X = D.columns(rows, D.nominal), D.columns(rows, D.location)
        return RowDerivatives(
            slopes_of_predictors(T, N, X),
            np.where(used[:, None], g, 0.0),
            np.where(used[:, None, None], H, 0.0),
        )

    def separation(self) -> np.ndarray:
        """Return moves by the parameters, rows of A as in `separation`, (k, p): along a
        direction that makes none of them fall, no probability falls.

        Of adjacent categories with the logit link they are those of log P(y) against
        the other ranks, which is all of them; with other links, whose log odds are not
        linear, those of every predictor towards the rank, which suffices.
        """
        D, T = self.design, self.design.T
        used, j = D.weight > 0, np.arange(T)
        every = slice(0, D.n_samples)
        N, X = D.columns(every, D.nominal)[used], D.columns(every, D.location)[used]
        S, rank = slopes_of_predictors(T, N, X), D.rank[used][:, None]
        if self.family == "stopping":
            sign = np.where(j < rank, -1.0, np.where(j == rank, 1.0, 0.0))
        elif self.family == "backward":
            sign = np.where(j >= rank, 1.0, np.where(j == rank - 1, -1.0, 0.0))
        else:
            sign = np.where(j >= rank, 1.0, -1.0)
        A = S * sign[:, :, None]
        if self.family == "adjacent" and self.link == "logit":
            from_rank = np.where((j >= rank)[:, :, None], A, 0.0).cumsum(axis=1)
            to_rank = np.where((j < rank)[:, :, None], A, 0.0)[:, ::-1].cumsum(axis=1)
            A = np.where((j >= rank)[:, :, None], from_rank, to_rank[:, ::-1])
        return A.reshape(-1, A.shape[2])

    def at(self, x: np.ndarray) -> Point:
        """Return value, gradient and Hessian, in one pass over the rows. O(n (T +
        p)^2).
        """
        D, (T, M) = self.design, self._slots
        p = x.size
        value, gradient, H = 0.0, np.zeros(p), np.zeros((p, p))
        with np.errstate(all="ignore"):  # what is no number counts as out of reach
            for rows in row_strips(D.X, max(1, BLOCK // (T * T + p))):
                w, eta = D.weight[rows], self.predictors(x, rows)
                N, X = D.columns(rows, D.nominal), D.columns(rows, D.location)
                rank, used = D.rank[rows], w > 0
                if not used.all():  # rows without weight may be out of reach
                    w, eta, rank = w[used], eta[used], rank[used]
                    N, X = N[used], X[used]
                E = np.hstack([np.ones((len(N), 1)), -N])
                if self.family == "adjacent" and M == 1:
                    log_p, G, C, sums = _adjacent_sums(self.link, eta, rank, w)
                    H[:T, :T] += C
                    H[:T, T:] -= sums.T @ X
                    H[T:, T:] += (X * sums.sum(axis=1)[:, None]).T @ X
                else:
                    log_p, G, curvature = row_terms(self.family, self.link, eta, rank)
                    G *= w[:, None]
                    curvature *= w.reshape(-1, *(1,) * (curvature.ndim - 1))
                    H += _by_slots(curvature, E, X)
                value += w @ log_p
                gradient[: T * M] += (G.T @ E).ravel()
                gradient[T * M :] -= G.sum(axis=1) @ X
            H[T * M :, : T * M] = H[: T * M, T * M :].T
            value /= -D.total
            gradient /= -D.total
            H /= -D.total
        if not (math.isfinite(value) and np.isfinite(H).all()):
            return Point(x, math.inf, np.full(p, np.nan), NONE)
        placed, made = np.empty(p), np.empty((p, p))
        placed[self._order] = gradient
        made[np.ix_(self._order, self._order)] = H
        ridge = self.penalties * x
        hessian = Bordered.from_dense(made).plus(self.penalties)
        return Point(x, float(value + 0.5 * ridge @ x), placed + ridge, hessian)


def slopes_of_predictors(T: int, N: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Slopes of the T predictors of rows by (theta, nu, beta), (n, T, p)."""
    n, m = N.shape
    out, j = np.zeros((n, T, T * (1 + m) + X.shape[1])), np.arange(T)
    out[:, j, j] = 1.0
    for k in range(m):
        out[:, j, T + j * m + k] = -N[:, k, None]
    out[:, :, T * (1 + m) :] = -X[:, None, :]
    return out


def _by_slots(curvature: np.ndarray, E: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the curvature of rows by thresholds with their slopes, and by beta."""
    T, M, d = curvature.shape[1], E.shape[1], X.shape[1]
    p, is_diagonal = T * M + d, curvature.ndim == 2
    H = np.zeros((p, p))
    sums = curvature if is_diagonal else curvature.sum(axis=2)
    for j in range(T):
        own = slice(j * M, (j + 1) * M)
        for k in range(j, j + 1 if is_diagonal else T):
            weight = curvature[:, j] if is_diagonal else curvature[:, j, k]
            block = (E * weight[:, None]).T @ E
            other = slice(k * M, (k + 1) * M)
            H[own, other] = block
            H[other, own] = block.T
        H[own, T * M :] = -(E * sums[:, j : j + 1]).T @ X
    H[T * M :, T * M :] = (X * sums.sum(axis=1)[:, None]).T @ X
    return H


def _adjacent_sums(
    link: str, eta: np.ndarray, rank: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what `row_terms` has of adjacent categories, times the weights but for
    log P: the curvatures summed over the rows, (T, T), and over one threshold, (n, T),
    of which no (n, T, T) numbers are made.
    """
    T, n = eta.shape[1], np.arange(len(eta))
    odds, rise, bend = (eta, None, None) if link == "logit" else log_odds(link, eta)
    relative = _relative(odds)
    P = np.exp(relative)
    total = P.sum(axis=1)
    below = np.cumsum(P[:, :-1], axis=1) / total[:, None]
    slope = ((np.arange(T) >= rank[:, None]) - below) * w[:, None]
    if rise is None:
        b, rise = below, np.ones((1, T))
    else:
        b = below * rise
    wb = b * w[:, None]
    # b_j b_k - b_j rise_k, for j <= k
    upper = np.triu(wb.T @ np.broadcast_to(rise, b.shape))
    C = wb.T @ b - upper - np.triu(upper, 1).T
    after = np.cumsum(rise[:, ::-1], axis=1)[:, ::-1] - rise
    sums = wb * (b.sum(axis=1)[:, None] - after) - rise * np.cumsum(wb, axis=1)
    if bend is not None:
        own = slope * bend
        C[np.diag_indices(T)] += own.sum(axis=0)
        sums += own
        slope *= rise
    return relative[n, rank] - np.log(total), slope, C, sums


def row_terms(
    family: Family, link: str, eta: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log P(y) of rows, and its slopes (n, T) and curvatures (n, T, T) by eta."""
    j = np.arange(eta.shape[1])
    if family == "adjacent":
        each = log_probabilities(family, link, eta)
        below = np.cumsum(np.exp(each[:, :-1]), axis=1)
        # below_j below_k - min(below_j, below_k), which is below_j for j <= k
        curvature = below[:, :, None] * (below - 1)[:, None, :]
        for k in range(1, eta.shape[1]):
            curvature[:, k, :k] = curvature[:, :k, k]
        slope = (j >= rank[:, None]) - below
        if link != "logit":
            _, rise, bend = log_odds(link, eta)
            curvature *= rise[:, :, None] * rise[:, None, :]
            curvature[:, j, j] += slope * bend
            slope *= rise
        return each[np.arange(len(eta)), rank], slope, curvature
    is_u, is_v, upper, lower = stage_ends(family, eta, rank)
    terms = terms_of(link, upper.ravel(), lower.ravel())
    log_p, slope, of_u, of_v = (terms[k].reshape(eta.shape) for k in (0, 1, 3, 4))
    curvature = np.where(is_u, of_u, np.where(is_v, of_v, 0.0))
    return log_p.sum(axis=1), np.where(is_u | is_v, slope, 0.0), curvature


def stage_ends(
    family: Family, eta: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return where log P(y) of a stopping model has the term u, and where v, (n, T).

    Then come the upper ends of u, and the lower ones of v; elsewhere they are infinite.
    """
    j = np.arange(eta.shape[1])
    if family == "stopping":
        is_u, is_v = j == rank[:, None], j < rank[:, None]
    else:
        is_u, is_v = j >= rank[:, None], j == rank[:, None] - 1
    # u is the log probability of the interval below eta, v of that above it
    return is_u, is_v, np.where(is_u, eta, np.inf), np.where(is_v, eta, -np.inf)


def log_probabilities(family: Family, link: str, eta: np.ndarray) -> np.ndarray:
    """Log P(y = j) at all ranks, (n, T + 1)."""
    zero = np.zeros((len(eta), 1))
    if family == "adjacent":
        return likelihoods_of_odds(eta if link == "logit" else log_odds(link, eta)[0])
    (u, _, _), (v, _, _) = _both_sides(link, eta)
    if family == "stopping":
        before = np.hstack([zero, np.cumsum(v, axis=1)])
        return np.asarray(before + np.hstack([u, zero]))
    after = np.hstack([np.cumsum(u[:, ::-1], axis=1)[:, ::-1], zero])
    return np.asarray(after + np.hstack([zero, v]))


def likelihoods_of_odds(odds: np.ndarray) -> np.ndarray:
    """Log P(y = j) of adjacent categories, (n, T + 1), from their log odds (n, T)."""
    relative = _relative(odds)
    total = np.exp(relative).sum(axis=1, keepdims=True)
    return np.asarray(relative - np.log(total))


def _relative(odds: np.ndarray) -> np.ndarray:
    """Log P(y = j) of adjacent categories less that of the likeliest rank."""
    sums = tail_sums(odds)
    return np.asarray(sums - sums.max(axis=1, keepdims=True))


def tail_sums(A: np.ndarray) -> np.ndarray:
    """Return the sums over the thresholds from each rank on, (n, T + 1)."""
    zero = np.zeros((len(A), 1))
    return np.hstack([np.cumsum(A[:, ::-1], axis=1)[:, ::-1], zero])


def residuals_at(
    model: Fitted, rows: DesignRows, ends: tuple[np.ndarray, np.ndarray], kind: str
) -> np.ndarray:
    """Return the residuals of rows whose ranks lie between two ends, (n,)."""
    family, link = cast(Family, model.predictor.family), model.link
    eta, _ = predictors(model, rows.Z, rows.offset)
    log_p, j = log_probabilities(family, link, eta), np.arange(eta.shape[1] + 1)
    first, last = ends[0][:, None], ends[1][:, None]
    held = (first <= j) & (j <= last)
    # that of one rank to the last bit
    own = np.logaddexp.reduce(np.where(held, log_p, -np.inf), axis=1)
    if kind == "score":  # the mean of those of the ranks, given the interval
        score = np.zeros(len(eta))
        for rank in np.flatnonzero(held.any(axis=0)):
            of = np.flatnonzero(held[:, rank])
            slope = row_terms(family, link, eta[of], np.full(of.size, rank))[1]
            share = np.exp(log_p[of, rank] - own[of])
            share[ends[0][of] == ends[1][of]] = 1.0
            score[of] -= share * slope.sum(axis=1)
        return score
    P = np.exp(log_p)
    balance = (P * (j < first)).sum(axis=1) - (P * (j > last)).sum(axis=1)
    if kind == "probability":
        return np.asarray(balance)
    return np.asarray(np.copysign(np.sqrt(np.maximum(-2 * own, 0.0)), balance))


def sides_of(model: Fitted, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(y <= j) and P(y > j), (n, r - 1) each, from predictors, (n, T)."""
    family, observed = cast(Family, model.predictor.family), model.predictor.observed
    below, above = _sides(family, model.link, eta)
    return (
        for_all_ranks(observed, below, 0.0, 1.0),
        for_all_ranks(observed, above, 1.0, 0.0),
    )


def _sides(family: Family, link: str, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(y <= j) and P(y > j) at the T thresholds, (n, T) each."""
    P = np.exp(log_probabilities(family, link, eta))
    return np.cumsum(P[:, :-1], axis=1), np.cumsum(P[:, :0:-1], axis=1)[:, ::-1]


class RatioMeans(Means):
    """Mean probabilities and marginal effects, with P' = P l' and P'' = P (l'l' + l'')
    for the derivatives of l = log P by the predictors.
    """

    def __init__(self, model: Fitted, family: Family, n_more: int = 0):
        super().__init__(model, n_more)
        self.family = family

    def sides(self, at: DesignRows) -> tuple[np.ndarray, np.ndarray]:
        eta, _ = predictors(self.model, at.Z, at.offset)
        return _sides(self.family, self.model.link, eta)

    def gradients(self, at: DesignRows, W: np.ndarray) -> np.ndarray:
        eta, _ = predictors(self.model, at.Z, at.offset)
        over, change = np.zeros((len(eta), W.shape[-2], eta.shape[1])), 0.0
        for k in range(eta.shape[1]):
            rank = np.full(len(eta), k)
            log_p, slope, _ = row_terms(self.family, self.model.link, eta, rank)
            change = change + np.exp(log_p)[:, None] * slope  # of P(y <= k) by eta
            over += W[..., k, None] * change[:, None]
        return self._by_rows(at, over, 0.0)

    def _may_cross(self, at: DesignRows) -> bool:
        return False  # thresholds need not rise

    def _terms(
        self, part: Summand, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        m = self.model
        here = part.here if isinstance(part, Derivative) else part
        eta, _ = predictors(m, here.Z, here.offset)
        if isinstance(part, Derivative):
            by = part.by
            along = by.Z[:, m.predictor.location] @ m.coef + by.offset
            along = -along[:, None] - by.Z[:, m.predictor.nominal] @ self.nu.T
        values, gradients = [], []
        for k in range(eta.shape[1] + 1):
            rank = np.full(len(eta), k)
            log_p, slope, curvature = row_terms(self.family, m.link, eta, rank)
            first = v * np.exp(log_p)[:, None] * slope
            if not isinstance(part, Derivative):
                values.append(v[:, 0] @ np.exp(log_p))
                gradients.append(self._by_parameters(here, first, 1.0))
                continue
            values.append((first * along).sum())
            if curvature.ndim == 2:
                bend = curvature * along
            else:
                bend = np.einsum("ijk,ik->ij", curvature, along)
            through = first * (slope * along).sum(axis=1, keepdims=True)
            through += v * np.exp(log_p)[:, None] * bend
            gradients.append(
                self._by_parameters(here, through, 1.0)
                + self._by_parameters(part.by, first, 0.0)
            )
        below, G = np.cumsum(values), np.cumsum(gradients, axis=0)
        return np.stack([below[:-1], below[-1] - below[:-1]]), W @ G[:-1]

    def _by_parameters(
        self, at: DesignRows, by_eta: np.ndarray, theta: float
    ) -> np.ndarray:
        """Return sum_ij by_eta_ij deta_ij / dparameters, without a scale, (p,)."""
        m = self.model
        return np.concatenate(
            [
                theta * by_eta.sum(axis=0),
                -(by_eta.T @ at.Z[:, m.predictor.nominal]).ravel(),
                -by_eta.sum(axis=1) @ at.Z[:, m.predictor.location],
                self._more(-by_eta.sum(axis=1)[None], at.offset_gradient)[0],
            ]
        )


def log_odds(link: str, eta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return log F / (1 - F) with its first and second derivatives, each (n, T)."""
    u, v = _both_sides(link, eta)
    return tuple(above - below for above, below in zip(u, v, strict=True))


def _both_sides(
    link: str, eta: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Log F and log(1 - F) with their first and second derivatives, each (n, T)."""
    flat = eta.ravel()
    end = np.full(flat.size, np.inf)
    lower, upper = terms_of(link, flat, -end), terms_of(link, end, flat)
    return (
        [lower[k].reshape(eta.shape) for k in (0, 1, 3)],
        [upper[k].reshape(eta.shape) for k in (0, 1, 4)],
    )
