"""Slow, independent answers from the formulas: nothing here imports ordinal.

(P), (D) and (GAP) are those of ordinal.npsvor, (Q) and (KKT) those of
ordinal/_quadratic/program.py.
Rows, ranks and costs are looked at one by one, on purpose.
"""

import math
from itertools import count

import numpy as np
from scipy import optimize, special, stats
from scipy.special import log_ndtr


def slope(f, h, at=0.0):
    """The derivative of f by central differences, in error by the fourth power of h."""
    near, far = f(at + h) - f(at - h), f(at + 2 * h) - f(at - 2 * h)
    return (8 * near - far) / (12 * h)


def slopes(f, x, h):
    """Those of f, a number or an array, by each entry of the vector x; they are along
    the last axis."""
    units = np.eye(len(x))
    return np.stack([slope(lambda t, e=e: f(x + t * e), h) for e in units], axis=-1)


def kernel_value(kernel, a, b):
    """k(a, b) of a named kernel, from its attributes."""
    dot = sum(s * t for s, t in zip(a, b, strict=True))
    match type(kernel).__name__:
        case "Linear":
            return dot
        case "Polynomial":
            return (kernel.gamma * dot + kernel.coef0) ** kernel.degree
        case "RBF":
            squares = sum((s - t) ** 2 for s, t in zip(a, b, strict=True))
            return math.exp(-kernel.gamma * squares)
        case "Laplacian":
            return math.exp(-kernel.gamma * math.dist(a, b))
        case "Matern":
            s = math.sqrt(4 * kernel.nu * kernel.gamma) * math.dist(a, b)
            return (1 + s + (s**2 / 3 if kernel.nu == 2.5 else 0)) * math.exp(-s)
        case "ARD":
            terms = zip(kernel.gamma, a, b, strict=True)
            return math.exp(-sum(g * (s - t) ** 2 for g, s, t in terms))
        case "LinearARD":
            return sum(g * s * t for g, s, t in zip(kernel.gamma, a, b, strict=True))
        case "Pearson":
            return math.fsum(map(math.prod, zip(z(a), z(b), strict=True))) / len(a)
    raise AssertionError(kernel)


def z(row):
    """Scores of a row by the mean and deviation of what is not NaN, which scores 0."""
    known = [x for x in row if not math.isnan(x)]
    if len(set(known)) < 2:
        return [0.0] * len(row)
    mean = math.fsum(known) / len(known)
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in known) / len(known))
    return [0.0 if math.isnan(x) else (x - mean) / sd for x in row]


def kernel_matrix(kernel, A, B):
    A, B = np.asarray(A).tolist(), np.asarray(B).tolist()
    return np.array([[kernel_value(kernel, a, b) for b in B] for a in A])


def npsvor_boxes(y, k, C, C2, epsilon, weight, cost):
    """lo, hi and the slopes of phi left and right of 0, of (D) for rank k."""
    terms = []
    for rank, v in zip(y, weight, strict=True):
        if rank == k:
            terms.append((-C * v, C * v, -epsilon, epsilon))
        elif rank < k:
            terms.append((-C2 * v * cost[rank][k], 0.0, 1.0, 1.0))
        else:
            terms.append((0.0, C2 * v * cost[rank][k], -1.0, -1.0))
    return tuple(np.array(column) for column in zip(*terms, strict=True))


def npsvor_primal(f, w_squared, y, k, C, C2, epsilon, weight, cost):
    """(P) at the values f of a hyperplane on the training rows."""
    total = 0.5 * w_squared
    for value, rank, v in zip(f, y, weight, strict=True):
        if rank == k:
            total += C * v * max(0.0, abs(value) - epsilon)
        else:
            s = -1.0 if rank < k else 1.0
            total += C2 * cost[rank][k] * v * max(0.0, 1.0 - s * value)
    return total


def npsvor_dual(K, g, y, k, epsilon):
    """Return the value of -(D) at a point."""
    total = 0.5 * g @ K @ g
    for value, rank in zip(g, y, strict=True):
        if rank == k:
            total += epsilon * abs(value)
        else:
            total += value if rank < k else -value
    return -total


