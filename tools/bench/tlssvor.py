"""TLS-SVOR on California housing: 5000 rows, a basis of 500 of them, as in the paper.

    OPENBLAS_NUM_THREADS=1 python tools/bench/tlssvor.py --data FOLDER

Seconds are CPU seconds of one thread, of the quickest of --repeat runs; "step" is what
one Newton step takes. MAE and MZE are of all other rows.
"""

import math
import warnings

import numpy as np
from _common import best_time, california, header, parser

import ordinal


def fit(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ordinal.DisorderedThresholdsWarning)
        return ordinal.fit_tlssvor(X, y, gamma=0.125, **{"n_threads": 1, **options})


def steps(args) -> None:
    print("\n## Fit, one thread, gamma 0.125, 5000 rows, basis 500")
    print(
        "bins      C    u  steps  seconds  step (ms)  violation       psi  disorder"
        "    MAE    MZE"
    )
    for bins in (5, 10):
        X, y, X_rest, y_rest = california(args.data, 5000, bins)
        for C in (1.0, 100.0):
            for u in (math.inf, 3.0, 1.5):
                seconds, _, model = best_time(
                    args.repeat, fit, X, y, C=C, u=u, basis=500
                )
                c, miss = model.convergence, np.abs(model.predict(X_rest) - y_rest)
                print(
                    f"{bins:4} {C:6g} {u:4g} {c.n_iter:6} {seconds:8.2f} "
                    f"{1e3 * seconds / c.n_iter:10.0f} {c.violation:10.1e} "
                    f"{c.primal:9.1f} {len(model.disorder):9} {miss.mean():6.3f} "
                    f"{(miss > 0).mean():6.3f}",
                    flush=True,
                )


def basis(args) -> None:
    print("\n## By the size of the basis, 5 bins, C 100, u 3")
    X, y, *_ = california(args.data, 5000)
    for m in (125, 250, 500, 1000, 2000):
        seconds, _, model = best_time(1, fit, X, y, C=100.0, u=3.0, basis=m)
        c = model.convergence
        print(f"{m:5} rows: {seconds:7.2f} s, {c.n_iter:3} steps, psi {c.primal:9.1f}")


def main() -> None:
    args = parser(__doc__).parse_args()
    print(header(ordinal))
    steps(args)
    basis(args)


if __name__ == "__main__":
    main()
