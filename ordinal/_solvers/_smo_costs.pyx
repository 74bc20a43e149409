"""Costs of blocks of SMO, Newton steps and pivots, by which a fit chooses among them.

The constants are nanoseconds on one machine, measured by tools/measure_costs.py. A fit
counts operations instead of reading the clock, because its decisions must not depend on
the load of the machine or on the number of threads.
"""
from libc.stdint cimport int64_t


cdef double NS_COPY = 1.5         # per entry of a block of K: copying it
cdef double NS_SWEEP = 0.2        # per entry of a row of K: adding it to f
cdef double NS_STEP = 80          # per pair step in a block
cdef double NS_STEP_ENTRY = 0.3   # per pair step and variable of the block
cdef double NS_CUBE = 1 / 130.    # times f^3: a Newton step on f free variables
cdef double NS_SQUARE = 5         # times f^2: its entries of K and clamped variables
cdef double NS_NEWTON = 1e6       # per Newton step
cdef double NS_PIVOT = 1500       # per pivot of an active set
cdef double NS_PIVOT_SQUARE = 0.28  # times f^2: a pivot among f free variables
cdef double NS_PIVOT_ENTRY = 0.06   # times f n: adding rows of K, in double, to f


cpdef double block_cost(Py_ssize_t m, Py_ssize_t n, int64_t steps) noexcept nogil:
    """Return the cost of a block of SMO: the copy of K, the steps, the sweep over f."""
    return m * (NS_COPY * m + NS_SWEEP * n) + steps * (NS_STEP + NS_STEP_ENTRY * m)


cpdef double newton_cost(Py_ssize_t free, Py_ssize_t n) noexcept nogil:
    """Return the cost of a Newton step, in nanoseconds."""
    cdef double f = free
    return f * (f * (f * NS_CUBE + NS_SQUARE) + NS_SWEEP * n) + NS_NEWTON


cpdef double pivot_cost(double f, Py_ssize_t n) noexcept nogil:
    """Return the cost of a pivot of an active set of f free variables."""
    return f * (NS_PIVOT_SQUARE * f + NS_PIVOT_ENTRY * n) + NS_PIVOT
