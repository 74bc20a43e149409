"""NPSVOR against scikit-learn's SVC (LIBSVM, one-vs-one) on California housing.

    OPENBLAS_NUM_THREADS=1 python tools/bench/npsvor.py --data FOLDER [--only PART ...]

Both run in this process, in turn, on the same standardised rows in 5 ranks, to a KKT
tolerance of 1e-3; seconds are CPU seconds of the quickest of --repeat runs. SVC solves
ten problems of two fifths of the rows each, about a fifth of the work of NPSVOR's five
problems of all rows. The column "C++" is the public C++ implementation inside LIBSVM,
which no package index has: its seconds are quoted, from a machine of the same kind.

Violation and gap are recomputed in double from the kernel itself, so a row is only
worth its time if they are small: the gap is relative, the largest of the ranks.
"""

import numpy as np
from _common import (
    Table,
    best_time,
    california,
    in_a_process_of_its_own,
    parser,
    peak,
    resident,
    run,
    with_basis,
)

import ordinal

CASES = [(2000, 0.5, 100.0), (4000, 0.5, 100.0), (5000, 0.5, 100.0)]
CASES += [(8000, 0.5, 100.0), (2000, 1.0, 100.0), (4000, 1.0, 100.0)]
CASES += [(8000, 1.0, 100.0), (8000, 0.125, 1.0)]
QUOTED = {(2000, 0.5): 1.1, (4000, 0.5): 5.0, (8000, 0.5): 26.5, (8000, 0.125): 2.6}


def fit(X, y, gamma, C, **options):
    options = {"n_threads": 1, **options}
    return ordinal.fit_npsvor(X, y, C=C, gamma=gamma, **options)


def worst_gap(c) -> float:
    """The largest relative gap of a rank; records had arrays before they had parts."""
    parts = getattr(c, "parts", ())
    return max(part.rel_gap for part in parts) if parts else np.max(c.rel_gap)


def fits(args) -> None:
    table = Table(
        args, "Fit, one thread, tol 1e-3", "n:6", "gamma:6", "C:4g", "ours:6.3f",
        "SVC:6.2f", "SVC/ours:8.2f", "C++/ours:8.1f", "violation:9.1e",
        "rel_gap:8.1e", "sum_dual:9.0f", "steps:10", "free:6",
    )  # fmt: skip
    for n, gamma, C in CASES:
        X, y, *_ = california(args.data, n)
        ours, _, model = best_time(args.repeat, fit, X, y, gamma, C)
        svc = None if args.quick else peer(args, "fit", X, y, X, gamma, C)
        quoted = QUOTED.get((n, gamma))
        c = model.convergence
        table.row(
            n, gamma, C, ours, svc, svc and svc / ours, quoted and quoted / ours,
            np.max(c.violation), worst_gap(c), np.sum(c.dual), np.sum(c.n_iter),
            (np.abs(model.coef) % C != 0).sum(),
        )  # fmt: skip


def peer(args, what, X, y, rows, gamma, C) -> float:
    """CPU seconds in which SVC fits X and y, or predicts the rows."""
    from sklearn.svm import SVC

    svc = SVC(C=C, gamma=gamma, cache_size=1000)
    seconds, *_ = best_time(args.repeat, svc.fit, X, y)
    if what == "predict":
        seconds, *_ = best_time(args.repeat, svc.predict, rows)
    return seconds


def threads(args) -> None:
    table = Table(
        args, "Two threads against one, wall seconds, gamma 0.5, C 100", "n:6",
        "ours:6.3f", "one:6.3f", "one/ours:8.2f",
    )  # fmt: skip
    for n in (4000,) if args.quick else (4000, 8000):
        X, y, *_ = california(args.data, n)
        seconds = {1: np.inf, 2: np.inf}
        for _ in range(args.repeat):
            for t in seconds:
                model = fit(X, y, 0.5, 100.0, n_threads=t)
                seconds[t] = min(seconds[t], model.convergence.seconds)
        table.row(n, seconds[2], seconds[1], seconds[1] / seconds[2])


def tolerances(args) -> None:
    n = 2000 if args.quick else 4000
    table = Table(
        args, f"By tolerance, one thread, n {n}, gamma 0.5, C 100", "tol:5.0e",
        "ours:6.3f", "violation:9.1e",
    )  # fmt: skip
    X, y, *_ = california(args.data, n)
    for tol in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8):
        cpu, _, model = best_time(args.repeat, fit, X, y, 0.5, 100.0, tol=tol)
        table.row(tol, cpu, np.max(model.convergence.violation))


def prediction(args) -> None:
    X, y, rest, _ = california(args.data, 5000)
    table = Table(
        args, "Prediction, fitted on 5000 rows, gamma 0.5, C 100", "rows:6",
        "ours:6.3f", "SVC:6.3f", "SVC/ours:8.1f",
    )  # fmt: skip
    model = fit(X, y, 0.5, 100.0)
    ours, *_ = best_time(args.repeat, model.predict, rest)
    svc = None if args.quick else peer(args, "predict", X, y, rest, 0.5, 100.0)
    table.row(len(rest), ours, svc, svc and svc / ours)


def memory(args) -> None:
    print("\n## Peak memory, gamma 0.5, C 100; K of 8000 rows is 256 MB")
    for cache_mb in ("1000", "64"):
        in_a_process_of_its_own(__file__, args, "8000", cache_mb)


def admm(args) -> None:
    n, basis = (2000, 250) if args.quick else (4000, 500)
    table = Table(
        args, f"ADMM at the paper's tolerances, {n} rows, gamma 0.5, one thread",
        "C:4g", "solver:15", "ours:6.2f", "MAE:6.4f", "sum_dual:9.1f", "rel_gap:8.1e",
    )  # fmt: skip
    X, y, rest, truth = california(args.data, n)
    low_rank = with_basis(ordinal.fit_npsvor, basis)
    cases = {
        "smo": {},
        "admm": {"solver": "admm"},
        f"admm, basis {basis}": {"solver": "admm", **low_rank},
    }
    for C in (1.0, 100.0):
        for name, options in cases.items():
            cpu, _, model = best_time(args.repeat, fit, X, y, 0.5, C, **options)
            c, mae = model.convergence, ordinal.metrics.mae(truth, model.predict(rest))
            table.row(C, name, cpu, mae, np.sum(c.dual), worst_gap(c))


def low_rank(args) -> None:
    print("\n## 200 000 rows of 20 features, basis of 500, all threads")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 20))
    score = np.sin(X[:, 0]) + X[:, 1] / 2 + 0.3 * rng.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8]))
    basis = with_basis(ordinal.fit_npsvor, 500)
    model = ordinal.fit_npsvor(X, y, solver="admm", **basis)
    error = ordinal.metrics.mae(y[:20_000], model.predict(X[:20_000]))
    print(
        f"{model.convergence.seconds:.1f} s, {model.convergence.status.value}, "
        f"peak memory {resident('VmHWM'):.0f} MB in all, training MAE {error:.3f}"
    )


PARTS = {
    f.__name__: f
    for f in (fits, threads, tolerances, prediction, memory, admm, low_rank)
}
QUICK = ("fits", "threads", "tolerances", "prediction", "admm")


def main() -> None:
    args = parser(__doc__, PARTS).parse_args()
    if args.peak:
        return peak(fit, args, 0.5, 100.0)
    return run(args, PARTS, QUICK, ordinal)


if __name__ == "__main__":
    main()
