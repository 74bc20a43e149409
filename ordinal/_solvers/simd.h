/* Inner loops that run at the vector width of the processor.
 *
 * simd_loops.h holds each loop once, as plain C that compilers vectorise. simd.c
 * compiles it for every level the compiler can target and picks the best one the
 * processor has, so that a wheel built for plain x86-64 loses no speed. Levels
 * differ in rounding (fused multiply-add), but reductions that a caller can see have
 * the same order: results do not depend on the number of threads.
 */
#ifndef ORDINAL_SIMD_H
#define ORDINAL_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Least curvature of a pair step, relative to K_ii + K_jj: equal rows have none. */
#define SMO_ETA_MIN 1e-12f

enum { SIMD_LANES = 16 }; /* the longest vector in floats; blocks are padded to it */
enum { XOFM_LANES = 4 };  /* rows of XOFM's tables are padded to it */
enum { PIECEWISE_ROWS = 256 }; /* rows of a sum in the precision of the scores */
enum { GRAM_LANES = 8 };  /* rows of standardised features are padded to twice that */

typedef struct {
  const char *name;

  /* Pair SMO within a block of m variables, m a multiple of SIMD_LANES. */
  float (*smo_update)(float *R, float *L, const float *Ki, const float *Kj,
                      float t, ptrdiff_t m);
  void (*threshold_update)(float *R, float *L, const float *Ki, const float *Kj,
                           float t, const ptrdiff_t *start, ptrdiff_t T, float *R_min,
                           float *L_max);
  float (*smo_gain)(const float *L, const float *Ki, const float *D, float Dii,
                    float R_min, float *gain, ptrdiff_t m, float *L_max);
  ptrdiff_t (*find)(const float *x, float value, ptrdiff_t m);

  void (*gather_rows)(const float *const *rows, const int32_t *idx, ptrdiff_t m,
                      ptrdiff_t first, ptrdiff_t last, float *block);
  void (*mirror_rows)(float *block, ptrdiff_t m, ptrdiff_t first, ptrdiff_t last);

  /* Whole-problem loops of the pair SMO, n variables. */
  ptrdiff_t (*smo_scan)(const double *g, const double *G, const double *lo,
                   const double *hi, const double *pn, const double *pp, double mid,
                   float *R, float *L, ptrdiff_t n, double *R_min, double *L_max,
                        ptrdiff_t *waiting);
  void (*add_rows)(double *G, const float *const *rows, const double *delta,
                   ptrdiff_t count, ptrdiff_t begin, ptrdiff_t end);

  /* Active sets: out += sum_a c[a] A[row[a]]; y = A x and A += scale v v' for the lower
   * triangle of a symmetric A of m rows. */
  void (*combine_rows)(double *out, const double *A, ptrdiff_t stride,
                       const int32_t *row, const double *c, ptrdiff_t count,
                       ptrdiff_t n);
  void (*symmetric_product)(const double *A, ptrdiff_t stride, const double *x,
                            double *y, ptrdiff_t m);
  void (*rank_one)(double *A, ptrdiff_t stride, const double *v, double scale,
                   ptrdiff_t m);

  /* K = exp(-gamma max(aa + bb - 2 P, 0)) for one row of inner products. */
  void (*rbf_row_f32)(const double *P, double aa, const double *bb, double gamma,
                      float *K, ptrdiff_t n);
  void (*rbf_row_f64)(const double *P, double aa, const double *bb, double gamma,
                      double *K, ptrdiff_t n);

  /* NPSVOR's ADMM: v = g + u, z = clip(soft(v + shift, width), lo, hi), u = v - z. */
  void (*admm_clip)(const double *g, double *z, double *u, const double *shift,
                    const double *width, const double *lo, const double *hi,
                    ptrdiff_t n, double *sums);

  /* XOFM's scores of n rows of d features, and their gradient. */
  void (*xofm_scores)(const int32_t *node, const double *t, ptrdiff_t n, ptrdiff_t d,
                      const double *table, ptrdiff_t m, double *S, double *U);
  void (*xofm_scatter)(const int32_t *node, const double *t, ptrdiff_t n, ptrdiff_t d,
                       const double *table, ptrdiff_t m, const double *S,
                       const double *slope, double *G);

  /* XOFM's nodes from its pieces, and back for gradients; a step of SGD. */
  void (*xofm_spread)(const int32_t *first, const int8_t *kind, ptrdiff_t d, ptrdiff_t m,
                      const double *W, double *table);
  void (*xofm_gather)(const int32_t *first, const int8_t *kind, ptrdiff_t d, ptrdiff_t m,
                      const double *G, double *dW);
  void (*xofm_descend)(ptrdiff_t P, ptrdiff_t m, const double *dW, double step,
                       const double *keep, const double *floor, const uint8_t *squared,
                       double *W);

  /* Linear cumulative models: the terms of n rows, six rows of `out`; standardised
   * features, their products with coefficients, and weighted sums of them over rows. */
  void (*logit_terms)(const double *a, const double *b, const double *delta, ptrdiff_t n,
                      double *out, ptrdiff_t stride);
  void (*logit_slopes)(const double *a, const double *b, ptrdiff_t n, double *g,
                       double *bend);
  void (*standardise)(const double *X, ptrdiff_t ldx, ptrdiff_t n, const int64_t *column,
                      ptrdiff_t d, const double *centre, const double *factor, double *V,
                      ptrdiff_t stride, ptrdiff_t end);
  void (*row_products)(const double *V, ptrdiff_t stride, ptrdiff_t n,
                       const double *coef, double *out);
  void (*scatter_rows)(const double *V, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t d,
                       const int32_t *slot, const double *c, double *out,
                       ptrdiff_t width);
  void (*weighted_gram)(const double *V, ptrdiff_t stride, ptrdiff_t rows,
                        const double *W, ptrdiff_t width, ptrdiff_t n, ptrdiff_t d,
                        const double *c, int lower, double *out, ptrdiff_t ldo);

  /* Networks, whose arrays have one column per row of the data: the loss of an output s
   * as a prediction of rank > k, which is replaced by share times the derivative, and
   * the sum of these; H = (1 - H H) V'G for h units and m outputs; and <x, y>. */
  double (*code_terms)(double *s, double t, const int32_t *rank, int32_t k,
                       const double *share, int squared, ptrdiff_t n, double *by_s);
  void (*bend)(double *H, const double *V, const double *G, ptrdiff_t h, ptrdiff_t m,
               ptrdiff_t n);
  double (*dot)(const double *x, const double *y, ptrdiff_t n);

  /* Piecewise linear losses: proximal steps of one group, slopes along a line, and the
   * derivative by a threshold tabulated on a grid. */
  void (*piecewise_point_f32)(const float *f, const int32_t *rank, const float *weight,
                              const float *g, const float *table, ptrdiff_t r, double b,
                              double sigma, ptrdiff_t n, float *t, float *inside,
                              double *sums);
  void (*piecewise_point_f64)(const double *f, const int32_t *rank, const float *weight,
                              const double *g, const double *table, ptrdiff_t r,
                              double b, double sigma, ptrdiff_t n, double *t,
                              double *inside, double *sums);
  double (*piecewise_slope_f32)(const float *f, const float *end, const int32_t *rank,
                                const float *weight, const float *g, const float *table,
                                ptrdiff_t r, double b, double db, double x,
                                double sigma, ptrdiff_t n);
  double (*piecewise_slope_f64)(const double *f, const double *end, const int32_t *rank,
                                const float *weight, const double *g,
                                const double *table, ptrdiff_t r, double b, double db,
                                double x, double sigma, ptrdiff_t n);
  void (*piecewise_jumps_f32)(const float *f, const int32_t *rank, const float *weight,
                              const float *table, ptrdiff_t r, const double *grid,
                              ptrdiff_t K, ptrdiff_t n, double *out);
  void (*piecewise_jumps_f64)(const double *f, const int32_t *rank, const float *weight,
                              const double *table, ptrdiff_t r, const double *grid,
                              ptrdiff_t K, ptrdiff_t n, double *out);

  /* Quadratic programs of many groups: proximal steps of the n variables of one. */
  double (*box_sums)(const double *f, const double *g, const double *lo,
                     const double *hi, const double *p, double b, double sigma,
                     ptrdiff_t n, double *count, double *size);
  void (*box_steps)(const double *f, const double *g, const double *lo,
                    const double *hi, const double *p, double b, double sigma,
                    ptrdiff_t n, double *t, uint8_t *inside, double *total);
} simd_loops;

/* The level in use, chosen at the first call: the one that ORDINAL_SIMD names, or
 * else the best. The module _simd holds the only copy; other kernels ask it. */
const simd_loops *simd(void);

/* Name of the i-th level that this build and processor can run, or NULL. */
const char *simd_level(int i);

double simd_seconds(void); /* a monotonic clock that does not need the interpreter */
int simd_try_lock(int32_t *lock);
void simd_unlock(int32_t *lock);

#endif
