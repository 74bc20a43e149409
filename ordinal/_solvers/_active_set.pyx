"""Active sets for the quadratic programs of `_pair_smo.pyx`.

    min_g  1/2 beta'K beta + sum_e phi_e(g_e) [+ 1/2 sum_j curvature_j z_j^2]
    s.t.   lo <= g <= hi  and, for each group j,  sum_i g_ij [+ z_j] = 0

beta_i = sum_j g_ij and f = K beta. Entry e = j n + i is g_ij, of row i, and e = T n + j
is z_j. phi_e has slope pn_e left of 0 and pp_e right of it, so that g_e has one piece
or two, and d_e = f_i + phi_e' or z_j curvature_j is the derivative by g_e.

F holds the m entries inside their pieces, and H is the inverse of [[0, E'], [E, K_FF]],
where E sums the groups. Where d = b_j for all of F, with a b for each group, the point
is the minimiser of its face. An entry e outside with d < b that can grow, or d > b that
can shrink, then moves until its d is b, it meets an end, or one of F does: by the unit,

    F changes by -(H k)_F, b by (H k)_b, e's d - b by s = K_ii - k'H k,  k = [E_e, K_Fe]

and H is bordered by e or loses the row of whoever met an end (Scheinberg, JMLR
7:2237-2257, 2006). A pivot takes O(m^2 + m n), and many times as many steps of SMO are
saved where few entries have yet to change sides. H depends on K alone: it serves all
fits of a path. A group without entries in F has its row left out of H.
"""
from libc.math cimport INFINITY, fabs, fmax, fmin
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from .simd cimport simd, simd_loops

import numpy as np

cdef double RIDGE = 1e-10       # of the mean diagonal: equal rows make K_FF singular
cdef double SIDE = 0.45         # of tol, that d may be beyond b to either side
cdef double SETTLED = 0.1       # of tol, that d may differ from b within F
cdef int REFINEMENTS = 6        # steps to that before H is taken for spoilt
cdef int IDLE = 30              # pivots in a row that may move nothing


cdef enum:
    SOLVED, LIMIT, SPOILT       # how pivoting ended
    NOBODY = -1                 # who met an end: a position in F, or this
    NOWHERE = -2                # the steps are no numbers, or know no end


cdef struct State:
    Py_ssize_t n, T, m, room    # rows, groups, free entries, and how many there may be
    Py_ssize_t stride           # of H: T + room
    Py_ssize_t turn             # the group that was looked at last
    bint priced
    const double* K             # (n, n)
    double ridge
    const double* curvature     # (T,)
    double* H                   # (stride, stride): rows of the sums, then those of F
    int32_t* F                  # (room,) entries
    int32_t* row                # (room,) their rows of K
    double* side                # (room,) of 0 that their pieces are on
    int32_t* where              # (T n + T,) position in F, -1 if it is not there
    Py_ssize_t* members         # (T,) of each group in F
    # the problem
    double* g                   # (T n + T,) by entry
    double* f                   # (n,)
    const double* lo
    const double* hi
    const double* pn
    const double* pp
    double tol
    # scratch
    double* b                   # (T,)
    double* k                   # (stride,) a column of the bordered matrix
    double* h                   # (stride,) H k
    double* step                # (stride,) change of b and F along the direction
    double* off                 # (room,) d less b of F, on the way to the minimum
    double* moved               # (n,) change of beta that f lacks
    int32_t* rows               # (n,) those that moved
    double* by                  # (n,) and by how much
    float* R                    # (n,)
    float* L
    const simd_loops* ops


cdef inline Py_ssize_t group_of(State* p, Py_ssize_t e) noexcept nogil:
    return e // p.n if e < p.T * p.n else e - p.T * p.n


cdef inline bint has_row(State* p, Py_ssize_t e) noexcept nogil:
    return e < p.T * p.n


cdef inline bint inside(State* p, Py_ssize_t e) noexcept nogil:
    if not has_row(p, e):
        return p.priced
    return p.lo[e] < p.g[e] < p.hi[e] and (p.g[e] != 0 or p.pn[e] == p.pp[e])


