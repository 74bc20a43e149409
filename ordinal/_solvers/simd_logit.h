/* Terms of the logit link; simd_loops.h includes this file once per level. */

/* log p, given p and rest = 1 - p, both to full precision: 2 atanh s with
 * s = f / (2 + f), of f = -rest where p is near 1, else of p = 2^k (1 + f) with 1 + f
 * between the roots of 1/2 and 2; first dropped term s^22 / 23 < 2^-59. */
static inline double FN(log_f64)(double p, double rest) {
  const uint64_t half = 0x3fe6a09e667f3bcdULL; /* the root of 1/2 */
  const int near_one = rest < 0.25;
  uint64_t bits, of_f, of_k;
  double m, k, f, s, z, t = 1. / 21;
  memcpy(&bits, &p, sizeof bits);
  bits += 0x3ff0000000000000ULL - half;
  of_f = (bits & 0xfffffffffffffULL) + half;
  of_k = (bits >> 52) | 0x4330000000000000ULL; /* 2^52 + 1023 + k */
  memcpy(&m, &of_f, sizeof m);
  memcpy(&k, &of_k, sizeof k);
  k = near_one ? 0. : k - 4503599627371519.;
  f = near_one ? -rest : m - 1;
  s = f / (2 + f);
  z = s * s;
  t = t * z + 1. / 19;
  t = t * z + 1. / 17;
  t = t * z + 1. / 15;
  t = t * z + 1. / 13;
  t = t * z + 1. / 11;
  t = t * z + 1. / 9;
  t = t * z + 1. / 7;
  t = t * z + 1. / 5;
  t = t * z + 1. / 3;
  t = k * 6.93147180369123816490e-01 +
      (k * 1.90821492927058770002e-10 + (2 * s + 2 * s * (z * t)));
  return p > 0 ? t : -INFINITY;
}

/* The terms of `_cumulative` for the logit link, rows of `out`: with A = e^-|a|,
 * B = e^-|b| and E = e^-delta,
 *
 *   P = e^min(a, 0) e^min(-b, 0) (1 - E) / ((1 + A) (1 + B))
 *
 * where exponentials are taken of negative numbers only, and the last factor is one less
 * a sum of positive terms. */
static void FN(logit_terms)(const double *restrict a, const double *restrict b,
                            const double *restrict delta, ptrdiff_t n,
                            double *restrict out, ptrdiff_t stride) {
  double *restrict log_p = out, *restrict g = out + stride;
  double *restrict upper = out + 2 * stride, *restrict c1 = out + 3 * stride;
  double *restrict c2 = out + 4 * stride, *restrict h12 = out + 5 * stride;
#pragma omp simd
  for (ptrdiff_t i = 0; i < n; i++) {
    double A, B, E;
    const double size_a = a[i] > 0 ? a[i] : -a[i], size_b = b[i] > 0 ? b[i] : -b[i];
    const double gap = -FN(expm1_f64)(-delta[i], &E);
    double ra, rb, rg, rest, low, above, below, between;
    FN(expm1_f64)(-size_a, &A);
    FN(expm1_f64)(-size_b, &B);
    ra = 1 / (1 + A);
    rb = 1 / (1 + B);
    rg = 1 / gap;
    rest = ((A + B) + A * B + E) * (ra * rb);
    low = (a[i] < 0 ? a[i] : 0) - (b[i] > 0 ? b[i] : 0);
    above = (a[i] > 0 ? A : 1) * ra; /* 1 - F(a) */
    below = (b[i] > 0 ? 1 : B) * rb; /* F(b) */
    between = E * rg;
    log_p[i] = FN(log_f64)(gap * (ra * rb), rest) + low;
    g[i] = above - below;
    upper[i] = above + between;
    c1[i] = -A * (ra * ra);
    c2[i] = -B * (rb * rb);
    h12[i] = between * rg;
  }
}

/* g and -(c1 + c2) alone, with the same bits as those of `logit_terms`. */
static void FN(logit_slopes)(const double *restrict a, const double *restrict b,
                             ptrdiff_t n, double *restrict g, double *restrict bend) {
#pragma omp simd
  for (ptrdiff_t i = 0; i < n; i++) {
    double A, B, ra, rb;
    FN(expm1_f64)(a[i] > 0 ? -a[i] : a[i], &A);
    FN(expm1_f64)(b[i] > 0 ? -b[i] : b[i], &B);
    ra = 1 / (1 + A);
    rb = 1 / (1 + B);
    g[i] = (a[i] > 0 ? A : 1) * ra - (b[i] > 0 ? 1 : B) * rb;
    bend[i] = A * (ra * ra) + B * (rb * rb);
  }
}
