"""Pair SMO in two levels for r - 1 thresholds; problem: ordinal/_thresholds.py.

    min_g  1/2 beta'K beta + sum_ij slope_ij g_ij [+ 1/2 sum_j z_j^2 / price_j]
    s.t.   lo <= g <= hi  and, for each j,

      sum_i g_ij = 0                            separate thresholds
      sum_i g_ij = mu_j - mu_(j+1),  mu >= 0    coupled: ordered thresholds
      sum_i g_ij + z_j = 0                      priced: price_j b_j^2 / 2 in the primal

beta_i = sum_j g_ij, f = K beta. An entry e = j n + i is a variable g_ij; e = T n + j is
z_j, which has a row of K of its own, 1 / price_j at itself and 0 elsewhere. With d =
f_i + slope_ij, or z_j / price_j,

    R_e = d where g_e < hi_e, else +inf      (growing g_e costs R_e)
    L_e = d where g_e > lo_e, else -inf      (shrinking it gains L_e)

Entry o may shrink for entry u to grow if they are of one threshold; coupled, also if
o's threshold is the lower one, which raises the mu between them, or if those mu are
all positive. The point is optimal iff violation = max (L_o - R_u) <= 0 over these.

Outer level: choose a block of the worst violators of every threshold, copy its part
of K, solve it by SMO inside the cache, add the changed rows of K to f in one sweep.
Inside a block R and L are floats relative to the middle of the violating interval of
their threshold. Thresholds are scanned, and strips of f updated, side by side; what
any of them computes does not depend on the number of threads.
"""
from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs, fmax, fmin
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from ._blocks cimport (
    DONE, LIMIT, NEWTON, READY, RUN, SMALL_BLOCK, STUCK, WAIT, BlockTask, Progress,
    admit, block_cost, falls, free_first, newton_is_due, on_probation, violators,
)
from .simd cimport SIMD_LANES, SMO_ETA_MIN, simd, simd_loops, simd_seconds

import numpy as np

cdef double INNER_RATIO = 0.2   # a block is solved to this part of the violation
cdef double UNSETTLED = 15      # times longer SMO is left to it where more wait
cdef double MU_DUST = 1e-13     # of a box's width: a mu that is 0 but for rounding
cdef Py_ssize_t STRIP = 2048    # entries of f that one thread updates


cdef struct State:
    Py_ssize_t n, T, q         # rows, thresholds, entries of the largest block
    bint coupled, priced
    const float* K             # rows of the kernel matrix, n entries each
    const int32_t* slot        # (n,) which row of K holds row i, -1 if none
    const double* diag
    double* g                  # (T n + T,) by entry
    const double* lo
    const double* hi
    const double* slope
    const double* curvature    # (T,) 1 / price
    double* mu                 # (T + 1,) mu[j] ties threshold j - 1 to j
    double* f                  # (n,)
    int32_t* block             # (q,) the last block, most recent entries first
    Py_ssize_t size
    # by threshold, (T,)
    double* R_min
    double* L_max
    double* low                # max L over the entries that may give to it
    double* up                 # min R over the entries that may take from it
    double* mid                # to which the floats R and L are relative
    Py_ssize_t* free
    Py_ssize_t* waiting
    Progress* at
    const simd_loops* ops
    # scratch
    float* R                   # (T n,) scan results
    float* L
    int32_t* order             # (T n,)
    int32_t* picks             # (T, 2, q) violators of each threshold: R, L
    Py_ssize_t* picked         # (T, 2)
    int32_t* keep              # (q,) the last block, free ones first
    int32_t* member            # (T n + T,) zeros; 1 where in the block
    Py_ssize_t* start          # (T + 1,) segments of the padded block
    int32_t* entry             # (room,) by padded position; -1 for padding
    int32_t* column            # (room,) its row of K
    const float** rows         # (room,)
    double* before             # (room,) g at entry
    double* delta              # (room,) change of g
    float* KB                  # (room, room) the block of K
    float* RB                  # (room,) R, L, diagonal and gain of the block
    float* LB
    float* DB
    float* gain
    float* RS                  # (T,) extremes of the segments
    float* LS


# Selection

cdef inline Py_ssize_t group_start(State* p, Py_ssize_t j) noexcept nogil:
    """First threshold that positive mu tie to j."""
    while p.coupled and p.mu[j] > 0:
        j -= 1
    return j


