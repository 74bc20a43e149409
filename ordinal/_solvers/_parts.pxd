"""Parts of a computation on several threads: what kernels call."""

# what does one part; `worker`, below n_threads, is nobody else's meanwhile
ctypedef void (*Body)(void* given, Py_ssize_t part, int worker) noexcept nogil

cdef int call_helpers(int n_threads) except -1
cdef void each_part(
    Body body, void* given, Py_ssize_t count, int n_threads) noexcept nogil
cdef int run_parts(
    Body body, void* given, Py_ssize_t count, int n_threads, double seconds=*,
) except -1


cdef inline Py_ssize_t parts_of(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """How many parts n entries are, each of `size` but the last, which has the rest."""
    return (n + size - 1) // size


cdef inline Py_ssize_t stop_of(
    Py_ssize_t n, Py_ssize_t size, Py_ssize_t part,
) noexcept nogil:
    """The first of n entries behind a part, which begins at part * size."""
    return min(n, (part + 1) * size)
