/* This is a separate file because <windows.h> defines `near`, `far` and more as macros. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include "simd.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

double simd_seconds(void) {
  LARGE_INTEGER ticks, rate;
  QueryPerformanceFrequency(&rate);
  QueryPerformanceCounter(&ticks);
  return (double)ticks.QuadPart / (double)rate.QuadPart;
}
#else
#include <time.h>

double simd_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#endif