cdef inline Py_ssize_t group_stop(State* p, Py_ssize_t j) noexcept nogil:
    """One past the last threshold that positive mu tie to j."""
    j += 1
    while p.coupled and p.mu[j] > 0:
        j += 1
    return j


cdef void settle(State* p) noexcept nogil:
    """low, up and the violation from R_min and L_max."""
    cdef Py_ssize_t j, k
    cdef double low, up
    p.at.violation = -INFINITY
    for j in range(p.T):
        low, up = p.L_max[j], p.R_min[j]
        if p.coupled:
            for k in range(group_stop(p, j)):
                low = fmax(low, p.L_max[k])
            for k in range(group_start(p, j), p.T):
                up = fmin(up, p.R_min[k])
        p.low[j], p.up[j] = low, up
        p.at.violation = fmax(p.at.violation, low - up)


cdef void scan(State* p, Py_ssize_t j) noexcept nogil:
    """R, L, their extremes and the counts of threshold j."""
    cdef Py_ssize_t n = p.n, e = j * n
    cdef double d = p.g[p.T * n + j] * p.curvature[j], mid = 0.5 * (p.low[j] + p.up[j])
    p.mid[j] = mid if -INFINITY < mid < INFINITY else 0
    p.free[j] = p.ops.smo_scan(
        p.g + e, p.f, p.lo + e, p.hi + e, p.slope + e, p.slope + e, p.mid[j],
        p.R + e, p.L + e, n, &p.R_min[j], &p.L_max[j], &p.waiting[j],
    )
    if p.priced:
        p.R_min[j], p.L_max[j] = fmin(p.R_min[j], d), fmax(p.L_max[j], d)


cdef void pick(State* p, Py_ssize_t j, Py_ssize_t half) noexcept nogil:
    """Up to `half` entries of threshold j that should grow, and that should shrink."""
    cdef Py_ssize_t e = j * p.n, side, a
    cdef float end
    cdef int32_t* out
    for side in range(2):
        out = p.picks + (2 * j + side) * p.q
        p.picked[2 * j + side] = 0
        if p.low[j] - p.up[j] > p.at.tol:
            end = <float>((p.up[j] if side else p.low[j]) - p.mid[j])
            p.picked[2 * j + side] = violators(
                p.order + e, p.L + e if side else p.R + e, -1 if side else 1, end,
                p.n, half)
        for a in range(p.picked[2 * j + side]):
            out[a] = p.order[e + a] + <int32_t>e