def npsvor_admm(K, lo, hi, pn, pp, rho, e_abs, e_rel, max_iter, z=0.0):
    """Algorithm 2 for one rank, step by step, from z: (g, z, b, iterations, ratio)."""
    n = len(K)
    M = rho * np.linalg.inv(K + rho * np.eye(n))
    m = M.sum(axis=1)
    z, u = np.full(n, z), np.zeros(n)
    n_iter, ratio = 0, math.inf
    while ratio > 1 and n_iter < max_iter:
        n_iter += 1
        a = M @ (z - u)
        multiple = a.sum() / m.sum()
        g = a - multiple * m
        before, z = z, np.empty(n)
        for i, v in enumerate(g + u):
            # argmin_z phi(z) + rho/2 (z - v)^2: at a zero of the slope, or the kink
            right, left = v - pp[i] / rho, v - pn[i] / rho
            z[i] = right if right > 0 else left if left < 0 else 0.0
            z[i] = min(max(z[i], lo[i]), hi[i])
        u = u + g - z
        norm = np.linalg.norm
        allowed = math.sqrt(n) * e_abs + e_rel * max(norm(g), norm(z))
        allowed_dual = math.sqrt(n) * e_abs + e_rel * norm(rho * u)
        ratio = max(norm(g - z) / allowed, norm(rho * (z - before)) / allowed_dual)
    return g, z, rho * multiple, n_iter, ratio


def nearest_feasible(g, lo, hi):
    """The point of the box with sum 0 that is nearest to g."""

    def excess(t):
        return np.clip(g - t, lo, hi).sum()

    low, high = (g - hi).min() - 1, (g - lo).max() + 1
    if excess(low) == 0 or excess(high) == 0:  # the box itself has no room
        return np.clip(g - (low if excess(low) == 0 else high), lo, hi)
    return np.clip(g - optimize.brentq(excess, low, high, xtol=1e-15), lo, hi)


def qp_slopes(K, g, lo, hi, pn, pp):
    """min R and max L of (KKT)."""
    G = K @ g
    R, L = math.inf, -math.inf
    for i in range(len(g)):
        if g[i] < hi[i]:
            R = min(R, G[i] + (pp[i] if g[i] >= 0 else pn[i]))
        if g[i] > lo[i]:
            L = max(L, G[i] + (pp[i] if g[i] > 0 else pn[i]))
    return R, L


def qp_value(K, g, pn, pp):
    """Return the objective of (Q) at a point."""
    phi = sum(max(a * v, c * v) for v, a, c in zip(g, pn, pp, strict=True))
    return 0.5 * g @ K @ g + phi


def qp_gap(K, g, b, lo, hi, pn, pp):
    """Primal minus dual value: a Fenchel gap >= 0 a row, for b the multiplier."""
    f = K @ g + b
    total = 0.0
    for i in range(len(g)):
        ends = [lo[i], hi[i]] + ([0.0] if lo[i] < 0 < hi[i] else [])
        conjugate = max(-max(pn[i] * v, pp[i] * v) - f[i] * v for v in ends)
        total += conjugate + max(pn[i] * g[i], pp[i] * g[i]) + f[i] * g[i]
    return total


def qp_rounding(K, g, hi_minus_lo):
    """Return the rounding error of a sum like those above."""
    f = np.abs(K) @ np.abs(g)
    return 1e-13 * (np.abs(g) @ f + hi_minus_lo.sum() * (1 + f.max()))


# SVOR: (P), (D) are those of ordinal.svor, (KKT) of
# ordinal/_quadratic/program.py; arrays over (threshold, row) have shape (T, n)


def svor_terms(y, C, weight, cost):
    """s_ij and C_ij of (P), for the T thresholds between ranks that have rows.

    Of ranks without weight nothing is left but what the step over them costs.
    """
    held = sorted({k for k, v in zip(y, weight, strict=True) if v > 0})
    s, width = [], []
    for t, above in enumerate(held[1:]):
        below = held[t]
        s.append([1.0 if k >= above else -1.0 for k in y])
        step = [abs(cost[k][above] - cost[k][below]) for k in y]
        width.append([C * v * a for v, a in zip(weight, step, strict=True)])
    return np.array(s), np.array(width)


