"""Slow, independent answers from the formulas: nothing here imports ordinal.

(P), (D) and (GAP) are those of ordinal/npsvor.py, (Q) and (KKT) of ordinal/_smo.py.
Rows, ranks and costs are looked at one by one, on purpose.
"""

import math

import numpy as np
from scipy import optimize

# Kernels


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
    raise AssertionError(kernel)


def kernel_matrix(kernel, A, B):
    A, B = np.asarray(A).tolist(), np.asarray(B).tolist()
    return np.array([[kernel_value(kernel, a, b) for b in B] for a in A])


# NPSVOR


def npsvor_boxes(y, k, C1, C2, epsilon, weight, cost):
    """lo, hi and the slopes of phi left and right of 0, of (D) for rank k."""
    terms = []
    for rank, v in zip(y, weight, strict=True):
        if rank == k:
            terms.append((-C1 * v, C1 * v, -epsilon, epsilon))
        elif rank < k:
            terms.append((-C2 * v * cost[rank][k], 0.0, 1.0, 1.0))
        else:
            terms.append((0.0, C2 * v * cost[rank][k], -1.0, -1.0))
    return tuple(np.array(column) for column in zip(*terms, strict=True))


def npsvor_primal(f, w_squared, y, k, C1, C2, epsilon, weight, cost):
    """(P) at the values f of a hyperplane on the training rows."""
    total = 0.5 * w_squared
    for value, rank, v in zip(f, y, weight, strict=True):
        if rank == k:
            total += C1 * v * max(0.0, abs(value) - epsilon)
        else:
            s = -1.0 if rank < k else 1.0
            total += C2 * cost[rank][k] * v * max(0.0, 1.0 - s * value)
    return total


def npsvor_dual(K, g, y, k, epsilon):
    """The value of -(D)."""
    total = 0.5 * g @ K @ g
    for value, rank in zip(g, y, strict=True):
        if rank == k:
            total += epsilon * abs(value)
        else:
            total += value if rank < k else -value
    return -total


def npsvor_admm(K, lo, hi, pn, pp, rho, e_abs, e_rel, max_iter):
    """Algorithm 2 for one rank, step by step: (g, b, iterations, ratio)."""
    n = len(K)
    M = rho * np.linalg.inv(K + rho * np.eye(n))
    m = M.sum(axis=1)
    z, u = np.zeros(n), np.zeros(n)
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
    return g, rho * multiple, n_iter, ratio


def nearest_feasible(g, lo, hi):
    """The point of the box with sum 0 that is nearest to g."""

    def excess(t):
        return np.clip(g - t, lo, hi).sum()

    low, high = (g - hi).min() - 1, (g - lo).max() + 1
    if excess(low) == 0 or excess(high) == 0:  # the box itself has no room
        return np.clip(g - (low if excess(low) == 0 else high), lo, hi)
    return np.clip(g - optimize.brentq(excess, low, high, xtol=1e-15), lo, hi)


# The general problem (Q)


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
    """The objective of (Q)."""
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
    """What double precision leaves of a sum like those above."""
    f = np.abs(K) @ np.abs(g)
    return 1e-13 * (np.abs(g) @ f + hi_minus_lo.sum() * (1 + f.max()))


def qp_optimum(K, lo, hi, pn, pp):
    """Value of (Q) by a general-purpose solver, in g = p - q; lo <= 0 <= hi.

    What it finds is feasible, so that its value can be too high, never too low.
    """
    n = len(K)

    def value(x):
        g = x[:n] - x[n:]
        f = K @ g
        return 0.5 * g @ f + pp @ x[:n] - pn @ x[n:], np.concatenate([f + pp, -f - pn])

    ones = np.concatenate([np.ones(n), -np.ones(n)])
    out = optimize.minimize(
        value,
        np.zeros(2 * n),
        jac=True,
        method="SLSQP",
        bounds=[(0, v) for v in np.concatenate([hi, -lo])],
        constraints={"type": "eq", "fun": lambda x: ones @ x, "jac": lambda x: ones},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    # 8: no descent left to be found, the usual end on a flat optimum
    assert out.success or out.status == 8, out.message
    return out.fun


# SVOR: (P), (D), (KKT) are those of ordinal/svor.py and ordinal/_thresholds.py; arrays
# over (threshold, row) have shape (T, n)


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


def svor_optimum(K, s, width, price, method):
    """Value of (D) by a general-purpose solver, over a.

    What it finds is feasible, so that its value can be too low, never too high.
    """
    T, n = s.shape
    signs = s.ravel()
    sums = np.kron(np.eye(T), np.ones(n)) * signs  # (T, T n): sum_i s_ij a_ij

    def value(a):
        beta, total = (signs * a).reshape(T, n).sum(axis=0), sums @ a
        f = K @ beta
        out, slope = 0.5 * beta @ f - a.sum(), (s * f).ravel() - 1
        if method == "redsvm":
            z = -total / price
            out, slope = out + 0.5 * price @ z**2, slope - sums.T @ z
        return out, slope

    def linear(kind, A):
        return {"type": kind, "fun": lambda a: A @ a, "jac": lambda a: A}

    below = np.cumsum(sums, axis=0)  # of these, -mu
    constraints = {
        "svorim": [linear("eq", sums)],
        "shashua_levin": [linear("eq", sums)],
        "svorex": [linear("ineq", -below[:-1]), linear("eq", below[-1:])],
        "redsvm": [],
    }[method]
    out = optimize.minimize(
        value,
        np.zeros(T * n),
        jac=True,
        method="SLSQP",
        bounds=[(0, C) for C in width.ravel()],
        constraints=constraints,
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    # 8: no descent left to be found, the usual end on a flat optimum
    assert out.success or out.status == 8, out.message
    return -out.fun


def svor_rounding(K, g, width, b):
    """What double precision leaves of the sums of (P) and (D)."""
    beta = np.abs(g).sum(axis=0)
    f = np.abs(K) @ beta
    largest = 1 + f.max() + np.abs(b).max()
    return 1e-13 * (beta @ f + width.sum() * largest + b @ b)


# XOFM: (U), (P) and the definitions are those of ordinal/xofm.py


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
    """kappa of Definition 5."""
    far, others = 0.0, 0.0
    for s, k, v in zip(scores, y, weight, strict=True):
        if k != h:
            others += v
            far += v * ((k < h and U - s > tau) or (k > h and s - U > tau))
    return far / others
