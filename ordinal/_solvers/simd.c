#include "simd.h"
#include "simd_cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__GNUC__) || defined(__clang__) /* clang-cl defines the second alone */
#define GNU_C 1
#else
#include <intrin.h>
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FN(name) JOIN(name, LEVEL)
#define STR_(x) #x
#define STR(x) STR_(x)

#ifdef GNU_C
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif

#define LEVEL baseline
#include "simd_loops.h"
#undef LEVEL

/* gcc believes that Windows aligns the stack to whole vectors, which it does not: wider
 * ones need the assembler option that meson.build then gives together with this macro. */
#if defined(_WIN32) && !defined(__clang__) && !defined(ORDINAL_UNALIGNED_MOVES)
#undef SIMD_ASKS_CPU
#endif

/* Per-function targets need gcc's pragma (gcc alone has it for whole regions). */
#if defined(SIMD_ASKS_CPU) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define LEVEL avx2
#include "simd_loops.h"
#undef LEVEL
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")
#define LEVEL avx512
#include "simd_loops.h"
#undef LEVEL
#pragma GCC pop_options
#elif defined(SIMD_ASKS_CPU)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#define LEVEL avx2
#include "simd_loops.h"
#undef LEVEL
#pragma clang attribute pop
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"))), apply_to = function)
#define LEVEL avx512
#include "simd_loops.h"
#undef LEVEL
#pragma clang attribute pop
#endif

static const simd_loops *const levels[] = { /* best first */
#ifdef SIMD_ASKS_CPU
  &loops_avx512, &loops_avx2,
#endif
  &loops_baseline,
};
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static int runs_here(const simd_loops *level) {
#ifdef SIMD_ASKS_CPU
  if (level == &loops_avx512) return simd_cpu_has_avx512(simd_this_cpu());
  if (level == &loops_avx2) return simd_cpu_has_avx2(simd_this_cpu());
#endif
  (void)level;
  return 1;
}

static const simd_loops *active = NULL; /* read and written by `load` and `store` alone */

#ifdef GNU_C
static const simd_loops *load(void) { return __atomic_load_n(&active, __ATOMIC_ACQUIRE); }
static void store(const simd_loops *level) { __atomic_store_n(&active, level, __ATOMIC_RELEASE); }
#else
static const simd_loops *load(void) {
  return (const simd_loops *)_InterlockedCompareExchangePointer((void *volatile *)&active, NULL, NULL);
}
static void store(const simd_loops *level) {
  _InterlockedExchangePointer((void *volatile *)&active, (void *)level);
}
#endif

const simd_loops *simd(void) {
  const simd_loops *found = load();
  if (found == NULL) { /* threads that come here at once find and store the same level */
    const char *wanted = getenv("ORDINAL_SIMD");
    for (int i = 0; i < (int)N_LEVELS; i++)
      if (runs_here(levels[i]) && (found == NULL || (wanted && strcmp(wanted, levels[i]->name) == 0)))
        found = levels[i];
    store(found);
  }
  return found;
}

const char *simd_level(int i) {
  for (int k = 0; k < (int)N_LEVELS; k++)
    if (runs_here(levels[k]) && i-- == 0) return levels[k]->name;
  return NULL;
}

#ifdef GNU_C
int simd_try_lock(int32_t *lock) {
  return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0;
}
void simd_unlock(int32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
#else
int simd_try_lock(int32_t *lock) {
  return _InterlockedExchange((volatile long *)lock, 1) == 0;
}
void simd_unlock(int32_t *lock) { _InterlockedExchange((volatile long *)lock, 0); }
#endif
