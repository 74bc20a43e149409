"""Stopping ratio and adjacent categories fits to 100 000 x 10, beside vglm of R.

    OPENBLAS_NUM_THREADS=1 python tools/bench/ratio.py [--rows N] [--limit SECONDS]

CPU seconds of one thread, for effects that are equal for all thresholds and for nominal
ones, and the difference of the log likelihoods relative to vglm's. R runs where Rscript
finds it with the package VGAM (r-cran-vgam).
"""

import argparse
import subprocess
import tempfile
import time

import numpy as np

from ordinal import fit_ratio

VGLM = {
    "stopping": "sratio({parallel})",
    "backward": "cratio(reverse = TRUE, {parallel})",
    "adjacent": "acat({parallel})",
}
SCRIPT = """
suppressMessages(library(VGAM))
data <- read.csv("rows.csv", header = FALSE)
data$V1 <- ordered(data$V1)
t <- system.time(m <- vglm(V1 ~ ., {family}, data = data))
cat(t[["user.self"]] + t[["sys.self"]], logLik(m))
"""


def by_vglm(family, nominal, rows, limit):
    """(CPU seconds, log likelihood) of vglm; None without R or VGAM, or beyond the
    limit.
    """
    call = VGLM[family].format(parallel=f"parallel = {'FALSE' if nominal else 'TRUE'}")
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(f"{folder}/rows.csv", rows, delimiter=",", fmt="%.17g")
        try:
            done = subprocess.run(
                ["Rscript", "-e", SCRIPT.format(family=call)], cwd=folder,
                capture_output=True, text=True, timeout=limit,
            )  # fmt: skip
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return None
    return tuple(map(float, done.stdout.split())) if done.returncode == 0 else None


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--limit", type=float, default=600, help="seconds of vglm")
    args = options.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((args.rows, 10))
    latent = X[:, :4].sum(axis=1) + rng.logistic(size=args.rows)
    y = np.digitize(latent, [-2, -0.5, 0.5, 2])
    fit_ratio(X[:1000], y[:1000])  # imports
    print(f"{'ours':>26s}{'vglm':>8s}{'ratio':>8s}{'apart':>10s}{'steps':>7s}")
    for family in VGLM:
        for nominal in ([], list(range(10))):
            start = time.process_time()
            model = fit_ratio(X, y, family=family, nominal=nominal, n_threads=1)
            seconds = time.process_time() - start
            peer = by_vglm(family, nominal, np.column_stack([y, X]), args.limit)
            kind = "nominal" if nominal else "parallel"
            shown = "       -       -         -"
            if peer is not None:
                apart = abs(model.loglik / peer[1] - 1)
                shown = f"{peer[0]:8.2f}{peer[0] / seconds:8.0f}{apart:10.1e}"
            print(
                f"{family:9s} {kind:9s}{seconds:7.2f}{shown}"
                f"{model.convergence.n_iter:7}",
                flush=True,
            )


if __name__ == "__main__":
    main()
