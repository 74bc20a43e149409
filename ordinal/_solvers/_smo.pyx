"""Pair SMO in two levels; problem and notation: ordinal/_smo.py.

    min_g  1/2 g'Kg + sum_i phi_i(g_i)   s.t.  sum_i g_i = 0,  lo_i <= g_i <= hi_i

phi_i has slope pn_i left of 0 and pp_i right of it. With G = Kg,

    R_i = G_i + phi_i'(g_i+)  where g_i < hi_i, else +inf    (growing g_i costs R_i)
    L_i = G_i + phi_i'(g_i-)  where g_i > lo_i, else -inf    (shrinking it gains L_i)

and the point is optimal iff violation = max L - min R <= 0.

Outer level: choose a block of the worst violators, copy its part of K, solve it by
SMO with second-order choice (Fan, Chen, Lin, JMLR 6:1889-1918, 2005) inside the
cache, and add the changed rows of K to G in one sweep. Inside a block R and L are
floats relative to the middle of the violating interval, so that their resolution is
relative to the violation and not to the size of G.

Many problems over one K (the ranks of NPSVOR) run side by side, a `Task` each. A
task's arithmetic does not depend on who advances it or when: any number of threads
gives the same bytes.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, fabs, fmax, fmin
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from ._blocks cimport (
    DONE, LIMIT, NEWTON, READY, RUN, SMALL_BLOCK, STUCK, WAIT, BlockTask, Progress,
    admit, block_cost, falls, free_first, newton_is_due, on_probation, violators,
)
from .simd cimport (
    SIMD_LANES, SMO_ETA_MIN, simd, simd_loops, simd_seconds, simd_try_lock,
    simd_unlock,
)

import numpy as np

cdef double INNER_RATIO = 0.1   # a block is solved to this part of the violation
cdef double UNSETTLED = 40      # times longer SMO is left to it where more wait
cdef double QUANTUM = 4e-3      # seconds that one thread stays with one task


cdef struct State:             # one problem
    Py_ssize_t n, q            # variables; largest block, a multiple of SIMD_LANES
    const float* K             # rows of the kernel matrix, n entries each
    const int32_t* slot        # (n,) which row of K holds row i, -1 if none
    const double* diag
    double* g
    double* G
    const double* lo
    const double* hi
    const double* pn
    const double* pp
    int32_t* block             # (q,) the last block, most recent entries first
    Py_ssize_t size
    double R_min, L_max
    Progress* at
    int32_t lock
    const simd_loops* ops


cdef struct Work:              # one thread
    float* R                   # (n,) scan results
    float* L                   # (n,)
    int32_t* order             # (n,) candidates
    int32_t* keep              # (q,) the last block, free ones first
    int32_t* member            # (n,) zeros; 1 where in the block
    int32_t* idx               # (q,) the block by increasing index
    const float** rows         # (q,) their rows of K
    double* before             # (q,) g at entry
    double* delta              # (q,) change of g
    float* KB                  # (q, q) the block of K
    float* RB                  # (q,) R, L, diagonal and gain of the block
    float* LB
    float* DB
    float* gain


# Selection

cdef void choose(State* p, Work* w) noexcept nogil:
    """Fill p.block: half of it new violators, the rest kept from before, free first.

    Sets R_min, L_max, and phase READY, or DONE at violation <= tol, or NEWTON. O(n).
    """
    cdef Py_ssize_t n = p.n, q, a, count, half, free, waiting, m = 0
    cdef double mid = 0.5 * (p.R_min + p.L_max)
    cdef float R_min, L_max
    if not (-INFINITY < mid < INFINITY):
        mid = 0
    free = p.ops.smo_scan(p.g, p.G, p.lo, p.hi, p.pn, p.pp, mid, w.R, w.L, n,
                          &p.R_min, &p.L_max, &waiting)
    p.at.violation = p.L_max - p.R_min
    if not p.at.violation > p.at.tol:
        p.at.phase = DONE
        return
    if not progresses(p):
        p.at.phase = STUCK
        return
    if newton_is_due(p.at, free, waiting, UNSETTLED, n):
        p.at.phase = NEWTON
        return

    # a block wider than the face that it moves on is read for little
    q = min(p.q, max(SMALL_BLOCK, 2 * free // SIMD_LANES * SIMD_LANES))

    free_first(p.block, p.size, p.g, p.lo, p.hi, w.keep)
    half = (q if p.size == 0 else q // 2) // 2
    R_min, L_max = <float>(p.R_min - mid), <float>(p.L_max - mid)
    count = violators(w.order, w.R, 1, L_max, n, half)
    m = admit(w.order, count, half, w.member, p.block, m)
    count = violators(w.order, w.L, -1, R_min, n, half)
    m = admit(w.order, count, half, w.member, p.block, m)
    m = admit(w.keep, p.size, q - m, w.member, p.block, m)
    for a in range(m):
        w.member[p.block[a]] = 0
    p.size = m
    p.at.phase = READY


cdef bint progresses(State* p) noexcept nogil:
    """Whether it is worth going on from this G; the objective is of (Q)."""
    cdef Py_ssize_t i
    cdef double slope, objective = 0, size = 0, largest = 0
    if on_probation(p.at):
        return True
    for i in range(p.n):
        slope = 0.5 * p.G[i] + (p.pp[i] if p.g[i] > 0 else p.pn[i])
        objective += p.g[i] * slope
        size += fabs(p.g[i] * slope)
        largest = fmax(largest, fabs(p.g[i]) * p.diag[i])
    return falls(p.at, objective, size, largest)


cdef void sort_block(State* p, Work* w) noexcept nogil:
    """w.idx, w.rows = p.block in index order: K is then read as it lies in memory."""
    cdef Py_ssize_t n = p.n, i, a
    for a in range(p.size):
        w.member[p.block[a]] = 1
    a = 0
    for i in range(n):
        if w.member[i]:
            w.member[i] = 0
            w.idx[a] = i
            w.rows[a] = p.K + <Py_ssize_t>p.slot[i] * n
            a += 1


# SMO within a block

cdef void place(State* p, Work* w, Py_ssize_t a, double G, double mid) noexcept nogil:
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


cdef void solve_block(State* p, Work* w) noexcept nogil:
    """SMO on p.block, then G += K (change of g). Sets the next phase."""
    cdef const simd_loops* ops = p.ops
    cdef Py_ssize_t m = p.size, a, i, j, ii, jj, count
    cdef Py_ssize_t padded = (m + SIMD_LANES - 1) // SIMD_LANES * SIMD_LANES
    cdef double mid = 0.5 * (p.R_min + p.L_max)
    cdef float inner_tol = <float>fmax(0.5 * p.at.tol, INNER_RATIO * p.at.violation)
    cdef float R_min = INFINITY, L_max = 0, best
    cdef double scale, eta, t, to_i, to_j, room_i, room_j, G_i, G_j
    cdef int64_t left = 40 * m, steps = 0
    if p.at.max_steps - p.at.steps < left:
        left = p.at.max_steps - p.at.steps

    sort_block(p, w)
    ops.gather_block(w.rows, w.idx, m, w.KB, padded)
    for a in range(m, padded):
        w.RB[a], w.LB[a], w.DB[a] = INFINITY, -INFINITY, 0
    for a in range(m):
        i = w.idx[a]
        w.DB[a] = <float>p.diag[i]
        w.before[a] = p.g[i]
        place(p, w, a, p.G[i], mid)
        R_min = min(R_min, w.RB[a])

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
        scale = p.diag[ii] + p.diag[jj]
        eta = scale - 2 * <double>w.KB[i * padded + j]
        if eta < -1e-6 * scale or scale < 0:
            p.at.indefinite = True
        t = (<double>w.LB[j] - R_min) / fmax(eta, SMO_ETA_MIN * fabs(scale) + 1e-30)
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
    p.at.steps += steps
    p.at.work += block_cost(m, p.n, steps)

    count = 0
    for a in range(m):
        t = p.g[w.idx[a]] - w.before[a]
        if t != 0:
            w.delta[count] = t
            w.rows[count] = w.rows[a]
            count += 1
    ops.add_rows(p.G, w.rows, w.delta, count, 0, p.n)
    if p.at.steps >= p.at.max_steps:
        p.at.phase = LIMIT
    else:
        p.at.phase = RUN if count else STUCK


# Scheduling

cdef bint rows_held(State* p) noexcept nogil:
    cdef Py_ssize_t a
    for a in range(p.size):
        if p.slot[p.block[a]] < 0:
            return False
    return True


cdef void run_turn(State* p, Work* w, double end) noexcept nogil:
    """Blocks of one problem until it ends, needs the interpreter, or time is up."""
    cdef double now = simd_seconds(), until = fmin(end, now + QUANTUM)
    if now > end or p.at.phase > READY or not simd_try_lock(&p.lock):
        return
    while p.at.phase <= READY:
        if p.at.phase == RUN:
            choose(p, w)
        if p.at.phase == READY:
            if rows_held(p):
                solve_block(p, w)
            else:
                p.at.phase = WAIT
        if simd_seconds() > until:
            break
    simd_unlock(&p.lock)


def advance_all(
    list tasks not None, Workspace space not None, double seconds, int n_threads,
):
    """Improve every task that needs no help, for about `seconds`, on n_threads threads,
    at most those that `space` has.

    Threads take turns of QUANTUM seconds at the tasks, so that a few long ones do not
    leave a thread idle; a task that another thread holds is skipped. Every task that
    can go on does one block at the least.
    """
    cdef Py_ssize_t turn, k, n_turns, r = len(tasks)
    cdef double end = simd_seconds() + seconds
    cdef Task task
    cdef State** states = <State**>PyMem_Malloc(r * sizeof(State*))
    if states == NULL:
        raise MemoryError
    n_threads = min(n_threads, space.n_threads)
    for k in range(r):
        task = tasks[k]
        states[k] = &task.s
    n_turns = <Py_ssize_t>(seconds / QUANTUM + 2) * n_threads * r
    for turn in prange(n_turns, nogil=True, schedule="dynamic", chunksize=1,
                       num_threads=n_threads, use_threads_if=n_threads > 1):
        run_turn(states[turn % r], &space.work[threadid()],
                 INFINITY if turn < r else end)
    PyMem_Free(states)


cdef class Task(BlockTask):
    """One problem: the caller's arrays, and how far it has come."""

    cdef State s
    cdef object arrays         # what the pointers point to

    def __init__(
        self,
        const float[:, ::1] K not None,      # (capacity, n) rows of the kernel matrix
        const int32_t[::1] slot not None,    # (n,)
        const double[::1] diag not None,
        double[::1] g not None,              # IN-OUT
        double[::1] G not None,              # IN-OUT
        const double[::1] lo not None,
        const double[::1] hi not None,
        const double[::1] pn not None,
        const double[::1] pp not None,
        int32_t[::1] block not None,         # (q,) scratch
        double tol,
        int64_t max_steps,
        double patience,
    ):
        super().__init__(tol, max_steps, patience)
        cdef State* p = &self.s
        cdef Py_ssize_t n = g.shape[0]
        if not (K.shape[1] == slot.shape[0] == diag.shape[0] == G.shape[0] == n
                and lo.shape[0] == hi.shape[0] == pn.shape[0] == pp.shape[0] == n
                and block.shape[0] % SIMD_LANES == 0):
            raise ValueError("Task: inconsistent array shapes")
        self.arrays = (K, slot, diag, g, G, lo, hi, pn, pp, block)
        memset(p, 0, sizeof(State))
        p.n, p.q, p.K, p.slot, p.diag = n, block.shape[0], &K[0, 0], &slot[0], &diag[0]
        p.g, p.G, p.lo, p.hi, p.pn, p.pp = &g[0], &G[0], &lo[0], &hi[0], &pn[0], &pp[0]
        p.block, p.L_max, p.at, p.ops = &block[0], INFINITY, &self.at, simd()

    def needed(self):
        """Row numbers of the block that is chosen."""
        return np.asarray(self.arrays[9])[: self.s.size]


