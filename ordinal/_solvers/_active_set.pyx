"""An active-set method for the quadratic programs of `_pair_smo.pyx`.

    min_g  1/2 beta'K beta + sum_e phi_e(g_e) [+ 1/2 sum_j curvature_j z_j^2]
    s.t.   lo <= g <= hi  and, for each group j,  sum_i g_ij [+ z_j] = 0

Symbols as there: entry e = j n + i is g_ij and e = T n + j is z_j; phi_e has slope pn_e
left of 0 and pp_e right of it, so that g_e has one linear piece or two; d_e = f_i +
phi_e', or z_j curvature_j, is the derivative by g_e.

F holds the m free entries, those inside their pieces, and H is the inverse of
[[0, E'], [E, K_FF]], where E sums the groups. Where d = b_j for all of F, with a b for
each group, the point is the minimiser on its face. H depends on K and F alone: it
serves all fits of a path. A group without entries in F has no row in H. The steps:

1. `minimise_on_face`: go to where d = b for all of F; entries that meet an end of their
   piece on the way leave F.
2. `find_entering`: an entry outside F with d < b that can grow, or d > b that can
   shrink; if there is none to within tol, this is the optimum.
3. `bring_in`: move it until its d is b, it meets an end, or one of F does. By the unit,

       F changes by -(H k)_F, b by (H k)_b and e's d - b by s = K_ii - k'H k,

   k = [E_e, K_Fe], and H is bordered by e or loses the row of the one that met an end
   (Scheinberg, JMLR 7:2237-2257, 2006). Again from 1.

A pivot, which is one move along such a direction, takes O(m^2 + m n). It replaces many
steps of SMO where few entries have yet to change sides.

Termination. A move of positive length lowers the objective, and the minimum on a face
is visited once. At most DEGENERATE consecutive moves may have length 0, REFINEMENTS
limits step 1, and the caller limits the number of pivots. If rounding errors have
spoilt H, it is computed again, once.
"""
from libc.math cimport INFINITY, fabs, fmax, fmin
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from ._simd cimport simd, simd_loops

import numpy as np

cdef double RIDGE = 1e-10       # of the mean diagonal: equal rows make K_FF singular
cdef double SIDE = 0.45         # times tol: how far d may lie beyond b on either side
cdef double SETTLED = 0.1       # times tol: largest |d - b| within F at the minimum
cdef int REFINEMENTS = 6        # Newton steps on a face before H counts as spoilt
cdef int DEGENERATE = 30        # consecutive moves that may have length 0


cdef enum:
    SOLVED, LIMIT, SPOILT       # outcomes; SPOILT: rounding errors have spoilt H
    NONE = -1                   # no such entry
    UNBOUNDED = -2              # the step is not finite, or meets no bound


cdef struct FreeSet:            # F and H
    Py_ssize_t m, room          # number of free entries, and their largest number
    Py_ssize_t stride           # of H: T + room
    double* H                   # (stride, stride): rows of the sums, then those of F
    int32_t* F                  # (room,) entries
    int32_t* row                # (room,) their rows of K
    double* side                # (room,) sign of their pieces: > 0 is right of 0
    int32_t* where              # (T n + T,) position in F, or -1
    Py_ssize_t* members         # (T,) number of entries of each group in F


cdef struct Scratch:
    double* k                   # (stride,) a column of the bordered matrix
    double* h                   # (stride,) H k
    double* step                # (stride,) change of b and F along the direction
    double* off                 # (room,) d - b of the free entries
    double* moved               # (n,) change of beta not yet added to f
    int32_t* rows               # (n,) rows whose beta changed
    double* change              # (n,) and their changes
    float* R                    # (n,)
    float* L


