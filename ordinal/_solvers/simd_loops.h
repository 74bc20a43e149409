/* The loops of simd.h for one level. simd.c includes this file once per level, with LEVEL
 * and the compiler's target set; hence there is no include guard.
 *
 * `omp simd reduction` allows the compiler to reorder only the named reduction. Nothing
 * is compiled with -ffast-math, so NaN and infinity are respected.
 */

static float FN(smo_update)(float *restrict R, float *restrict L,
                            const float *restrict Ki, const float *restrict Kj,
                            float t, ptrdiff_t m) {
  float R_min = INFINITY;
#pragma omp simd reduction(min : R_min)
  for (ptrdiff_t k = 0; k < m; k++) {
    const float d = t * (Ki[k] - Kj[k]);
    const float r = R[k] + d;
    R[k] = r;
    L[k] += d;
    R_min = r < R_min ? r : R_min;
  }
  return R_min;
}

/* The same for the segments of a block, one per threshold, with both extremes of each. */
static void FN(threshold_update)(float *restrict R, float *restrict L,
                                 const float *restrict Ki, const float *restrict Kj,
                                 float t, const ptrdiff_t *start, ptrdiff_t T,
                                 float *restrict R_min, float *restrict L_max) {
  for (ptrdiff_t s = 0; s < T; s++) {
    float low = INFINITY, top = -INFINITY;
#pragma omp simd reduction(min : low) reduction(max : top)
    for (ptrdiff_t k = start[s]; k < start[s + 1]; k++) {
      const float d = t * (Ki[k] - Kj[k]);
      const float r = R[k] + d, l = L[k] + d;
      R[k] = r;
      L[k] = l;
      low = r < low ? r : low;
      top = l > top ? l : top;
    }
    R_min[s] = low;
    L_max[s] = top;
  }
}

/* Decrease of the dual that the best unclipped step of pair (i, k) would bring. */
static float FN(smo_gain)(const float *restrict L, const float *restrict Ki,
                          const float *restrict D, float Dii, float R_min,
                          float *restrict gain, ptrdiff_t m, float *L_max) {
  float top = -INFINITY, best = 0;
#pragma omp simd reduction(max : top, best)
  for (ptrdiff_t k = 0; k < m; k++) {
    const float l = L[k];
    const float scale = Dii + D[k];
    const float floor = SMO_ETA_MIN * (scale < 0 ? -scale : scale) + 1e-30f;
    float eta = scale - 2 * Ki[k];
    float d = l - R_min;
    float value;
    eta = eta > floor ? eta : floor;
    d = d > 0 ? d : 0;
    value = d * d / eta;
    gain[k] = value;
    top = l > top ? l : top;
    best = value > best ? value : best;
  }
  *L_max = top;
  return best;
}

/* The first k with x[k] == value, or -1. Within a stretch it is found by a minimum, since
 * the branches of a search would be mispredicted. */
static ptrdiff_t FN(find)(const float *restrict x, float value, ptrdiff_t m) {
  enum { STRIDE = 4 * SIMD_LANES };
  for (ptrdiff_t k = 0; k < m; k += STRIDE) {
    const int32_t width = (int32_t)(m - k < STRIDE ? m - k : STRIDE);
    int32_t first = STRIDE;
#pragma omp simd reduction(min : first)
    for (int32_t l = 0; l < width; l++) {
      const int32_t at = x[k + l] == value ? l : STRIDE;
      first = at < first ? at : first;
    }
    if (first < STRIDE) return k + first;
  }
  return -1;
}

/* Rows first to last of the m x m block of a symmetric K whose rows are given, idx
 * increasing: the upper triangle, read from memory two rows ahead. */
static void FN(gather_rows)(const float *const *rows, const int32_t *restrict idx,
                            ptrdiff_t m, ptrdiff_t first, ptrdiff_t last,
                            float *restrict block) {
  enum { AHEAD = 2 };
  for (ptrdiff_t a = first; a < last; a++) {
    const float *restrict row = rows[a];
    const float *next = rows[a + AHEAD < m ? a + AHEAD : a];
    float *restrict out = block + a * m;
    ptrdiff_t b = a;
    for (; b + 4 <= m; b += 4) {
      PREFETCH(next + idx[b]);
      PREFETCH(next + idx[b + 2]);
      const float x = row[idx[b]], y = row[idx[b + 1]];
      const float z = row[idx[b + 2]], w = row[idx[b + 3]];
      out[b] = x, out[b + 1] = y, out[b + 2] = z, out[b + 3] = w;
    }
    for (; b < m; b++) out[b] = row[idx[b]];
  }
}