def svor_primal(f, w_squared, b, s, width, price):
    """(P) at the scores f of the training rows, with price_j / 2 b_j^2, (T,)."""
    total = 0.5 * w_squared
    for j, threshold in enumerate(b):
        total += 0.5 * price[j] * threshold**2
        for value, sign, C in zip(f, s[j], width[j], strict=True):
            total += C * max(0.0, 1.0 - sign * (value - threshold))
    return total


def svor_dual(K, g, s, price):
    """The value of (D) at g_ij = s_ij a_ij."""
    beta = g.sum(axis=0)
    total = -0.5 * beta @ K @ beta
    for signs, values, p in zip(s, g, price, strict=True):
        total += signs @ values
        if p > 0:
            total -= 0.5 * values.sum() ** 2 / p
    return total


def svor_interval(K, g, s, width, price, tied=None):
    """low and up of (KKT), (T,); tied, (T - 1,), is where mu > 0 if coupled."""
    f = K @ g.sum(axis=0)
    low, up = [], []
    for signs, C, values, p in zip(s, width, g, price, strict=True):
        low.append(-values.sum() / p if p > 0 else -math.inf)
        up.append(-values.sum() / p if p > 0 else math.inf)
        for i, value in enumerate(values):
            if value < max(0.0, signs[i] * C[i]):
                up[-1] = min(up[-1], f[i] - signs[i])
            if value > min(0.0, signs[i] * C[i]):
                low[-1] = max(low[-1], f[i] - signs[i])
    if tied is None:
        return np.array(low), np.array(up)
    all_low, all_up = [], []
    for j in range(len(g)):
        first = last = j
        while first > 0 and tied[first - 1]:
            first -= 1
        while last < len(g) - 1 and tied[last]:
            last += 1
        all_low.append(max(low[: last + 1]))
        all_up.append(min(up[first:]))
    return np.array(all_low), np.array(all_up)


def svor_rounding(K, g, width, b):
    """Return the rounding error of the sums of (P) and (D)."""
    beta = np.abs(g).sum(axis=0)
    f = np.abs(K) @ beta
    return 1e-13 * (beta @ f + width.sum() * (1 + f.max() + np.abs(b).max()) + b @ b)


# GPOR: equations and appendices are those of Chu and Ghahramani; y are ranks 0..r-1, b
# the r - 1 thresholds, v the noise variance, one for all rows or one a row


def normal_log_mass(lower, upper):
    """log (Phi(upper) - Phi(lower)), from the tail in which both are small."""
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    with np.errstate(invalid="ignore"):
        flip = lower + upper > 0
    low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    return log_ndtr(high) + np.log(-np.expm1(log_ndtr(low) - log_ndtr(high)))


def probit_ends(h, y, b, v):
    """z2 and z1 of (5) for latent values h."""
    edges = np.concatenate([[-np.inf], b, [np.inf]])
    s = np.sqrt(v)
    return (edges[y] - h) / s, (edges[np.asarray(y) + 1] - h) / s


def probit_terms(h, y, b, v):
    """log P, d log P / dh and -d2 log P / dh2: (5), (6), (7) as printed."""
    z2, z1 = probit_ends(h, y, b, v)
    log_P = normal_log_mass(z2, z1)

    def over_P(z):  # N(z) / P and z N(z) / P
        far = np.isinf(z)
        z = np.where(far, 0, z)
        ratio = np.exp(np.where(far, -np.inf, -0.5 * z**2 - log_P))
        return ratio / math.sqrt(2 * math.pi), z * ratio / math.sqrt(2 * math.pi)

    (n1, zn1), (n2, zn2) = over_P(z1), over_P(z2)
    v0, v1 = n1 - n2, zn1 - zn2
    return log_P, -v0 / np.sqrt(v), (v0**2 + v1) / v


def symmetric(blocks, n):
    """The matrix M with <M, S> = sum of <G, S[rows, columns]> for a symmetric S."""
    M = np.zeros((n, n))
    for rows, columns, G in blocks:
        M[rows, columns] += G
    return 0.5 * (M + M.T)


