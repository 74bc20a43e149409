"""The same fits on one thread, by OpenMP's threads and by the pool's, in turn.

    OPENBLAS_NUM_THREADS=1 python tools/bench/ways.py [--repeat 10] [--threads 2]

For a build with OpenMP, in which both ways can be had; the rows are made. Seconds are
by the clock, the least of --repeat rounds, and a ratio is the middle one of those of
the rounds, so that what else the machine does meets all ways.
"""

import argparse
import statistics
import time
from functools import partial

import numpy as np

import ordinal
from ordinal._solvers import _parts


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 8 features in 5 ranks of the same size."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 8))
    f = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=n)
    return X, np.digitize(f, np.quantile(f, [0.2, 0.4, 0.6, 0.8]))


CASES = {
    "svorim, 50 rows": (50, partial(ordinal.fit_svorim, C=10.0)),
    "svorim, 2000 rows": (2000, partial(ordinal.fit_svorim, C=100.0)),
    "svorim, 8000 rows": (8000, partial(ordinal.fit_svorim, C=10.0)),
    "npsvor, 50 rows": (50, ordinal.fit_npsvor),
    "npsvor, 1500 rows": (1500, ordinal.fit_npsvor),
    "gpor, 300 rows": (300, partial(ordinal.fit_gpor, max_iter=3)),
    "xofm, SGD, 2000 rows": (2000, partial(ordinal.fit_xofm, solver="sgd")),
}


def seconds(fit, X, y, n_threads: int, openmp: bool) -> float:
    _parts.use_openmp(openmp)
    begin = time.perf_counter()
    fit(X, y, n_threads=n_threads)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    args = parser.parse_args()
    if not _parts.OPENMP:
        raise SystemExit("this build has no OpenMP to compare with")
    ways = {
        "one": (1, True),
        "openmp": (args.threads, True),
        "pool": (args.threads, False),
    }
    print(f"{'one':>8} {'openmp':>8} {'pool':>8}  pool/openmp  pool/one")
    for name in args.only:
        n, fit = CASES[name]
        X, y = rows(n)
        took: dict[str, list[float]] = {way: [] for way in ways}
        for i in range(args.repeat):
            for way in list(ways)[:: 1 if i % 2 else -1]:
                took[way].append(seconds(fit, X, y, *ways[way]))
        ratios = [
            statistics.median(
                a / b for a, b in zip(took["pool"], took[other], strict=True)
            )
            for other in ("openmp", "one")
        ]
        least = " ".join(f"{min(took[way]):8.4f}" for way in ways)
        print(f"{least}  {ratios[0]:11.2f}  {ratios[1]:8.2f}  {name}", flush=True)


if __name__ == "__main__":
    main()
