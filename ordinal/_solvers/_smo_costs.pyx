"""What blocks of SMO, Newton steps and pivots cost, by which a fit chooses among them.

Costs are nanoseconds of the machine on which they were measured; a script,
tools/measure_costs.py, measures them again. They are counted and not clocked: what is
decided by them must not depend on the day or the threads.
"""
from libc.stdint cimport int64_t


cdef double NS_COPY = 1.5         # an entry of a block of K, copied
cdef double NS_SWEEP = 0.2        # an entry of a row of K, added to f
cdef double NS_STEP = 80          # a pair step in a block
cdef double NS_STEP_ENTRY = 0.3   # and for each variable of the block
cdef double NS_CUBE = 1 / 130.    # f^3 for a Newton step on f free variables
cdef double NS_SQUARE = 5         # f^2: the entries of K and the clamped variables
cdef double NS_NEWTON = 1e6       # what any Newton step takes
cdef double NS_PIVOT = 1500       # what any pivot of an active set takes
cdef double NS_PIVOT_SQUARE = 0.28  # f^2 for a pivot among f free variables
cdef double NS_PIVOT_ENTRY = 0.06   # f n: rows of K in double, added to f


cpdef double block_cost(Py_ssize_t m, Py_ssize_t n, int64_t steps) noexcept nogil:
    """Nanoseconds for a block of SMO: its copy of K, the steps, the sweep over f."""
    return m * (NS_COPY * m + NS_SWEEP * n) + steps * (NS_STEP + NS_STEP_ENTRY * m)


cpdef double newton_cost(Py_ssize_t free, Py_ssize_t n) noexcept nogil:
    """Nanoseconds for a Newton step."""
    cdef double f = free
    return f * (f * (f * NS_CUBE + NS_SQUARE) + NS_SWEEP * n) + NS_NEWTON


cpdef double pivot_cost(double f, Py_ssize_t n) noexcept nogil:
    """Nanoseconds for a pivot of an active set of f free variables."""
    return f * (NS_PIVOT_SQUARE * f + NS_PIVOT_ENTRY * n) + NS_PIVOT