/* Rows first to last of its lower triangle, the mirror image of the upper one, by tiles;
 * first, last and m are multiples of SIMD_LANES. */
static void FN(mirror_rows)(float *block, ptrdiff_t m, ptrdiff_t first,
                            ptrdiff_t last) {
  enum { TILE = SIMD_LANES, HALF = TILE * TILE / 2 };
  float x[2 * HALF], y[2 * HALF];
  for (ptrdiff_t a = first; a < last; a += TILE) {
    for (ptrdiff_t b = 0; b < a; b += TILE) {
      for (int i = 0; i < TILE; i++)
        memcpy(x + i * TILE, block + (b + i) * m + a, TILE * sizeof *x);
      /* a perfect shuffle rotates the bits of an index; half as many shuffles as bits
       * exchange rows and columns */
      for (int bit = 1; bit < TILE; bit *= 2) {
        for (int k = 0; k < HALF; k++) {
          y[2 * k] = x[k];
          y[2 * k + 1] = x[k + HALF];
        }
        memcpy(x, y, sizeof x);
      }
      for (int i = 0; i < TILE; i++)
        memcpy(block + (a + i) * m + b, x + i * TILE, TILE * sizeof *x);
    }
    for (ptrdiff_t i = a; i < a + TILE; i++)
      for (ptrdiff_t j = a; j < i; j++) block[i * m + j] = block[j * m + i];
  }
}

/* R - mid and L - mid, and their extremes. Returns the number of variables inside a linear
 * piece; `waiting` counts the others that violate optimality for b = mid. */
static ptrdiff_t FN(smo_scan)(const double *restrict g, const double *restrict G,
                         const double *restrict lo, const double *restrict hi,
                         const double *restrict pn, const double *restrict pp,
                         double mid, float *restrict R, float *restrict L,
                         ptrdiff_t n, double *R_min, double *L_max,
                         ptrdiff_t *waiting) {
  double low = INFINITY, top = -INFINITY;
  int64_t free = 0, want = 0;
#pragma omp simd reduction(min : low) reduction(max : top) reduction(+ : free, want)
  for (ptrdiff_t i = 0; i < n; i++) {
    const double right = G[i] + (g[i] < 0 ? pn[i] : pp[i]);
    const double left = G[i] + (g[i] > 0 ? pp[i] : pn[i]);
    const double r = g[i] < hi[i] ? right : INFINITY;
    const double l = g[i] > lo[i] ? left : -INFINITY;
    const int inside = (g[i] < hi[i]) & (g[i] > lo[i]) & ((g[i] != 0) | (pn[i] == pp[i]));
    free += inside;
    want += (!inside) & ((r < mid) | (l > mid));
    R[i] = (float)(r - mid);
    L[i] = (float)(l - mid);
    low = r < low ? r : low;
    top = l > top ? l : top;
  }
  *R_min = low;
  *L_max = top;
  *waiting = want;
  return free;
}

/* G += sum_a delta[a] rows[a] from begin to end, in double, a strip of G that stays in
 * cache at a time. */
static void FN(add_rows)(double *restrict G, const float *const *rows,
                         const double *delta, ptrdiff_t count, ptrdiff_t begin,
                         ptrdiff_t end) {
  enum { STRIP = 1024 };
  for (ptrdiff_t start = begin; start < end; start += STRIP) {
    const ptrdiff_t stop = start + STRIP < end ? start + STRIP : end;
    ptrdiff_t a = 0;
    for (; a + 4 <= count; a += 4) {
      const float *restrict p = rows[a], *restrict q = rows[a + 1];
      const float *restrict r = rows[a + 2], *restrict s = rows[a + 3];
      const double dp = delta[a], dq = delta[a + 1];
      const double dr = delta[a + 2], ds = delta[a + 3];
#pragma omp simd
      for (ptrdiff_t i = start; i < stop; i++)
        G[i] += (dp * p[i] + dq * q[i]) + (dr * r[i] + ds * s[i]);
    }
    for (; a < count; a++) {
      const float *restrict p = rows[a];
      const double dp = delta[a];
#pragma omp simd
      for (ptrdiff_t i = start; i < stop; i++) G[i] += dp * p[i];
    }
  }
}