cdef inline bint is_right(State* p, Py_ssize_t e, double side) noexcept nogil:
    """Whether e's piece is right of 0; at 0 it is the one to that side."""
    return p.g[e] > 0 or (p.g[e] == 0 and side > 0)


cdef inline double end_of(
    State* p, Py_ssize_t e, double side, double direction,
) noexcept nogil:
    """Where e's piece ends in that direction."""
    if not has_row(p, e):
        return direction * INFINITY
    cdef bint kink = p.pn[e] != p.pp[e], right = is_right(p, e, side)
    if direction > 0:
        return fmin(p.hi[e], 0) if kink and not right else p.hi[e]
    return fmax(p.lo[e], 0) if kink and right else p.lo[e]


cdef inline double slope_at(State* p, Py_ssize_t e, double side) noexcept nogil:
    """d of entry e."""
    if not has_row(p, e):
        return p.g[e] * p.curvature[group_of(p, e)]
    return p.f[e % p.n] + (p.pp[e] if is_right(p, e, side) else p.pn[e])


cdef inline double diagonal(State* p, Py_ssize_t e) noexcept nogil:
    if not has_row(p, e):
        return p.curvature[group_of(p, e)]
    return p.K[(e % p.n) * (p.n + 1)] + p.ridge


# H

cdef inline double* at(State* p, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Entry a, b of H, whose lower triangle is kept."""
    return p.H + (a * p.stride + b if a > b else b * p.stride + a)


cdef double column(State* p, Py_ssize_t e) noexcept nogil:
    """k and h = H k for entry e; the curvature along its direction."""
    cdef Py_ssize_t a, N = p.T + p.m, i = e % p.n
    cdef double s = diagonal(p, e)
    memset(p.k, 0, N * sizeof(double))
    if p.members[group_of(p, e)]:
        p.k[group_of(p, e)] = 1
    if has_row(p, e):
        for a in range(p.m):
            if has_row(p, p.F[a]):
                p.k[p.T + a] = p.K[i * p.n + p.row[a]]
    p.ops.symmetric_product(p.H, p.stride, p.k, p.h, N)
    for a in range(N):
        s -= p.k[a] * p.h[a]
    return s


cdef void border(State* p, Py_ssize_t e, double side, double s) noexcept nogil:
    """Let entry e into F, to that side of 0, after `column` for it gave s."""
    cdef Py_ssize_t a, N = p.T + p.m, j = group_of(p, e)
    cdef double* new = p.H + N * p.stride
    if p.members[j]:
        p.ops.rank_one(p.H, p.stride, p.h, 1 / s, N)
        for a in range(N):
            new[a] = -p.h[a] / s
        new[N] = 1 / s
    else:                       # with the sum of its group, which then fixes it
        for a in range(N):
            at(p, j, a)[0] = -p.h[a]
        at(p, j, j)[0] = -s
        memset(new, 0, (N + 1) * sizeof(double))
        new[j] = 1
    p.F[p.m], p.row[p.m] = e, e % p.n if has_row(p, e) else 0
    p.side[p.m], p.where[e] = side, <int32_t>p.m
    p.members[j] += 1
    p.m += 1


cdef bint leave(State* p, Py_ssize_t a, double* s) noexcept nogil:
    """Take position a out of F, and out of h and s as `column` made them; whether H is
    sound."""
    cdef Py_ssize_t c, N = p.T + p.m, q = p.T + a, last = N - 1, e = p.F[a]
    cdef Py_ssize_t j = group_of(p, e)
    cdef double by, pivot = at(p, q, q)[0]
    p.members[j] -= 1
    if p.members[j]:
        if not 0 < pivot < INFINITY:
            return False
        for c in range(N):
            p.k[c] = at(p, q, c)[0]
        p.ops.rank_one(p.H, p.stride, p.k, -1 / pivot, N)
        by = p.h[q] / pivot
        s[0] += p.h[q] * by
        for c in range(N):
            p.h[c] -= by * p.k[c]
    else:                       # it was fixed by the sum of its group
        for c in range(N):
            at(p, j, c)[0] = 0
    if q != last:
        for c in range(last):
            at(p, q, c)[0] = at(p, last, c)[0]
        at(p, q, q)[0] = at(p, last, last)[0]
        p.h[q] = p.h[last]
        p.F[a], p.row[a], p.side[a] = p.F[p.m - 1], p.row[p.m - 1], p.side[p.m - 1]
        p.where[p.F[a]] = <int32_t>a
    p.where[e] = -1
    p.m -= 1
    return True


cdef void forget(State* p) noexcept nogil:
    """No entry is free."""
    cdef Py_ssize_t a
    for a in range(p.m):
        p.where[p.F[a]] = -1
    p.m = 0
    memset(p.members, 0, p.T * sizeof(Py_ssize_t))
    for a in range(p.T):
        memset(p.H + a * p.stride, 0, p.T * sizeof(double))


cdef bint gather(State* p) noexcept nogil:
    """Make F the entries inside their pieces; whether there is room for them."""
    cdef Py_ssize_t e, a, entries = p.T * p.n + (p.T if p.priced else 0)
    cdef double s = 0
    for a in range(p.m - 1, -1, -1):
        if not inside(p, p.F[a]) and not leave(p, a, &s):
            forget(p)
            break
    for e in range(entries - 1, -1, -1):
        if p.where[e] < 0 and inside(p, e):
            if p.m == p.room:
                return False
            s = column(p, e)
            # an entry that F does without is met again as one that should move
            if s > 0.5 * p.ridge or not p.members[group_of(p, e)]:
                border(p, e, p.g[e], s)
    return True


# Moves

cdef bint balance(State* p, Py_ssize_t e, double sign) noexcept nogil:
    """Take from the steps what rounding makes of the sums of the groups; whether these
    are numbers."""
    cdef Py_ssize_t a, j
    cdef double all = 0
    cdef double* step = p.step + p.T
    for j in range(p.T):
        p.k[j] = 0
    if e >= 0:
        p.k[group_of(p, e)] = sign
    for a in range(p.m):
        p.k[group_of(p, p.F[a])] += step[a]
    for a in range(p.m):
        j = group_of(p, p.F[a])
        step[a] -= p.k[j] / p.members[j]
        all += step[a]
    return -INFINITY < all < INFINITY


cdef Py_ssize_t move(
    State* p, Py_ssize_t e, double sign, double length, double* taken,
) noexcept nogil:
    """Go along `step`, with entry e by `sign` a unit if e >= 0, as far as `length` or
    the first end of a piece. Returns the position in F that met it, m for e, NOBODY or
    NOWHERE."""
    cdef Py_ssize_t a, x, first = NOBODY
    cdef double t, left, right
    cdef double* step = p.step + p.T
    if not balance(p, e, sign):
        return NOWHERE
    taken[0] = length
    if e >= 0:
        t = fabs(end_of(p, e, sign, sign) - p.g[e])
        if t <= length:
            taken[0], first = t, p.m
    for a in range(p.m):
        if step[a] != 0:
            x = p.F[a]
            t = (end_of(p, x, p.side[a], step[a]) - p.g[x]) / step[a]
            if t < taken[0]:
                taken[0], first = t, a
    if not taken[0] < INFINITY:
        return NOWHERE
    for a in range(p.m):
        if has_row(p, p.F[a]):
            p.moved[p.row[a]] += taken[0] * step[a]
    if e >= 0:
        p.moved[e % p.n] += taken[0] * sign
    for a in range(p.m):
        x, t = p.F[a], p.g[p.F[a]] + taken[0] * step[a]
        left, right = end_of(p, x, p.side[a], -1), end_of(p, x, p.side[a], 1)
        if a == first:
            t = right if step[a] > 0 else left
        p.g[x] = fmin(fmax(t, left), right)
    if e >= 0:
        t, right = p.g[e] + sign * taken[0], end_of(p, e, sign, sign)
        p.g[e] = right if first == p.m or sign * t > sign * right else t
    for a in range(p.T):
        p.b[a] += taken[0] * p.step[a]
    return first


cdef void update(State* p) noexcept nogil:
    """f after moves."""
    cdef Py_ssize_t i, count = 0
    for i in range(p.n):
        if p.moved[i] != 0:
            p.rows[count], p.by[count] = <int32_t>i, p.moved[i]
            p.moved[i] = 0
            count += 1
    p.ops.combine_rows(p.f, p.K, p.n, p.rows, p.by, count, p.n)


cdef int settle(State* p, int most, int* pivots) noexcept nogil:
    """Go to the minimiser of the face, where d = b for all of F."""
    cdef Py_ssize_t a, first, N
    cdef double apart, taken
    cdef int tries = 0
    while True:
        update(p)
        # relative to the last of each group: the differences are small
        for a in range(p.m):
            p.b[group_of(p, p.F[a])] = slope_at(p, p.F[a], p.side[a])
        apart = 0
        for a in range(p.m):
            p.off[a] = slope_at(p, p.F[a], p.side[a]) - p.b[group_of(p, p.F[a])]
            apart = fmax(apart, fabs(p.off[a]))
        if apart <= SETTLED * p.tol:
            return SOLVED
        if tries == REFINEMENTS:
            return SPOILT
        tries = tries + 1
        while True:             # along the way F loses who meets an end
            if pivots[0] >= most:
                return LIMIT
            N = p.T + p.m
            memset(p.k, 0, p.T * sizeof(double))
            memcpy(p.k + p.T, p.off, p.m * sizeof(double))
            p.ops.symmetric_product(p.H, p.stride, p.k, p.h, N)
            for a in range(N):
                p.step[a] = p.h[a] if a < p.T else -p.h[a]
            first = move(p, -1, 0, 1, &taken)
            pivots[0] += 1
            if first == NOBODY:
                break
            if first == NOWHERE:
                return SPOILT
            p.off[first] = p.off[p.m - 1]
            for a in range(p.m):
                p.off[a] *= 1 - taken
            if not leave(p, first, &taken):
                return SPOILT


cdef Py_ssize_t enters(State* p, double* sign, double* by) noexcept nogil:
    """The entry outside F whose d is beyond b by most, in the next group that has any
    beyond the tolerance, which way it should move, and by how much; or NOBODY."""
    cdef Py_ssize_t j, base, at, waiting, out = NOBODY
    cdef double R, L, most
    for _ in range(p.T):
        p.turn = j = (p.turn + 1) % p.T
        base = j * p.n
        p.ops.smo_scan(p.g + base, p.f, p.lo + base, p.hi + base, p.pn + base,
                       p.pp + base, p.b[j], p.R, p.L, p.n, &R, &L, &waiting)
        if not p.members[j] and L - R > 2 * SIDE * p.tol:
            # b is anywhere between: from R up, that entry is one of F
            sign[0], by[0] = 1, 0
            return base + p.ops.find(p.R, <float>(R - p.b[j]), p.n)
        if not p.members[j]:
            continue
        most = SIDE * p.tol
        if p.b[j] - R > most:
            most = p.b[j] - R
            at = p.ops.find(p.R, <float>(R - p.b[j]), p.n)
            if at >= 0 and p.where[base + at] < 0:
                out, sign[0], by[0] = base + at, 1, most
        if L - p.b[j] > most:
            most = L - p.b[j]
            at = p.ops.find(p.L, <float>(L - p.b[j]), p.n)
            if at >= 0 and p.where[base + at] < 0:
                out, sign[0], by[0] = base + at, -1, most
        if out != NOBODY:
            return out
    return NOBODY


cdef int pivot(State* p, int most, int* pivots) noexcept nogil:
    """Until no entry should move, or `most` times."""
    cdef Py_ssize_t e, j, a, first
    cdef double sign, by, s, taken
    cdef int idle = 0, outcome = settle(p, most, pivots)
    while outcome == SOLVED:
        e = enters(p, &sign, &by)
        if e == NOBODY:
            return SOLVED
        if p.m == p.room or pivots[0] >= most or idle >= IDLE:
            return LIMIT
        j, s = group_of(p, e), column(p, e)
        while True:
            pivots[0] += 1
            idle += 1
            if not p.members[j]:          # there is none to trade with: b is e's d
                update(p)
                p.b[j] = slope_at(p, e, sign)
                border(p, e, sign, column(p, e))
                break
            for a in range(p.T + p.m):
                p.step[a] = sign * p.h[a] if a < p.T else -sign * p.h[a]
            first = move(p, e, sign, by / s if s > 0.5 * p.ridge else INFINITY, &taken)
            if first == NOWHERE:
                return SPOILT
            if taken > 0:
                idle = 0
            if first == NOBODY:
                border(p, e, sign, s)
            if first == NOBODY or first == p.m:
                break
            by -= taken * s
            if not leave(p, first, &s):
                return SPOILT
            if pivots[0] >= most:
                return LIMIT
        outcome = settle(p, most, pivots)
    return outcome


cdef class ActiveSet:
    """F and H of one problem after the other over the same K."""

    cdef State s
    cdef object arrays          # what the pointers point to

    def __init__(
        self,
        const double[:, ::1] K not None,       # (n, n)
        const double[::1] curvature not None,  # (T,) 1 / price, or zeros: not priced
        Py_ssize_t room,                       # free entries at most
    ):
        cdef State* p = &self.s
        cdef Py_ssize_t n = K.shape[0], T = curvature.shape[0], stride = T + room
        if not (K.shape[1] == n > 0 and T > 0 and room > T):
            raise ValueError("ActiveSet: inconsistent array shapes")
        cdef double[:, ::1] H = np.empty((stride, stride))
        cdef int32_t[::1] i32 = np.zeros(2 * room + n, np.int32)
        cdef int32_t[::1] where = np.full(T * n + T, -1, np.int32)
        cdef double[::1] d = np.zeros(T + 3 * stride + 2 * (room + n))
        cdef float[::1] s = np.empty(2 * n, np.float32)
        cdef Py_ssize_t[::1] members = np.zeros(T, np.intp)
        self.arrays = (K, curvature, H, i32, where, d, s, members)
        memset(p, 0, sizeof(State))
        p.n, p.T, p.room, p.stride, p.priced = n, T, room, stride, curvature[0] > 0
        p.K, p.curvature, p.H = &K[0, 0], &curvature[0], &H[0, 0]
        p.ridge = RIDGE * np.trace(K) / n
        p.F, p.row, p.rows, p.where = &i32[0], &i32[room], &i32[2 * room], &where[0]
        p.members = &members[0]
        p.b, p.k, p.h = &d[0], &d[T], &d[T + stride]
        p.step, p.off = &d[T + 2 * stride], &d[T + 3 * stride]
        p.side, p.moved, p.by = p.off + room, p.off + 2 * room, p.off + 2 * room + n
        p.R, p.L, p.ops = &s[0], &s[n], simd()
        forget(p)

    @property
    def size(self):
        """Entries in F."""
        return self.s.m

    def face(self):
        """F (m,), and H (T + m, T + m), as tests look at them."""
        cdef Py_ssize_t N = self.s.T + self.s.m
        H = np.tril(np.asarray(self.arrays[2])[:N, :N])
        return np.array(self.arrays[3][: self.s.m]), H + np.tril(H, -1).T

    def minimise(
        self,
        double[::1] g not None,                # IN-OUT (T n + T,); (n,) if T = 1
        double[::1] f not None,                # IN-OUT (n,)
        const double[::1] lo not None,         # as g
        const double[::1] hi not None,
        const double[::1] pn not None,
        const double[::1] pp not None,
        double tol,
        int most,
    ):
        """Improve the feasible point g until its violation is at most 0.9 tol, or for
        `most` pivots; how many there were, or 0 if H was of no use."""
        cdef State* p = &self.s
        cdef int pivots = 0, outcome = SPOILT
        cdef Py_ssize_t entries = p.T * p.n + (p.T if p.priced else 0)
        if not (f.shape[0] == p.n and entries <= g.shape[0] == lo.shape[0]
                == hi.shape[0] == pn.shape[0] == pp.shape[0]):
            raise ValueError("minimise: inconsistent array shapes")
        p.g, p.f, p.lo, p.hi, p.pn, p.pp = (
            &g[0], &f[0], &lo[0], &hi[0], &pn[0], &pp[0])
        p.tol = tol
        with nogil:
            if gather(p):
                outcome = pivot(p, most, &pivots)
            if outcome == SPOILT:              # once more with a new H
                forget(p)
                if gather(p):
                    outcome = pivot(p, most, &pivots)
            if outcome == SPOILT:
                forget(p)
            update(p)
        return 0 if outcome == SPOILT else pivots
