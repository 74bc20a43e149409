"""Data structures of the pair SMO kernel: a problem, and the scratch of a thread."""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from ._simd cimport simd_loops


cpdef enum Phase:
    RUN = 0     # a block is to be chosen
    READY = 1   # a block is chosen, but not yet solved
    WAIT = 2    # a block is chosen, but some of its rows of K are missing
    NEWTON = 3  # a Newton step on all free variables is due, or pivots
    DONE = 4    # violation <= tol
    LIMIT = 5   # max_steps pair steps taken
    STUCK = 6   # rounding leaves no progress


cdef struct Progress:
    int phase
    double violation, tol
    int64_t steps, max_steps
    bint indefinite            # some pair had negative curvature
    double best                # smallest violation so far
    double objective           # (Q) at the last call of `progresses`
    int blocks                 # solved since then
    double noise               # violation explained by rounding errors of K
    double work                # nanoseconds spent since the last Newton step
    double patience            # SMO's share of time, in costs of a Newton step
    bint pivots                # phase NEWTON asks for pivots instead of a Newton step
    Py_ssize_t room            # largest number of free variables of the active set
    Py_ssize_t held            # its current number of free variables
    double setup               # extra nanoseconds of its first pivot


cdef struct Group:             # results of the last scan
    double R_min, L_max
    double low                 # max L over entries that may shrink for this group
    double up                  # min R over entries that may grow for this group
    double worst               # largest violation of a pair with an entry of the group
    bint chosen                # its entries may be in the block
    double mid                 # origin of the floats R and L
    Py_ssize_t free, waiting
    Py_ssize_t n_R, n_L        # violators: entries that should grow, or shrink


cdef struct Problem:
    Py_ssize_t n, T, q         # rows, groups, largest size of a block
    bint coupled, priced
    bint kinked                # pn and pp differ for some entry
    const float* K             # rows of the kernel matrix, n entries each
    const int32_t* slot        # (n,) position of row i in K, or -1
    const double* diag         # (n,)
    const double* lo           # (entries,)
    const double* hi
    const double* pn
    const double* pp
    const double* curvature    # (T,) 1 / price
    double* g                  # (entries,)
    double* mu                 # (T + 1,) mu[j] > 0 ties group j - 1 to j
    double* f                  # (n,)
    const int32_t* stretch     # (2 n_stretches,) begin and end of each, increasing
    Py_ssize_t n_stretches
    Py_ssize_t moving          # number of rows in them
    Py_ssize_t small           # size of a block while few variables are free
    Group* group               # (T,)
    int32_t* block             # (q,) the last block, most recent entries first
    Py_ssize_t size
    Progress at
    int32_t lock
    const simd_loops* ops


cdef struct Scan:              # scratch of a thread to choose a block
    float* R                   # (T n,)
    float* L
    int32_t* grow              # (T n,) rows that should grow, group by group
    int32_t* shrink            # (T n,)
    int32_t* keep              # (q,) the last block, free variables first
    int32_t* member            # (T n,) 1 for entries of the block, else 0
    int32_t* groups            # (T,) those of the block first
    float* worst               # (T,) as in Group


cdef struct Block:             # scratch of a thread to solve a block; room >= size
    Py_ssize_t size            # number of positions: a padded segment per group
    Py_ssize_t* start          # (T + 1,) first positions of the segments
    int32_t* entry             # (room,) entry at each position; -1 for padding
    int32_t* column            # (room,) row of each entry
    const float** rows         # (room,) its row of K
    double* g                  # (room,) current variables
    double* lo
    double* hi
    double* delta              # (room,) change of g
    float* K                   # (room, room)
    float* R                   # (room,) R, L, diagonal and gain
    float* L
    float* D
    float* gain
    float* R_min               # (T,) extremes of the segments
    float* L_max


cdef struct Work:
    Scan scan
    Block block


cdef struct Shared:            # work on one problem that threads share
    Problem* p
    Scan* s
    Block* b
    Py_ssize_t count           # violators per side of a group, or rows to add
    Py_ssize_t first, stop     # of a stretch


cdef struct Turns:
    Problem** problems
    Py_ssize_t n_problems
    Work* work                 # of each thread
    double end


cdef struct Pair:              # entry u grows and v shrinks; positions in the block
    Py_ssize_t u, v
    Py_ssize_t of_u, of_v      # their groups