cdef struct State:
    Py_ssize_t n, T             # rows, groups
    bint priced
    const double* K             # (n, n)
    double ridge
    const double* curvature     # (T,)
    FreeSet set
    Scratch w
    double* g                   # (T n + T,) variables of the current problem
    double* f                   # (n,)
    double* b                   # (T,)
    const double* lo
    const double* hi
    const double* pn
    const double* pp
    double tol
    Py_ssize_t turn             # the group that was searched last
    int pivots, most            # number of moves, and its limit
    int degenerate              # consecutive moves of length 0
    const simd_loops* ops


cdef struct Entering:
    Py_ssize_t e
    double sign                 # 1 if it should grow, -1 if it should shrink
    double apart                # |d - b|


cdef inline Py_ssize_t group_of(State* p, Py_ssize_t e) noexcept nogil:
    return e // p.n if e < p.T * p.n else e - p.T * p.n


cdef inline bint has_row(State* p, Py_ssize_t e) noexcept nogil:
    return e < p.T * p.n


cdef inline bint inside(State* p, Py_ssize_t e) noexcept nogil:
    if not has_row(p, e):
        return p.priced
    return p.lo[e] < p.g[e] < p.hi[e] and (p.g[e] != 0 or p.pn[e] == p.pp[e])


cdef inline bint is_right(State* p, Py_ssize_t e, double side) noexcept nogil:
    """Return whether e lies on its piece right of 0; at 0, `side` decides."""
    return p.g[e] > 0 or (p.g[e] == 0 and side > 0)


cdef inline double end_of(
    State* p, Py_ssize_t e, double side, double direction,
) noexcept nogil:
    """Return the end of e's piece in `direction`: a bound, or the kink at 0."""
    if not has_row(p, e):
        return direction * INFINITY
    cdef bint kink = p.pn[e] != p.pp[e], right = is_right(p, e, side)
    if direction > 0:
        return fmin(p.hi[e], 0) if kink and not right else p.hi[e]
    return fmax(p.lo[e], 0) if kink and right else p.lo[e]


cdef inline double slope_at(State* p, Py_ssize_t e, double side) noexcept nogil:
    """Return d of entry e, the derivative of the objective by it."""
    if not has_row(p, e):
        return p.g[e] * p.curvature[group_of(p, e)]
    return p.f[e % p.n] + (p.pp[e] if is_right(p, e, side) else p.pn[e])


cdef inline double diagonal(State* p, Py_ssize_t e) noexcept nogil:
    if not has_row(p, e):
        return p.curvature[group_of(p, e)]
    return p.K[(e % p.n) * (p.n + 1)] + p.ridge


# H

