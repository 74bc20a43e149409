"""NPSVOR against scikit-learn's SVC (LIBSVM, one-vs-one) on California housing.

    OPENBLAS_NUM_THREADS=1 python tools/bench/npsvor.py --data FOLDER

Both run in this process, in turn, on the same standardised rows in 5 ranks, to a KKT
tolerance of 1e-3; seconds are CPU seconds of the quickest of --repeat runs. SVC solves
ten problems of two fifths of the rows each, about a fifth of the work of NPSVOR's five
problems of all rows. The column "C++" is the public C++ implementation inside LIBSVM,
which no package index has: its seconds are quoted, from a machine of the same kind.

Violation and gap are recomputed in double from the kernel itself, so a row is only
worth its time if they are small: the gap is relative, the largest of the ranks.
"""

import numpy as np
import sklearn
from _common import (
    best_time,
    california,
    header,
    in_a_process_of_its_own,
    parser,
    peak,
    resident,
)
from sklearn.svm import SVC

import ordinal

CASES = [(2000, 0.5, 100.0), (4000, 0.5, 100.0), (5000, 0.5, 100.0)]
CASES += [(8000, 0.5, 100.0), (2000, 1.0, 100.0), (4000, 1.0, 100.0)]
CASES += [(8000, 1.0, 100.0), (8000, 0.125, 1.0)]
QUOTED = {(2000, 0.5): 1.1, (4000, 0.5): 5.0, (8000, 0.5): 26.5, (8000, 0.125): 2.6}


def fit(X, y, gamma, C, **options):
    options = {"n_threads": 1, **options}
    return ordinal.fit_npsvor(X, y, C1=C, gamma=gamma, **options)


def fits(args) -> None:
    print("\n## Fit, one thread, tol 1e-3")
    print(
        "     n  gamma    C   ours   SVC  SVC/ours  C++/ours  violation  rel_gap"
        "  sum_dual      steps   free"
    )
    for n, gamma, C in CASES:
        X, y, *_ = california(args.data, n)
        ours, _, model = best_time(args.repeat, fit, X, y, gamma, C)
        peer = SVC(C=C, gamma=gamma, cache_size=1000)
        svc, *_ = best_time(args.repeat, peer.fit, X, y)
        c = model.convergence
        quoted = QUOTED.get((n, gamma))
        free = (np.abs(model.coef) % C != 0).sum()
        print(
            f"{n:6} {gamma:6} {C:4g} {ours:6.3f} {svc:5.2f} {svc / ours:9.2f} "
            f"{f'{quoted / ours:9.1f}' if quoted else '        -'} "
            f"{c.violation.max():10.1e} {c.rel_gap.max():8.1e} {c.dual.sum():9.0f} "
            f"{c.n_iter.sum():10} {free:6}"
        )


def threads(args) -> None:
    print("\n## Two threads against one, wall seconds, gamma 0.5, C 100")
    for n in (4000, 8000):
        X, y, *_ = california(args.data, n)
        seconds = {1: np.inf, 2: np.inf}
        for _ in range(args.repeat):
            for t in seconds:
                model = fit(X, y, 0.5, 100.0, n_threads=t)
                seconds[t] = min(seconds[t], model.convergence.seconds)
        one, two = seconds.values()
        print(f"{n:6} one {one:.3f}  two {two:.3f}  speed-up {one / two:.2f}")


def tolerances(args) -> None:
    print("\n## Tighter tolerances, one thread, n 4000, gamma 0.5, C 100")
    X, y, *_ = california(args.data, 4000)
    for tol in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8):
        cpu, _, model = best_time(args.repeat, fit, X, y, 0.5, 100.0, tol=tol)
        c = model.convergence
        print(f"tol {tol:.0e}: {cpu:.3f} s, violation {c.violation.max():.1e}")


def prediction(args) -> None:
    X, y, rest, truth = california(args.data, 5000)
    print(f"\n## Prediction of {len(rest)} rows, fitted on 5000, gamma 0.5, C 100")
    model = fit(X, y, 0.5, 100.0)
    peer = SVC(C=100, gamma=0.5, cache_size=1000).fit(X, y)
    ours, _, ranks = best_time(args.repeat, model.predict, rest)
    svc, _, classes = best_time(args.repeat, peer.predict, rest)
    print(f"ours {ours:.3f} s  SVC {svc:.3f} s  SVC/ours {svc / ours:.1f}")
    for name, labels in (("ours", ranks), ("SVC", classes)):
        mze = ordinal.metrics.mze(truth, labels)
        mae = ordinal.metrics.mae(truth, labels)
        print(f"{name}: MZE {mze:.4f}  MAE {mae:.4f}")


def memory(args) -> None:
    print("\n## Peak memory, C 100, gamma 0.5; float32 K of 8000 rows is 256 MB")
    for cache_mb in ("1000", "64"):
        in_a_process_of_its_own(__file__, args, "8000", cache_mb)


def admm(args) -> None:
    print("\n## ADMM at the paper's tolerances, 4000 rows, gamma 0.5, one thread")
    X, y, rest, truth = california(args.data, 4000)
    for C in (1.0, 100.0):
        for options in ({}, {"solver": "admm"}, {"solver": "admm", "rank": 500}):
            cpu, _, model = best_time(1, fit, X, y, 0.5, C, **options)
            c = model.convergence
            mae = ordinal.metrics.mae(truth, model.predict(rest))
            print(
                f"C {C:4g} {options!s:36} {cpu:6.2f} s  MAE {mae:.4f}  "
                f"sum_dual {c.dual.sum():9.1f}  rel_gap {c.rel_gap.max():.1e}"
            )


def low_rank(args) -> None:
    print("\n## 200 000 rows of 20 features, rank 500, all threads")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 20))
    score = np.sin(X[:, 0]) + X[:, 1] / 2 + 0.3 * rng.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8]))
    model = ordinal.fit_npsvor(X, y, solver="admm", rank=500)
    error = ordinal.metrics.mae(y[:20_000], model.predict(X[:20_000]))
    print(
        f"{model.convergence.seconds:.1f} s, {model.convergence.status.value}, "
        f"peak memory {resident('VmHWM'):.0f} MB in all, training MAE {error:.3f}"
    )


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--only", choices=list(PARTS), help="one part")
    args = arguments.parse_args()
    if args.peak:
        return peak(fit, args, 0.5, 100.0)
    print(header(ordinal, sklearn))
    for name, part in PARTS.items():
        if args.only in (None, name):
            part(args)
    return None


PARTS = {
    "fits": fits,
    "threads": threads,
    "tolerances": tolerances,
    "prediction": prediction,
    "memory": memory,
    "admm": admm,
    "low_rank": low_rank,
}

if __name__ == "__main__":
    main()