def half(K):
    """R with K = R R', for a K that may be singular."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def laplace_posterior(K, y, b, v, weight):
    """Mode f of (9), W of (7) there, and minus (21), by a general-purpose method."""
    R = half(K)

    def S(z):
        log_P, g, _ = probit_terms(R @ z, y, b, v)
        return 0.5 * z @ z - weight @ log_P, z - R.T @ (weight * g)

    def curvature(z):
        W = weight * probit_terms(R @ z, y, b, v)[2]
        return np.eye(len(z)) + R.T @ (W[:, None] * R)

    z = np.zeros(len(y))
    for _ in range(200):  # Newton, halved until it falls
        value, slope = S(z)
        step = np.linalg.solve(curvature(z), slope)
        size = 1.0
        rounding = 1e-12 * (1 + abs(value))
        while S(z - size * step)[0] > value + rounding and size > 1e-12:
            size /= 2
        z = z - size * step
        if np.abs(slope).max() < 1e-11:
            break
    value, _ = S(z)
    W = weight * probit_terms(R @ z, y, b, v)[2]
    log_det = np.linalg.slogdet(np.eye(len(y)) + K * W)[1]
    return R @ z, W, -value - 0.5 * log_det


def sequential_ep(K, y, b, v, tol=1e-12, max_sweeps=1000):
    """Appendix B, a row after another with rank-one updates: (p, m, h, A, log Z)."""
    n = len(y)
    noise = np.broadcast_to(v, n)
    p, m, log_s = np.zeros(n), np.zeros(n), np.zeros(n)
    for sweep in count():
        # Pi changes by every update, and so does what their rounding leaves behind
        A = K - K @ np.linalg.solve(np.eye(n) + p[:, None] * K, p[:, None] * K)
        h = A @ (p * m)
        change = 0.0
        for i in range(n):
            lam = A[i, i] / (1 - A[i, i] * p[i])
            cavity = h[i] + lam * p[i] * (h[i] - m[i])
            log_Z, alpha, nu = probit_terms(cavity, y[i], b, lam + noise[i])
            new = nu / (1 - lam * nu)
            change = max(change, abs(new / p[i] - 1) if p[i] > 0 else math.inf)
            eta = (alpha + p[i] * (h[i] - m[i])) / (1 - A[i, i] * p[i])
            rho = (new - p[i]) / (1 + (new - p[i]) * A[i, i])
            column = A[:, i].copy()
            A -= rho * np.outer(column, column)
            h = h + eta * column
            moved = cavity + alpha / nu
            change = max(change, abs(moved - m[i]) / (1 + abs(moved)))
            p[i], m[i] = new, moved
            log_s[i] = log_Z + 0.5 * math.log1p(lam * new) + 0.5 * alpha**2 / nu
        if change < tol or sweep == max_sweeps:
            break
    B = (m * p) @ A @ (m * p) - p @ m**2
    log_det = np.linalg.slogdet(np.eye(n) + K * p)[1]
    return p, m, h, A, log_s.sum() - 0.5 * log_det + 0.5 * B


def expected_log_p(h, A, y, b, v):
    """sum_i int N(f; h_i, A_i) ln P(y_i | f) df by the trapezoidal rule."""
    t = np.linspace(-12, 12, 2001)
    density = np.exp(-0.5 * t**2) / math.sqrt(2 * math.pi) * (t[1] - t[0])
    noise = np.broadcast_to(v, len(y))
    total = 0.0
    for i in range(len(y)):
        values = probit_terms(h[i] + math.sqrt(A[i]) * t, y[i], b, noise[i])[0]
        total += density @ values
    return total


def divergence(K, h, A):
    """Return the divergence of N(h, A) from N(0, K)."""
    inverse = np.linalg.inv(K)
    value = np.trace(inverse @ A) + h @ inverse @ h - len(h)
    return 0.5 * (value + np.linalg.slogdet(K)[1] - np.linalg.slogdet(A)[1])


def variational_bound(K, h, A, y, b, v):
    """(13), whose value (27) is: E_Q ln P(D | f) less the divergence of Q = N(h, A)."""
    return expected_log_p(h, np.diagonal(A), y, b, v) - divergence(K, h, A)


def predicted_variance(K, k, kappa, W):
    """Evaluate (16) or (17), W being Lambda or Pi; k (m, n) and kappa = k(x, x),
    (m,)."""
    return kappa - np.einsum("ij,jk,ik->i", k, np.linalg.inv(K + np.diag(1 / W)), k)


def rank_probabilities(mean, var, b, noise):
    """Evaluate the objective (18) at a point."""
    edges = np.concatenate([[-np.inf], b, [np.inf]])
    z = (edges - np.asarray(mean)[:, None]) / np.sqrt(noise**2 + var)[:, None]
    with np.errstate(divide="ignore"):
        return np.exp(normal_log_mass(z[:, :-1], z[:, 1:]))


def fitc(K, columns):
    """Q and the diagonal that FITC adds to it: K_nm K_mm^-1 K_mn, diag(K - Q)."""
    K_nm = K[:, columns]
    Q = K_nm @ np.linalg.inv(K_nm[columns]) @ K_nm.T
    return Q, np.diagonal(K - Q)


# XOFM: (U), (P) and the definitions are those of ordinal.xofm


def xofm_encoding(x, knots, sizes, sign):
    """Phi of one row, piece by piece; `sizes` counts categories, None for numbers."""
    phi = []
    for value, b, size, s in zip(x, knots, sizes, sign, strict=True):
        missing = math.isnan(value)
        if size is not None:
            phi += [float(not missing and value == a) for a in range(size)]
        for a in range(len(b) - 1):
            left, right = b[a], b[a + 1]
            part = min(max((value - left) / (right - left), 0.0), 1.0)
            part = 1.0 - part if s < 0 else part
            phi.append(0.0 if missing else part)
        phi.append(float(missing))
    return np.array(phi)


def xofm_score(phi, feature, u, V):
    """(U), with the number of the feature of every piece."""
    total = 0.0
    for a in range(len(phi)):
        total += u[a] * phi[a]
        for b in range(a + 1, len(phi)):
            if feature[a] != feature[b]:
                total += V[a] @ V[b] * phi[a] * phi[b]
    return total


def xofm_pairs(U, y, weight, tau):
    """The sum over pairs, its slope by U, and the weight of the pairs."""
    loss, M, slope = 0.0, 0.0, np.zeros(len(U))
    for i in range(len(U)):
        for j in range(len(U)):
            if y[i] > y[j]:
                w = weight[i] * weight[j]
                short = max(0.0, tau - U[i] + U[j])
                loss += 0.5 * w * short**2
                slope[i] -= w * short
                slope[j] += w * short
                M += w
    return loss, slope, M


def xofm_interval(U, scores, y, weight):
    """L and R of Definition 4, of the ranks with weight; L may be above R."""
    rows = [(s, k) for s, k, v in zip(scores, y, weight, strict=True) if v > 0]
    low, high = min(k for _, k in rows), max(k for _, k in rows)
    L = max([low] + [k for s, k in rows if s <= U])
    R = min([high] + [k for s, k in rows if s >= U])
    return L, R


def xofm_kappa(U, h, scores, y, weight, tau):
    """Return kappa of Definition 5 for scores."""
    far, others = 0.0, 0.0
    for s, k, v in zip(scores, y, weight, strict=True):
        if k != h:
            others += v
            far += v * ((k < h and U - s > tau) or (k > h and s - U > tau))
    return far / others


# TLS-SVOR: (P) and (4) are those of ordinal.tlssvor; x = (b, w)


def tlssvor_p(s, u, eta):
    """p as (4) of the paper has it, piece by piece."""
    if s >= u + eta:
        return u
    if s > u - eta:
        z = s - u
        return z**4 / (16 * eta**3) - 3 * z**2 / (8 * eta) + z / 2 + u - 3 * eta / 16
    if s >= eta:
        return s
    if s > -eta:
        return -((s + eta) ** 3) * (s - 3 * eta) / (16 * eta**3)
    return 0.0


def tlssvor_psi(K, b, w, s, width, price, C, u, eta):
    """(P) for s_ij and the weights of the terms, (T, n); price of the entries of x."""
    total = price @ np.concatenate([b, w]) ** 2 / (2 * C)
    f = K @ w
    for j, threshold in enumerate(b):
        for value, sign, v in zip(f, s[j], width[j], strict=True):
            total += v * tlssvor_p(1 - sign * (value - threshold), u, eta) ** 2
    return total


# Cumulative models: (P) is that of `ordinal.linear`; x = (alpha, nu, beta, zeta)

DISTRIBUTIONS = {  # of the noise, by link
    "logit": stats.logistic, "probit": stats.norm, "cloglog": stats.gumbel_l,
    "loglog": stats.gumbel_r, "cauchit": stats.cauchy,
}  # fmt: skip
TAILS = {  # F and 1 - F of the links
    "logit": (special.expit, lambda t: special.expit(-t)),
    "probit": (special.ndtr, lambda t: special.ndtr(-t)),
    "cloglog": (lambda t: -np.expm1(-np.exp(t)), lambda t: np.exp(-np.exp(t))),
    "loglog": (lambda t: np.exp(-np.exp(-t)), lambda t: -np.expm1(-np.exp(-t))),
    "cauchit": (stats.cauchy.cdf, stats.cauchy.sf),
}


def cumulative_terms(link, a, b):
    """log(F(a) - F(b)) for b < a, through whichever tail of F is the lighter."""
    below, above = TAILS[link]
    with np.errstate(over="ignore"):  # of exp in exp
        return np.log(np.where(a < 0, below(a) - below(b), above(b) - above(a)))


def threshold_columns(threshold, T):
    """J: the structures of the thresholds as R's clm has them."""
    if threshold == "flexible":
        return np.eye(T)
    if threshold == "equidistant":
        return np.column_stack([np.ones(T), np.arange(T)])
    J = []  # symmetric: the middle, or the middle two, and distances from there
    for j in range(T):
        mirrored = T - 1 - j
        if T % 2:
            row = [1.0] + [0.0] * (T // 2)
            distance = abs(j - mirrored) // 2
            first = 0
        else:
            row = [float(j < mirrored), float(j > mirrored)] + [0.0] * (T // 2 - 1)
            distance = (abs(j - mirrored) - 1) // 2
            first = 1
        if distance:
            row[first + distance] = 1.0 if j > mirrored else -1.0
        J.append(row)
    return np.array(J)


def cumulative_edges(x, T, threshold, location, nominal, scale, offset):
    """eta, (n, T + 2), with -inf and inf at its ends."""
    J = threshold_columns(threshold, T)
    q, m = J.shape[1], nominal.shape[1]
    alpha, nu, rest = x[:q], x[q : q + q * m].reshape(q, m), x[q + q * m :]
    beta, zeta = rest[: location.shape[1]], rest[location.shape[1] :]
    eta = J @ alpha - nominal @ (J @ nu).T - (location @ beta + offset)[:, None]
    eta = eta / np.exp(scale @ zeta)[:, None]
    end = np.full((len(eta), 1), np.inf)
    return np.hstack([-end, eta, end])


def cumulative_loglik(x, y, weight, link, *structure):
    """The log likelihood of ranks 0..T; `structure` is that of cumulative_edges."""
    eta = cumulative_edges(x, *structure)
    row = np.arange(len(y))
    return float(weight @ cumulative_terms(link, eta[row, y + 1], eta[row, y]))


def ratio_probabilities(family, link, eta):
    """Probabilities of the ranks from the conditional ones, (n, T + 1), of stopping
    ratio and adjacent categories models."""
    F, rest = (tail(eta) for tail in TAILS[link])
    one = np.ones((len(eta), 1))
    if family == "stopping":
        return np.hstack([F, one]) * np.cumprod(np.hstack([one, rest]), axis=1)
    odds = F if family == "backward" else F / rest
    P = np.hstack([np.cumprod(odds[:, ::-1], axis=1)[:, ::-1], one])
    if family == "backward":
        return P * np.hstack([one, rest])
    return P / P.sum(axis=1, keepdims=True)