cdef inline double* at(State* p, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Return the address of H[a, b]; only the lower triangle is stored."""
    return p.set.H + (a * p.set.stride + b if a > b else b * p.set.stride + a)


cdef double column(State* p, Py_ssize_t e) noexcept nogil:
    """Compute k and h = H k for entry e; return the curvature s of its direction."""
    cdef Py_ssize_t a, N = p.T + p.set.m, i = e % p.n
    cdef double s = diagonal(p, e)
    memset(p.w.k, 0, N * sizeof(double))
    if p.set.members[group_of(p, e)]:
        p.w.k[group_of(p, e)] = 1
    if has_row(p, e):
        for a in range(p.set.m):
            if has_row(p, p.set.F[a]):
                p.w.k[p.T + a] = p.K[i * p.n + p.set.row[a]]
    p.ops.symmetric_product(p.set.H, p.set.stride, p.w.k, p.w.h, N)
    for a in range(N):
        s -= p.w.k[a] * p.w.h[a]
    return s


cdef void add(State* p, Py_ssize_t e, double side, double s) noexcept nogil:
    """Add entry e to F, on `side` of 0; `column` has just returned s for it."""
    cdef Py_ssize_t a, N = p.T + p.set.m, j = group_of(p, e)
    cdef double* new = p.set.H + N * p.set.stride
    if p.set.members[j]:
        p.ops.rank_one(p.set.H, p.set.stride, p.w.h, 1 / s, N)
        for a in range(N):
            new[a] = -p.w.h[a] / s
        new[N] = 1 / s
    else:                       # the constraint of its group alone determines it
        for a in range(N):
            at(p, j, a)[0] = -p.w.h[a]
        at(p, j, j)[0] = -s
        memset(new, 0, (N + 1) * sizeof(double))
        new[j] = 1
    p.set.F[p.set.m], p.set.row[p.set.m] = e, e % p.n if has_row(p, e) else 0
    p.set.side[p.set.m], p.set.where[e] = side, <int32_t>p.set.m
    p.set.members[j] += 1
    p.set.m += 1


cdef bint remove(State* p, Py_ssize_t a, double* s) noexcept nogil:
    """Remove position a from F and downdate H, and h and s of the last `column`.
    Return False if H turns out to be spoilt."""
    cdef Py_ssize_t c, N = p.T + p.set.m, q = p.T + a, last = N - 1, e = p.set.F[a]
    cdef Py_ssize_t j = group_of(p, e)
    cdef double by, pivot = at(p, q, q)[0]
    p.set.members[j] -= 1
    if p.set.members[j]:
        if not 0 < pivot < INFINITY:
            return False
        for c in range(N):
            p.w.k[c] = at(p, q, c)[0]
        p.ops.rank_one(p.set.H, p.set.stride, p.w.k, -1 / pivot, N)
        by = p.w.h[q] / pivot
        s[0] += p.w.h[q] * by
        for c in range(N):
            p.w.h[c] -= by * p.w.k[c]
    else:                       # the constraint of its group alone determined it
        for c in range(N):
            at(p, j, c)[0] = 0
    if q != last:
        for c in range(last):
            at(p, q, c)[0] = at(p, last, c)[0]
        at(p, q, q)[0] = at(p, last, last)[0]
        p.w.h[q] = p.w.h[last]
        c = p.set.m - 1
        p.set.F[a], p.set.row[a] = p.set.F[c], p.set.row[c]
        p.set.side[a] = p.set.side[c]
        p.set.where[p.set.F[a]] = <int32_t>a
    p.set.where[e] = -1
    p.set.m -= 1
    return True


cdef void clear(State* p) noexcept nogil:
    """Make F empty."""
    cdef Py_ssize_t a
    for a in range(p.set.m):
        p.set.where[p.set.F[a]] = -1
    p.set.m = 0
    memset(p.set.members, 0, p.T * sizeof(Py_ssize_t))
    for a in range(p.T):
        memset(p.set.H + a * p.set.stride, 0, p.T * sizeof(double))


cdef bint collect_free(State* p) noexcept nogil:
    """Set F to the entries inside their pieces. Return False if there is no room."""
    cdef Py_ssize_t e, a, entries = p.T * p.n + (p.T if p.priced else 0)
    cdef double s = 0
    for a in range(p.set.m - 1, -1, -1):
        if not inside(p, p.set.F[a]) and not remove(p, a, &s):
            clear(p)
            break
    for e in range(entries - 1, -1, -1):
        if p.set.where[e] < 0 and inside(p, e):
            if p.set.m == p.set.room:
                return False
            s = column(p, e)
            # a nearly dependent entry stays out; `find_entering` finds it if it matters
            if s > 0.5 * p.ridge or not p.set.members[group_of(p, e)]:
                add(p, e, p.g[e], s)
    return True


# Moves

cdef bint keep_sums(State* p, Py_ssize_t e, double sign) noexcept nogil:
    """Correct the step so that it keeps the sum of every group to the last digit.
    Return False if the step is not finite."""
    cdef Py_ssize_t a, j
    cdef double all = 0
    cdef double* step = p.w.step + p.T
    for j in range(p.T):
        p.w.k[j] = 0
    if e >= 0:
        p.w.k[group_of(p, e)] = sign
    for a in range(p.set.m):
        p.w.k[group_of(p, p.set.F[a])] += step[a]
    for a in range(p.set.m):
        j = group_of(p, p.set.F[a])
        step[a] -= p.w.k[j] / p.set.members[j]
        all += step[a]
    return -INFINITY < all < INFINITY


cdef Py_ssize_t first_end(
    State* p, Py_ssize_t e, double sign, double* length,
) noexcept nogil:
    """Shorten `length` to where the first entry reaches the end of its piece along
    `step`. Return its position in F, m for e, or NONE."""
    cdef Py_ssize_t a, x, first = NONE
    cdef double t
    cdef double* step = p.w.step + p.T
    if e >= 0:
        t = fabs(end_of(p, e, sign, sign) - p.g[e])
        if t <= length[0]:
            length[0], first = t, p.set.m
    for a in range(p.set.m):
        if step[a] != 0:
            x = p.set.F[a]
            t = (end_of(p, x, p.set.side[a], step[a]) - p.g[x]) / step[a]
            if t < length[0]:
                length[0], first = t, a
    return first


cdef Py_ssize_t move_along(
    State* p, Py_ssize_t e, double sign, double* length,
) noexcept nogil:
    """Move along `step`, and entry e (unless e < 0) by `sign` per unit of length, until
    `length` or the first end of a piece. Set `length` to the length of the move. Return
    the entry that ended it as `first_end` does, or UNBOUNDED if there was no move."""
    cdef Py_ssize_t a, x, first
    cdef double t, left, right
    cdef double* step = p.w.step + p.T
    p.pivots += 1
    if not keep_sums(p, e, sign):
        return UNBOUNDED
    first = first_end(p, e, sign, length)
    if not length[0] < INFINITY:
        return UNBOUNDED
    for a in range(p.set.m):
        x, t = p.set.F[a], p.g[p.set.F[a]] + length[0] * step[a]
        if has_row(p, x):
            p.w.moved[p.set.row[a]] += length[0] * step[a]
        left, right = end_of(p, x, p.set.side[a], -1), end_of(p, x, p.set.side[a], 1)
        if a == first:
            t = right if step[a] > 0 else left
        p.g[x] = fmin(fmax(t, left), right)
    if e >= 0:
        p.w.moved[e % p.n] += length[0] * sign
        t, right = p.g[e] + sign * length[0], end_of(p, e, sign, sign)
        p.g[e] = right if first == p.set.m or sign * t > sign * right else t
    for a in range(p.T):
        p.b[a] += length[0] * p.w.step[a]
    return first


cdef void update_gradient(State* p) noexcept nogil:
    """Add the pending changes K moved to f."""
    cdef Py_ssize_t i, count = 0
    for i in range(p.n):
        if p.w.moved[i] != 0:
            p.w.rows[count], p.w.change[count] = <int32_t>i, p.w.moved[i]
            p.w.moved[i] = 0
            count += 1
    p.ops.combine_rows(p.f, p.K, p.n, p.w.rows, p.w.change, count, p.n)


# The algorithm

cdef double set_residual(State* p) noexcept nogil:
    """Compute off = d - b of the free entries, with b_j = d of the last entry of group
    j, so that the differences are small. Return the largest absolute value."""
    cdef Py_ssize_t a, e
    cdef double apart = 0
    for a in range(p.set.m):
        e = p.set.F[a]
        p.b[group_of(p, e)] = slope_at(p, e, p.set.side[a])
    for a in range(p.set.m):
        e = p.set.F[a]
        p.w.off[a] = slope_at(p, e, p.set.side[a]) - p.b[group_of(p, e)]
        apart = fmax(apart, fabs(p.w.off[a]))
    return apart


cdef int newton_step(State* p) noexcept nogil:
    """Make a Newton step to the minimiser on the face. Entries that reach the end of
    their piece on the way leave F, and the rest of the step is computed again."""
    cdef Py_ssize_t a, N, first = 0
    cdef double length
    while first != NONE:
        if p.pivots >= p.most:
            return LIMIT
        N, length = p.T + p.set.m, 1
        memset(p.w.k, 0, p.T * sizeof(double))
        memcpy(p.w.k + p.T, p.w.off, p.set.m * sizeof(double))
        p.ops.symmetric_product(p.set.H, p.set.stride, p.w.k, p.w.h, N)
        for a in range(N):
            p.w.step[a] = p.w.h[a] if a < p.T else -p.w.h[a]
        first = move_along(p, NONE, 0, &length)
        if first == UNBOUNDED:
            return SPOILT
        if first != NONE:
            p.w.off[first] = p.w.off[p.set.m - 1]
            for a in range(p.set.m):
                p.w.off[a] *= 1 - length
            if not remove(p, first, &length):
                return SPOILT
    return SOLVED


cdef int minimise_on_face(State* p) noexcept nogil:
    """Minimise over F (d = b for all of F) by a Newton step and its refinements."""
    cdef int refinements, outcome
    for refinements in range(REFINEMENTS + 1):
        update_gradient(p)
        if set_residual(p) <= SETTLED * p.tol:
            return SOLVED
        if refinements < REFINEMENTS:
            outcome = newton_step(p)
            if outcome != SOLVED:
                return outcome
    return SPOILT


cdef bint find_in_group(State* p, Py_ssize_t j, Entering* out) noexcept nogil:
    """Find the entry of group j outside F that violates d = b_j most. Return whether
    its violation exceeds the tolerance."""
    cdef Py_ssize_t at, waiting, base = j * p.n
    cdef double R, L, most = SIDE * p.tol
    cdef bint found = False
    p.ops.smo_scan(p.g + base, p.f, p.lo + base, p.hi + base, p.pn + base, p.pp + base,
                   p.b[j], p.w.R, p.w.L, p.n, &R, &L, &waiting)
    if not p.set.members[j]:
        if L - R > 2 * SIDE * p.tol:
            # without free entries b_j may be any value in between; b_j = R frees e
            out.e = base + p.ops.find(p.w.R, <float>(R - p.b[j]), p.n)
            out.sign, out.apart = 1, 0
            return True
        return False
    if p.b[j] - R > most:
        most = p.b[j] - R
        at = p.ops.find(p.w.R, <float>(R - p.b[j]), p.n)
        if at >= 0 and p.set.where[base + at] < 0:
            out.e, out.sign, out.apart, found = base + at, 1, most, True
    if L - p.b[j] > most:
        most = L - p.b[j]
        at = p.ops.find(p.w.L, <float>(L - p.b[j]), p.n)
        if at >= 0 and p.set.where[base + at] < 0:
            out.e, out.sign, out.apart, found = base + at, -1, most, True
    return found


cdef bint find_entering(State* p, Entering* out) noexcept nogil:
    """Find a violating entry, group by group in turn. Return whether there is one."""
    for _ in range(p.T):
        p.turn = (p.turn + 1) % p.T
        if find_in_group(p, p.turn, out):
            return True
    return False


cdef int bring_in(State* p, Entering* entering) noexcept nogil:
    """Move an entry until it joins F or reaches the end of its piece."""
    cdef Py_ssize_t a, first, e = entering.e, j = group_of(p, e)
    cdef double length, s = column(p, e)
    while True:
        if not p.set.members[j]:          # no entry compensates its move: b_j = d_e
            update_gradient(p)
            p.b[j] = slope_at(p, e, entering.sign)
            add(p, e, entering.sign, column(p, e))
            p.pivots += 1
            p.degenerate += 1
            return SOLVED
        for a in range(p.T + p.set.m):
            p.w.step[a] = (1 if a < p.T else -1) * entering.sign * p.w.h[a]
        length = entering.apart / s if s > 0.5 * p.ridge else INFINITY
        first = move_along(p, e, entering.sign, &length)
        if first == UNBOUNDED:
            return SPOILT
        p.degenerate = 0 if length > 0 else p.degenerate + 1
        if first == NONE:
            add(p, e, entering.sign, s)
            return SOLVED
        if first == p.set.m:
            return SOLVED
        entering.apart -= length * s
        if not remove(p, first, &s):
            return SPOILT
        if p.pivots >= p.most:
            return LIMIT


cdef int run(State* p) noexcept nogil:
    """Pivot until no entry violates optimality, or there were `most` pivots."""
    cdef Entering entering
    cdef int outcome = SOLVED
    p.degenerate = 0
    while outcome == SOLVED:
        outcome = minimise_on_face(p)
        if outcome != SOLVED or not find_entering(p, &entering):
            return outcome
        if p.set.m == p.set.room or p.pivots >= p.most or p.degenerate >= DEGENERATE:
            return LIMIT
        outcome = bring_in(p, &entering)
    return outcome


cdef class ActiveSet:
    """Free entries F and inverse H, for successive problems over the same K."""

    cdef State s
    cdef object arrays          # what the pointers point to

    def __init__(
        self,
        const double[:, ::1] K not None,       # (n, n)
        const double[::1] curvature not None,  # (T,) 1 / price, or zeros: not priced
        Py_ssize_t room,                       # largest number of free entries
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
        p.n, p.T, p.priced = n, T, curvature[0] > 0
        p.set.room, p.set.stride = room, stride
        p.K, p.curvature, p.set.H = &K[0, 0], &curvature[0], &H[0, 0]
        p.ridge = RIDGE * np.trace(K) / n
        p.set.F, p.set.row, p.w.rows = &i32[0], &i32[room], &i32[2 * room]
        p.set.where, p.set.members = &where[0], &members[0]
        p.b, p.w.k, p.w.h = &d[0], &d[T], &d[T + stride]
        p.w.step, p.w.off = &d[T + 2 * stride], &d[T + 3 * stride]
        p.set.side, p.w.moved = p.w.off + room, p.w.off + 2 * room
        p.w.change = p.w.moved + n
        p.w.R, p.w.L, p.ops = &s[0], &s[n], simd()
        clear(p)

    @property
    def size(self) -> int:
        """Number of free entries."""
        return self.s.set.m

    def free(self) -> tuple[np.ndarray, np.ndarray]:
        """Return F (m,) and H (T + m, T + m) for tests."""
        cdef Py_ssize_t N = self.s.T + self.s.set.m
        H = np.tril(np.asarray(self.arrays[2])[:N, :N])
        return np.array(self.arrays[3][: self.s.set.m]), H + np.tril(H, -1).T

    def minimise(
        self,
        double[::1] g not None,                # IN-OUT (T n,), (T n + T,) if priced
        double[::1] f not None,                # IN-OUT (n,)
        const double[::1] lo not None,         # as g
        const double[::1] hi not None,
        const double[::1] pn not None,
        const double[::1] pp not None,
        double tol,
        int most,
    ) -> int:
        """Improve the feasible point g until its violation is at most 0.9 tol, or for
        `most` pivots. Return the number of pivots, or 0 if H was spoilt twice."""
        cdef State* p = &self.s
        cdef int _attempt, outcome = SPOILT
        cdef Py_ssize_t entries = p.T * p.n + (p.T if p.priced else 0)
        if not (f.shape[0] == p.n and entries <= g.shape[0] == lo.shape[0]
                == hi.shape[0] == pn.shape[0] == pp.shape[0]):
            raise ValueError("minimise: inconsistent array shapes")
        p.g, p.f, p.lo, p.hi, p.pn, p.pp = (
            &g[0], &f[0], &lo[0], &hi[0], &pn[0], &pp[0])
        p.tol, p.pivots, p.most = tol, 0, most
        with nogil:
            for _attempt in range(2):           # the second attempt computes H again
                if collect_free(p):
                    outcome = run(p)
                if outcome != SPOILT:
                    break
                clear(p)
            update_gradient(p)
        return 0 if outcome == SPOILT else p.pivots
