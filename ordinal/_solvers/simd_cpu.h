/* Detection of vector instructions by cpuid and xgetbv. clang-cl does not link the library
 * that __builtin_cpu_supports needs.
 *
 * An instruction set is usable if the processor has it and the operating system saves its
 * registers on a change of tasks. Reading the registers and interpreting them are separate
 * functions, so that a test can check processors other than this one.
 */
#ifndef ORDINAL_SIMD_CPU_H
#define ORDINAL_SIMD_CPU_H

#include <stdint.h>

typedef struct {
  uint32_t ecx1; /* of leaf 1: bit 12 FMA, 27 OSXSAVE, 28 AVX */
  uint32_t ebx7; /* of leaf 7: bit 5 AVX2, 16 AVX512F, 17 DQ, 30 BW, 31 VL */
  uint32_t xcr0; /* saved registers: bits 1 and 2 xmm and ymm, 5 to 7 masks and zmm */
} simd_cpu;

static inline int simd_all_of(uint32_t bits, uint32_t wanted) {
  return (bits & wanted) == wanted;
}

static inline int simd_cpu_has_avx2(simd_cpu cpu) {
  return simd_all_of(cpu.ecx1, 1u << 12 | 1u << 27 | 1u << 28) &&
         simd_all_of(cpu.xcr0, 1u << 1 | 1u << 2) && simd_all_of(cpu.ebx7, 1u << 5);
}

static inline int simd_cpu_has_avx512(simd_cpu cpu) {
  return simd_cpu_has_avx2(cpu) && simd_all_of(cpu.xcr0, 7u << 5) &&
         simd_all_of(cpu.ebx7, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31);
}

#if (defined(__x86_64__) || defined(_M_X64)) && !defined(_M_ARM64EC) && \
    (defined(__GNUC__) || defined(__clang__))
#define SIMD_ASKS_CPU 1

/* written out because <cpuid.h> and Microsoft's <intrin.h> define __cpuid differently */
static inline void simd_cpuid(uint32_t leaf, uint32_t out[4]) {
  __asm__ volatile("cpuid"
                   : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                   : "a"(leaf), "c"(0));
}

static inline simd_cpu simd_this_cpu(void) {
  simd_cpu cpu = {0, 0, 0};
  uint32_t r[4];
  simd_cpuid(0, r);
  if (r[0] < 7) return cpu;
  simd_cpuid(1, r);
  cpu.ecx1 = r[2];
  simd_cpuid(7, r);
  cpu.ebx7 = r[1];
  if (simd_all_of(cpu.ecx1, 1u << 27)) { /* otherwise xgetbv is not available */
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(cpu.xcr0), "=d"(high) : "c"(0));
#if defined(__APPLE__)
    /* macOS saves these registers after their first use, and reports them only then */
    if (simd_all_of(cpu.xcr0, 1u << 2)) cpu.xcr0 |= 7u << 5;
#endif
  }
  return cpu;
}
#endif

#endif
