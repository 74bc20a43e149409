"""Block coordinate descent for hierarchical effects of features and of pairs of them.

The effects x are those of d features, x_j, and of K pairs, x_(d+k), where pair k
consists of the features first_k and second_k. They are sums of parts,

    x_j = own_j + sum of parts_k0 over pairs with first_k = j
                + sum of parts_k1 over pairs with second_k = j,     x_(d+k) = parts_k2

    min  q(x) + price sum_j |own_j| + pair_price sum_k |parts_k|                     (1)

with q a convex quadratic of Hessian H. A step minimises (1) over own_j, or an upper
bound of (1) over the three parts of a pair. The largest eigenvalue of their block of H
is at most L, its largest row sum of absolute values. With the slopes s of the three
effects, the minimiser of the bound is

    parts_k  =  max(0, 1 - pair_price / |v|) v / L,    v = L parts_k - s             (2)

which leaves parts_k at 0 if and only if that is the minimiser of (1) over parts_k.
"""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t


cdef inline void move(
    const double* H, Py_ssize_t m, Py_ssize_t j, double t, double* slope,
) noexcept nogil:
    """Update the slopes after a step t of x_j."""
    cdef Py_ssize_t i
    if t != 0:
        for i in range(m):
            slope[i] += t * H[j * m + i]


cdef double step_of_own(
    const double* H, Py_ssize_t m, Py_ssize_t j, double price, double* slope,
    double* own,
) noexcept nogil:
    """Minimise over own_j. Return twice a lower bound of the decrease of (1)."""
    cdef double h = H[j * m + j], v, there, t
    if not h > 0:
        return 0
    v = h * own[j] - slope[j]
    there = v - price if v > price else v + price if v < -price else 0.0
    t = there / h - own[j]
    own[j] += t
    if there == 0:
        own[j] = 0
    move(H, m, j, t, slope)
    return h * t * t


cdef double step_of_pair(
    const double* H, Py_ssize_t m, const Py_ssize_t* at, double price, double* slope,
    double* parts,
) noexcept nogil:
    """Make step (2) for a pair with effects at the indices `at`. Return twice a lower
    bound of the decrease of (1)."""
    cdef double L = 0, row, size = 0, shrunk, there, t, worth = 0
    cdef double[3] v
    cdef Py_ssize_t a, b
    for a in range(3):
        row = 0
        for b in range(3):
            row += fabs(H[at[a] * m + at[b]])
        L = row if row > L else L
    if not L > 0:
        return 0
    for a in range(3):
        v[a] = L * parts[a] - slope[at[a]]
        size += v[a] * v[a]
    size = sqrt(size)
    shrunk = (1 - price / size) / L if size > price else 0.0
    for a in range(3):
        there = shrunk * v[a]
        t = there - parts[a]
        parts[a] = there
        move(H, m, at[a], t, slope)
        worth += L * t * t
    return worth


def descend(
    const double[:, ::1] H not None,         # (m, m) positive semi-definite
    const int32_t[::1] first not None,       # (K,) features of the pairs, 0..m-K-1
    const int32_t[::1] second not None,      # (K,)
    double price,
    double pair_price,
    double tol,
    Py_ssize_t most,                         # largest number of sweeps
    double[::1] slope not None,              # IN-OUT (m,) of q at x
    double[::1] own not None,                # IN-OUT (m - K,)
    double[:, ::1] parts not None,           # IN-OUT (K, 3)
) -> tuple[int, float]:
    """Minimise (1) by sweeps, until the return values of the steps of one add up to at
    most tol. Return the number of sweeps, and that sum of the last one. O(m^2) per
    sweep."""
    cdef Py_ssize_t m = H.shape[0], K = first.shape[0], d = own.shape[0]
    cdef Py_ssize_t j, k, done = 0
    cdef Py_ssize_t[3] at
    cdef double worth = 0
    if not (m == H.shape[1] == slope.shape[0] == d + K and m > 0
            and K == second.shape[0] == parts.shape[0] and parts.shape[1] == 3):
        raise ValueError("descend: inconsistent array shapes")
    for k in range(K):
        if not (0 <= first[k] < d and 0 <= second[k] < d):
            raise ValueError("descend: a pair of features that are not there")
    with nogil:
        while done < most:
            worth = 0
            for j in range(d):
                worth += step_of_own(&H[0, 0], m, j, price, &slope[0], &own[0])
            for k in range(K):
                at[0], at[1], at[2] = first[k], second[k], d + k
                worth += step_of_pair(
                    &H[0, 0], m, at, pair_price, &slope[0], &parts[k, 0]
                )
            done += 1
            if worth <= tol:
                break
    return done, worth
