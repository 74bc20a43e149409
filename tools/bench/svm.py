"""Support vector machines for ranks against scikit-learn's SVC and SVR (LIBSVM).

    OPENBLAS_NUM_THREADS=1 python tools/bench/svm.py --data FOLDER [--only PART ...]

Both run in turn on the same standardised rows of California housing in 5 ranks, to a
KKT tolerance of 1e-3; seconds are CPU seconds of one thread, of the quickest of
--repeat runs, and of one where a peer takes more than five seconds. A peer that takes
longer than --limit seconds is stopped, and the ratio is then a bound.

A row is only worth its time if its gap is small: ours is relative, the largest of the
problems. "excess" is by how much the dual values of the peer's solution, in sum and
from the kernel in double, are above ours, relative to them. "SVORIM" are seconds of
fit_svorim, one problem of r - 1 groups, beside the r - 1 problems of SVMOP.
"""

import time
from functools import partial
from itertools import combinations, product

import numpy as np
from _common import Table, california, companions, limited, parser, run

import ordinal
from ordinal._model.registry import resolve_fit

SIZES = (2000, 4000, 8000)
GAMMA, C = 0.5, 100.0
ENOUGH = 5.0  # seconds of a peer, which then runs once


def fit(X, y, method, **options):
    options = {"n_threads": 1, "C": C, "gamma": GAMMA, **options}
    return resolve_fit(method)(X, y, **options)


def seconds_of(call, *args):
    """Return the CPU seconds of a call and its result."""
    start = time.process_time()
    result = call(*args)
    return time.process_time() - start, result


def in_turn(repeat, ours, theirs):
    """(our CPU seconds, what ours gave, theirs, what theirs gave), the quickest."""
    mine = peers = (np.inf, None)
    for _ in range(repeat):
        mine = min(mine, seconds_of(ours), key=lambda run: run[0])
        if theirs is not None and not ENOUGH < peers[0] < np.inf:
            peers = min(peers, theirs(), key=lambda run: run[0])
    return *mine, *(peers if theirs is not None else (None, None))


def fits(args) -> None:
    table = Table(
        args, f"Fit, one thread, gamma {GAMMA}, C {C:g}, tol 1e-3", "method:6", "n:5",
        "ours:6.3f", "theirs:7.2f", "theirs/ours:6.1f", "violation:9.1e",
        "rel_gap:8.1e", "dual:9.0f", "excess:8.1e",
    )  # fmt: skip
    sizes = SIZES[:1] if args.quick else SIZES
    for method, n in product(("svc", "svr"), sizes):
        X, y, *_ = california(args.data, n)
        theirs = None
        if not args.quick:
            theirs = partial(limited, args.limit, _peer, method, X, y)
        ours, model, peer, dual = in_turn(
            args.repeat, partial(fit, X, y, method), theirs
        )
        c = model.convergence
        gap = max(part.rel_gap for part in c.parts or (c,))
        shown = peer, peer and peer / ours
        if peer is not None and dual is None:
            shown = f">{peer:.0f}", f">{peer / ours:.0f}"
        excess = None if dual is None else dual / np.sum(c.dual) - 1
        table.row(
            method, n, ours, *shown, np.max(c.violation), gap, np.sum(c.dual), excess
        )


def machine(method):
    from sklearn.svm import SVC, SVR  # not in the memory of our own fits

    return {"svc": SVC, "svr": SVR}[method](C=C, gamma=GAMMA, cache_size=1000)


def _peer(method, X, y):
    """(CPU seconds of the fit, its dual values in sum), those that are minimised with
    the sign of ours."""
    seconds, peer = seconds_of(machine(method).fit, X, y)
    K = ordinal.kernels.RBF(GAMMA)(X[peer.support_], X[peer.support_])
    if method == "svr":
        a, t = peer.dual_coef_[0], y[peer.support_]
        return seconds, t @ a - 0.1 * np.abs(a).sum() - 0.5 * a @ K @ a
    value, rank = 0.0, np.repeat(np.arange(peer.classes_.size), peer.n_support_)
    for j, k in combinations(range(peer.classes_.size), 2):
        # the row of a rank's coefficients in problems with another one skips its own
        low, high = rank == j, rank == k
        a = peer.dual_coef_[k - 1] * low + peer.dual_coef_[j] * high
        value += np.abs(a).sum() - 0.5 * a @ K @ a
    return seconds, value


def prediction(args) -> None:
    n = 2000 if args.quick else 5000
    table = Table(
        args, f"Prediction, fitted on {n} rows, one thread", "method:6", "rows:6",
        "support:7", "ours:6.3f", "theirs:7.3f", "theirs/ours:8.1f", "differ:6d",
    )  # fmt: skip
    X, y, rest, _ = california(args.data, n)
    for method in ("svc", "svr"):
        model, theirs = fit(X, y, method), None
        if not args.quick:
            theirs = partial(seconds_of, machine(method).fit(X, y).predict, rest)
        ours, labels, seconds, others = in_turn(
            args.repeat, partial(model.predict, rest), theirs
        )
        differ = None
        if others is not None:
            if method == "svr":
                others = np.clip(np.rint(others), y.min(), y.max())
            differ = int((labels != others).sum())
        ratio = seconds and seconds / ours
        table.row(method, len(rest), len(model.support), ours, seconds, ratio, differ)


def ordered(args) -> None:
    table = Table(
        args, f"Machines of all rows against SVORIM, gamma {GAMMA}, C {C:g}",
        "method:6", "n:5", "ours:6.3f", "SVORIM:6.3f", "ours/SVORIM:6.2f",
        "rel_gap:8.1e",
    )  # fmt: skip
    sizes = SIZES[:1] if args.quick else SIZES
    for method, n in product(("svmop", "cssvc"), sizes):
        X, y, *_ = california(args.data, n)
        ours, model, seconds, _ = in_turn(
            args.repeat,
            partial(fit, X, y, method),
            partial(seconds_of, fit, X, y, "svorim"),
        )
        gap = max(part.rel_gap for part in model.convergence.parts)
        table.row(method, n, ours, seconds, ours / seconds, gap)


def threads(args) -> None:
    table = Table(
        args, f"Two threads against one, by the clock, gamma {GAMMA}, C {C:g}",
        "method:6", "n:5", "ours:6.3f", "one:6.3f", "one/ours:8.2f",
    )  # fmt: skip
    for method, n in product(("svc", "svr"), (4000,) if args.quick else (4000, 8000)):
        X, y, *_ = california(args.data, n)
        seconds = {1: np.inf, 2: np.inf}
        for _, t in product(range(args.repeat), seconds):
            start = time.perf_counter()
            fit(X, y, method, n_threads=t)
            seconds[t] = min(seconds[t], time.perf_counter() - start)
        table.row(method, n, seconds[2], seconds[1], seconds[1] / seconds[2])


PARTS = {f.__name__: f for f in (fits, prediction, ordered, threads)}
QUICK = tuple(PARTS)


def main() -> None:
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--limit", type=int, default=600, help="seconds for a peer")
    args = arguments.parse_args()
    if not hasattr(companions, "fit_svc"):  # an older build, which compare.py runs
        return None
    peers = []
    if not args.quick:
        import sklearn

        peers = [sklearn]
    return run(args, PARTS, QUICK, ordinal, *peers)


if __name__ == "__main__":
    main()