cdef void choose(State* p, int n_threads) noexcept nogil:
    """Fill p.block: half of it new violators, the rest kept from before, free first.

    Sets the violation, and phase READY, or DONE at violation <= tol, or NEWTON.
    """
    cdef Py_ssize_t n = p.n, T = p.T, q, j, a, half, m = 0
    cdef Py_ssize_t active = 0, free = 0, waiting = 0
    for j in prange(T, schedule="static", num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        scan(p, j)
    settle(p)
    if not p.at.violation > p.at.tol:
        p.at.phase = DONE
        return
    if not progresses(p):
        p.at.phase = STUCK
        return
    for j in range(T):
        free += p.free[j]
        waiting += p.waiting[j]
        active += p.low[j] - p.up[j] > p.at.tol
    if newton_is_due(p.at, free, waiting, UNSETTLED, n):
        p.at.phase = NEWTON
        return

    # a block wider than the face that it moves on is read for little
    q = min(p.q, max(SMALL_BLOCK, 2 * free // SIMD_LANES * SIMD_LANES))

    free_first(p.block, p.size, p.g, p.lo, p.hi, p.keep)
    half = max(1, (q if p.size == 0 else q // 2) // (2 * active))
    for j in prange(T, schedule="static", num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        pick(p, j, half)
    for j in range(2 * T):
        m = admit(p.picks + j * p.q, p.picked[j], q - m, p.member, p.block, m)
    m = admit(p.keep, p.size, q - m, p.member, p.block, m)
    for a in range(m):
        p.member[p.block[a]] = 0
    p.size = m
    p.at.phase = READY


cdef bint progresses(State* p) noexcept nogil:
    """Whether it is worth going on from this f; the objective is of (Q)."""
    cdef Py_ssize_t i, j, e
    cdef double term, objective = 0, size = 0, largest = 0
    if on_probation(p.at):
        return True
    for j in range(p.T):
        for i in range(p.n):
            e = j * p.n + i
            term = p.g[e] * (0.5 * p.f[i] + p.slope[e])
            objective += term
            size += fabs(term)
            largest = fmax(largest, fabs(p.g[e]) * p.diag[i])
        term = 0.5 * p.g[p.T * p.n + j] ** 2 * p.curvature[j]
        objective += term
        size += term
    return falls(p.at, objective, size, largest)


cdef Py_ssize_t lay_out(State* p) noexcept nogil:
    """Positions of the block: a padded segment a threshold, rows of K increasing.

    Returns how many there are.
    """
    cdef Py_ssize_t n = p.n, T = p.T, i, j, a, e
    cdef int32_t some = p.block[0] % <int32_t>n
    for a in range(p.size):
        p.member[p.block[a]] = 1
    a = 0
    for j in range(T):
        p.start[j] = a
        for i in range(n):
            e = j * n + i
            if p.member[e]:
                p.member[e] = 0
                p.entry[a], p.column[a] = e, i
                a += 1
        if p.priced:
            p.entry[a], p.column[a] = T * n + j, some
            a += 1
        while a % SIMD_LANES:
            p.entry[a], p.column[a] = -1, some
            a += 1
    p.start[T] = a
    for i in range(a):
        p.rows[i] = p.K + <Py_ssize_t>p.slot[p.column[i]] * n
    return a


# SMO within a block

cdef inline void place(State* p, Py_ssize_t a, double d, double mid) noexcept nogil:
    """Set R and L of block position a from d."""
    cdef Py_ssize_t e = p.entry[a]
    p.RB[a] = <float>(d - mid) if p.g[e] < p.hi[e] else INFINITY
    p.LB[a] = <float>(d - mid) if p.g[e] > p.lo[e] else -INFINITY


cdef inline double read(State* p, Py_ssize_t a, double mid) noexcept nogil:
    """d of block position a, from whichever of R and L is finite."""
    cdef Py_ssize_t e = p.entry[a]
    return mid + (p.RB[a] if p.g[e] < p.hi[e] else p.LB[a])


cdef void set_up(State* p, Py_ssize_t m) noexcept nogil:
    """The block of K and the entries' R, L and diagonal."""
    cdef Py_ssize_t a, b, e, j
    p.ops.gather_block(p.rows, p.column, m, p.KB, m)
    for j in range(p.T):
        p.RS[j], p.LS[j] = INFINITY, -INFINITY
        for a in range(p.start[j], p.start[j + 1]):
            e = p.entry[a]
            p.RB[a], p.LB[a], p.DB[a] = INFINITY, -INFINITY, 0
            if e < 0:
                continue
            if e < p.T * p.n:
                p.DB[a] = <float>p.diag[p.column[a]]
                place(p, a, p.f[p.column[a]] + p.slope[e], p.mid[j])
            else:
                for b in range(m):
                    p.KB[a * m + b] = p.KB[b * m + a] = 0
                p.DB[a] = p.KB[a * m + a] = <float>p.curvature[j]
                place(p, a, p.g[e] * p.curvature[j], p.mid[j])
            p.before[a] = p.g[e]
            p.RS[j], p.LS[j] = min(p.RS[j], p.RB[a]), max(p.LS[j], p.LB[a])


cdef Py_ssize_t worst(State* p, double* violation) noexcept nogil:
    """The threshold whose growing entry is in the most violating pair."""
    cdef Py_ssize_t j, stop = 0, k = 0, out = 0
    cdef double v, low = -INFINITY
    violation[0] = -INFINITY
    for j in range(p.T):
        v = p.LS[j] - p.RS[j]
        if p.coupled:
            if j == stop:
                stop = group_stop(p, j)
            while k < stop:
                low = fmax(low, p.LS[k] + p.mid[k])
                k += 1
            v = low - (p.RS[j] + p.mid[j])
        if v > violation[0]:
            violation[0] = v
            out = j
    return out


cdef inline Py_ssize_t find(
    State* p, const float* x, float value, Py_ssize_t j,
) noexcept nogil:
    """The first position of threshold j where x is the value, or -1."""
    cdef Py_ssize_t a = p.start[j]
    cdef Py_ssize_t i = p.ops.find(x + a, value, p.start[j + 1] - a)
    return a + i if i >= 0 else -1


cdef Py_ssize_t partner(
    State* p, Py_ssize_t i, Py_ssize_t j, Py_ssize_t m, Py_ssize_t* of,
) noexcept nogil:
    """The entry that gains most by giving to entry i of threshold j; its threshold.

    -1 if none gains.
    """
    cdef Py_ssize_t k, a, first = 0 if p.coupled else j, best_of = -1
    cdef float R, gain, top, best = 0
    cdef const float* Ki = p.KB + i * m
    for k in range(first, group_stop(p, j)):
        R = <float>(p.RS[j] + (p.mid[j] - p.mid[k]))
        if p.LS[k] > R:
            a = p.start[k]
            gain = p.ops.smo_gain(p.LB + a, Ki + a, p.DB + a, p.DB[i], R, p.gain + a,
                                  p.start[k + 1] - a, &top)
            if gain > best:
                best, best_of = gain, k
    of[0] = best_of
    if best_of < 0:
        return -1
    return find(p, p.gain, best, best_of)


cdef void solve_block(State* p, int n_threads) noexcept nogil:
    """SMO on p.block, then f += K (change of beta). Sets the next phase."""
    cdef const simd_loops* ops = p.ops
    cdef Py_ssize_t m, a, i, j, k, ei, ej, of_i, of_j, count
    cdef double scale, eta, t, dust, room_i, room_j, d_i, d_j, violation
    cdef double inner_tol = fmax(0.5 * p.at.tol, INNER_RATIO * p.at.violation)
    cdef int64_t left = 40 * p.size, steps = 0
    if p.at.max_steps - p.at.steps < left:
        left = p.at.max_steps - p.at.steps

    m = lay_out(p)
    set_up(p, m)
    while steps < left:
        of_i = worst(p, &violation)
        if not violation > inner_tol:
            break
        i = find(p, p.RB, p.RS[of_i], of_i)
        j = partner(p, i, of_i, m, &of_j) if i >= 0 else -1
        if j < 0:
            break
        ei, ej = p.entry[i], p.entry[j]
        scale = <double>p.DB[i] + p.DB[j]
        eta = scale - 2 * <double>p.KB[i * m + j]
        if eta < -1e-6 * scale or scale < 0:
            p.at.indefinite = True
        d_i, d_j = read(p, i, p.mid[of_i]), read(p, j, p.mid[of_j])
        t = (d_j - d_i) / fmax(eta, SMO_ETA_MIN * fabs(scale) + 1e-30)
        room_i, room_j = p.hi[ei] - p.g[ei], p.g[ej] - p.lo[ej]
        t = fmin(t, fmin(room_i, room_j))
        for k in range(of_i + 1, of_j + 1):   # these mu fall
            t = fmin(t, p.mu[k])
        # what rounding leaves of a mu would be sent to and fro between variables
        dust = MU_DUST * (p.hi[ei] - p.lo[ei])
        for k in range(of_i + 1, of_j + 1):
            p.mu[k] = p.mu[k] - t if p.mu[k] - t > dust else 0
        for k in range(of_j + 1, of_i + 1):   # these rise
            p.mu[k] = p.mu[k] + t if p.mu[k] + t > dust else 0
        p.g[ei] = p.hi[ei] if t == room_i else p.g[ei] + t
        p.g[ej] = p.lo[ej] if t == room_j else p.g[ej] - t
        place(p, i, d_i, p.mid[of_i])
        place(p, j, d_j, p.mid[of_j])
        ops.threshold_update(p.RB, p.LB, p.KB + i * m, p.KB + j * m, <float>t,
                             p.start, p.T, p.RS, p.LS)
        steps += 1
    p.at.steps += steps
    p.at.work += block_cost(m, p.n, steps)

    count = 0
    k = 0
    for a in range(m):
        if p.entry[a] >= 0 and p.g[p.entry[a]] != p.before[a]:
            k += 1
            if p.entry[a] < p.T * p.n:
                p.delta[count] = p.g[p.entry[a]] - p.before[a]
                p.rows[count] = p.rows[a]
                count += 1
    for a in prange((p.n + STRIP - 1) // STRIP, schedule="static",
                    num_threads=n_threads, use_threads_if=n_threads > 1):
        ops.add_rows(p.f, p.rows, p.delta, count, a * STRIP,
                     min(p.n, (a + 1) * STRIP))
    if p.at.steps >= p.at.max_steps:
        p.at.phase = LIMIT
    else:
        p.at.phase = RUN if k else STUCK


cdef bint rows_held(State* p) noexcept nogil:
    cdef Py_ssize_t a
    for a in range(p.size):
        if p.slot[p.block[a] % <int32_t>p.n] < 0:
            return False
    return True


cdef void run(State* p, double seconds, int n_threads) noexcept nogil:
    """Blocks until the problem ends, needs the interpreter, or time is up."""
    cdef double end = simd_seconds() + seconds
    while p.at.phase <= READY:
        if p.at.phase == RUN:
            choose(p, n_threads)
        if p.at.phase == READY:
            if rows_held(p):
                solve_block(p, n_threads)
            else:
                p.at.phase = WAIT
        if simd_seconds() > end:
            break


cdef class Task(BlockTask):
    """The problem: the caller's arrays, and how far it has come."""

    cdef State s
    cdef object arrays         # what the pointers point to
    cdef object block

    def __init__(
        self,
        const float[:, ::1] K not None,      # (capacity, n) rows of the kernel matrix
        const int32_t[::1] slot not None,    # (n,)
        const double[::1] diag not None,
        double[::1] g not None,              # IN-OUT (T n + T,)
        double[::1] mu not None,             # IN-OUT (T + 1,)
        double[::1] f not None,              # IN-OUT (n,)
        const double[::1] lo not None,       # as g
        const double[::1] hi not None,
        const double[::1] slope not None,
        const double[::1] curvature not None,  # (T,) 1 / price, or zeros: not priced
        bint coupled,
        Py_ssize_t q,
        double tol,
        int64_t max_steps,
        double patience,
    ):
        super().__init__(tol, max_steps, patience)
        cdef State* p = &self.s
        cdef Py_ssize_t n = f.shape[0], T = mu.shape[0] - 1
        cdef Py_ssize_t room = (q + T) + SIMD_LANES * T
        if not (K.shape[1] == slot.shape[0] == diag.shape[0] == n
                and g.shape[0] == T * n + T and g.shape[0] < 2**31
                and lo.shape[0] == hi.shape[0] == slope.shape[0] == g.shape[0]
                and curvature.shape[0] == T):
            raise ValueError("Task: inconsistent array shapes")
        cdef int32_t[::1] i32 = np.zeros(
            T * n + 2 * T * q + q + g.shape[0] + 2 * room, np.int32)
        cdef int32_t[::1] block = np.zeros(q, np.int32)
        cdef double[::1] d = np.zeros(5 * T + 2 * room)
        cdef Py_ssize_t[::1] c = np.zeros(5 * T + 1, np.intp)
        cdef float[::1] s = np.empty(
            2 * T * n + room * room + 4 * room + 2 * T, np.float32)
        cdef size_t[::1] pointers = np.empty(room, np.uintp)
        self.arrays = (
            K, slot, diag, g, mu, f, lo, hi, slope, curvature, i32, d, c, s, pointers)
        self.block = block
        memset(p, 0, sizeof(State))
        p.n, p.T, p.q, p.coupled, p.priced = n, T, q, coupled, curvature[0] > 0
        p.K, p.slot, p.diag, p.g, p.mu, p.f = (
            &K[0, 0], &slot[0], &diag[0], &g[0], &mu[0], &f[0])
        p.lo, p.hi, p.slope, p.block = &lo[0], &hi[0], &slope[0], &block[0]
        p.curvature = &curvature[0]
        p.at, p.ops = &self.at, simd()
        p.R_min, p.L_max, p.low, p.up, p.mid = (
            &d[0], &d[T], &d[2 * T], &d[3 * T], &d[4 * T])
        p.before, p.delta = &d[5 * T], &d[5 * T + room]
        p.free, p.waiting, p.picked, p.start = &c[0], &c[T], &c[2 * T], &c[4 * T]
        p.order, p.picks = &i32[0], &i32[T * n]
        p.keep = p.picks + 2 * T * q
        p.member = p.keep + q
        p.entry = p.member + g.shape[0]
        p.column = p.entry + room
        p.R, p.L, p.KB = &s[0], &s[T * n], &s[2 * T * n]
        p.RB = p.KB + room * room
        p.LB, p.DB, p.gain = p.RB + room, p.RB + 2 * room, p.RB + 3 * room
        p.RS, p.LS = p.RB + 4 * room, p.RB + 4 * room + T
        p.rows = <const float**>&pointers[0]

    def advance(self, double seconds, int n_threads):
        """Improve the problem for about `seconds`, by one block at the least."""
        with nogil:
            run(&self.s, seconds, n_threads)

    def needed(self):
        """Row numbers of the block that is chosen."""
        return np.unique(np.asarray(self.block)[: self.s.size] % self.s.n)
