"""SVORIM, SVOREX and REDSVM against their public C and C++ codes, California housing.

    OPENBLAS_NUM_THREADS=1 python tools/bench/svor.py --data FOLDER [--only PART ...]

`peers` runs skordinal's SVOR, which is the authors' C code, and its REDSVM, which is
libsvm-rank, in turn with ours on the same standardised rows, to the same tolerance of
1e-3; a peer that takes longer than --limit seconds is stopped, and the ratio is then
a bound. Seconds are CPU seconds of one thread, ours of the quickest of --repeat runs.
The other tables print ours beside seconds quoted from a machine of the same kind.
`growth` fits SVORIM to 4000 to 20 000 rows, twice each: the first fit of a size also
pays for memory that the process has not touched before.

A row is only worth its time if its gap is small. Ours is recomputed from the kernel in
double and relative. Of a peer's SVOR we compute the value of (P) from its coefficients
and thresholds, and print by how much it exceeds the optimum: its code adds 1e-3 to the
diagonal of the kernel, so both are taken there. libsvm-rank gives the thresholds a
free intercept besides their own values, which is another problem than REDSVM's; the
value of its (P), too, is printed relative to ours.
"""

import time
from importlib.metadata import version
from itertools import product

import numpy as np
from _common import (
    Table,
    best_time,
    california,
    companions,
    in_a_process_of_its_own,
    limited,
    parser,
    peak,
    run,
)

import ordinal

FITS = {
    "svorim": ordinal.fit_svorim,
    "svorex": ordinal.fit_svorex,
    "redsvm": companions.fit_redsvm,
}
# (method, bins, gamma, C) -> seconds of the authors' C code, or for REDSVM of
# libsvm-rank, at n = 1000, 2000, 4000, 8000
QUOTED = {
    ("svorim", 5, 0.5, 100.0): (2.1, 17, 132, None),
    ("svorex", 5, 0.5, 100.0): (0.9, 5.3, 42, 229),
    ("redsvm", 5, 0.5, 100.0): (0.46, 2.2, 8.0, 61),
    ("svorim", 10, 0.5, 100.0): (8, 63, 546, None),
    ("svorex", 10, 0.5, 100.0): (1.7, 9.8, 72, None),
    ("svorim", 5, 1.0, 100.0): (None, None, 159, None),
    ("svorex", 5, 1.0, 100.0): (None, None, 69, None),
    ("svorim", 5, 0.125, 1.0): (None, None, None, 8.7),
    ("svorex", 5, 0.125, 1.0): (None, None, None, 7.4),
    ("redsvm", 5, 0.125, 1.0): (None, None, None, 3.8),
}
# the same of the exact SVORIM in libsvm-rank
LIBSVM_RANK = {
    (5, 0.5, 100.0): (1.7, 8.0, 38, None),
    (5, 0.125, 1.0): (None, None, None, 3.0),
}
SIZES = (1000, 2000, 4000, 8000)


def fit(X, y, gamma, C, method="svorim", **options):
    options = {"n_threads": 1, **options}
    return FITS[method](X, y, C=C, gamma=gamma, **options)


