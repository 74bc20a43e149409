"""Likelihood terms of rows of cumulative link models, for other kernels."""


cdef void terms_of(
    int link, const double* a, const double* b, const double* delta, Py_ssize_t n,
    double* out, Py_ssize_t stride,
) noexcept nogil
