/* Runs loops at every level that this processor has and compares them with the baseline,
 * without Python: for systems whose programs run here (wine, qemu) but whose Python
 * does not.
 *
 *   cc -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math tools/platforms/levels.c -lm
 *   python -m ziglang cc -target x86_64-windows-gnu (the same)
 *
 * The loops chosen keep vectors on the stack, where a platform may align them otherwise
 * than a compiler believes, or compute exponentials.
 */
#include "../../ordinal/_solvers/simd.c"

#include <stdio.h>

enum { N = 1003, ROWS = 64, WIDTH = 48 };

static double uniform(void) { /* of [0, 1), the same on all systems */
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) / 9007199254740992.0;
}

typedef struct {
  double K[N], terms[6 * N], gram[WIDTH * WIDTH], bent[8 * N], dot;
  float K_f32[N], block[ROWS * ROWS], gain[ROWS];
} numbers;

static double a[N], b[N], delta[N], V[ROWS * WIDTH], c[ROWS], H[8 * N], G[3 * N];
static float L[ROWS], D[ROWS], Ki[ROWS], block[ROWS * ROWS];

static void draw(void) {
  for (int i = 0; i < N; i++) {
    delta[i] = 0.1 + uniform();
    a[i] = 8 * uniform() - 4;
    b[i] = a[i] - delta[i];
  }
  for (int i = 0; i < ROWS * WIDTH; i++) V[i] = uniform() - 0.5;
  for (int i = 0; i < 8 * N; i++) H[i] = uniform() - 0.5;
  for (int i = 0; i < 3 * N; i++) G[i] = uniform() - 0.5;
  for (int i = 0; i < ROWS * ROWS; i++) block[i] = (float)uniform();
  for (int i = 0; i < ROWS; i++) {
    c[i] = uniform();
    L[i] = (float)uniform();
    D[i] = 1 + (float)uniform();
    Ki[i] = (float)uniform();
  }
}

static void run(const simd_loops *level, numbers *out) {
  float top;
  memset(out, 0, sizeof *out);
  level->rbf_row_f64(a, 8, delta, 0.7, out->K, N);
  level->rbf_row_f32(a, 8, delta, 0.7, out->K_f32, N);
  level->logit_terms(a, b, delta, N, out->terms, N);
  level->weighted_gram(V, WIDTH, WIDTH, V, WIDTH, ROWS, WIDTH, c, 0, out->gram, WIDTH);
  memcpy(out->bent, H, sizeof H);
  level->bend(out->bent, V, G, 8, 3, N);
  out->dot = level->dot(a, delta, N);
  memcpy(out->block, block, sizeof block);
  level->mirror_rows(out->block, ROWS, 0, ROWS);
  level->smo_gain(L, Ki, D, 1.5f, 0.2f, out->gain, ROWS, &top);
}

/* The greatest difference, relative to sizes above 1. */
static double apart(const double *x, const double *y, int n) {
  double most = 0;
  for (int i = 0; i < n; i++) {
    const double size = fabs(y[i]) > 1 ? fabs(y[i]) : 1;
    const double d = fabs(x[i] - y[i]) / size;
    if (!(d <= most)) most = d; /* NaN as well */
  }
  return most;
}

static double apart_f32(const float *x, const float *y, int n) {
  double most = 0;
  for (int i = 0; i < n; i++) {
    const double d = fabs((double)x[i] - y[i]);
    if (!(d <= most)) most = d;
  }
  return most;
}

static numbers expected, got;

int main(void) {
  int failed = 0;
  draw();
  run(&loops_baseline, &expected);
  for (int k = 0; k < (int)N_LEVELS; k++) {
    double wide, narrow;
    if (!runs_here(levels[k])) {
      printf("%s: not on this processor\n", levels[k]->name);
      continue;
    }
    run(levels[k], &got);
    wide = apart(got.K, expected.K, N);
    wide += apart(got.terms, expected.terms, 6 * N);
    wide += apart(got.gram, expected.gram, WIDTH * WIDTH);
    wide += apart(got.bent, expected.bent, 8 * N);
    wide += apart(&got.dot, &expected.dot, 1);
    narrow = apart_f32(got.K_f32, expected.K_f32, N);
    narrow += apart_f32(got.block, expected.block, ROWS * ROWS);
    narrow += apart_f32(got.gain, expected.gain, ROWS);
    printf("%s: %.1e apart in double, %.1e in single precision\n", levels[k]->name, wide, narrow);
    failed += !(wide <= 1e-13 && narrow <= 2e-6);
  }
  printf("taken: %s\n", simd()->name);
  return failed;
}
