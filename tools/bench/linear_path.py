"""Paths of penalties of cumulative link models.

  sparse    the lasso and an elastic net, 50 penalties down to 1e-3 of the largest, on
            sparse features that are ten times as many as the rows
  dense     the lasso on dense features, 100 penalties down to 1e-4 of the largest
  binary    the lasso of two ranks, which R's glmnet fits as well, on the same penalties

Each row says beside the seconds how many coefficients are not 0 at the end, the share
of the deviance that is explained there, and the largest duality gap, by the loss
without features. glmnet runs where R has it (r-cran-glmnet), and is timed inside R.
No peer fits the ordinal paths at these sizes: ordinalNet, which has the same problem,
takes dense features only.

    OPENBLAS_NUM_THREADS=1 python tools/bench/linear_path.py
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from _common import Table, best_time, parser, run

import ordinal

R = """
suppressMessages(library(glmnet))
X <- as.matrix(read.csv("X.csv", header = FALSE))
y <- scan("y.csv", quiet = TRUE)
l <- scan("lambda.csv", quiet = TRUE)
t <- system.time(m <- glmnet(X, y, "binomial", lambda = l, standardize = FALSE))
cat(t[["user.self"]] + t[["sys.self"]], rev(m$dev.ratio)[1], rev(m$df)[1], "\\n")
"""


def problem(n, d, share, ranks, seed=0):
    """Features of which 100 count; sparse ones as a CSR, dense ones as an array."""
    rng = np.random.default_rng(seed)
    beta = np.zeros(d)
    beta[rng.choice(d, min(100, d // 2), replace=False)] = 2.0
    beta *= rng.standard_normal(d)
    if share < 1:
        from scipy.sparse import csr_matrix

        entries = int(n * d * share)
        place = rng.choice(n * d, entries, replace=False)
        X = csr_matrix(
            (rng.standard_normal(entries), np.divmod(place, d)), shape=(n, d)
        )
    else:
        X = rng.standard_normal((n, d))
    f = X @ beta
    f = f / f.std() * 3 + rng.logistic(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, ranks) / ranks))


def timed(args, table, name, X, y, **options):
    seconds, _, path = best_time(
        args.repeat, ordinal.fit_pom_path, X, y, n_threads=1, **options
    )
    null = -path.null_loglik / path.models[0].n_obs
    gap = float(max(path.gaps)) / null
    table.row(
        name,
        len(path),
        seconds,
        int(path.n_nonzero[-1]),
        path.dev_ratio[-1],
        gap,
        None,
        None,
    )
    return path, seconds


COLUMNS = (
    "problem:24.0f", "penalties:9d", "ours:8.2f", "nonzero:8d", "deviance:9.4f",
    "gap:9.1e", "glmnet:8.2f", "glmnet/ours:6.1f",
)  # fmt: skip


def sparse(args):
    n, d = (500, 5000) if args.quick else (2000, 20_000)
    table = Table(args, "Sparse features, 1 % of entries, 5 ranks", *COLUMNS)
    X, y = problem(n, d, 0.01, 5)
    options = {"n_lambdas": 50, "smallest": 1e-3}
    for ratio in (1.0, 0.5):
        timed(args, table, f"{n} x {d}, ratio {ratio:g}", X, y, ratio=ratio, **options)


def dense(args):
    table = Table(args, "Dense features, 5 ranks", *COLUMNS)
    for n, d in [(1000, 50)] if args.quick else [(10_000, 50), (500, 2000)]:
        timed(args, table, f"{n} x {d}", *problem(n, d, 1.0, 5))


def binary(args):
    table = Table(args, "Two ranks, dense features", *COLUMNS)
    for n, d in [(500, 200)] if args.quick else [(2000, 200), (500, 2000)]:
        X, y = problem(n, d, 1.0, 2)
        path, own = timed(args, table, f"{n} x {d}", X, y, n_lambdas=50, smallest=1e-2)
        peer = None if args.quick else glmnet(X, y, path.lambdas)
        if peer is not None:
            seconds, explained, nonzero = peer
            table.row("  the same by glmnet", len(path), None, int(nonzero), explained,
                      None, seconds, seconds / own)  # fmt: skip


def glmnet(X, y, lambdas):
    """(CPU seconds, share of the deviance, coefficients not 0) of R, None without."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        np.savetxt(here / "X.csv", X, delimiter=",")
        np.savetxt(here / "y.csv", y)
        np.savetxt(here / "lambda.csv", lambdas)
        try:
            done = subprocess.run(
                ["Rscript", "-e", R], cwd=here, capture_output=True, text=True
            )
        except FileNotFoundError:
            return None
        return tuple(map(float, done.stdout.split())) if not done.returncode else None


PARTS = {"sparse": sparse, "dense": dense, "binary": binary}

if __name__ == "__main__":
    run(parser(__doc__, PARTS).parse_args(), PARTS, tuple(PARTS))
