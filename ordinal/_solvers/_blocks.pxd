"""What block SMO kernels share: how far a task has come, selection, and costs."""
from libc.stdint cimport int32_t, int64_t


cpdef enum Phase:
    RUN = 0     # choose a block next
    READY = 1   # block chosen, not yet solved
    WAIT = 2    # block chosen, some of its rows of K are missing
    NEWTON = 3  # a step on all free variables is due, or pivots
    DONE = 4    # violation <= tol
    LIMIT = 5   # max_steps pair steps taken
    STUCK = 6   # rounding leaves no progress


cdef extern from *:
    """
    #define SMALL_BLOCK 512    /* where few variables are free */
    #define PROBATION 200      /* blocks that may pass without a smaller violation */
    #define SETTLED 0.0025     /* part of the free variables that may wait to be so */
    #define FLOAT_EPS 1.2e-7   /* relative error of an entry of K, twice over */
    """
    const Py_ssize_t SMALL_BLOCK
    const int PROBATION
    const double SETTLED, FLOAT_EPS


cdef struct Progress:          # of one problem
    double violation, tol
    int64_t steps, max_steps
    double work                # spent since the last Newton step
    double patience            # times the cost of a Newton step to spend before it
    double best                # violation, least seen
    double mark                # objective then, or PROBATION blocks ago
    double noise               # violation that the errors of K explain
    Py_ssize_t face_room       # free variables that its active set can hold
    Py_ssize_t face_size       # and those that it does
    double face_setup          # cost of its first pivot beyond that of others
    bint pivots                # what is due is not a Newton step but pivots of that set
    int since                  # blocks since `mark`
    int phase
    bint indefinite            # a pair was met along which the objective curves down


cdef class BlockTask:
    cdef Progress at


# Progress

cdef inline bint on_probation(Progress* at) noexcept nogil:
    """Whether to go on without a look at the objective; `falls` is that look."""
    at.since += 1
    return not at.violation < 0.9 * at.best and at.since < (
        PROBATION if at.violation > at.noise else PROBATION // 20)


cdef inline bint falls(
    Progress* at, double objective, double size, double largest,
) noexcept nogil:
    """False if the violation has not fallen for PROBATION blocks, nor has the
    objective, a sum of terms of that size; it is then time to compute K g afresh.

    Rows of K that depend on each other leave directions in which K is nothing but
    rounding, and SMO may follow one for long: below the violation that such errors
    explain for variables as large as `largest`, a fall of the objective does not count.
    """
    cdef double before = at.mark
    at.mark, at.since, at.noise = objective, 0, FLOAT_EPS * largest
    if at.violation < 0.9 * at.best:
        at.best = at.violation
        return True
    return at.violation > at.noise and before - objective > 1e-12 * size


cdef inline bint newton_is_due(
    Progress* at, Py_ssize_t free, Py_ssize_t waiting, double unsettled, Py_ssize_t n,
) noexcept nogil:
    """Whether SMO has had its time: `unsettled` times longer where many wait to join
    the free variables, for a Newton step then does not end the fit. Pivots of an active
    set do, and are what is due where they cost less."""
    cdef double cost = newton_cost(free + waiting, n)
    cdef double pivots = pivots_cost(at, free, waiting, n)
    if waiting > SETTLED * free:
        cost *= unsettled
    at.pivots = 0 < at.face_room >= free + waiting and pivots < cost
    return at.work > at.patience * (pivots + at.face_setup if at.pivots else cost)


cdef inline double newton_cost(Py_ssize_t free, Py_ssize_t n) noexcept nogil:
    """Time of one Newton step, in the unit of block_cost."""
    cdef double f = free
    return f * (f * (f / 130 + 5) + 0.2 * n) + 1e6


cdef inline double pivots_cost(
    Progress* at, Py_ssize_t free, Py_ssize_t waiting, Py_ssize_t n,
) noexcept nogil:
    """Time for an active set to take in the free variables that it does not hold, which
    seldom all stay, and those that wait, not each at the first attempt."""
    cdef double f = free + 0.5 * waiting, new = max(0, free - at.face_size)
    return (1.2 * waiting + 0.4 * new + 8) * (f * (0.28 * f + 0.06 * n) + 1500)


cdef inline double block_cost(Py_ssize_t m, Py_ssize_t n, int64_t steps) noexcept nogil:
    """Time of one block of SMO: its copy of K, the steps, the sweep over K g.

    In nanoseconds of the machine on which the constants were measured, counted and
    not clocked: what is chosen by it must not depend on the day or the threads.
    """
    return m * (1.5 * m + 0.2 * n) + steps * (80 + 0.3 * m)


# Selection

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


cdef inline Py_ssize_t violators(
    int32_t* idx, const float* key, float sign, float end, Py_ssize_t n, Py_ssize_t k,
) noexcept nogil:
    """Put up to k indices of least sign * key, all below sign * end, to the front of
    idx (n,); how many there are."""
    cdef Py_ssize_t i, count = 0
    for i in range(n):
        idx[count] = i
        count += sign * key[i] < sign * end
    k = min(k, count)
    smallest(idx, key, sign, count, k)
    return k


cdef inline Py_ssize_t admit(
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


cdef inline void free_first(
    const int32_t* block, Py_ssize_t size, const double* g, const double* lo,
    const double* hi, int32_t* out,
) noexcept nogil:
    """The block with the variables inside their boxes in front, otherwise as it was."""
    cdef Py_ssize_t a, m = 0
    cdef int side
    cdef int32_t e
    for side in range(2):
        for a in range(size):
            e = block[a]
            if (lo[e] < g[e] < hi[e]) != side:
                out[m] = e
                m += 1
