/* Proximal steps on piecewise linear losses in one precision. simd_loops.h includes this
 * file once per precision, with REAL and PL(name) set. (1) and (2): _piecewise_linear.pyx.
 *
 * `table` has four rows of r: lo, hi, pn and pp by rank. Sums are taken in REAL over
 * PIECEWISE_ROWS rows, and in double across them.
 */

/* (2), and whether it moves with v. */
static inline REAL PL(moved)(REAL lo, REAL hi, REAL pn, REAL pp, REAL sigma, REAL g,
                             REAL v, REAL *inside) {
  const REAL a = g + sigma * v;
  const REAL above = a - sigma * pp, below = a - sigma * pn;
  REAL t = above > 0 ? above : 0;
  t = below < 0 ? below : t;
  *inside = ((lo < t) & (t < hi) & ((t != 0) | (pn == pp))) ? (REAL)1 : (REAL)0;
  t = t < lo ? lo : t;
  return t > hi ? hi : t;
}

/* One group: t and whether it is inside, by row. `t` may be `g`. Adds to seven sums. */
static void PL(point)(const REAL *f, const int32_t *rank, const float *weight,
                      const REAL *g, const REAL *table, ptrdiff_t r, double b,
                      double sigma, ptrdiff_t n, REAL *t, REAL *inside, double *sums) {
  const REAL *lo = table, *hi = table + r, *pn = table + 2 * r, *pp = table + 3 * r;
  const REAL b_ = (REAL)b, s = (REAL)sigma, half = (REAL)(0.5 / sigma);
  for (ptrdiff_t start = 0; start < n; start += PIECEWISE_ROWS) {
    const ptrdiff_t rest = n - start;
    const ptrdiff_t stop = rest < PIECEWISE_ROWS ? n : start + PIECEWISE_ROWS;
    REAL up = 0, down = 0, cost_up = 0, cost_down = 0, count = 0, envelope = 0, loss = 0;
#pragma omp simd reduction(+ : up, down, cost_up, cost_down, count, envelope, loss)
    for (ptrdiff_t i = start; i < stop; i++) {
      const int32_t k = rank[i];
      const REAL w = weight[i], low = w * lo[k], high = w * hi[k];
      const REAL left = pn[k], right = pp[k], v = b_ - f[i];
      REAL moves;
      const REAL x = PL(moved)(low, high, left, right, s, g[i], v, &moves);
      const REAL d = x - g[i], over = high * (v - right), under = low * (v - left);
      const REAL x_up = x > 0 ? x : 0, x_down = x < 0 ? x : 0;
      REAL most = over > under ? over : under;
      most = most > 0 ? most : 0;
      up += x_up;
      down += x_down;
      cost_up += right * x_up;
      cost_down += left * x_down;
      count += moves;
      envelope += x * v - right * x_up - left * x_down - half * d * d;
      loss += most;
      t[i] = x;
      inside[i] = moves;
    }
    sums[0] += up;
    sums[1] += down;
    sums[2] += cost_up;
    sums[3] += cost_down;
    sums[4] += count;
    sums[5] += envelope;
    sums[6] += loss;
  }
}

/* One group: the slope of its envelopes at length x of the line from (b, f) to
 * (b + db, end). */
static double PL(slope)(const REAL *f, const REAL *end, const int32_t *rank,
                        const float *weight, const REAL *g, const REAL *table,
                        ptrdiff_t r, double b, double db, double x, double sigma,
                        ptrdiff_t n) {
  const REAL *lo = table, *hi = table + r, *pn = table + 2 * r, *pp = table + 3 * r;
  const REAL b_ = (REAL)b, db_ = (REAL)db, x_ = (REAL)x, s = (REAL)sigma;
  double total = 0;
  for (ptrdiff_t start = 0; start < n; start += PIECEWISE_ROWS) {
    const ptrdiff_t rest = n - start;
    const ptrdiff_t stop = rest < PIECEWISE_ROWS ? n : start + PIECEWISE_ROWS;
    REAL part = 0;
#pragma omp simd reduction(+ : part)
    for (ptrdiff_t i = start; i < stop; i++) {
      const int32_t k = rank[i];
      const REAL w = weight[i], dv = db_ - (end[i] - f[i]);
      REAL moves;
      part += dv * PL(moved)(w * lo[k], w * hi[k], pn[k], pp[k], s, g[i],
                             b_ - f[i] + x_ * dv, &moves);
    }
    total += part;
  }
  return total;
}

/* The least k with e <= grid[k], where grid[0] < e <= grid[K - 1]. O(log K). */
static inline ptrdiff_t PL(cell)(const double *grid, ptrdiff_t K, double e) {
  ptrdiff_t low = 0, high = K - 1;
  while (high - low > 1) {
    const ptrdiff_t middle = (low + high) / 2;
    if (grid[middle] < e)
      low = middle;
    else
      high = middle;
  }
  return high;
}

/* One group: out[0] is the derivative of its losses by the threshold at grid[0], out[k]
 * its increase up to grid[k], out[K] its increase beyond the grid. The slope of a loss
 * rises by -lo at f + pn and by hi at f + pp, mostly beyond the ends of the grid. */
static void PL(jumps)(const REAL *f, const int32_t *rank, const float *weight,
                      const REAL *table, ptrdiff_t r, const double *grid, ptrdiff_t K,
                      ptrdiff_t n, double *out) {
  const REAL *lo = table, *hi = table + r, *pn = table + 2 * r, *pp = table + 3 * r;
  const double first = grid[0], last = grid[K - 1];
  double among[PIECEWISE_ROWS];
  for (ptrdiff_t k = 0; k <= K; k++) out[k] = 0;
  for (ptrdiff_t start = 0; start < n; start += PIECEWISE_ROWS) {
    const ptrdiff_t rest = n - start;
    const ptrdiff_t rows = rest < PIECEWISE_ROWS ? rest : PIECEWISE_ROWS;
    const REAL *f_ = f + start;
    const int32_t *rank_ = rank + start;
    const float *weight_ = weight + start;
    double before = 0, after = 0, count = 0;
#pragma omp simd reduction(+ : before, after, count)
    for (ptrdiff_t i = 0; i < rows; i++) {
      const int32_t k = rank_[i];
      const double down = weight_[i] * lo[k], up = weight_[i] * hi[k];
      const double left = (double)f_[i] + pn[k], right = (double)f_[i] + pp[k];
      before += down - (left <= first ? down : 0) + (right <= first ? up : 0);
      after += (right > last ? up : 0) - (left > last ? down : 0);
      among[i] = ((left > first) & (left <= last)) | ((right > first) & (right <= last))
                     ? 1.0 : 0.0;
      count += among[i];
    }
    out[0] += before;
    out[K] += after;
    if (count == 0) continue;
    for (ptrdiff_t i = 0; i < rows; i++) {
      if (among[i] == 0) continue;
      const int32_t k = rank_[i];
      const double left = (double)f_[i] + pn[k], right = (double)f_[i] + pp[k];
      if (left > first && left <= last)
        out[PL(cell)(grid, K, left)] -= weight_[i] * lo[k];
      if (right > first && right <= last)
        out[PL(cell)(grid, K, right)] += weight_[i] * hi[k];
    }
  }
}
