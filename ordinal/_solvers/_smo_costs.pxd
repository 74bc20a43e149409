"""Costs of blocks, Newton steps and pivots of the pair SMO, in nanoseconds."""
from libc.stdint cimport int64_t


cpdef double block_cost(Py_ssize_t m, Py_ssize_t n, int64_t steps) noexcept nogil
cpdef double newton_cost(Py_ssize_t free, Py_ssize_t n) noexcept nogil
cpdef double pivot_cost(double f, Py_ssize_t n) noexcept nogil