cdef inline bint is_z(Problem* p, Py_ssize_t e) noexcept nogil:
    return e >= p.T * p.n


cdef inline Py_ssize_t row_of(Problem* p, Py_ssize_t e) noexcept nogil:
    return e if e < p.n else e % p.n   # a division takes its time


cdef inline double slope_up(Problem* p, Py_ssize_t e, double g) noexcept nogil:
    """Return the slope of phi right of g."""
    return p.pn[e] if g < 0 else p.pp[e]


cdef inline double slope_down(Problem* p, Py_ssize_t e, double g) noexcept nogil:
    """Return the slope of phi left of g."""
    return p.pp[e] if g > 0 else p.pn[e]


cdef inline bint rows_held(Problem* p) noexcept nogil:
    cdef Py_ssize_t a
    for a in range(p.size):
        if p.slot[row_of(p, p.block[a])] < 0:
            return False
    return True


cdef inline void set_mid(Problem* p, Py_ssize_t j) noexcept nogil:
    """Set the origin of the floats R and L of group j: the middle of [up, low]."""
    cdef double mid = 0.5 * (p.group[j].low + p.group[j].up)
    p.group[j].mid = mid if -INFINITY < mid < INFINITY else 0


cdef inline Py_ssize_t tied_start(Problem* p, Py_ssize_t j) noexcept nogil:
    """Return the first group that is tied to j by positive mu."""
    while p.coupled and p.mu[j] > 0:
        j -= 1
    return j


cdef inline Py_ssize_t tied_stop(Problem* p, Py_ssize_t j) noexcept nogil:
    """Return one past the last group that is tied to j by positive mu."""
    j += 1
    while p.coupled and p.mu[j] > 0:
        j += 1
    return j


cdef inline void place(
    Problem* p, Block* b, Py_ssize_t a, double d, double mid,
) noexcept nogil:
    """Set R and L of position a from its `gradient` d."""
    cdef Py_ssize_t e = b.entry[a]
    cdef double up = d, down = d
    if p.kinked:
        up, down = d + slope_up(p, e, b.g[a]), d + slope_down(p, e, b.g[a])
    b.R[a] = <float>(up - mid) if b.g[a] < b.hi[a] else INFINITY
    b.L[a] = <float>(down - mid) if b.g[a] > b.lo[a] else -INFINITY


cdef inline double gradient(
    Problem* p, Block* b, Py_ssize_t a, double mid,
) noexcept nogil:
    """Return the derivative by position a, from whichever of R and L is finite. It
    includes the slope of phi unless there are kinks, where that slope changes."""
    cdef Py_ssize_t e = b.entry[a]
    cdef bint grows = b.g[a] < b.hi[a]
    cdef double d = mid + (b.R[a] if grows else b.L[a])
    if p.kinked:
        d -= slope_up(p, e, b.g[a]) if grows else slope_down(p, e, b.g[a])
    return d


cdef inline double growth_end(Problem* p, Block* b, Py_ssize_t a) noexcept nogil:
    """Return the first break point above position a: its bound, or the kink at 0."""
    cdef Py_ssize_t e = b.entry[a]
    if p.kinked and b.g[a] < 0 < b.hi[a] and p.pn[e] != p.pp[e]:
        return 0
    return b.hi[a]


cdef inline double shrink_end(Problem* p, Block* b, Py_ssize_t a) noexcept nogil:
    """Return the first break point below position a: its bound, or the kink at 0."""
    cdef Py_ssize_t e = b.entry[a]
    if p.kinked and b.g[a] > 0 > b.lo[a] and p.pn[e] != p.pp[e]:
        return 0
    return b.lo[a]


cdef inline void smallest(
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


cdef inline Py_ssize_t find_violators(
    Problem* p, int32_t* idx, const float* key, float sign, float end, Py_ssize_t k,
) noexcept nogil:
    """Move up to k rows of least sign * key, all below sign * end, to the front of idx
    (n,). Return their number."""
    cdef Py_ssize_t a, i, count = 0
    for a in range(p.n_stretches):
        for i in range(p.stretch[2 * a], p.stretch[2 * a + 1]):
            idx[count] = <int32_t>i
            count += sign * key[i] < sign * end
    k = min(k, count)
    smallest(idx, key, sign, count, k)
    return k
