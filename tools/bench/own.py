"""Cost of a fit of each family, on one thread: the rows that `compare.py` compares.

    OPENBLAS_NUM_THREADS=1 python tools/bench/own.py --data FOLDER [--only PART ...]

  programs   support vector methods on California housing, by rows, gamma and C, with
             starts and predictions; two threads by the clock
  searches   the protocol of Chu and Keerthi for SVORIM, and NPSVOR's grid
  processes  GPOR by Laplace's method and EP: complete fits, and a basis
  xofm       XOFM and TLS-SVOR
  linear     cumulative and ratio models, paths of the elastic net

Seconds are CPU seconds of the quickest of --repeat runs. A row is only worth its time
if the fit ended: `end` is its status, and the largest violation or relative gap.
"""

import math
import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _common import Table, best_time, california, fit_of, parser, run, standardized
from _common import table as read

import ordinal
from ordinal.model_selection import CoarseToFine, Grid, select

LOGS = range(-3, 4)


def timed(args, table: Table, what: str, call: Callable[..., Any], *of, **options):
    """Print the row of a call; what it returned."""
    cpu, wall, found = best_time(args.repeat, call, *of, **options)
    end = "-"
    if c := getattr(found, "convergence", None):
        end = f"{c.status.value}, {np.max(c.violation):.1e}"
    table.row(what, wall if options.get("n_threads", 1) > 1 else cpu, end)
    return found


def rows_of(args, title: str) -> Table:
    return Table(args, title, "what:46", "ours:8.3f", "end:24.0f")


def programs(args) -> None:
    table = rows_of(args, "Support vector methods, California housing")
    settings = [(n, 5, 0.5, 100.0) for n in (1000, 2000, 4000)]
    settings += [(2000, 10, 0.5, 100.0), (4000, 5, 1.0, 100.0), (8000, 5, 0.125, 1.0)]
    for n, bins, gamma, C in settings:
        X, y, *_ = california(args.data, n, bins)
        for name in ("svorim", "svorex", "redsvm", "npsvor"):
            options = {"C": C, "gamma": gamma, "n_threads": 1}
            what = f"{name}, {n} rows, {bins} ranks, gamma {gamma:g}, C {C:g}"
            timed(args, table, what, fit_of(name), X, y, **options)
    X, y, rest, _ = california(args.data, 2000)
    options = {"C": 100.0, "gamma": 0.5, "n_threads": 1}
    for name in ("svc", "svr", "svmop", "cssvc", "opbe"):
        model = timed(args, table, f"{name}, 2000 rows", fit_of(name), X, y, **options)
        timed(args, table, f"{name}, prediction", model.predict, rest)
    for name in ("svorim", "npsvor"):
        fit = fit_of(name)
        start = {} if name == "npsvor" else {"start": fit(X, y, **options | {"C": 50})}
        what = f"{name}, 2000 rows, from half the C if it can"
        model = timed(args, table, what, fit, X, y, **start, **options)
        timed(args, table, f"{name}, prediction", model.predict, rest)
        timed(args, table, f"{name}, 1e-8", fit, X, y, tol=1e-8, **options)
    admm = {"solver": "admm", **options}
    timed(args, table, "npsvor by ADMM, 2000 rows", fit_of("npsvor"), X, y, **admm)
    X, y, *_ = california(args.data, 4000)
    for name in ("svorim", "svorex", "npsvor", "svc", "svr"):
        two = options | {"n_threads": 2}
        timed(args, table, f"{name}, 4000 rows, clock", fit_of(name), X, y, **two)


def first_rows(args, name: str, n: int):
    """The first training rows of the first official partition, in 5 bins."""
    X, _ = read(args.data, name)
    stored = np.load(Path(args.data) / "splits" / name / "orreview_equalfreq.npz")
    train = stored["train_idx_5"][0][:n]
    return X[train], stored["y5"][train]


def searches(args) -> None:
    table = rows_of(args, "Searches of five folds, with the refit")
    X, y = first_rows(args, "boston_housing", 300)
    call = partial(select, fit_of("svorim"), X, y, n_threads=1)
    what = "svorim, 129 points, 300 rows of Boston"
    timed(args, table, what, call, search=CoarseToFine())
    X, y = first_rows(args, "abalone", 500)
    grid = Grid(C=[10.0**a for a in LOGS], gamma=[10.0**b / 2 for b in LOGS])
    for solver in ("smo", "admm"):
        call = partial(select, partial(fit_of("npsvor"), solver=solver), X, y)
        what = f"npsvor by {solver}, 49 points, 500 rows of Abalone"
        timed(args, table, what, call, search=grid, n_threads=1)