/* out += sum_a c[a] A[row[a]], eight rows to one pass over out. */
static void FN(combine_rows)(double *restrict out, const double *restrict A,
                             ptrdiff_t stride, const int32_t *row, const double *c,
                             ptrdiff_t count, ptrdiff_t n) {
  ptrdiff_t a = 0;
  for (; a + 8 <= count; a += 8) {
    const double *p[8];
    for (int k = 0; k < 8; k++) p[k] = A + row[a + k] * stride;
    const double *restrict p0 = p[0], *restrict p1 = p[1], *restrict p2 = p[2];
    const double *restrict p3 = p[3], *restrict p4 = p[4], *restrict p5 = p[5];
    const double *restrict p6 = p[6], *restrict p7 = p[7];
    const double c0 = c[a], c1 = c[a + 1], c2 = c[a + 2], c3 = c[a + 3];
    const double c4 = c[a + 4], c5 = c[a + 5], c6 = c[a + 6], c7 = c[a + 7];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
      out[i] += ((c0 * p0[i] + c1 * p1[i]) + (c2 * p2[i] + c3 * p3[i])) +
                ((c4 * p4[i] + c5 * p5[i]) + (c6 * p6[i] + c7 * p7[i]));
  }
  for (; a < count; a++) {
    const double *restrict p = A + row[a] * stride;
    const double ca = c[a];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) out[i] += ca * p[i];
  }
}

/* y = A x for a symmetric A of m rows, of which the lower triangle is stored: four rows
 * at a time, each both a row and a column. */
static void FN(symmetric_product)(const double *restrict A, ptrdiff_t stride,
                                  const double *restrict x, double *restrict y,
                                  ptrdiff_t m) {
  for (ptrdiff_t a = 0; a < m; a += 4) {
    const ptrdiff_t rows = m - a < 4 ? m - a : 4;
    double t[4] = {0}, s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    const double *p[4];
    for (ptrdiff_t k = 0; k < 4; k++) {
      p[k] = A + (a + (k < rows ? k : 0)) * stride;
      t[k] = k < rows ? x[a + k] : 0;
    }
    const double *restrict p0 = p[0], *restrict p1 = p[1];
    const double *restrict p2 = p[2], *restrict p3 = p[3];
    const double t0 = t[0], t1 = t[1], t2 = t[2], t3 = t[3];
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (ptrdiff_t b = 0; b < a; b++) {
      s0 += p0[b] * x[b];
      s1 += p1[b] * x[b];
      s2 += p2[b] * x[b];
      s3 += p3[b] * x[b];
    }
#pragma omp simd
    for (ptrdiff_t b = 0; b < a; b++)
      y[b] += (t0 * p0[b] + t1 * p1[b]) + (t2 * p2[b] + t3 * p3[b]);
    const double sums[4] = {s0, s1, s2, s3};
    for (ptrdiff_t k = 0; k < rows; k++) {
      y[a + k] = sums[k] + p[k][a + k] * t[k];
      for (ptrdiff_t l = 0; l < k; l++) {
        y[a + k] += p[k][a + l] * t[l];
        y[a + l] += p[k][a + l] * t[k];
      }
    }
  }
}

/* A += scale v v' for its lower triangle of m rows. */
static void FN(rank_one)(double *restrict A, ptrdiff_t stride, const double *restrict v,
                         double scale, ptrdiff_t m) {
  for (ptrdiff_t a = 0; a < m; a++, A += stride) {
    const double t = scale * v[a];
#pragma omp simd
    for (ptrdiff_t b = 0; b <= a; b++) A[b] += t * v[b];
  }
}

/* exp(x) for x <= 0, about 1 ulp: x = n ln 2 + r, |r| <= ln(2) / 2, and a Taylor
 * polynomial whose first dropped term is r^8/8! < 2^-27 relative. Adding and
 * subtracting 1.5 2^23 rounds to the nearest integer and leaves it in the low bits.
 * Below -87 the result would be subnormal; it is 0. */
