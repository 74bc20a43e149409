"""Our fits beside those of skordinal, on sets with genuine ranks and in the same run.

    OPENBLAS_NUM_THREADS=1 python tools/bench/companions.py --data FOLDER [--only PART]

Every row is a pair of fits and a set. Each side chooses among its own arguments by the
mean absolute error of three folds of the training rows of the first of the official
hold-outs, and keeps them for --splits of these; with --each it chooses by five folds in
every one. "ours" and "theirs" are CPU seconds of
a fit and a prediction with those arguments, one thread, the quickest of --repeat runs,
and "searches" how many times as long their search takes, with the fit behind it. MAE is
the mean over the hold-outs, "sd" the deviation of the difference between the two sides,
divided by the root of their number. ELMOR does not search: it chooses its ridge itself.
`times` takes KDLOR to California housing. The peers need `pip install skordinal`.
"""

import time
import warnings
from functools import partial
from itertools import cycle, product
from pathlib import Path

import numpy as np
from _common import Table, best_time, california, companions, parser, run, table

import ordinal

SETS = ("toy", "tae", "balance-scale", "LEV", "squash-stored", "contact-lenses")
GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
UNITS = (5, 20, 50)
PENALTIES = (3e-4, 1e-3, 3e-3, 1e-2)  # of the mean loss, about the default
DECAYS = (0.01, 0.1, 1.0, 10.0)  # of the sum of the losses


def grid(**values):
    """Every combination of some arguments."""
    return [dict(zip(values, v, strict=True)) for v in product(*values.values())]


def theirs(name: str, X, y, **options):
    import skordinal.classifiers

    classifier = getattr(skordinal.classifiers, name)
    if name != "KDLOR":
        options["random_state"] = 0
    return classifier(**options).fit(X, y)


# (our fit, its grid, the peer's class, its grid)
PAIRS = {
    "kdlor": (
        partial(companions.fit_kdlor, n_threads=1), grid(gamma=GAMMAS, u=RIDGES),
        "KDLOR", grid(gamma=GAMMAS, u=RIDGES),
    ),
    "nnor": (
        partial(companions.fit_nnor, n_threads=1), grid(n_hidden=UNITS, l2=PENALTIES),
        "NNOP", grid(n_hidden=UNITS, alpha=DECAYS),
    ),
    "nnpom": (
        partial(companions.fit_nnpom, n_threads=1), grid(n_hidden=UNITS, l2=PENALTIES),
        "NNPOM", grid(n_hidden=UNITS, alpha=DECAYS),
    ),
    "elmor": (
        partial(companions.fit_elmor, n_threads=1), grid(),
        "ELMOP", grid(n_hidden=(10, 20, 50, 100, 200)),
    ),
}  # fmt: skip


def mae(fit, X, y, train, test, **options) -> float:
    mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(sd > 0, sd, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = fit(X[train], y[train], **options).predict(X[test])
    return float(np.abs(predicted - y[test]).mean())


def tuned(fit, points, X, y, train, n_folds):
    """The point of the least error over folds of the training rows, and how many CPU
    seconds it took to find it and to fit with it."""
    start = time.process_time()
    order = np.random.default_rng(0).permutation(train)
    order = order[np.argsort(y[order], kind="stable")]
    folds = [order[k::n_folds] for k in range(n_folds)]

    def error(point):
        return sum(
            mae(fit, X, y, np.setdiff1d(train, fold), fold, **point) for fold in folds
        )

    point = min(points, key=error) if len(points) > 1 else points[0]
    mae(fit, X, y, train, train[:1], **point)
    return point, time.process_time() - start


def errors(args) -> None:
    """Both sides, searched, on the official hold-outs."""
    rows = Table(
        args, f"Searched, {args.splits} hold-outs", "pair:6", "set:14", "ours:9.4f",
        "theirs:9.4f", "ratio:5.1f", "searches:8.1f", "our MAE:7.3f", "MAE:5.3f",
        "sd:5.3f",
    )  # fmt: skip
    for name, which in product(args.pairs, SETS[:: 3 if args.quick else 1]):
        X, y = table(args.data, which)
        y = y.astype(int)
        stored = np.load(
            Path(args.data) / "splits" / which / "orreview_30holdout.npz"
        )  # fmt: skip
        splits = list(zip(stored["train_idx"], stored["test_idx"], strict=True))
        splits = splits[: args.splits]
        fit, own_points, peer, their_points = PAIRS[name]
        sides = [(fit, own_points)]
        if not args.quick:
            sides.append((partial(theirs, peer), their_points))
        seconds, found, searches = [], [], []
        for side, choices in sides:
            tried = [
                tuned(side, choices, X, y, train, 5 if args.each else 3)
                for train, _ in (splits if args.each else splits[:1])
            ]
            searches.append(tried[0][1])
            best = best_time(args.repeat, mae, side, X, y, *splits[0], **tried[0][0])
            seconds.append(best[0])
            points = cycle(point for point, _ in tried)
            found.append(
                [
                    mae(side, X, y, *split, **point)
                    for split, point in zip(splits, points, strict=False)
                ]
            )
        other, apart = (None, None, None, None), None
        if len(sides) > 1:
            difference = np.subtract(*found)
            apart = difference.std(ddof=1) / np.sqrt(difference.size)
            ratios = seconds[1] / seconds[0], searches[1] / searches[0]
            other = seconds[1], *ratios, np.mean(found[1])
        rows.row(
            name, which, seconds[0], *other[:3], float(np.mean(found[0])), other[3],
            apart,
        )  # fmt: skip


def times(args) -> None:
    """One fit to rows of California housing, gamma 0.5, and the inverse of a matrix."""
    rows = Table(
        args, "KDLOR, one fit, gamma 0.5", "n:5", "ours:8.3f", "theirs:8.3f",
        "ratio:5.1f", "numpy inv:9.3f", "gap:8.1e",
    )  # fmt: skip
    fit, _, peer, _ = PAIRS["kdlor"]
    for n in (1000,) if args.quick else (1000, 2000, 4000):
        X, y, *_ = california(args.data, n)
        seconds, _, model = best_time(args.repeat, fit, X, y, gamma=0.5)
        other = inverse = ratio = None
        if not args.quick:
            other = best_time(args.repeat, theirs, peer, X, y, gamma=0.5)[0]
            A = np.random.default_rng(0).standard_normal((n, n))
            inverse = best_time(args.repeat, np.linalg.inv, A @ A.T + np.eye(n))[0]
            ratio = other / seconds
        rows.row(n, seconds, other, ratio, inverse, model.convergence.rel_gap)


PARTS = {f.__name__: f for f in (errors, times)}


def main() -> None:
    options = parser(__doc__, PARTS)
    options.add_argument("--splits", type=int, default=10, help="hold-outs, of 30")
    options.add_argument("--each", action="store_true", help="search in each hold-out")
    options.add_argument("--pairs", nargs="+", choices=PAIRS, default=PAIRS)
    run(options.parse_args(), PARTS, PARTS, ordinal)


if __name__ == "__main__":
    main()
