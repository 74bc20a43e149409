"""TLS-SVOR on California housing: 5000 rows, a basis of 500 of them, as in the paper.

    OPENBLAS_NUM_THREADS=1 python tools/bench/tlssvor.py --data FOLDER [--only PART ...]

Seconds are CPU seconds of one thread, of the quickest of --repeat runs; "step" is what
one Newton step takes. MAE and MZE are of all other rows. There is no ratio to a
peer, as we know of no public program that fits TLS-SVOR.
"""

import math
import warnings
from itertools import product

import numpy as np
from _common import Table, best_time, california, exceptions, parser, run

import ordinal


def fit(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.DisorderedThresholdsWarning)
        return ordinal.fit_tlssvor(X, y, gamma=0.125, **{"n_threads": 1, **options})


def steps(args) -> None:
    table = Table(
        args, "Fit, one thread, gamma 0.125, 5000 rows, basis 500", "bins:4", "C:6g",
        "u:4g", "ours:8.2f", "steps:5", "step (ms):9.0f", "violation:9.1e", "psi:9.1f",
        "disorder:8", "MAE:6.3f", "MZE:6.3f",
    )  # fmt: skip
    for bins in (5,) if args.quick else (5, 10):
        X, y, X_rest, y_rest = california(args.data, 5000, bins)
        for C, u in product((1.0, 100.0), (math.inf, 3.0, 1.5)):
            seconds, _, model = best_time(args.repeat, fit, X, y, C=C, u=u, basis=500)
            c, miss = model.convergence, np.abs(model.predict(X_rest) - y_rest)
            table.row(
                bins, C, u, seconds, c.n_iter, 1e3 * seconds / c.n_iter, c.violation,
                c.primal, len(model.disorder), miss.mean(), (miss > 0).mean(),
            )  # fmt: skip


def basis(args) -> None:
    table = Table(
        args, "By the size of the basis, 5 bins, C 100, u 3", "basis:5", "ours:8.2f",
        "steps:5", "psi:9.1f",
    )  # fmt: skip
    X, y, *_ = california(args.data, 5000)
    for m in (125, 250) if args.quick else (125, 250, 500, 1000, 2000):
        seconds, _, model = best_time(args.repeat, fit, X, y, C=100.0, u=3.0, basis=m)
        table.row(m, seconds, model.convergence.n_iter, model.convergence.primal)


PARTS = {f.__name__: f for f in (steps, basis)}


def main() -> None:
    run(parser(__doc__, PARTS).parse_args(), PARTS, PARTS, ordinal)


if __name__ == "__main__":
    main()
