"""Coordinate descent for a quadratic with a penalty of absolute values.

    min_b  q(b) + sum_j (price_j |b_j| + ridge_j b_j^2 / 2)                          (1)

A step minimises (1) along one coordinate. With slope s_j and curvature h_j of q, b_j
becomes soft(h_j b_j - s_j, price_j) / (h_j + ridge_j), which may be exactly 0.

q is given in one of two forms. `descend_gram` has its Hessian, and a step that changes
b_j costs one row of it. `descend_columns` has the sparse columns z_j of

    q(b) = min_u  1/2 sum_i v_i f_i^2 + sum_i g_i f_i + ...,   f = sum_j b_j z_j     (2)

where u are U parameters without a penalty, which always take their optimal values. With
H_uu = L L' and k_j = L^-1 H_uj,

    d q / d b_j = z_j' slope + k_j' free,
    a step t of b_j:  slope += t v z_j,  free -= t k_j                               (3)

so that a step costs the entries of a column, and U.

J. Friedman, T. Hastie, R. Tibshirani, "Regularization paths for generalized linear
models via coordinate descent", J. Stat. Software 33(1), 2010, 2.1 to 2.3.
"""
from libc.stdint cimport int32_t, int64_t

# times the curvature of a column alone: a smaller rest is rounding error of the part
# that u explains
cdef double LEAST = 1e-12


cdef struct Quadratic:
    const double* H              # (m, m) Hessian of q, or NULL
    double* slope                # with H the (m,) slopes of q, otherwise (n,) as in (3)
    const int64_t* start         # the columns, if there is no H
    const int32_t* row
    const double* value
    const double* curvature      # (n,) v
    const double* border         # (m, U) k_j
    double* free                 # (U,)
    Py_ssize_t m, U


cdef inline double slope_of(const Quadratic* q, Py_ssize_t j) noexcept nogil:
    cdef double s = 0
    cdef int64_t e
    cdef Py_ssize_t k
    if q.H != NULL:
        return q.slope[j]
    for e in range(q.start[j], q.start[j + 1]):
        s += q.value[e] * q.slope[q.row[e]]
    for k in range(q.U):
        s += q.border[j * q.U + k] * q.free[k]
    return s


cdef inline void move(const Quadratic* q, Py_ssize_t j, double t) noexcept nogil:
    """Update the slopes after a step t of b_j."""
    cdef int64_t e
    cdef Py_ssize_t k
    if q.H != NULL:
        for k in range(q.m):
            q.slope[k] += t * q.H[j * q.m + k]
        return
    for e in range(q.start[j], q.start[j + 1]):
        q.slope[q.row[e]] += t * q.curvature[q.row[e]] * q.value[e]
    for k in range(q.U):
        q.free[k] -= t * q.border[j * q.U + k]


cdef inline double soft(double x, double width) noexcept nogil:
    if x > width:
        return x - width
    return x + width if x < -width else 0


cdef double step(
    const Quadratic* q, Py_ssize_t j, double h, double price, double ridge, double* b,
) noexcept nogil:
    """Minimise over coordinate j. Return twice a lower bound of the decrease of (1)."""
    cdef double s = slope_of(q, j)
    cdef double there = soft(h * b[j] - s, price) / (h + ridge)
    cdef double t = there - b[j]
    if t == 0:
        return 0
    b[j] = there
    move(q, j, t)
    return (h + ridge) * t * t


cdef (Py_ssize_t, double) sweeps(
    const Quadratic* q,
    const double* h,
    const double* price,
    const double* ridge,
    double tol,
    Py_ssize_t most,
    double* b,
    int32_t* active,
) noexcept nogil:
    """Alternate a sweep over all coordinates with sweeps over the nonzero ones, until
    every step of a full sweep returns at most tol. Return the number of sweeps, and the
    largest return value in the last one."""
    cdef Py_ssize_t j, k, count, done = 0
    cdef double worth, largest
    while True:
        largest, count = 0, 0
        for j in range(q.m):
            if h[j] > 0:
                worth = step(q, j, h[j], price[j], ridge[j], b)
                largest = worth if worth > largest else largest
                if b[j] != 0:
                    active[count] = <int32_t>j
                    count += 1
        done += 1
        if largest <= tol or done >= most:
            return done, largest
        worth = largest
        while worth > tol and done + 1 < most:
            worth = 0
            for k in range(count):
                j = active[k]
                largest = step(q, j, h[j], price[j], ridge[j], b)
                worth = largest if largest > worth else worth
            done += 1