cdef class Workspace:
    """Scratch for n_threads threads on problems of n variables in blocks of q."""

    cdef Work* work
    cdef readonly int n_threads
    cdef object arrays         # what the pointers point to

    def __cinit__(self, Py_ssize_t n, Py_ssize_t q, int n_threads):
        cdef Py_ssize_t k
        cdef float[:, ::1] f = np.empty((n_threads, 2 * n + q * q + 4 * q), np.float32)
        cdef double[:, ::1] d = np.empty((n_threads, 2 * q))
        cdef int32_t[:, ::1] i = np.zeros((n_threads, 2 * n + 2 * q), np.int32)
        cdef size_t[:, ::1] pointers = np.empty((n_threads, q), np.uintp)
        cdef Work* w
        self.work = <Work*>PyMem_Malloc(n_threads * sizeof(Work))
        if self.work == NULL:
            raise MemoryError
        self.n_threads, self.arrays = n_threads, (f, d, i, pointers)
        for k in range(n_threads):
            w = &self.work[k]
            w.R, w.L, w.KB = &f[k, 0], &f[k, n], &f[k, 2 * n]
            w.RB = w.KB + q * q
            w.LB, w.DB, w.gain = w.RB + q, w.RB + 2 * q, w.RB + 3 * q
            w.before, w.delta = &d[k, 0], &d[k, q]
            w.member, w.order, w.keep = &i[k, 0], &i[k, n], &i[k, 2 * n]
            w.idx, w.rows = w.keep + q, <const float**>&pointers[k, 0]

    def __dealloc__(self):
        PyMem_Free(self.work)