static inline float FN(exp_f32)(float x) {
  const float magic = 12582912.f;
  const float c = x > -87.f ? x : -87.f;
  const float shifted = c * 1.44269504f + magic;
  const float n = shifted - magic;
  const float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.f / 5040;
  int32_t bits;
  float scale;
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (int32_t)((uint32_t)(bits + 127) << 23); /* magic's high bits fall out */
  memcpy(&scale, &bits, sizeof scale);
  return x > -87.f ? p * scale : 0.f;
}

/* Parts of exponentials in double. With n the nearest integer to x / log 2, this returns
 * r = x - n log 2, and n in the low bits of `shifted`; */
static inline double FN(exp_reduced)(double x, double *shifted) {
  const double magic = 6755399441055744.0;
  double n;
  *shifted = x * 1.4426950408889634 + magic;
  n = *shifted - magic;
  return (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
}

/* 1/2 + r/3! + ... + r^10/12! + r^11 p; */
static inline double FN(exp_series)(double r, double p) {
  p = p * r + 1. / 479001600;
  p = p * r + 1. / 39916800;
  p = p * r + 1. / 3628800;
  p = p * r + 1. / 362880;
  p = p * r + 1. / 40320;
  p = p * r + 1. / 5040;
  p = p * r + 1. / 720;
  p = p * r + 1. / 120;
  p = p * r + 1. / 24;
  p = p * r + 1. / 6;
  return p * r + 0.5;
}

/* 2^n. */
static inline double FN(exp_scale)(double shifted) {
  int64_t bits;
  double scale;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (int64_t)((uint64_t)(bits + 1023) << 52);
  memcpy(&scale, &bits, sizeof scale);
  return scale;
}

/* exp in double; the first dropped term is r^14/14! < 2^-57. It is 0 below -87, as in
 * floats: this makes no difference beside a diagonal of 1, and smaller values would lead
 * to subnormal products in factors of the matrix, which are many times slower. */
static inline double FN(exp_f64)(double x) {
  double shifted;
  const double r = FN(exp_reduced)(x > -87. ? x : -87., &shifted);
  double p = FN(exp_series)(r, 1. / 6227020800);
  p = p * r + 1.;
  p = p * r + 1.;
  return x > -87. ? p * FN(exp_scale)(shifted) : 0.;
}

static void FN(rbf_row_f32)(const double *restrict P, double aa,
                            const double *restrict bb, double gamma,
                            float *restrict K, ptrdiff_t n) {
#pragma omp simd
  for (ptrdiff_t j = 0; j < n; j++) {
    const double sq = aa + bb[j] - 2 * P[j]; /* rounding can go below 0 */
    K[j] = FN(exp_f32)((float)(-gamma * (sq > 0 ? sq : 0)));
  }
}

static void FN(rbf_row_f64)(const double *P, double aa, const double *restrict bb,
                            double gamma, double *K, ptrdiff_t n) {
#pragma omp simd
  for (ptrdiff_t j = 0; j < n; j++) { /* K may be P */
    const double sq = aa + bb[j] - 2 * P[j];
    K[j] = FN(exp_f64)(-gamma * (sq > 0 ? sq : 0));
  }
}

/* sums: |g - z|^2, |z - z_before|^2, |g|^2, |z|^2, |u|^2 */
static void FN(admm_clip)(const double *restrict g, double *restrict z,
                          double *restrict u, const double *restrict shift,
                          const double *restrict width, const double *restrict lo,
                          const double *restrict hi, ptrdiff_t n,
                          double *restrict sums) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4)
  for (ptrdiff_t i = 0; i < n; i++) {
    const double v = g[i] + u[i];
    const double a = v + shift[i];
    const double w = width[i];
    double soft = a > w ? a - w : a < -w ? a + w : 0;
    double before = z[i], primal, moved;
    soft = soft < lo[i] ? lo[i] : soft;
    soft = soft > hi[i] ? hi[i] : soft;
    primal = g[i] - soft;
    moved = soft - before;
    z[i] = soft;
    u[i] = v - soft;
    s0 += primal * primal;
    s1 += moved * moved;
    s2 += g[i] * g[i];
    s3 += soft * soft;
    s4 += (v - soft) * (v - soft);
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4;
}

/* XOFM: e_j = a + t (b - a) between the two nodes next to a row's value of feature j, rows
 * of `table`; S = sum_j e_j and U = S_0 + 1/2 sum_{f >= 1} (S_f^2 - sum_j e_jf^2). Rows of
 * the table and of S are m doubles, m a multiple of XOFM_LANES. */
