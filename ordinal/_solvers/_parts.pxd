"""Parts of a computation on several threads: what kernels call."""

# what does one part; `worker`, below n_threads, is nobody else's meanwhile
ctypedef void (*Body)(void* given, Py_ssize_t part, int worker) noexcept nogil

cdef int call_helpers(int n_threads) except -1
cdef void each_part(
    Body body, void* given, Py_ssize_t count, int n_threads) noexcept nogil
cdef int run_parts(Body body, void* given, Py_ssize_t count, int n_threads) except -1
