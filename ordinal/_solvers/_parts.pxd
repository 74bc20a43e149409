"""Parallel regions: the functions that kernels call."""

# Computes one part. No other thread has the same `worker` < n_threads at the same time
ctypedef void (*Body)(void* given, Py_ssize_t part, int worker) noexcept nogil

cdef int call_helpers(int n_threads) except -1
cdef void each_part(
    Body body, void* given, Py_ssize_t count, int n_threads) noexcept nogil
cdef int run_parts(
    Body body, void* given, Py_ssize_t count, int n_threads, double seconds=*,
) except -1


cdef inline Py_ssize_t parts_of(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Return the number of parts of n entries; all but the last have `size` entries."""
    return (n + size - 1) // size


cdef inline Py_ssize_t stop_of(
    Py_ssize_t n, Py_ssize_t size, Py_ssize_t part,
) noexcept nogil:
    """Return the end of a part of n entries, which begins at part * size."""
    return min(n, (part + 1) * size)
