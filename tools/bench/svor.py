"""SVORIM, SVOREX and REDSVM against their public C and C++ codes, California housing.

    OPENBLAS_NUM_THREADS=1 python tools/bench/svor.py --data FOLDER

`peers` runs skordinal's SVOR, which is the authors' C code, and its REDSVM, which is
libsvm-rank, in turn with ours on the same standardised rows, to the same tolerance of
1e-3; a peer that takes longer than --limit seconds is stopped, and the ratio is then
a bound. Seconds are CPU seconds of one thread, ours of the quickest of --repeat runs.
The other tables print ours beside seconds quoted from a machine of the same kind.

A row is only worth its time if its gap is small. Ours is recomputed from the kernel in
double and relative. Of a peer's SVOR we compute the value of (P) from its coefficients
and thresholds, and print by how much it exceeds the optimum: its code adds 1e-3 to the
diagonal of the kernel, so both are taken there. libsvm-rank gives the thresholds a
free intercept besides their own values, which is another problem than REDSVM's; the
value of its (P), too, is printed relative to ours.
"""

import multiprocessing
import time
from importlib.metadata import version

import numpy as np
from _common import (
    best_time,
    california,
    header,
    in_a_process_of_its_own,
    parser,
    peak,
)

import ordinal

FITS = {
    "svorim": ordinal.fit_svorim,
    "svorex": ordinal.fit_svorex,
    "redsvm": ordinal.fit_redsvm,
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
    print("\n## Fit, one thread, tol 1e-3, beside quoted seconds (rank: libsvm-rank's)")
    print(
        "method  bins  gamma    C     n   ours  quoted  quoted/ours  rank/ours"
        "  violation  rel_gap      dual     steps"
    )
    seconds = {}
    for (method, bins, gamma, C), others in QUOTED.items():
        rank = LIBSVM_RANK.get((bins, gamma, C)) if method == "svorim" else None
        for i, n in enumerate(SIZES):
            if others[i] is None and (bins, gamma) != (5, 0.5):
                continue
            X, y, *_ = california(args.data, n, bins)
            ours, _, model = best_time(args.repeat, fit, X, y, gamma, C, method)
            seconds[method, bins, gamma, n] = ours
            c = model.convergence
            print(
                f"{method:6} {bins:5} {gamma:6} {C:4g} {n:5} {ours:6.3f} "
                f"{others[i] or '-':>7} {_ratio(others[i], ours):>12} "
                f"{_ratio(rank and rank[i], ours):>10} {c.violation:10.1e} "
                f"{c.rel_gap:8.1e} {c.dual:9.0f} {c.n_iter:9}",
                flush=True,
            )
    for method in FITS:
        times = [seconds[method, 5, 0.5, n] for n in SIZES]
        exponent = np.polyfit(np.log(SIZES), np.log(times), 1)[0]
        print(f"{method}: cost grows as n^{exponent:.2f}")
    for method in ("svorim", "svorex"):
        ten, five = seconds[method, 10, 0.5, 4000], seconds[method, 5, 0.5, 4000]
        print(f"{method}: 10 bins take {ten / five:.2f} times as long as 5 at n = 4000")


def _ratio(theirs, ours) -> str:
    return f"{theirs / ours:.1f}" if theirs else "-"


def peers(args) -> None:
    print(
        f"\n## Against skordinal, gamma 0.5, 5 bins, one thread, limit {args.limit} s"
    )
    print(
        "method     C     n   ours   theirs  theirs/ours  rel_gap  their excess of (P)"
    )
    for method in FITS:
        for C in (100.0, 1000.0):
            for n in (2000, 4000):
                X, y, *_ = california(args.data, n)
                ours, _, model = best_time(args.repeat, fit, X, y, 0.5, C, method)
                theirs, scores = _limited(args.limit, _peer, method, X, y, C)
                excess = "-"
                if scores is not None:
                    excess = f"{_excess(method, X, y, C, *scores):.1e}"
                more = "" if scores else ">"
                print(
                    f"{method:6} {C:5g} {n:5} {ours:6.3f} {more + f'{theirs:.1f}':>8} "
                    f"{more + f'{theirs / ours:.0f}':>12} "
                    f"{model.convergence.rel_gap:8.1e} {excess:>20}",
                    flush=True,
                )


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


def _limited(limit, call, *args):
    """call(*args) in another process; (limit, None) if it takes longer than that."""
    pool = multiprocessing.get_context("fork").Pool(1)
    with pool:  # leaving it ends the process
        try:
            return pool.apply_async(call, args).get(limit)
        except multiprocessing.TimeoutError:
            return limit, None


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
    print("\n## Two threads against one, wall seconds, C 100")
    for n in (4000, 8000):
        X, y, *_ = california(args.data, n)
        seconds = {1: np.inf, 2: np.inf}
        for _ in range(args.repeat):
            for t in seconds:
                c = fit(X, y, 0.5, 100.0, n_threads=t).convergence
                seconds[t] = min(seconds[t], c.seconds)
        one, two = seconds.values()
        print(f"{n:6} one {one:.3f}  two {two:.3f}  speed-up {one / two:.2f}")


def warm_start(args) -> None:
    print("\n## start= a model, n 4000, gamma 0.5")
    X, y, *_ = california(args.data, 4000)
    for method in FITS:
        for C in (10.0, 100.0):
            cold, _, model = best_time(args.repeat, fit, X, y, 0.5, C, method)
            for what, start in (
                ("C / 2", fit(X, y, 0.5, C / 2, method)),
                ("3600 rows", fit(X[:3600], y[:3600], 0.5, C, method)),
                ("itself", model),
            ):
                warm, *_ = best_time(
                    args.repeat, fit, X, y, 0.5, C, method, start=start
                )
                print(
                    f"{method:6} C {C:4g} cold {cold:.3f}  from {what:9} {warm:.3f}",
                    flush=True,
                )


def memory(args) -> None:
    print("\n## Peak memory, C 1, gamma 0.5, all threads; K of 10 000 rows is 400 MB")
    in_a_process_of_its_own(__file__, args, "10000", "128")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--limit", type=int, default=600, help="seconds for a peer")
    arguments.add_argument("--only", choices=list(PARTS), help="one part")
    args = arguments.parse_args()
    if args.peak:
        return peak(fit, args, 0.5, 1.0)
    print(header(ordinal, f"skordinal {version('skordinal')}"))
    for name, part in PARTS.items():
        if args.only in (None, name):
            part(args)
    return None


PARTS = {
    "quoted": quoted,
    "peers": peers,
    "threads": threads,
    "warm_start": warm_start,
    "memory": memory,
}

if __name__ == "__main__":
    main()