static void FN(xofm_scores)(const int32_t *restrict node, const double *restrict t,
                            ptrdiff_t n, ptrdiff_t d, const double *restrict table,
                            ptrdiff_t m, double *restrict S, double *restrict U) {
  for (ptrdiff_t i = 0; i < n; i++, node += d, t += d, S += m) {
    double total = 0;
    for (ptrdiff_t c = 0; c < m; c += XOFM_LANES) {
      double s[XOFM_LANES] = {0}, q[XOFM_LANES] = {0};
      for (ptrdiff_t j = 0; j < d; j++) {
        const double *a = table + node[j] * m + c, *b = a + m;
        const double share = t[j];
#pragma omp simd
        for (int f = 0; f < XOFM_LANES; f++) {
          const double e = a[f] + share * (b[f] - a[f]);
          s[f] += e;
          q[f] += e * e;
        }
      }
      for (int f = 0; f < XOFM_LANES; f++) {
        total += c + f ? 0.5 * (s[f] * s[f] - q[f]) : s[f];
        S[c + f] = s[f];
      }
    }
    U[i] = total;
  }
}

/* G += the gradient of sum_i slope_i U_i by the table, from the S of xofm_scores. */
static void FN(xofm_scatter)(const int32_t *restrict node, const double *restrict t,
                             ptrdiff_t n, ptrdiff_t d, const double *restrict table,
                             ptrdiff_t m, const double *restrict S,
                             const double *restrict slope, double *restrict G) {
  for (ptrdiff_t i = 0; i < n; i++, node += d, t += d, S += m) {
    if (slope[i] == 0) continue;
    for (ptrdiff_t c = 0; c < m; c += XOFM_LANES) {
      double s[XOFM_LANES], own[XOFM_LANES]; /* U is linear in column 0 */
      for (int f = 0; f < XOFM_LANES; f++) {
        s[f] = c + f ? slope[i] * S[c + f] : slope[i];
        own[f] = c + f ? slope[i] : 0;
      }
      for (ptrdiff_t j = 0; j < d; j++) {
        const ptrdiff_t at = node[j] * m + c;
        const double *a = table + at, *b = a + m;
        double *Ga = G + at, *Gb = Ga + m;
        const double share = t[j];
#pragma omp simd
        for (int f = 0; f < XOFM_LANES; f++) {
          const double g = s[f] - own[f] * (a[f] + share * (b[f] - a[f]));
          Ga[f] += g - share * g;
          Gb[f] += share * g;
        }
      }
    }
  }
}

/* Values of XOFM's nodes from its pieces W: sums from below for kind 1, from above for
 * kind -1, and W itself otherwise. The last piece of a feature, for NaN, is never summed. */
static void FN(xofm_spread)(const int32_t *restrict first, const int8_t *restrict kind,
                            ptrdiff_t d, ptrdiff_t m, const double *restrict W,
                            double *restrict table) {
  for (ptrdiff_t j = 0; j < d; j++) {
    const ptrdiff_t pieces = first[j + 1] - first[j] - 1, knots = pieces + (kind[j] != 0);
    for (ptrdiff_t c = 0; c < m; c += XOFM_LANES) {
      double sum[XOFM_LANES] = {0};
      for (ptrdiff_t k = 0; k < knots; k++) {
        const ptrdiff_t at = kind[j] < 0 ? pieces - k : k;
        const double *w = W + (kind[j] > 0 ? at - 1 : at) * m + c;
        double *to = table + at * m + c;
        if (kind[j] && k == 0) {
          memset(to, 0, sizeof sum);
          continue;
        }
#pragma omp simd
        for (int f = 0; f < XOFM_LANES; f++) {
          sum[f] = kind[j] ? sum[f] + w[f] : w[f];
          to[f] = sum[f];
        }
      }
      memcpy(table + knots * m + c, W + pieces * m + c, sizeof sum);
    }
    W += (pieces + 1) * m;
    table += (knots + 1) * m;
  }
  memset(table, 0, (size_t)m * sizeof *table);
}