def quoted(args) -> None:
    table = Table(
        args, "Fit, one thread, tol 1e-3, beside quoted seconds (rank: libsvm-rank's)",
        "method:7", "bins:4", "gamma:6", "C:4g", "n:5", "ours:6.3f", "quoted:6g",
        "quoted/ours:6.1f", "rank/ours:6.1f", "violation:9.1e", "rel_gap:8.1e",
        "dual:9.0f", "steps:9",
    )  # fmt: skip
    seconds = {}
    sizes = SIZES[:-1] if args.quick else SIZES
    for (method, bins, gamma, C), others in QUOTED.items():
        rank = LIBSVM_RANK.get((bins, gamma, C)) if method == "svorim" else None
        for i, n in enumerate(sizes):
            if others[i] is None and (bins, gamma) != (5, 0.5):
                continue
            X, y, *_ = california(args.data, n, bins)
            ours, _, model = best_time(args.repeat, fit, X, y, gamma, C, method)
            seconds[method, bins, gamma, n] = ours
            c = model.convergence
            table.row(
                method, bins, gamma, C, n, ours, others[i],
                others[i] and others[i] / ours, rank and rank[i] and rank[i] / ours,
                np.max(c.violation), np.max(c.rel_gap), np.sum(c.dual),
                np.sum(c.n_iter),
            )  # fmt: skip
    for method in FITS:
        times = [seconds[method, 5, 0.5, n] for n in sizes]
        exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        table.note(f"{method}: cost grows as n^{exponent:.2f}")
    for method in ("svorim", "svorex"):
        ten, five = seconds[method, 10, 0.5, 4000], seconds[method, 5, 0.5, 4000]
        table.note(
            f"{method}: 10 bins take {ten / five:.2f} times as long as 5 at n = 4000"
        )


def peers(args) -> None:
    table = Table(
        args, f"Against skordinal, gamma 0.5, 5 bins, one thread, limit {args.limit} s",
        "method:7", "C:4g", "n:5", "ours:6.3f", "theirs:8.1f", "theirs/ours:8.0f",
        "rel_gap:8.1e", "their excess of (P):8.1e",
    )  # fmt: skip
    cases = [(1000.0, 2000)] if args.quick else product((100.0, 1000.0), (2000, 4000))
    for method, (C, n) in product(FITS, cases):
        X, y, *_ = california(args.data, n)
        ours, _, model = best_time(args.repeat, fit, X, y, 0.5, C, method)
        gap = np.max(model.convergence.rel_gap)
        if args.quick:
            table.row(method, C, n, ours, None, None, gap, None)
            continue
        theirs, scores = limited(args.limit, _peer, method, X, y, C)
        if scores is None:
            shown = f">{theirs:.1f}", f">{theirs / ours:.0f}"
            table.row(method, C, n, ours, *shown, gap, None)
        else:
            excess = _excess(method, X, y, C, *scores)
            table.row(method, C, n, ours, theirs, theirs / ours, gap, excess)


def _peer(method, X, y, C):
    """(CPU seconds of the fit, (scores, coefficients of the rows, thresholds))."""
    from skordinal.classifiers import REDSVM, SVOR  # not in the memory of our own fits

    if method == "redsvm":
        peer = REDSVM(C=C, gamma=0.5, cache_size=1000)
    else:
        constraints = "implicit" if method == "svorim" else "explicit"
        peer = SVOR(C=C, gamma=0.5, constraints=constraints)
    start = time.process_time()
    peer.fit(X, y)
    seconds = time.process_time() - start
    K = ordinal.kernels.RBF(0.5)(X, X)
    if method != "redsvm":
        beta = np.array(peer.model_["alpha"])
        return seconds, (K @ beta, beta, peer.thresholds_)
    support = np.array([[x["value"] for x in row] for row in peer.model_["SV"]])
    where = {row.tobytes(): i for i, row in enumerate(X)}
    beta = np.zeros(len(X))
    for row, value in zip(support, peer.model_["sv_coef"][0], strict=True):
        beta[where[row.tobytes()]] += value
    f = K @ beta
    intercept = (peer.predict_projection(X) - f).mean()
    return seconds, (f, beta, peer.thresholds_ - intercept)


def _excess(method, X, y, C, f, beta, b) -> float:
    """Relative excess of a peer's (P) over the optimum, on the kernel it solved for."""
    ridge = 0.0 if method == "redsvm" else 1e-3
    f = f + ridge * beta
    rank, T = y - y.min(), b.size
    s = np.where(rank > np.arange(T)[:, None], 1.0, -1.0)
    margins = np.ones(s.shape, bool)
    if method == "svorex":
        j = np.arange(T)[:, None]
        margins = (rank == j) | (rank == j + 1)
    slack = np.maximum(0, 1 - s * (f - b[:, None]))
    value = 0.5 * beta @ f + C * slack[margins].sum()
    if method == "redsvm":
        value += 0.5 * ((b - b.mean()) ** 2).sum()
    K = ordinal.kernels.RBF(0.5)(X, X) + ridge * np.eye(len(X))
    optimum = fit(K, y, "scale", C, method, kernel="precomputed").convergence.dual
    return value / optimum - 1


