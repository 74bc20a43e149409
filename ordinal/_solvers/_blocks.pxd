"""What block SMO kernels share: selection of a block, and what its work costs."""
from libc.stdint cimport int32_t, int64_t


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


cdef inline double block_cost(Py_ssize_t m, Py_ssize_t n, int64_t steps) noexcept nogil:
    """Time of one block of SMO: its copy of K, the steps, the sweep over G.

    In nanoseconds of the machine on which the constants were measured, counted and
    not clocked: what is chosen by it must not depend on the day or the threads.
    """
    return m * (1.5 * m + 0.2 * n) + steps * (80 + 0.3 * m)


cdef inline double newton_cost(Py_ssize_t free, Py_ssize_t n) noexcept nogil:
    """Time of one Newton step, in the unit of block_cost."""
    cdef double f = free
    return f * (f * (f / 130 + 5) + 0.2 * n) + 1e6
