"""Pair SMO in two levels; problem, notation and optimality: ordinal/_smo.py.

    min_g  1/2 g'Kg + sum_i phi_i(g_i)   s.t.  sum_i g_i = 0,  lo_i <= g_i <= hi_i

phi_i has slope pn_i left of 0 and pp_i right of it. With G = Kg,

    R_i = G_i + phi_i'(g_i+)  where g_i < hi_i, else +inf    (growing g_i costs R_i)
    L_i = G_i + phi_i'(g_i-)  where g_i > lo_i, else -inf    (shrinking it gains L_i)

and the point is optimal iff violation = max L - min R <= 0.

Outer level: choose a block of the worst violators, copy its part of K, solve it by
SMO with second-order choice (Fan, Chen, Lin, JMLR 6:1889-1918, 2005) inside the
cache, and add the changed rows of K to G in one sweep. Inside a block R and L are
floats relative to the middle of the violating interval, so their resolution is
relative to the violation and not to the size of G.

Many such problems over one K (the ranks of NPSVOR) run side by side. State is the
caller's, every array has one row a problem, and a problem's arithmetic does not
depend on who runs it or when: any number of threads gives the same bytes.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, fabs, fmax, fmin
from libc.stdint cimport int32_t, int64_t

from .simd cimport (
    SIMD_LANES, simd, simd_loops, simd_seconds, simd_try_lock, simd_unlock,
)

cdef double ETA_MIN = 1e-12     # curvature floor: two equal rows give eta = 0
cdef double INNER_RATIO = 0.1   # a block is solved to this part of the violation
cdef double QUANTUM = 4e-3      # seconds one thread stays with one problem


cpdef enum Phase:
    RUN = 0     # choose a block next
    READY = 1   # block chosen, not yet solved
    WAIT = 2    # block chosen, some of its rows of K are missing
    NEWTON = 3  # a step on all free variables is due
    DONE = 4    # violation <= tol
    LIMIT = 5   # max_steps pair steps taken
    STUCK = 6   # no step changes g


cdef struct Shared:
    Py_ssize_t n
    Py_ssize_t q               # largest block, a multiple of SIMD_LANES
    const float* K             # rows of the kernel matrix, n entries each
    const int32_t* slot        # slot[i]: which row of K holds row i, -1 if none
    const double* diag
    double tol
    int64_t max_steps
    const simd_loops* ops


cdef struct State:             # one problem
    double* g
    double* G
    const double* lo
    const double* hi
    const double* pn
    const double* pp
    int32_t* block
    int32_t* size
    double* R_min
    double* L_max
    int64_t* steps
    int32_t* phase
    int32_t* indefinite
    double* work               # spent on blocks since the last Newton step
    double* patience           # times the cost of a Newton step to spend before it


cdef struct Work:              # one thread
    float* R                   # (n,) scan results
    float* L                   # (n,)
    int32_t* order             # (n,) candidates
    int32_t* member            # (n,) 1 where in the block
    int32_t* idx               # (q,) the block by increasing index
    float* KB                  # (q, q) the block of K
    float* RB                  # (q,) R, L, diagonal and gain of the block
    float* LB
    float* DB
    float* gain
    double* before             # (q,) g at entry
    double* delta              # (q,) change of g
    const float** rows         # (q,)


cdef void smallest(
    int32_t* idx, const float* key, float sign, Py_ssize_t count, Py_ssize_t k,
) noexcept nogil:
    """Move the k indices of least sign * key to the front of idx. Expected O(count)."""
    cdef Py_ssize_t left = 0, right = count - 1, i, j
    cdef float pivot
    while left < right:
        pivot = sign * key[idx[(left + right) >> 1]]
        i, j = left, right
        while i <= j:
            while sign * key[idx[i]] < pivot:
                i += 1
            while sign * key[idx[j]] > pivot:
                j -= 1
            if i <= j:
                idx[i], idx[j] = idx[j], idx[i]
                i += 1
                j -= 1
        if k <= j + 1:
            right = j
        elif k > i:
            left = i
        else:
            return


cdef Py_ssize_t admit(
    const int32_t* candidates, Py_ssize_t count, Py_ssize_t room,
    int32_t* member, int32_t* block, Py_ssize_t m,
) noexcept nogil:
    """Append up to `room` candidates that are not yet members; the new block size."""
    cdef Py_ssize_t a
    cdef int32_t i
    for a in range(count):
        if room == 0:
            break
        i = candidates[a]
        if not member[i]:
            member[i] = 1
            block[m] = i
            m += 1
            room -= 1
    return m


cdef double block_cost(Py_ssize_t m, Py_ssize_t n, int64_t steps) noexcept nogil:
    """Time of one block of SMO: its copy of K, the steps, the sweep over G.

    In nanoseconds of the machine on which the constants were measured, counted and
    not clocked: what is chosen by it must not depend on the day or the threads.
    """
    return m * (0.6 * m + 0.2 * n) + steps * (50 + 0.25 * m)


cdef double newton_cost(Py_ssize_t free, Py_ssize_t n) noexcept nogil:
    """Time of one Newton step, in the unit of block_cost."""
    cdef double f = free
    return f * (f * (f / 80 + 8) + 0.2 * n) + 1e6


cdef void choose(Shared* sh, State* p, Work* w) noexcept nogil:
    """Fill p.block: half of it new violators, the rest kept from before, free first.

    Sets R_min, L_max, and phase READY, or DONE at violation <= tol. O(n).
    """
    cdef Py_ssize_t n = sh.n, q = sh.q, i, a, count, half, free, m = 0
    cdef Py_ssize_t old = p.size[0], kept = 0, rest = 0
    cdef double mid = 0.5 * (p.R_min[0] + p.L_max[0])
    cdef float R_min, L_max
    cdef int32_t* keep = w.order + n     # (2 q,) scratch behind the candidates
    if not (-INFINITY < mid < INFINITY):
        mid = 0
    free = sh.ops.smo_scan(p.g, p.G, p.lo, p.hi, p.pn, p.pp, mid, w.R, w.L, n,
                           p.R_min, p.L_max)
    if not p.L_max[0] - p.R_min[0] > sh.tol:
        p.phase[0] = DONE
        return
    if p.work[0] > p.patience[0] * newton_cost(free, n):
        p.phase[0] = NEWTON
        return

    for a in range(old):
        i = p.block[a]
        if p.lo[i] < p.g[i] < p.hi[i]:
            keep[kept] = i
            kept += 1
        else:
            keep[q + rest] = i
            rest += 1

    half = (q if old == 0 else q // 2) // 2
    R_min, L_max = <float>(p.R_min[0] - mid), <float>(p.L_max[0] - mid)
    count = 0
    for i in range(n):
        w.order[count] = i
        count += w.R[i] < L_max
    smallest(w.order, w.R, 1, count, min(half, count))
    m = admit(w.order, min(half, count), half, w.member, p.block, m)
    count = 0
    for i in range(n):
        w.order[count] = i
        count += w.L[i] > R_min
    smallest(w.order, w.L, -1, count, min(half, count))
    m = admit(w.order, min(half, count), half, w.member, p.block, m)
    m = admit(keep, kept, q - m, w.member, p.block, m)
    m = admit(keep + q, rest, q - m, w.member, p.block, m)
    for a in range(m):
        w.member[p.block[a]] = 0
    p.size[0] = m
    p.phase[0] = READY


cdef void place(
    State* p, Work* w, Py_ssize_t a, double G, double mid,
) noexcept nogil:
    """Set R and L of block entry a from its gradient G."""
    cdef Py_ssize_t i = w.idx[a]
    cdef double g = p.g[i]
    w.RB[a] = <float>(G + (p.pn[i] if g < 0 else p.pp[i]) - mid) \
        if g < p.hi[i] else INFINITY
    w.LB[a] = <float>(G + (p.pp[i] if g > 0 else p.pn[i]) - mid) \
        if g > p.lo[i] else -INFINITY


cdef double gradient(State* p, Work* w, Py_ssize_t a, double mid) noexcept nogil:
    """Gradient of block entry a, read back from whichever of R and L is finite."""
    cdef Py_ssize_t i = w.idx[a]
    cdef double g = p.g[i]
    if g < p.hi[i]:
        return w.RB[a] + mid - (p.pn[i] if g < 0 else p.pp[i])
    return w.LB[a] + mid - (p.pp[i] if g > 0 else p.pn[i])


cdef void solve_block(Shared* sh, State* p, Work* w) noexcept nogil:
    """SMO on w.idx, then G += K (change of g). Sets the next phase."""
    cdef const simd_loops* ops = sh.ops
    cdef Py_ssize_t m = p.size[0], a, b, i, j, ii, jj, count
    cdef Py_ssize_t padded = (m + SIMD_LANES - 1) // SIMD_LANES * SIMD_LANES
    cdef double mid = 0.5 * (p.R_min[0] + p.L_max[0])
    cdef double violation = p.L_max[0] - p.R_min[0]
    cdef float inner_tol = <float>fmax(0.5 * sh.tol, INNER_RATIO * violation)
    cdef float R_min = INFINITY, L_max = 0, best
    cdef double eta, t, to_i, to_j, room_i, room_j, G_i, G_j
    cdef int64_t left = 40 * m, steps = 0
    if sh.max_steps - p.steps[0] < left:
        left = sh.max_steps - p.steps[0]

    # by index: the block of K is then read in the order of memory
    for a in range(m):
        w.member[p.block[a]] = 1
    a = 0
    for i in range(sh.n):
        if w.member[i]:
            w.member[i] = 0
            w.idx[a] = i
            a += 1
    for a in range(padded):
        w.RB[a], w.LB[a], w.DB[a] = INFINITY, -INFINITY, 0
    for a in range(m):
        w.rows[a] = sh.K + <Py_ssize_t>sh.slot[w.idx[a]] * sh.n
        w.DB[a] = <float>sh.diag[w.idx[a]]
        w.before[a] = p.g[w.idx[a]]
        place(p, w, a, p.G[w.idx[a]], mid)
        R_min = min(R_min, w.RB[a])
    ops.gather_block(w.rows, w.idx, m, w.KB, padded)

    while steps < left:
        i = ops.find(w.RB, R_min, padded)
        if i < 0:
            break
        best = ops.smo_gain(w.LB, w.KB + i * padded, w.DB, w.DB[i], R_min,
                            w.gain, padded, &L_max)
        if not (L_max - R_min > inner_tol and best > 0):
            break
        j = ops.find(w.gain, best, padded)
        ii, jj = w.idx[i], w.idx[j]
        eta = sh.diag[ii] + sh.diag[jj] - 2 * <double>w.KB[i * padded + j]
        if eta < -1e-6 * (fabs(sh.diag[ii]) + fabs(sh.diag[jj])):
            p.indefinite[0] = 1
        t = (<double>w.LB[j] - R_min) / fmax(eta, ETA_MIN)
        # a step ends at the first break point of either variable: a bound or the kink
        to_i = fmin(p.hi[ii], 0) if p.g[ii] < 0 else p.hi[ii]
        to_j = fmax(p.lo[jj], 0) if p.g[jj] > 0 else p.lo[jj]
        room_i, room_j = to_i - p.g[ii], p.g[jj] - to_j
        t = fmin(t, fmin(room_i, room_j))
        G_i, G_j = gradient(p, w, i, mid), gradient(p, w, j, mid)
        p.g[ii] = to_i if t == room_i else p.g[ii] + t
        p.g[jj] = to_j if t == room_j else p.g[jj] - t
        place(p, w, i, G_i, mid)
        place(p, w, j, G_j, mid)
        R_min = ops.smo_update(w.RB, w.LB, w.KB + i * padded, w.KB + j * padded,
                               <float>t, padded)
        steps += 1
    p.steps[0] += steps
    p.work[0] += block_cost(m, sh.n, steps)

    count = 0
    for a in range(m):
        t = p.g[w.idx[a]] - w.before[a]
        if t != 0:
            w.delta[count] = t
            w.rows[count] = sh.K + <Py_ssize_t>sh.slot[w.idx[a]] * sh.n
            count += 1
    ops.add_rows(p.G, w.rows, w.delta, count, sh.n)
    if p.steps[0] >= sh.max_steps:
        p.phase[0] = LIMIT
    else:
        p.phase[0] = RUN if count else STUCK


cdef void advance(Shared* sh, State* p, Work* w, double until) noexcept nogil:
    """Blocks of one problem until it ends, lacks rows of K, or the time is up."""
    cdef Py_ssize_t a
    while True:
        if p.phase[0] == RUN:
            choose(sh, p, w)
        if p.phase[0] == READY:
            for a in range(p.size[0]):
                if sh.slot[p.block[a]] < 0:
                    p.phase[0] = WAIT
                    return
            solve_block(sh, p, w)
        if p.phase[0] != RUN or simd_seconds() > until:
            return


def advance_all(
    const float[:, ::1] K not None,
    const int32_t[::1] slot not None,
    const double[::1] diag not None,
    double[:, ::1] g not None,               # IN-OUT, and so on to `patience`
    double[:, ::1] G not None,
    const double[:, ::1] lo not None,
    const double[:, ::1] hi not None,
    const double[:, ::1] pn not None,
    const double[:, ::1] pp not None,
    int32_t[:, ::1] block not None,
    int32_t[::1] size not None,
    double[::1] R_min not None,
    double[::1] L_max not None,
    int64_t[::1] steps not None,
    int32_t[::1] phase not None,
    int32_t[::1] indefinite not None,
    double[::1] work not None,
    double[::1] patience not None,
    float[:, ::1] work_f not None,           # scratch, one row a thread
    double[:, ::1] work_d not None,
    int32_t[:, ::1] work_i not None,
    int32_t[::1] lock not None,              # (r,) zeros
    double tol,
    int64_t max_steps,
    double seconds,
    int n_threads,
):
    """Improve every problem whose phase is RUN or READY, for about `seconds`.

    Shapes: g, G, lo, hi, pn, pp (r, n); block (r, q); K (capacity, n). Threads take
    turns of QUANTUM seconds at the problems, so that a few long ones do not leave a
    thread idle; a problem that another thread holds is skipped.
    """
    cdef Py_ssize_t n = slot.shape[0], q = block.shape[1], r = g.shape[0]
    cdef Py_ssize_t turn, n_turns
    cdef double end
    cdef Shared sh
    if not (K.shape[1] == n == g.shape[1] and q % SIMD_LANES == 0
            and work_f.shape[0] >= n_threads
            and work_f.shape[1] >= work_sizes(n, q)[0]):
        raise ValueError("advance_all: inconsistent array shapes")
    sh.n, sh.q, sh.K, sh.slot, sh.diag = n, q, &K[0, 0], &slot[0], &diag[0]
    sh.tol, sh.max_steps, sh.ops = tol, max_steps, simd()
    end = simd_seconds() + seconds
    n_turns = <Py_ssize_t>(seconds / QUANTUM + 2) * n_threads * r
    for turn in prange(n_turns, nogil=True, schedule="dynamic", chunksize=1,
                       num_threads=n_threads, use_threads_if=n_threads > 1):
        run_turn(&sh, turn % r, threadid(), INFINITY if turn < r else end, g, G, lo, hi, pn, pp, block, size,
                 R_min, L_max, steps, phase, indefinite, work, patience,
                 work_f, work_d, work_i, lock)


cdef void run_turn(
    Shared* sh, Py_ssize_t k, Py_ssize_t thread, double end,
    double[:, ::1] g, double[:, ::1] G,
    const double[:, ::1] lo, const double[:, ::1] hi,
    const double[:, ::1] pn, const double[:, ::1] pp,
    int32_t[:, ::1] block, int32_t[::1] size, double[::1] R_min, double[::1] L_max,
    int64_t[::1] steps, int32_t[::1] phase, int32_t[::1] indefinite,
    double[::1] work, double[::1] patience,
    float[:, ::1] work_f, double[:, ::1] work_d, int32_t[:, ::1] work_i,
    int32_t[::1] lock,
) noexcept nogil:
    """One turn of one thread at problem k."""
    cdef Py_ssize_t n = sh.n, q = sh.q
    cdef State p
    cdef Work w
    cdef float* f = &work_f[thread, 0]
    cdef double now = simd_seconds()
    if now > end or phase[k] > READY or not simd_try_lock(&lock[k]):
        return
    p.g, p.G, p.lo, p.hi = &g[k, 0], &G[k, 0], &lo[k, 0], &hi[k, 0]
    p.pn, p.pp, p.block, p.size = &pn[k, 0], &pp[k, 0], &block[k, 0], &size[k]
    p.R_min, p.L_max, p.steps = &R_min[k], &L_max[k], &steps[k]
    p.phase, p.indefinite = &phase[k], &indefinite[k]
    p.work, p.patience = &work[k], &patience[k]
    w.KB, f = f, f + q * q
    w.RB, w.LB, w.DB, w.gain, f = f, f + q, f + 2 * q, f + 3 * q, f + 4 * q
    w.R, w.L = f, f + n
    w.before, w.delta = &work_d[thread, 0], &work_d[thread, q]
    w.rows = <const float**>&work_d[thread, 2 * q]   # a pointer fits in a double
    w.member, w.idx = &work_i[thread, 0], &work_i[thread, n]
    w.order = &work_i[thread, n + q]
    if phase[k] <= READY:
        advance(sh, &p, &w, fmin(end, now + QUANTUM))
    simd_unlock(&lock[k])


def add_rows(
    const float[:, ::1] K not None,
    const int32_t[::1] slot not None,
    const int32_t[::1] index not None,
    const double[::1] change not None,
    double[::1] G not None,                  # IN-OUT
):
    """G += sum_a change[a] (row index[a] of the kernel matrix), rows that are held."""
    cdef Py_ssize_t a, i, count
    cdef const float* rows[64]
    cdef const simd_loops* ops = simd()
    cdef Py_ssize_t n = G.shape[0]
    if not (K.shape[1] == slot.shape[0] == n and index.shape[0] == change.shape[0]):
        raise ValueError("add_rows: inconsistent array shapes")
    with nogil:
        for a in range(0, index.shape[0], 64):
            count = min(64, index.shape[0] - a)
            for i in range(count):
                rows[i] = &K[slot[index[a + i]], 0]
            ops.add_rows(&G[0], rows, &change[a], count, n)


def work_sizes(Py_ssize_t n, Py_ssize_t q):
    """Columns that advance_all needs in work_f, work_d and work_i."""
    return q * q + 4 * q + 2 * n, 3 * q, 2 * n + 3 * q