/* The transpose: dW, the gradient by pieces, from G, that by nodes. */
static void FN(xofm_gather)(const int32_t *restrict first, const int8_t *restrict kind,
                            ptrdiff_t d, ptrdiff_t m, const double *restrict G,
                            double *restrict dW) {
  for (ptrdiff_t j = 0; j < d; j++) {
    const ptrdiff_t pieces = first[j + 1] - first[j] - 1, knots = pieces + (kind[j] != 0);
    for (ptrdiff_t c = 0; c < m; c += XOFM_LANES) {
      double sum[XOFM_LANES] = {0};
      for (ptrdiff_t k = 0; k < pieces; k++) {
        const ptrdiff_t at = kind[j] > 0 ? pieces - 1 - k : k;
        const double *g = G + (kind[j] > 0 ? at + 1 : at) * m + c;
        double *to = dW + at * m + c;
#pragma omp simd
        for (int f = 0; f < XOFM_LANES; f++) {
          sum[f] = kind[j] ? sum[f] + g[f] : g[f];
          to[f] = sum[f];
        }
      }
      memcpy(dW + pieces * m + c, G + knots * m + c, sizeof sum);
    }
    dW += (pieces + 1) * m;
    G += (knots + 1) * m;
  }
}

/* W = max(keep W - step dW, floor), with keep and floor per column. Where `squared`,
 * column 0 is the square of the parameter v that descends, whose slope is 2 v dW. */
static void FN(xofm_descend)(ptrdiff_t P, ptrdiff_t m, const double *restrict dW,
                             double step, const double *restrict keep,
                             const double *restrict floor,
                             const uint8_t *restrict squared, double *restrict W) {
  for (ptrdiff_t a = 0; a < P; a++, W += m, dW += m) {
    const double root = 1 - 2 * (step * dW[0] + (1 - keep[0]) * W[0]);
    const double square = W[0] * root * root;
#pragma omp simd
    for (ptrdiff_t f = 0; f < m; f++) {
      const double w = keep[f] * W[f] - step * dW[f];
      W[f] = w > floor[f] ? w : floor[f];
    }
    W[0] = squared[a] ? square : W[0];
  }
}

/* exp(x) - 1 = scale (1 + tail) - 1 for -708 <= x <= 0, where tail is small and accurate to
 * its own last digit; the first dropped term is r^14/15! < 2^-61. */
static inline double FN(expm1_f64)(double x, double *exponential) {
  double shifted;
  const double r = FN(exp_reduced)(x > -708. ? x : -708., &shifted);
  const double p = FN(exp_series)(r, (1. / 87178291200) * r + 1. / 6227020800);
  const double tail = p * (r * r) + r;
  const double scale = FN(exp_scale)(shifted);
  *exponential = x > -708. ? scale + scale * tail : 0.;
  return x > -708. ? scale * tail + (scale - 1) : -1.;
}

#include "simd_logit.h"

/* V = (X - centre) * factor for the d columns of `column`, and zeros up to `end`; rows of
 * V are `stride` apart. */
static void FN(standardise)(const double *restrict X, ptrdiff_t ldx, ptrdiff_t n,
                            const int64_t *restrict column, ptrdiff_t d,
                            const double *restrict centre,
                            const double *restrict factor, double *restrict V,
                            ptrdiff_t stride, ptrdiff_t end) {
  const int together = d > 0 && column[d - 1] - column[0] == d - 1;
  for (ptrdiff_t i = 0; i < n; i++, X += ldx, V += stride) {
    if (together) {
      const double *restrict x = X + column[0];
#pragma omp simd
      for (ptrdiff_t j = 0; j < d; j++) V[j] = (x[j] - centre[j]) * factor[j];
    } else {
      for (ptrdiff_t j = 0; j < d; j++) V[j] = (X[column[j]] - centre[j]) * factor[j];
    }
    for (ptrdiff_t j = d; j < end; j++) V[j] = 0;
  }
}

/* out_i += <V_i, coef>; vectors are padded by zeros to a multiple of GRAM_LANES. */
static void FN(row_products)(const double *restrict V, ptrdiff_t stride, ptrdiff_t n,
                             const double *restrict coef, double *restrict out) {
  for (ptrdiff_t i = 0; i < n; i++, V += stride) {
    double lanes[GRAM_LANES] = {0}, sum = 0;
    for (ptrdiff_t j = 0; j < stride; j += GRAM_LANES)
#pragma omp simd
      for (int l = 0; l < GRAM_LANES; l++) lanes[l] += V[j + l] * coef[j + l];
    for (int l = 0; l < GRAM_LANES; l++) sum += lanes[l];
    out[i] += sum;
  }
}

