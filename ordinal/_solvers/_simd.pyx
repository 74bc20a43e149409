"""Vector loops, compiled once; other kernels take their addresses from this module."""
from libc.stdint cimport int32_t

cdef extern from "simd.h" nogil:
    const simd_loops* chosen_loops "simd"()
    const char* level_name "simd_level"(int i)
    double seconds "simd_seconds"()
    int try_lock "simd_try_lock"(int32_t* lock)
    void unlock "simd_unlock"(int32_t* lock)


cdef const simd_loops* simd() noexcept nogil:
    return chosen_loops()


cdef const char* simd_level(int i) noexcept nogil:
    return level_name(i)


cdef double simd_seconds() noexcept nogil:
    return seconds()


cdef int simd_try_lock(int32_t* lock) noexcept nogil:
    return try_lock(lock)


cdef void simd_unlock(int32_t* lock) noexcept nogil:
    unlock(lock)