def descend_gram(
    const double[:, ::1] H not None,         # (m, m) positive semi-definite
    const double[::1] price not None,        # (m,)
    const double[::1] ridge not None,        # (m,)
    double tol,
    Py_ssize_t most,                         # largest number of sweeps
    double[::1] slope not None,              # IN-OUT (m,) of q at b
    double[::1] b not None,                  # IN-OUT (m,)
    double[::1] scratch not None,            # (m,)
    int32_t[::1] active not None,            # (m,) scratch
) -> tuple[int, float]:
    """Minimise (1) given the Hessian of q. Return the number of sweeps, and twice the
    largest decrease by a step of the last one. A coordinate without curvature keeps its
    value. O(m^2) per sweep."""
    cdef Py_ssize_t j, m = H.shape[0]
    cdef (Py_ssize_t, double) end
    if not (m == H.shape[1] == price.shape[0] == ridge.shape[0] == slope.shape[0]
            == b.shape[0] == scratch.shape[0] == active.shape[0] > 0):
        raise ValueError("descend_gram: inconsistent array shapes")
    cdef Quadratic q = Quadratic(
        &H[0, 0], &slope[0], NULL, NULL, NULL, NULL, NULL, NULL, m, 0,
    )
    for j in range(m):
        scratch[j] = H[j, j]
    with nogil:
        end = sweeps(
            &q, &scratch[0], &price[0], &ridge[0], tol, most, &b[0], &active[0]
        )
    return end


def descend_columns(
    const int64_t[::1] start not None,       # (m + 1,) columns, compressed
    const int32_t[::1] row not None,
    const double[::1] value not None,
    const double[::1] curvature not None,    # (n,) v
    const double[:, ::1] border not None,    # (m, U) k_j
    const double[::1] price not None,        # (m,)
    const double[::1] ridge not None,        # (m,)
    double tol,
    Py_ssize_t most,                         # largest number of sweeps
    double[::1] slope not None,              # IN-OUT (n,)
    double[::1] free not None,               # IN-OUT (U,)
    double[::1] b not None,                  # IN-OUT (m,)
    double[::1] scratch not None,            # (m,)
    int32_t[::1] active not None,            # (m,) scratch
) -> tuple[int, float]:
    """Minimise (1) given the columns of (2). Return the number of sweeps, and twice the
    largest decrease by a step of the last one. The coordinate of a column that u
    explains keeps its value. O(entries of the columns + m U) per sweep."""
    cdef Py_ssize_t j, k, m = b.shape[0], U = border.shape[1]
    cdef int64_t e
    cdef double own
    cdef (Py_ssize_t, double) end
    if not (m == border.shape[0] == price.shape[0] == ridge.shape[0]
            == start.shape[0] - 1 == scratch.shape[0] == active.shape[0] > 0
            and U == free.shape[0] > 0 and curvature.shape[0] == slope.shape[0] > 0
            and row.shape[0] == value.shape[0] == start[m] > 0):
        raise ValueError("descend_columns: inconsistent array shapes")
    cdef Quadratic q = Quadratic(
        NULL, &slope[0], &start[0], &row[0], &value[0], &curvature[0], &border[0, 0],
        &free[0], m, U,
    )
    with nogil:
        for j in range(m):
            own = 0
            for e in range(start[j], start[j + 1]):
                own += curvature[row[e]] * value[e] * value[e]
            scratch[j] = own
            for k in range(U):
                scratch[j] -= border[j, k] * border[j, k]
            if scratch[j] < LEAST * own:
                scratch[j] = 0
        end = sweeps(
            &q, &scratch[0], &price[0], &ridge[0], tol, most, &b[0], &active[0]
        )
    return end