/* out[slot_i] += c_i V_i, where slot_i >= 0: rows of `out` are `width` apart. */
static void FN(scatter_rows)(const double *restrict V, ptrdiff_t stride, ptrdiff_t n,
                             ptrdiff_t d, const int32_t *restrict slot,
                             const double *restrict c, double *restrict out,
                             ptrdiff_t width) {
  for (ptrdiff_t i = 0; i < n; i++, V += stride) {
    const double t = c[i];
    double *restrict to;
    if (slot[i] < 0) continue;
    to = out + slot[i] * width;
#pragma omp simd
    for (ptrdiff_t j = 0; j < d; j++) to[j] += t * V[j];
  }
}

/* out += V_a' diag(c) V_b for a the columns of V from `first` to `last` and b those of W,
 * d of them, with rows of `stride` and `width` doubles; where V is W, no more of them than
 * its lower triangle needs. Tiles of the result stay in registers. */
static void FN(weighted_gram)(const double *restrict V, ptrdiff_t stride, ptrdiff_t rows,
                              const double *restrict W, ptrdiff_t width, ptrdiff_t n,
                              ptrdiff_t d, const double *restrict c, int lower,
                              double *restrict out, ptrdiff_t ldo) {
  enum { TALL = 4, WIDE = 2 * GRAM_LANES };
  for (ptrdiff_t a = 0; a < rows; a += TALL) {
    const ptrdiff_t tall = rows - a < TALL ? rows - a : TALL;
    const ptrdiff_t last = lower && a + tall < d ? a + tall : d;
    for (ptrdiff_t b = 0; b < last; b += WIDE) {
      const ptrdiff_t wide = d - b < WIDE ? d - b : WIDE;
      double s0[WIDE] = {0}, s1[WIDE] = {0}, s2[WIDE] = {0}, s3[WIDE] = {0};
      for (ptrdiff_t i = 0; i < n; i++) {
        const double *restrict v = V + i * stride + a;
        const double *restrict w = W + i * width + b;
        const double t0 = c[i] * v[0], t1 = c[i] * v[1];
        const double t2 = c[i] * v[2], t3 = c[i] * v[3];
#pragma omp simd
        for (int l = 0; l < WIDE; l++) {
          s0[l] += t0 * w[l];
          s1[l] += t1 * w[l];
          s2[l] += t2 * w[l];
          s3[l] += t3 * w[l];
        }
      }
      for (ptrdiff_t k = 0; k < tall; k++) {
        const double *s = k == 0 ? s0 : k == 1 ? s1 : k == 2 ? s2 : s3;
        double *restrict to = out + (a + k) * ldo + b;
        for (ptrdiff_t l = 0; l < wide; l++) to[l] += s[l];
      }
    }
  }
}

/* With margin m = s - t, or t - s for rows of rank <= k, the loss is log(1 + e^-m), or
 * half the square of 1 / (1 + e^m). */
static double FN(code_terms)(double *restrict s, double t, const int32_t *restrict rank,
                             int32_t k, const double *restrict share, int squared,
                             ptrdiff_t n, double *by_s) {
  double sum = 0, slopes = 0;
#pragma omp simd reduction(+ : sum, slopes)
  for (ptrdiff_t i = 0; i < n; i++) {
    const double sign = rank[i] > k ? 1. : -1., m = sign * (s[i] - t);
    double A, near, far, wrong, right, loss, slope;
    FN(expm1_f64)(m > 0 ? -m : m, &A);
    near = 1 / (1 + A);
    far = A * near;
    wrong = m > 0 ? far : near;
    right = m > 0 ? near : far;
    loss = (m > 0 ? 0. : -m) - FN(log_f64)(near, far);
    loss = squared ? 0.5 * wrong * wrong : loss;
    slope = squared ? wrong * (wrong * right) : wrong;
    s[i] = -sign * share[i] * slope;
    sum += share[i] * loss;
    slopes += s[i];
  }
  *by_s = slopes;
  return sum;
}

