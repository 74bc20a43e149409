"""Many ranks on few rows: cost by the number of ranks, with R's rms::orm beside it.

    OPENBLAS_NUM_THREADS=1 python tools/bench/ranks.py [--only PART ...]

The rows are made: a curved score of 5 columns, cut into ranks of as many rows. Seconds
are CPU seconds of one thread, of the quickest of --repeat runs; a fit is given 100 s.
Only `fit_pom` has a peer here; those of the support vector methods are in `svor.py`, at
five and ten ranks.
"""

import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from _common import Table, best_time, companions, parser, run

import ordinal

RANKS = (5, 10, 50, 200, 1000)
EXACT = {
    "svorim": ordinal.fit_svorim,
    "svorex": ordinal.fit_svorex,
    "shashua_levin": companions.fit_shashua_levin,
    "redsvm": companions.fit_redsvm,
    "npsvor": ordinal.fit_npsvor,
}
OTHERS = {"xofm": ordinal.fit_xofm, "pom": ordinal.fit_pom}
ORM = """
suppressMessages(library(rms))
d <- read.csv(commandArgs(TRUE)[1])
t <- proc.time()
fit <- orm(y ~ ., data = d)
cat(sum((proc.time() - t)[1:2]))
"""


def made_rows(n, r):
    """(X, y) of n rows and r ranks."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    score += 0.3 * rng.standard_normal(n)
    return X, score.argsort().argsort() * r // n


def timed(args, method, X, y):
    """Return the seconds of a fit and its model."""
    fit = EXACT.get(method) or OTHERS[method]
    options = {"gamma": 0.2, "max_time": 100.0} if method in EXACT else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _, model = best_time(args.repeat, fit, X, y, n_threads=1, **options)
    return seconds, model


def orm(X, y):
    """CPU seconds of rms::orm, or None where R has it not."""
    with tempfile.TemporaryDirectory() as folder:
        path, script = Path(folder, "rows.csv"), Path(folder, "orm.R")
        names = ",".join([*(f"x{k}" for k in range(X.shape[1])), "y"])
        rows = np.column_stack([X, y])
        np.savetxt(path, rows, delimiter=",", header=names, comments="")
        script.write_text(ORM)
        try:
            out = subprocess.run(
                ["Rscript", script, path], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return None
    return float(out.stdout.split()[-1])


def ranks(args) -> None:
    table = Table(
        args, "2000 rows by ranks, one thread", "method:13", "ranks:5", "ours:8.2f",
        "steps:8", "violation:9.1e", "status:10",
    )  # fmt: skip
    for method in (*EXACT, *OTHERS):
        for r in RANKS[:3] if args.quick else RANKS:
            seconds, model = timed(args, method, *made_rows(2000, r))
            c = model.convergence
            status = c.status.value
            table.row(method, r, seconds, c.n_iter, c.violation, status)


def peer(args) -> None:
    table = Table(
        args, "A linear cumulative model of 2000 rows", "ranks:5", "ours:8.2f",
        "orm:8.2f", "orm/ours:8.1f",
    )  # fmt: skip
    for r in RANKS:
        X, y = made_rows(2000, r)
        own, theirs = timed(args, "pom", X, y)[0], orm(X, y)
        table.row(r, own, theirs, None if theirs is None else theirs / own)


PARTS = {f.__name__: f for f in (ranks, peer)}


def main() -> None:
    run(parser(__doc__, PARTS).parse_args(), PARTS, ("ranks",), ordinal)


if __name__ == "__main__":
    main()
