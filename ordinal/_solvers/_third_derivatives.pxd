"""Third derivatives of the likelihood of several rows, for mixed models."""


cdef void thirds_of(
    int link, const double* a, const double* b, const double* delta, Py_ssize_t n,
    double* out, Py_ssize_t stride,
) noexcept nogil
