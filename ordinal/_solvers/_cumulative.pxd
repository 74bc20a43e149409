"""What a network takes from linear cumulative models: their terms by row."""


cdef void terms_of(
    int link, const double* a, const double* b, const double* delta, Py_ssize_t n,
    double* out, Py_ssize_t stride,
) noexcept nogil
