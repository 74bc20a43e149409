"""Pair SMO in two levels, for several quadratic programs over one kernel matrix.

Each of P problems has T groups of n variables, and K has n rows:

    min_g  1/2 beta'K beta + sum_ij phi_ij(g_ij) [+ 1/2 sum_j z_j^2 / price_j]     (Q)
    s.t.   lo <= g <= hi  and, for each group j,

      sum_i g_ij = 0                            separate
      sum_i g_ij = mu_j - mu_(j+1),  mu >= 0    coupled: ordered multipliers b_j
      sum_i g_ij + z_j = 0                      priced: price_j b_j^2 / 2 in the primal

beta_i = sum_j g_ij and f = K beta. phi_ij has slope pn_ij left of 0 and pp_ij >= pn_ij
right of it. Entry e = j n + i is the variable g_ij; entry T n + j is z_j, which has a
row of K of its own, with 1 / price_j at itself and 0 elsewhere. NPSVOR is P = r, T = 1;
the SVOR family P = 1, T = r - 1; C-SVC and eps-SVR are problems of T = 1. With d = f_i,
or z_j / price_j, and the one-sided slopes

    R_e = d + phi_e'(g_e+) where g_e < hi_e, else +inf     (growing g_e costs R_e)
    L_e = d + phi_e'(g_e-) where g_e > lo_e, else -inf     (shrinking it gains L_e)

entry v may shrink for entry u to grow if they are of one group; coupled, also if v's
group is the lower one, which raises the mu between them, or if those mu are all
positive. The point is optimal iff violation = max (L_v - R_u) <= 0 over such pairs.

The algorithm, for each problem:

1. `select_working_set`: scan all groups; stop if the violation is within tol. Choose a
   block: half of it the worst violators of every group, the rest from the last block.
2. `copy_block`: its part of K, with R and L as floats relative to the middle of the
   violating interval of each group, so that they resolve the violation and not f.
3. `solve_block`: `select_pair` by the second-order rule (Fan, Chen, Lin, JMLR
   6:1889-1918, 2005) and `step_pair`, until the block's violation is INNER_RATIO times
   what it was. All data of this step fit in the cache.
4. `update_gradient`: add the changed rows of K to f in one sweep.

Termination. A step of `step_pair` minimises (Q) along its pair up to the next break
point, so (Q) decreases with every step except for rounding errors of the floats. A
block takes at most STEPS_A_VARIABLE steps per variable. `progresses` examines the
violation and (Q) at least every PROBATION blocks, and ends a problem in which neither
has decreased; (Q) is bounded below on its boxes. No problem takes more than `max_steps`
pair steps.

Rows whose variables all have lo = hi = 0 take no part: they are not scanned, and their
f is not updated. The other rows form a few stretches of consecutive rows. A C-SVC of
two ranks of many, whose rows are adjacent, is thus as cheap as over a kernel matrix of
its own.

Threads work on several problems side by side; when one problem is left, they share its
groups and strips of f. The result for a problem does not depend on which thread
computes it or when, so any number of threads gives the same bytes.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.math cimport INFINITY, fabs, fmax, fmin
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from ._parts cimport call_helpers, each_part, parts_of, run_parts, stop_of
from ._smo_costs cimport block_cost, newton_cost, pivot_cost
from ._simd cimport (
    SIMD_LANES, SMO_ETA_MIN, simd, simd_seconds, simd_try_lock, simd_unlock, to_line,
)

import numpy as np


cdef double QUANTUM = 4e-3        # seconds for which a thread works on one problem
cdef Py_ssize_t MANY = 2000       # rows of problems that take whole quanta of time
cdef Py_ssize_t STRIP = 1024      # entries of f that a thread updates at once
cdef Py_ssize_t SHARED_SCAN = 8192  # entries of a scan that is shared among threads
cdef Py_ssize_t COPY_STRIP = 2 * SIMD_LANES  # rows of a block a thread copies at once
# Size of a block while few variables are free; with one group, at most a quarter of
# the rows
cdef Py_ssize_t SMALL_BLOCK = 512
cdef Py_ssize_t GROUPS = 64       # in one block: each takes at least a vector's width
cdef int STEPS_A_VARIABLE = 40    # largest number of pair steps in a block
cdef int PROBATION = 200          # blocks that may pass without a smaller violation
cdef double FLOAT_EPS = 1.2e-7    # twice the relative rounding error of K in floats
cdef double MU_ROUNDING = 1e-13   # times a box's width: a smaller mu counts as 0
# A block is solved to this fraction of the violation, because its steps are cheap
# compared with the sweep over all rows that follows each block
cdef double INNER_RATIO = 0.1
# A Newton step ends a fit if few variables at their bounds are about to become free: at
# most this fraction of the free ones. Otherwise SMO continues that many times longer
cdef double SETTLED = 0.0025
cdef double UNSETTLED = 40, UNSETTLED_GROUPS = 10


# Progress

cdef bint newton_is_due(
    Progress* at, Py_ssize_t free, Py_ssize_t waiting, double unsettled, Py_ssize_t n,
) noexcept nogil:
    """Return whether SMO has used its share of time and a Newton step should follow.

    SMO gets `unsettled` times longer while many variables are about to become free,
    because a Newton step would not end the fit then. Pivots of an active set do; they
    are preferred where they cost less. Their number is estimated: the waiting variables
    enter, some of them more than once, and so do free variables not yet in the set, few
    of which stay.
    """
    cdef double cost = newton_cost(free + waiting, n)
    cdef double count = 1.2 * waiting + 0.4 * max(0, free - at.held) + 8
    cdef double pivots = count * pivot_cost(free + 0.5 * waiting, n)
    if waiting > SETTLED * free:
        cost *= unsettled
    at.pivots = 0 < at.room >= free + waiting and pivots < cost
    return at.work > at.patience * (pivots + at.setup if at.pivots else cost)


cdef bint progresses(Problem* p) noexcept nogil:
    """Return whether the violation or (Q) has decreased since the last examination.

    If not, the caller computes f again. Linearly dependent rows of K leave directions
    in which K consists of rounding errors, and SMO may follow one for a long time.
    Below the violation that such errors explain, given the largest variable, a decrease
    of (Q) does not count, and the examination comes sooner.
    """
    cdef Progress* at = &p.at
    cdef Py_ssize_t i, j, k, e
    cdef double term, fell, objective = 0, size = 0, largest = 0
    at.blocks += 1
    if not at.violation < 0.9 * at.best and at.blocks < (
            PROBATION if at.violation > at.noise else PROBATION // 20):
        return True
    for j in range(p.T):
        for k in range(p.n_stretches):
            for i in range(p.stretch[2 * k], p.stretch[2 * k + 1]):
                e = j * p.n + i
                term = p.g[e] * (0.5 * p.f[i] + slope_down(p, e, p.g[e]))
                objective += term
                size += fabs(term)
                largest = fmax(largest, fabs(p.g[e]) * p.diag[i])
        if p.priced:
            term = 0.5 * p.g[p.T * p.n + j] ** 2 * p.curvature[j]
            objective += term
            size += term
    fell = at.objective - objective
    at.objective, at.blocks, at.noise = objective, 0, FLOAT_EPS * largest
    if at.violation < 0.9 * at.best:
        at.best = at.violation
        return True
    return at.violation > at.noise and fell > 1e-12 * size


# 1. The working set

cdef void scan_group(Problem* p, Scan* s, Py_ssize_t j) noexcept nogil:
    """Compute R and L of group j, their extremes, and its numbers of variables."""
    cdef Group* group = p.group + j
    cdef Py_ssize_t e, first, waiting, a
    cdef double b, low, top
    set_mid(p, j)
    group.free = group.waiting = 0
    group.R_min, group.L_max = INFINITY, -INFINITY
    for a in range(p.n_stretches):
        first = p.stretch[2 * a]
        e = j * p.n + first
        group.free += p.ops.smo_scan(
            p.g + e, p.f + first, p.lo + e, p.hi + e, p.pn + e, p.pp + e, group.mid,
            s.R + e, s.L + e, p.stretch[2 * a + 1] - first, &low, &top, &waiting,
        )
        group.R_min, group.L_max = fmin(group.R_min, low), fmax(group.L_max, top)
        group.waiting += waiting
    if p.priced:
        b = p.g[p.T * p.n + j] * p.curvature[j]
        group.R_min, group.L_max = fmin(group.R_min, b), fmax(group.L_max, b)


cdef inline bint scan_is_shared(Problem* p) noexcept nogil:
    """Return whether a scan takes longer than waking another thread."""
    return p.T * p.moving >= SHARED_SCAN


cdef void scan_group_of(void* given, Py_ssize_t j, int worker) noexcept nogil:
    scan_group((<Shared*>given).p, (<Shared*>given).s, j)


cdef void set_violation(Problem* p) noexcept nogil:
    """Set low, up and the violation from the extremes of the groups."""
    cdef Py_ssize_t j, k
    cdef double low, up
    p.at.violation = -INFINITY
    for j in range(p.T):
        low, up = p.group[j].L_max, p.group[j].R_min
        if p.coupled:
            for k in range(tied_stop(p, j)):
                low = fmax(low, p.group[k].L_max)
            for k in range(tied_start(p, j), p.T):
                up = fmin(up, p.group[k].R_min)
        p.group[j].low, p.group[j].up = low, up
        p.group[j].worst = fmax(low - p.group[j].R_min, p.group[j].L_max - up)
        p.at.violation = fmax(p.at.violation, low - up)


cdef void choose_groups(Problem* p, Scan* s) noexcept nogil:
    """Choose the groups of the next block: all, or the GROUPS worst ones."""
    cdef Py_ssize_t j, k = min(p.T, GROUPS)
    for j in range(p.T):
        s.groups[j], s.worst[j] = j, <float>p.group[j].worst
        p.group[j].chosen = False
    smallest(s.groups, s.worst, -1, p.T, k)
    for j in range(k):
        p.group[s.groups[j]].chosen = True


cdef void find_group_violators(
    Problem* p, Scan* s, Py_ssize_t j, Py_ssize_t half,
) noexcept nogil:
    """Find up to `half` rows of group j to grow, and as many to shrink."""
    cdef Group* group = p.group + j
    cdef Py_ssize_t e = j * p.n
    group.n_R = group.n_L = 0
    if group.chosen and group.low - group.up > p.at.tol:
        group.n_R = find_violators(
            p, s.grow + e, s.R + e, 1, <float>(group.low - group.mid), half)
        group.n_L = find_violators(
            p, s.shrink + e, s.L + e, -1, <float>(group.up - group.mid), half)


cdef void find_violators_of(void* given, Py_ssize_t j, int worker) noexcept nogil:
    cdef Shared* at = <Shared*>given
    find_group_violators(at.p, at.s, j, at.count)


cdef inline Py_ssize_t admit(
    Problem* p, Scan* s, const int32_t* candidates, Py_ssize_t count, Py_ssize_t first,
    Py_ssize_t m, Py_ssize_t q,
) noexcept nogil:
    """Append the entries first + candidates that are not yet in the block of m entries,
    until it has q. Return the new m."""
    cdef Py_ssize_t a, e
    for a in range(count):
        if m == q:
            break
        e = first + candidates[a]
        if not s.member[e]:
            s.member[e] = 1
            p.block[m] = <int32_t>e
            m += 1
    return m


cdef Py_ssize_t keep_free_first(Problem* p, int32_t* out) noexcept nogil:
    """Copy the last block to `out`, restricted to the chosen groups and with the free
    variables first. Return the number of entries."""
    cdef Py_ssize_t a, m = 0
    cdef int side
    cdef int32_t e
    for side in range(2):
        for a in range(p.size):
            e = p.block[a]
            if (p.lo[e] < p.g[e] < p.hi[e]) != side and p.group[e // p.n].chosen:
                out[m] = e
                m += 1
    return m


cdef void fill_block(
    Problem* p, Scan* s, Py_ssize_t free, int n_threads,
) noexcept nogil:
    """Set p.block: one half new violators, the rest from the last block, free first."""
    cdef Shared at
    cdef Py_ssize_t j, kept, active = 0, m = 0
    # entries beyond twice the free variables would be copied but hardly ever moved
    cdef Py_ssize_t q = min(
        p.q, max(p.small, 2 * free // SIMD_LANES * SIMD_LANES))
    choose_groups(p, s)
    for j in range(p.T):
        active += (
            p.group[j].chosen and p.group[j].low - p.group[j].up > p.at.tol)
    at.p, at.s = p, s
    at.count = max(1, (q if p.size == 0 else q // 2) // (2 * active))
    each_part(find_violators_of, &at, p.T, n_threads if scan_is_shared(p) else 1)
    kept = keep_free_first(p, s.keep)
    for j in range(p.T):
        m = admit(p, s, s.grow + j * p.n, p.group[j].n_R, j * p.n, m, q)
        m = admit(p, s, s.shrink + j * p.n, p.group[j].n_L, j * p.n, m, q)
    m = admit(p, s, s.keep, kept, 0, m, q)
    for j in range(m):
        s.member[p.block[j]] = 0
    p.size = m


cdef void select_working_set(Problem* p, Scan* s, int n_threads) noexcept nogil:
    """Set the violation and the phase: DONE at violation <= tol, STUCK, NEWTON, or
    READY with a new block. O(T n)."""
    cdef Py_ssize_t j, free = 0, waiting = 0
    cdef double unsettled = UNSETTLED if p.T == 1 else UNSETTLED_GROUPS
    cdef Shared at
    at.p, at.s = p, s
    each_part(scan_group_of, &at, p.T, n_threads if scan_is_shared(p) else 1)
    set_violation(p)
    for j in range(p.T):
        free += p.group[j].free
        waiting += p.group[j].waiting
    if not p.at.violation > p.at.tol:
        p.at.phase = DONE
    elif not progresses(p):
        p.at.phase = STUCK
    elif newton_is_due(&p.at, free, waiting, unsettled, p.moving):
        p.at.phase = NEWTON
    else:
        fill_block(p, s, free, n_threads)
        p.at.phase = READY


# 2. The block

cdef void lay_out(Problem* p, Scan* s, Block* b) noexcept nogil:
    """Assign positions in the block: one padded segment per group, in the order of the
    rows of K, so that K is read in the order of memory."""
    cdef Py_ssize_t n = p.n, i, j, k, e, a = 0
    cdef int32_t some = p.block[0] % <int32_t>n
    for i in range(p.size):
        s.member[p.block[i]] = 1
    for j in range(p.T):
        b.start[j] = a
        for k in range(p.n_stretches if p.group[j].chosen else 0):
            for i in range(p.stretch[2 * k], p.stretch[2 * k + 1]):
                e = j * n + i
                if s.member[e]:
                    s.member[e] = 0
                    b.entry[a], b.column[a] = <int32_t>e, <int32_t>i
                    a += 1
        if p.priced and a > b.start[j]:
            b.entry[a], b.column[a] = <int32_t>(p.T * n + j), some
            a += 1
        while a % SIMD_LANES:
            b.entry[a], b.column[a] = -1, some
            a += 1
    b.start[p.T] = b.size = a
    for a in range(b.size):
        b.rows[a] = p.K + <Py_ssize_t>p.slot[b.column[a]] * n


cdef void gather_strip(void* given, Py_ssize_t a, int worker) noexcept nogil:
    cdef Block* b = (<Shared*>given).b
    (<Shared*>given).p.ops.gather_rows(b.rows, b.column, b.size, a * COPY_STRIP,
                                       stop_of(b.size, COPY_STRIP, a), b.K)


cdef void mirror_strip(void* given, Py_ssize_t a, int worker) noexcept nogil:
    cdef Block* b = (<Shared*>given).b
    (<Shared*>given).p.ops.mirror_rows(b.K, b.size, a * COPY_STRIP,
                                       stop_of(b.size, COPY_STRIP, a))


cdef void copy_rows(Problem* p, Block* b, int n_threads) noexcept nogil:
    """Copy the block of K: its lower triangle, then the mirrored one."""
    cdef Shared at
    cdef Py_ssize_t m = b.size, strips = parts_of(m, COPY_STRIP)
    if n_threads == 1 or strips < 4:
        p.ops.gather_rows(b.rows, b.column, m, 0, m, b.K)
        p.ops.mirror_rows(b.K, m, 0, m)
        return
    at.p, at.b = p, b
    each_part(gather_strip, &at, strips, n_threads)
    each_part(mirror_strip, &at, strips, n_threads)


cdef void copy_block(Problem* p, Block* b, int n_threads) noexcept nogil:
    """Copy the block of K, and set R, L and the diagonal of its variables."""
    cdef Py_ssize_t a, c, e, j, m = b.size
    cdef double d, mid
    copy_rows(p, b, n_threads)
    for j in range(p.T):
        if p.T == 1:           # closer to the extremes of this scan; with several
            set_mid(p, j)      # groups, the middle used by the scan serves as well
        mid = p.group[j].mid
        b.R_min[j], b.L_max[j] = INFINITY, -INFINITY
        for a in range(b.start[j], b.start[j + 1]):
            e = b.entry[a]
            b.R[a], b.L[a], b.D[a] = INFINITY, -INFINITY, 0
            if e < 0:
                continue
            b.g[a], b.lo[a], b.hi[a] = p.g[e], p.lo[e], p.hi[e]
            if is_z(p, e):
                for c in range(m):
                    b.K[a * m + c] = b.K[c * m + a] = 0
                b.D[a] = b.K[a * m + a] = <float>p.curvature[j]
                place(p, b, a, p.g[e] * p.curvature[j], mid)
            else:
                b.D[a] = <float>p.diag[b.column[a]]
                d = p.f[b.column[a]]
                place(p, b, a, d if p.kinked else d + p.pp[e], mid)
            b.R_min[j] = min(b.R_min[j], b.R[a])
            b.L_max[j] = max(b.L_max[j], b.L[a])


# 3. SMO within the block

cdef inline Py_ssize_t find(
    Problem* p, Block* b, const float* x, float value, Py_ssize_t j,
) noexcept nogil:
    """Return the first position of group j where x equals the value, or -1."""
    cdef Py_ssize_t a = b.start[j]
    cdef Py_ssize_t i = p.ops.find(x + a, value, b.start[j + 1] - a)
    return a + i if i >= 0 else -1


cdef double worst_group(Problem* p, Block* b, Py_ssize_t* out) noexcept nogil:
    """Return the violation of the block; set `out` to the group that should grow."""
    cdef Py_ssize_t j, stop = 0, k = 0
    cdef double v, low = -INFINITY, violation = -INFINITY
    for j in range(p.T):
        v = b.L_max[j] - b.R_min[j]
        if p.coupled:
            if j == stop:
                stop = tied_stop(p, j)
            while k < stop:
                low = fmax(low, b.L_max[k] + p.group[k].mid)
                k += 1
            v = low - (b.R_min[j] + p.group[j].mid)
        if v > violation:
            violation = v
            out[0] = j
    return violation


cdef bint select_pair(Problem* p, Block* b, double tol, Pair* pair) noexcept nogil:
    """Select the entry u of least R, and the v with the largest second-order gain.
    Return whether there is such a pair and the violation exceeds tol."""
    cdef Py_ssize_t j = 0, k, a, m = b.size
    cdef const float* Ku
    cdef float R, top, gain, best = 0
    if p.T == 1:               # L_max is a by-product of the gains
        pair.of_u = pair.of_v = 0
        pair.u = p.ops.find(b.R, b.R_min[0], m)
        if pair.u < 0:
            return False
        best = p.ops.smo_gain(b.L, b.K + pair.u * m, b.D, b.D[pair.u], b.R_min[0],
                              b.gain, m, &top)
        if not (top - b.R_min[0] > tol and best > 0):
            return False
        pair.v = p.ops.find(b.gain, best, m)
        return pair.v >= 0
    if not worst_group(p, b, &j) > tol:
        return False
    pair.of_u, pair.u = j, find(p, b, b.R, b.R_min[j], j)
    if pair.u < 0:
        return False
    Ku = b.K + pair.u * m
    for k in range(0 if p.coupled else j, tied_stop(p, j)):
        R = <float>(b.R_min[j] + (p.group[j].mid - p.group[k].mid))
        if b.L_max[k] > R:
            a = b.start[k]
            gain = p.ops.smo_gain(b.L + a, Ku + a, b.D + a, b.D[pair.u], R, b.gain + a,
                                  b.start[k + 1] - a, &top)
            if gain > best:
                best, pair.of_v = gain, k
    if not best > 0:
        return False
    pair.v = find(p, b, b.gain, best, pair.of_v)
    return pair.v >= 0


cdef void shift_mu(Problem* p, Pair* pair, double t, double width) noexcept nogil:
    """Update the mu between the groups of a pair after u grew by t and v shrank."""
    cdef Py_ssize_t k
    # pairs would otherwise exchange the rounding error of a mu for ever
    cdef double rounding = MU_ROUNDING * width
    for k in range(pair.of_u + 1, pair.of_v + 1):
        p.mu[k] = p.mu[k] - t if p.mu[k] - t > rounding else 0
    for k in range(pair.of_v + 1, pair.of_u + 1):
        p.mu[k] = p.mu[k] + t if p.mu[k] + t > rounding else 0


cdef void step_pair(Problem* p, Block* b, Pair* pair) noexcept nogil:
    """Grow u and shrink v to the minimum along them or the first break point; an entry
    that meets a bound equals it. Updates R and L of the block."""
    cdef Py_ssize_t u = pair.u, v = pair.v, m = b.size, k
    cdef double mid_u = p.group[pair.of_u].mid, mid_v = p.group[pair.of_v].mid
    cdef double scale = <double>b.D[u] + b.D[v]
    cdef double eta = scale - 2 * <double>b.K[u * m + v]
    cdef double d_u = gradient(p, b, u, mid_u), d_v = gradient(p, b, v, mid_v)
    cdef double to_u = growth_end(p, b, u), to_v = shrink_end(p, b, v)
    cdef double room_u = to_u - b.g[u], room_v = b.g[v] - to_v
    cdef double t = d_v - d_u
    if p.kinked:
        t = (<double>b.L[v] - b.R[u]) + (mid_v - mid_u)
    if eta < -1e-6 * scale or scale < 0:
        p.at.indefinite = True
    t = t / fmax(eta, SMO_ETA_MIN * fabs(scale) + 1e-30)
    t = fmin(t, fmin(room_u, room_v))
    for k in range(pair.of_u + 1, pair.of_v + 1):
        t = fmin(t, p.mu[k])   # these decrease by t
    if pair.of_u != pair.of_v:
        shift_mu(p, pair, t, b.hi[u] - b.lo[u])
    b.g[u] = to_u if t == room_u else b.g[u] + t
    b.g[v] = to_v if t == room_v else b.g[v] - t
    place(p, b, u, d_u, mid_u)
    place(p, b, v, d_v, mid_v)
    if p.T == 1:               # `select_pair` finds L_max while it selects v
        b.R_min[0] = p.ops.smo_update(b.R, b.L, b.K + u * m, b.K + v * m, <float>t, m)
    else:
        p.ops.threshold_update(b.R, b.L, b.K + u * m, b.K + v * m, <float>t, b.start,
                               p.T, b.R_min, b.L_max)


cdef void solve_block(Problem* p, Block* b) noexcept nogil:
    """Run SMO on the variables of the block."""
    cdef double tol = fmax(0.5 * p.at.tol, INNER_RATIO * p.at.violation)
    cdef int64_t steps = 0
    cdef int64_t most = min(p.at.max_steps - p.at.steps, STEPS_A_VARIABLE * p.size)
    cdef Pair pair
    while steps < most and select_pair(p, b, tol, &pair):
        step_pair(p, b, &pair)
        steps += 1
    p.at.steps += steps
    p.at.work += block_cost(b.size, p.moving, steps)


# 4. The gradient

cdef void add_strip(void* given, Py_ssize_t a, int worker) noexcept nogil:
    cdef Shared* at = <Shared*>given
    cdef Py_ssize_t first = at.first + a * STRIP
    at.p.ops.add_rows(at.p.f, at.b.rows, at.b.delta, at.count, first,
                      min(at.stop, first + STRIP))


cdef bint update_gradient(Problem* p, Block* b, int n_threads) noexcept nogil:
    """Copy g of the block to the problem, and add K (change of beta) to f. Return
    whether any variable has changed."""
    cdef Shared at
    cdef Py_ssize_t a, e, k, count = 0
    cdef bint moved = False
    for a in range(b.size):
        e = b.entry[a]
        if e >= 0 and b.g[a] != p.g[e]:
            moved = True
            if not is_z(p, e):
                b.delta[count], b.rows[count] = b.g[a] - p.g[e], b.rows[a]
                count += 1
            p.g[e] = b.g[a]
    at.p, at.b, at.count = p, b, count
    for k in range(p.n_stretches):
        at.first, at.stop = p.stretch[2 * k], p.stretch[2 * k + 1]
        if n_threads == 1:
            p.ops.add_rows(p.f, b.rows, b.delta, count, at.first, at.stop)
        else:
            each_part(add_strip, &at, parts_of(at.stop - at.first, STRIP),
                      n_threads)
    return moved


# Scheduling

cdef void run_blocks(Problem* p, Work* w, double until, int n_threads) noexcept nogil:
    """Solve blocks of a problem until it ends, needs the interpreter, or time is up."""
    while p.at.phase <= READY:
        if p.at.phase == RUN:
            select_working_set(p, &w.scan, n_threads)
        if p.at.phase == READY and not rows_held(p):
            p.at.phase = WAIT
        if p.at.phase == READY:
            lay_out(p, &w.scan, &w.block)
            copy_block(p, &w.block, n_threads)
            solve_block(p, &w.block)
            p.at.phase = RUN if update_gradient(p, &w.block, n_threads) else STUCK
            if p.at.steps >= p.at.max_steps:
                p.at.phase = LIMIT
        if simd_seconds() > until:
            break


cdef void run_turn(Problem* p, Work* w, double end) noexcept nogil:
    """Work for QUANTUM seconds on a problem that no other thread holds. Only under the
    lock does `run_blocks` read the phase, which another thread may be changing."""
    cdef double now = simd_seconds()
    if now > end or not simd_try_lock(&p.lock):
        return
    run_blocks(p, w, fmin(end, now + QUANTUM), 1)
    simd_unlock(&p.lock)


cdef void take_turn(void* given, Py_ssize_t turn, int worker) noexcept nogil:
    cdef Turns* at = <Turns*>given
    run_turn(at.problems[turn % at.n_problems], at.work + worker,
             INFINITY if turn < at.n_problems else at.end)


def advance(
    list tasks not None, Workspace space not None, double seconds, int n_threads,
):
    """Improve every task in phase RUN or READY for about `seconds` on n_threads
    threads, by at least one block.

    Threads take the tasks in turns of QUANTUM seconds, so that a few long ones do not
    leave a thread without work. A single task gets all threads for its blocks.
    """
    cdef Turns at
    cdef Py_ssize_t n_tasks = 0
    cdef double end = simd_seconds() + seconds
    cdef Smo task
    cdef Problem** problems = <Problem**>PyMem_Malloc(len(tasks) * sizeof(Problem*))
    if problems == NULL:
        raise MemoryError
    for task in tasks:
        if task.p.at.phase <= READY:
            problems[n_tasks] = &task.p
            n_tasks += 1
    try:
        if n_tasks == 1:
            call_helpers(n_threads)
            with nogil:
                run_blocks(problems[0], space.work, end, n_threads)
        elif n_tasks > 1:
            n_threads = min(n_threads, space.n_threads)
            at = Turns(problems, n_tasks, space.work, end)
            run_parts(take_turn, &at, <Py_ssize_t>(seconds / QUANTUM + 2) * n_threads
                      * n_tasks, n_threads,
                      seconds if problems[0].n >= MANY else 0)
    finally:
        PyMem_Free(problems)


cdef class Smo:
    """Problem (Q) over the caller's arrays, and its progress."""

    cdef Problem p
    cdef object arrays         # owners of the memory that p points to
    cdef object block

    def __init__(
        self,
        const float[:, ::1] K not None,      # (capacity, n) rows of the kernel matrix
        const int32_t[::1] slot not None,    # (n,)
        const double[::1] diag not None,
        const double[::1] lo not None,       # (T n,), or (T n + T,) if priced
        const double[::1] hi not None,
        const double[::1] pn not None,
        const double[::1] pp not None,
        const double[::1] curvature not None,  # (T,) 1 / price, or zeros: not priced
        bint coupled,
        double[::1] g not None,              # IN-OUT as lo
        double[::1] mu not None,             # IN-OUT (T + 1,)
        double[::1] f not None,              # IN-OUT (n,)
        const int32_t[:, ::1] stretches not None,  # (m, 2) begin and end
        Py_ssize_t q,                        # largest number of entries of a block
        double tol,
        int64_t max_steps,
        double patience,
    ):
        cdef Problem* p = &self.p
        cdef Py_ssize_t n = f.shape[0], T = mu.shape[0] - 1, entries = g.shape[0], e
        cdef Py_ssize_t a, last = 0
        cdef bint shapes = (
            T > 0 and K.shape[1] == slot.shape[0] == diag.shape[0] == n
            and curvature.shape[0] == T
            and entries == lo.shape[0] == hi.shape[0] == pn.shape[0] == pp.shape[0])
        cdef bint priced = shapes and curvature[0] > 0
        if not (shapes and entries == T * n + (T if priced else 0)
                and entries < 2**31 and q > 0 and not (priced and coupled)):
            raise ValueError("Smo: inconsistent array shapes")
        if stretches.shape[0] < 1 or stretches.shape[1] != 2:
            raise ValueError("Smo: no stretches of rows")
        for a in range(stretches.shape[0]):
            if not last <= stretches[a, 0] < stretches[a, 1] <= n:
                raise ValueError("Smo: stretches of rows must increase")
            last = stretches[a, 1]
        cdef int32_t[::1] block = np.zeros(q, np.int32)
        self.arrays = (K, slot, diag, lo, hi, pn, pp, curvature, g, mu, f, stretches)
        self.block = block
        PyMem_Free(p.group)
        memset(p, 0, sizeof(Problem))
        p.n, p.T, p.q, p.coupled, p.priced = n, T, q, coupled, priced
        for e in range(entries):
            p.kinked = p.kinked or pn[e] != pp[e]
        p.K, p.slot, p.diag = &K[0, 0], &slot[0], &diag[0]
        p.lo, p.hi, p.pn, p.pp = &lo[0], &hi[0], &pn[0], &pp[0]
        p.curvature, p.g, p.mu, p.f = &curvature[0], &g[0], &mu[0], &f[0]
        p.block, p.ops = &block[0], simd()
        p.stretch, p.n_stretches = &stretches[0, 0], stretches.shape[0]
        for a in range(p.n_stretches):
            p.moving += stretches[a, 1] - stretches[a, 0]
        p.small = min(SMALL_BLOCK, max(64, p.moving // 4 // 64 * 64) if T == 1 else q)
        p.group = <Group*>PyMem_Calloc(T, sizeof(Group))
        if p.group == NULL:
            raise MemoryError
        p.at.tol, p.at.max_steps, p.at.patience = tol, max_steps, patience
        p.at.violation = p.at.best = INFINITY

    def __dealloc__(self):
        PyMem_Free(self.p.group)

    @property
    def phase(self) -> int:
        return self.p.at.phase

    @phase.setter
    def phase(self, int value):
        self.p.at.phase = value
        if value == RUN:       # f has been computed again, without rounding errors
            self.p.at.best = INFINITY

    @property
    def steps(self) -> int:
        return self.p.at.steps

    @property
    def patience(self) -> float:
        return self.p.at.patience

    @property
    def work(self) -> float:
        """Nanoseconds of work since the last Newton step or pivots, by `_smo_costs`."""
        return self.p.at.work

    @property
    def indefinite(self) -> bool:
        """Whether a pair of variables had negative curvature: K is indefinite."""
        return bool(self.p.at.indefinite)

    @property
    def violation(self) -> float:
        """Violation when the last block was chosen."""
        return self.p.at.violation

    @property
    def pivots(self) -> bool:
        """Whether phase NEWTON asks for pivots of an active set."""
        return bool(self.p.at.pivots)

    def allow_pivots(self, Py_ssize_t room, Py_ssize_t held, double setup):
        """Allow pivots of an active set with room for `room` free variables, `held` of
        which it has; its first pivot costs `setup` ns more than the others."""
        self.p.at.room, self.p.at.held, self.p.at.setup = room, held, setup

    def resume(self, double patience, int steps):
        """Continue with SMO after Newton steps or pivots, successful or not."""
        self.p.at.phase, self.p.at.work, self.p.at.patience = RUN, 0, patience
        self.p.at.steps += steps

    def needed(self) -> np.ndarray:
        """Return the rows of K that the chosen block needs, in increasing order."""
        return np.unique(np.asarray(self.block)[: self.p.size] % self.p.n)


cdef Py_ssize_t padded(Py_ssize_t size) noexcept:
    """Round up to a multiple of the vector width."""
    return SIMD_LANES * parts_of(size, SIMD_LANES)


def groups_of_block(Py_ssize_t T) -> int:
    """Return the largest number of groups, of T, that share a block."""
    return min(T, GROUPS)


cdef class Workspace:
    """Scratch of n_threads threads for problems of n rows, T groups, blocks of q."""

    cdef Work* work
    cdef readonly int n_threads
    cdef object arrays         # owners of the memory that `work` points to

    def __cinit__(self, Py_ssize_t n, Py_ssize_t T, Py_ssize_t q, int n_threads):
        # a segment of the block includes its z; it is padded to whole vectors, like all
        # arrays that vector loops read
        cdef Py_ssize_t k, Tn = padded(T * n)
        cdef Py_ssize_t room = padded(q + (1 + SIMD_LANES) * min(T, GROUPS))
        cdef Py_ssize_t wide = 2 * Tn + room * room + 4 * room + padded(3 * T)
        cdef float[::1] s = np.empty(n_threads * wide + SIMD_LANES, np.float32)
        cdef double[:, :, ::1] d = np.empty((n_threads, 4, room))
        cdef Py_ssize_t indices = 3 * Tn + q + T + 2 * room
        cdef int32_t[:, ::1] i = np.zeros((n_threads, indices), np.int32)
        cdef Py_ssize_t[:, ::1] start = np.empty((n_threads, T + 1), np.intp)
        cdef size_t[:, ::1] pointers = np.empty((n_threads, room), np.uintp)
        cdef float* first = &s[0] + to_line(&s[0], sizeof(float))
        cdef Scan* scan
        cdef Block* b
        self.work = <Work*>PyMem_Malloc(n_threads * sizeof(Work))
        if self.work == NULL:
            raise MemoryError
        self.n_threads, self.arrays = n_threads, (s, d, i, start, pointers)
        for k in range(n_threads):
            scan, b = &self.work[k].scan, &self.work[k].block
            scan.R, scan.L = first + k * wide, first + k * wide + Tn
            b.K = scan.L + Tn
            b.R = b.K + room * room
            b.L, b.D, b.gain = b.R + room, b.R + 2 * room, b.R + 3 * room
            b.R_min, b.L_max = b.R + 4 * room, b.R + 4 * room + T
            scan.worst = b.L_max + T
            b.g, b.delta = &d[k, 0, 0], &d[k, 1, 0]
            b.lo, b.hi = &d[k, 2, 0], &d[k, 3, 0]
            scan.member, scan.grow, scan.shrink = &i[k, 0], &i[k, Tn], &i[k, 2 * Tn]
            scan.keep, scan.groups = &i[k, 3 * Tn], &i[k, 3 * Tn + q]
            b.entry, b.column = scan.groups + T, scan.groups + T + room
            b.start, b.rows = &start[k, 0], <const float**>&pointers[k, 0]

    def __dealloc__(self):
        PyMem_Free(self.work)