static void FN(bend)(double *restrict H, const double *restrict V,
                     const double *restrict G, ptrdiff_t h, ptrdiff_t m, ptrdiff_t n) {
  enum { BLOCK = 16 * GRAM_LANES };
  for (ptrdiff_t a = 0; a < h; a++, H += n) {
    for (ptrdiff_t begin = 0; begin < n; begin += BLOCK) {
      const ptrdiff_t size = n - begin < BLOCK ? n - begin : BLOCK;
      double sum[BLOCK] = {0};
      double *restrict x = H + begin;
      for (ptrdiff_t k = 0; k < m; k++) {
        const double v = V[k * h + a];
        const double *restrict g = G + k * n + begin;
#pragma omp simd
        for (ptrdiff_t i = 0; i < size; i++) sum[i] += v * g[i];
      }
#pragma omp simd
      for (ptrdiff_t i = 0; i < size; i++) x[i] = (1 - x[i] * x[i]) * sum[i];
    }
  }
}

static double FN(dot)(const double *restrict x, const double *restrict y, ptrdiff_t n) {
  enum { WIDE = 4 * GRAM_LANES };
  double lanes[WIDE] = {0}, sum = 0;
  ptrdiff_t i = 0;
  for (; i + WIDE <= n; i += WIDE)
#pragma omp simd
    for (int l = 0; l < WIDE; l++) lanes[l] += x[i + l] * y[i + l];
  for (ptrdiff_t l = 0; l < n - i; l++) lanes[l] += x[i + l] * y[i + l];
  for (int l = 0; l < WIDE; l++) sum += lanes[l];
  return sum;
}

/* Proximal steps of one group of a quadratic program, clip(g + sigma (b - f - p), lo, hi):
 * their sum, how many are inside their boxes, and the sum of their sizes. */
static double FN(box_sums)(const double *f, const double *g, const double *lo,
                           const double *hi, const double *p, double b, double sigma,
                           ptrdiff_t n, double *count, double *size) {
  double sum = 0, inner = 0, all = 0;
#pragma omp simd reduction(+ : sum, inner, all)
  for (ptrdiff_t i = 0; i < n; i++) {
    double t = g[i] + sigma * (b - f[i] - p[i]);
    inner += ((lo[i] < t) & (t < hi[i])) ? 1.0 : 0.0;
    t = t < lo[i] ? lo[i] : t;
    t = t > hi[i] ? hi[i] : t;
    sum += t;
    all += t < 0 ? -t : t;
  }
  *count = inner;
  *size = all;
  return sum;
}

/* And the steps themselves, which are added to `total` as well. */
static void FN(box_steps)(const double *restrict f, const double *restrict g,
                          const double *restrict lo, const double *restrict hi,
                          const double *restrict p, double b, double sigma, ptrdiff_t n,
                          double *restrict t, uint8_t *restrict inside,
                          double *restrict total) {
#pragma omp simd
  for (ptrdiff_t i = 0; i < n; i++) {
    double x = g[i] + sigma * (b - f[i] - p[i]);
    inside[i] = (lo[i] < x) & (x < hi[i]);
    x = x < lo[i] ? lo[i] : x;
    x = x > hi[i] ? hi[i] : x;
    t[i] = x;
    total[i] += x;
  }
}

#define PL(name) FN(piecewise_##name##_f32)
#define REAL float
#include "simd_piecewise.h"
#undef PL
#undef REAL
#define PL(name) FN(piecewise_##name##_f64)
#define REAL double
#include "simd_piecewise.h"
#undef PL
#undef REAL

static const simd_loops FN(loops) = {
  STR(LEVEL), FN(smo_update), FN(threshold_update), FN(smo_gain), FN(find), FN(gather_rows), FN(mirror_rows), FN(smo_scan), FN(add_rows),
  FN(combine_rows), FN(symmetric_product), FN(rank_one),
  FN(rbf_row_f32), FN(rbf_row_f64), FN(admm_clip), FN(xofm_scores), FN(xofm_scatter),
  FN(xofm_spread), FN(xofm_gather), FN(xofm_descend),
  FN(logit_terms), FN(logit_slopes), FN(standardise), FN(row_products), FN(scatter_rows),
  FN(weighted_gram), FN(code_terms), FN(bend), FN(dot),
  FN(piecewise_point_f32), FN(piecewise_point_f64),
  FN(piecewise_slope_f32), FN(piecewise_slope_f64),
  FN(piecewise_jumps_f32), FN(piecewise_jumps_f64),
  FN(box_sums), FN(box_steps),
};