def threads(args) -> None:
    table = Table(
        args, "Two threads against one, by the clock, gamma 0.5, C 100", "method:7",
        "n:6", "ours:6.3f", "one:6.3f", "one/ours:8.2f",
    )  # fmt: skip
    fits = {method: (FITS[method], {"C": 100.0}) for method in ("svorim", "svorex")}
    fits["npsvor"] = ordinal.fit_npsvor, {"C": 100.0, "C2": 100.0}
    sizes = (4000,) if args.quick else (4000, 8000)
    for (method, (call, costs)), n in product(fits.items(), sizes):
        X, y, *_ = california(args.data, n)
        seconds = {1: np.inf, 2: np.inf}
        for _ in range(args.repeat):
            for t in seconds:
                start = time.perf_counter()
                call(X, y, gamma=0.5, n_threads=t, **costs)
                seconds[t] = min(seconds[t], time.perf_counter() - start)
        table.row(method, n, seconds[2], seconds[1], seconds[1] / seconds[2])


def warm_start(args) -> None:
    n = 2000 if args.quick else 4000
    table = Table(
        args, f"start= a model, n {n}, gamma 0.5", "method:7", "C:4g", "start:9",
        "ours:6.3f", "cold:6.3f",
    )  # fmt: skip
    X, y, *_ = california(args.data, n)
    some = n * 9 // 10
    for method, C in product(FITS, (10.0, 100.0)):
        cold, _, model = best_time(args.repeat, fit, X, y, 0.5, C, method)
        for what, start in (
            ("C / 2", fit(X, y, 0.5, C / 2, method)),
            (f"{some} rows", fit(X[:some], y[:some], 0.5, C, method)),
            ("itself", model),
        ):
            warm, *_ = best_time(args.repeat, fit, X, y, 0.5, C, method, start=start)
            table.row(method, C, what, warm, cold)


def growth(args) -> None:
    table = Table(
        args, "SVORIM by the number of rows, California, gamma 0.5, C 100, one thread",
        "n:6d", "fit:6", "ours:6.2f", "clock:6.2f", "to 4000 rows:5.1f",
        "(n / 4000)^2:5.1f", "steps:8d", "gap:8.1e",
    )  # fmt: skip
    first = 1.0
    for n in (4000, 8000) if args.quick else (4000, 8000, 12_000, 16_000, 20_000):
        X, y, _, _ = california(args.data, n)
        for name in ("first", "second"):
            cpu, clock = time.process_time(), time.perf_counter()
            c = fit(X, y, 0.5, 100.0).convergence
            cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
            if (n, name) == (4000, "first"):
                first = cpu
            table.row(
                n, name, cpu, clock, cpu / first, (n / 4000) ** 2, int(c.n_iter),
                c.rel_gap,
            )  # fmt: skip


def memory(args) -> None:
    print("\n## Peak memory, C 1, gamma 0.5, all threads; K of 10 000 rows is 400 MB")
    in_a_process_of_its_own(__file__, args, "10000", "128")


PARTS = {f.__name__: f for f in (quoted, peers, threads, growth, warm_start, memory)}
QUICK = ("quoted", "peers", "threads", "warm_start")


def main() -> None:
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--limit", type=int, default=600, help="seconds for a peer")
    args = arguments.parse_args()
    if args.peak:
        return peak(fit, args, 0.5, 1.0)
    peers = [] if args.quick else [f"skordinal {version('skordinal')}"]
    return run(args, PARTS, QUICK, ordinal, *peers)


if __name__ == "__main__":
    main()