def processes(args) -> None:
    table = rows_of(args, "Gaussian processes")
    fit = partial(fit_of("gpor"), n_threads=1)
    for n, inference in product((300, 1000), ("laplace", "ep")):
        X, y, *_ = california(args.data, n)
        timed(args, table, f"{inference}, {n} rows", fit, X, y, inference=inference)
    X, y, *_ = california(args.data, 3000)
    timed(args, table, "laplace, 3000 rows, basis 100", fit, X, y,
          inference="laplace", basis=100)  # fmt: skip
    X, y = read(args.data, "car")
    X = standardized(X, np.arange(len(X)))[::4]
    for inference in ("laplace", "ep"):
        timed(args, table, f"{inference}, ARD, 432 rows of car", fit, X, y[::4],
              inference=inference, kernel="ard")  # fmt: skip


def smooth(n: int, d: int, r: int = 5):
    """Return n rows in r ranks of a smooth score of all d features."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, d))
    score = np.sin(2 * X).sum(axis=1) + X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    score += 0.3 * rng.standard_normal(n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)


def xofm(args) -> None:
    table = rows_of(args, "XOFM and TLS-SVOR")
    fit = partial(fit_of("xofm"), n_threads=1)
    for n in (1000, 10_000, 100_000):
        timed(args, table, f"xofm, {n} rows, 30 steps", fit, *smooth(n, 20),
              n_intervals=10, n_factors=8, max_iter=30)  # fmt: skip
    for batch in (1, 256):
        timed(args, table, f"xofm by SGD, batches of {batch}", fit, *smooth(20_000, 10),
              solver="sgd", n_factors=4, batch_size=batch, n_epochs=0.025,
              tol=1e3)  # fmt: skip
    X, y, *_ = california(args.data, 5000)
    fit = partial(fit_of("tlssvor"), gamma=0.125, basis=500, n_threads=1)
    for C, u in product((1.0, 100.0), (math.inf, 1.5)):
        timed(args, table, f"tlssvor, 5000 rows, C {C:g}, u {u:g}", fit, X, y, C=C, u=u)


def scored(n: int, d: int, ranks: int, share: float = 1.0):
    """Return n rows in ranks of equal size of a linear score with logistic noise; of
    the features a share is not 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    if share < 1:
        X[rng.random((n, d)) > share] = 0.0
    f = X @ rng.standard_normal(d) * (2 / np.sqrt(d * share)) + rng.logistic(size=n)
    return X, f.argsort().argsort() * ranks // n


def linear(args) -> None:
    table = rows_of(args, "Linear models")
    pom, ratio = (partial(fit_of(name), n_threads=1) for name in ("pom", "ratio"))
    timed(args, table, "pom, 100000 x 10, 5 ranks", pom, *scored(100_000, 10, 5))
    timed(args, table, "pom, 2000 x 5, 1000 ranks", pom, *scored(2000, 5, 1000))
    timed(args, table, "pom, 300 x 5, 3 ranks", pom, *scored(300, 5, 3))
    X, y = scored(20_000, 10, 5)
    for nominal in ([], [0, 1]):
        what = f"pom, 20000 x 10, {len(nominal)} nominal"
        timed(args, table, what, pom, X, y, nominal=nominal)
        for family in ("stopping", "adjacent"):
            timed(args, table, f"ratio, {family}, {len(nominal)} nominal", ratio, X, y,
                  family=family, nominal=nominal)  # fmt: skip
    path = partial(fit_of("pom_path"), n_threads=1)
    timed(args, table, "path, 5000 x 50", path, *scored(5000, 50, 5))
    timed(args, table, "path, 500 x 500, two ranks", path, *scored(500, 500, 2))
    import scipy.sparse

    X, y = scored(1000, 2000, 5, 0.01)
    timed(args, table, "path, 1000 x 2000 sparse", path, scipy.sparse.csr_array(X), y)
    groups = {"g": np.arange(5000) % 250}
    rows = scored(5000, 3, 5)
    timed(args, table, "clmm, 5000 x 3, 250 groups", fit_of("clmm"), *rows,
          groups=groups, n_threads=1)  # fmt: skip


PARTS = {f.__name__: f for f in (programs, searches, processes, xofm, linear)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # fits that end at their limit of steps
    sys.exit(run(parser(__doc__, PARTS).parse_args(), PARTS, ordinal))
