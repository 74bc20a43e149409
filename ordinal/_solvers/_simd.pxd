"""The vector loops, of which all kernels use one copy: see simd.h."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

cdef extern from "simd.h" nogil:
    enum:
        SIMD_LANES
        XOFM_LANES
        GRAM_LANES
    const float SMO_ETA_MIN

    ctypedef struct simd_loops:
        const char* name
        float (*smo_update)(
            float* R, float* L, const float* Ki, const float* Kj, float t, Py_ssize_t m,
        ) noexcept nogil
        void (*threshold_update)(
            float* R, float* L, const float* Ki, const float* Kj, float t,
            const Py_ssize_t* start, Py_ssize_t T, float* R_min, float* L_max,
        ) noexcept nogil
        float (*smo_gain)(
            const float* L, const float* Ki, const float* D, float Dii, float R_min,
            float* gain, Py_ssize_t m, float* L_max,
        ) noexcept nogil
        Py_ssize_t (*find)(const float* x, float value, Py_ssize_t m) noexcept nogil
        void (*gather_rows)(
            const float** rows, const int32_t* idx, Py_ssize_t m, Py_ssize_t first,
            Py_ssize_t last, float* block,
        ) noexcept nogil
        void (*mirror_rows)(
            float* block, Py_ssize_t m, Py_ssize_t first, Py_ssize_t last,
        ) noexcept nogil
        Py_ssize_t (*smo_scan)(
            const double* g, const double* G, const double* lo, const double* hi,
            const double* pn, const double* pp, double mid, float* R, float* L,
            Py_ssize_t n, double* R_min, double* L_max, Py_ssize_t* waiting,
        ) noexcept nogil
        void (*add_rows)(
            double* G, const float** rows, const double* delta, Py_ssize_t count,
            Py_ssize_t begin, Py_ssize_t end,
        ) noexcept nogil
        void (*combine_rows)(
            double* out, const double* A, Py_ssize_t stride, const int32_t* row,
            const double* c, Py_ssize_t count, Py_ssize_t n,
        ) noexcept nogil
        void (*symmetric_product)(
            const double* A, Py_ssize_t stride, const double* x, double* y,
            Py_ssize_t m,
        ) noexcept nogil
        void (*rank_one)(
            double* A, Py_ssize_t stride, const double* v, double scale, Py_ssize_t m,
        ) noexcept nogil
        void (*rbf_row_f32)(
            const double* P, double aa, const double* bb, double gamma, float* K,
            Py_ssize_t n,
        ) noexcept nogil
        void (*rbf_row_f64)(
            const double* P, double aa, const double* bb, double gamma, double* K,
            Py_ssize_t n,
        ) noexcept nogil
        void (*admm_clip)(
            const double* g, double* z, double* u, const double* shift,
            const double* width, const double* lo, const double* hi, Py_ssize_t n,
            double* sums,
        ) noexcept nogil
        void (*xofm_scores)(
            const int32_t* node, const double* t, Py_ssize_t n, Py_ssize_t d,
            const double* table, Py_ssize_t m, double* S, double* U,
        ) noexcept nogil
        void (*xofm_scatter)(
            const int32_t* node, const double* t, Py_ssize_t n, Py_ssize_t d,
            const double* table, Py_ssize_t m, const double* S, const double* slope,
            double* G,
        ) noexcept nogil
        void (*xofm_spread)(
            const int32_t* first, const int8_t* kind, Py_ssize_t d, Py_ssize_t m,
            const double* W, double* table,
        ) noexcept nogil
        void (*xofm_gather)(
            const int32_t* first, const int8_t* kind, Py_ssize_t d, Py_ssize_t m,
            const double* G, double* dW,
        ) noexcept nogil
        void (*xofm_descend)(
            Py_ssize_t P, Py_ssize_t m, const double* dW, double step,
            const double* keep, const double* floor, const uint8_t* squared, double* W,
        ) noexcept nogil
        void (*logit_terms)(
            const double* a, const double* b, const double* delta, Py_ssize_t n,
            double* out, Py_ssize_t stride,
        ) noexcept nogil
        void (*logit_slopes)(
            const double* a, const double* b, Py_ssize_t n, double* g, double* bend,
        ) noexcept nogil
        void (*standardise)(
            const double* X, Py_ssize_t ldx, Py_ssize_t n, const int64_t* column,
            Py_ssize_t d, const double* centre, const double* factor, double* V,
            Py_ssize_t stride, Py_ssize_t end,
        ) noexcept nogil
        void (*row_products)(
            const double* V, Py_ssize_t stride, Py_ssize_t n, const double* coef,
            double* out,
        ) noexcept nogil
        void (*scatter_rows)(
            const double* V, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t d,
            const int32_t* slot, const double* c, double* out, Py_ssize_t width,
        ) noexcept nogil
        void (*weighted_gram)(
            const double* V, Py_ssize_t stride, Py_ssize_t rows, const double* W,
            Py_ssize_t width, Py_ssize_t n, Py_ssize_t d, const double* c, int lower,
            double* out, Py_ssize_t ldo,
        ) noexcept nogil
        double (*code_terms)(
            double* s, double t, const int32_t* rank, int32_t k, const double* share,
            int squared, Py_ssize_t n, double* by_s,
        ) noexcept nogil
        void (*bend)(
            double* H, const double* V, const double* G, Py_ssize_t h, Py_ssize_t m,
            Py_ssize_t n,
        ) noexcept nogil
        double (*dot)(const double* x, const double* y, Py_ssize_t n) noexcept nogil
        void (*piecewise_point_f32)(
            const float* f, const int32_t* rank, const float* weight, const float* g,
            const float* table, Py_ssize_t r, double b, double sigma, Py_ssize_t n,
            float* t, float* inside, double* sums,
        ) noexcept nogil
        void (*piecewise_point_f64)(
            const double* f, const int32_t* rank, const float* weight, const double* g,
            const double* table, Py_ssize_t r, double b, double sigma, Py_ssize_t n,
            double* t, double* inside, double* sums,
        ) noexcept nogil
        double (*piecewise_slope_f32)(
            const float* f, const float* end, const int32_t* rank, const float* weight,
            const float* g, const float* table, Py_ssize_t r, double b, double db,
            double x, double sigma, Py_ssize_t n,
        ) noexcept nogil
        double (*piecewise_slope_f64)(
            const double* f, const double* end, const int32_t* rank,
            const float* weight, const double* g, const double* table, Py_ssize_t r,
            double b, double db, double x, double sigma, Py_ssize_t n,
        ) noexcept nogil
        void (*piecewise_jumps_f32)(
            const float* f, const int32_t* rank, const float* weight,
            const float* table, Py_ssize_t r, const double* grid, Py_ssize_t K,
            Py_ssize_t n, double* out,
        ) noexcept nogil
        void (*piecewise_jumps_f64)(
            const double* f, const int32_t* rank, const float* weight,
            const double* table, Py_ssize_t r, const double* grid, Py_ssize_t K,
            Py_ssize_t n, double* out,
        ) noexcept nogil
        double (*box_sums)(
            const double* f, const double* g, const double* lo, const double* hi,
            const double* p, double b, double sigma, Py_ssize_t n, double* count,
            double* size,
        ) noexcept nogil
        void (*box_steps)(
            const double* f, const double* g, const double* lo, const double* hi,
            const double* p, double b, double sigma, Py_ssize_t n, double* t,
            uint8_t* inside, double* total,
        ) noexcept nogil


cdef const simd_loops* simd() noexcept nogil
cdef const char* simd_level(int i) noexcept nogil
cdef double simd_seconds() noexcept nogil
cdef int simd_try_lock(int32_t* lock) noexcept nogil
cdef void simd_unlock(int32_t* lock) noexcept nogil


cdef inline Py_ssize_t to_line(const void* start, Py_ssize_t itemsize) noexcept nogil:
    """Return the number of items from `start` to the next cache line.

    The allocator does not align scratch, and loads that cross two lines take a tenth
    longer.
    """
    return <Py_ssize_t>(-<size_t>start % 64) // itemsize
