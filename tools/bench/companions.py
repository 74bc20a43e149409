"""Our fits beside those of skordinal, on sets with genuine ranks and in the same run.

    OPENBLAS_NUM_THREADS=1 python tools/bench/companions.py --data FOLDER [--only PART]

Every row is a pair of fits and a set. Each side chooses among its own arguments by the
mean absolute error of three folds of the training rows of the first of the official
hold-outs, and keeps them for --splits of these. "ours" and "theirs" are CPU seconds of
a fit and a prediction with those arguments, one thread, the quickest of --repeat runs;
MAE is the mean over the hold-outs, "sd" the deviation of the difference between the two
sides, divided by the root of their number. `times` takes California housing. The peers
need `pip install skordinal`.
"""

import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from _common import Table, best_time, california, parser, run, table

import ordinal

SETS = ("toy", "tae", "balance-scale", "LEV", "squash-stored", "contact-lenses")
GAMMAS = (0.01, 0.1, 1.0, 10.0)
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def grid(**values):
    """Every combination of some arguments."""
    return [dict(zip(values, v, strict=True)) for v in product(*values.values())]


def theirs(name: str, X, y, **options):
    import skordinal.classifiers

    return getattr(skordinal.classifiers, name)(**options).fit(X, y)


# (our fit, its grid, the peer's class, its grid)
PAIRS = {
    "kdlor": (
        partial(ordinal.fit_kdlor, n_threads=1), grid(gamma=GAMMAS, u=RIDGES),
        "KDLOR", grid(gamma=GAMMAS, u=RIDGES),
    ),
}  # fmt: skip


def mae(fit, X, y, train, test, **options) -> float:
    mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(sd > 0, sd, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = fit(X[train], y[train], **options).predict(X[test])
    return float(np.abs(predicted - y[test]).mean())


def tuned(fit, points, X, y, train):
    """The point of the least error over three folds of the training rows."""
    order = np.random.default_rng(0).permutation(train)
    order = order[np.argsort(y[order], kind="stable")]
    folds = [order[k::3] for k in range(3)]

    def error(point):
        return sum(
            mae(fit, X, y, np.setdiff1d(train, fold), fold, **point) for fold in folds
        )

    return min(points, key=error)


def errors(args) -> None:
    """Both sides, searched, on the official hold-outs."""
    rows = Table(
        args, f"Searched, {args.splits} hold-outs", "pair:6", "set:14", "ours:9.4f",
        "theirs:9.4f", "ratio:5.1f", "our MAE:7.3f", "MAE:5.3f", "sd:5.3f",
    )  # fmt: skip
    for (name, pair), which in product(PAIRS.items(), SETS[:: 3 if args.quick else 1]):
        X, y = table(args.data, which)
        y = y.astype(int)
        stored = np.load(
            Path(args.data) / "splits" / which / "orreview_30holdout.npz"
        )  # fmt: skip
        splits = list(zip(stored["train_idx"], stored["test_idx"], strict=True))
        fit, points, peer, their_points = pair
        sides = [(fit, points)]
        if not args.quick:
            sides.append((partial(theirs, peer), their_points))
        seconds, found = [], []
        for side, choices in sides:
            point = tuned(side, choices, X, y, splits[0][0])
            best = best_time(args.repeat, mae, side, X, y, *splits[0], **point)
            seconds.append(best[0])
            found.append(
                [mae(side, X, y, *split, **point) for split in splits[: args.splits]]
            )
        other, apart = (None, None, None), None
        if len(sides) > 1:
            difference = np.subtract(*found)
            apart = difference.std(ddof=1) / np.sqrt(difference.size)
            other = seconds[1], seconds[1] / seconds[0], np.mean(found[1])
        rows.row(
            name, which, seconds[0], *other[:2], float(np.mean(found[0])), other[2],
            apart,
        )  # fmt: skip


def times(args) -> None:
    """One fit to rows of California housing, gamma 0.5, and the inverse of a matrix."""
    rows = Table(
        args, "One fit, gamma 0.5", "pair:6", "n:5", "ours:8.3f", "theirs:8.3f",
        "ratio:5.1f", "numpy inv:9.3f", "gap:8.1e",
    )  # fmt: skip
    for name, (fit, _, peer, _) in PAIRS.items():
        for n in (1000,) if args.quick else (1000, 2000, 4000):
            X, y, *_ = california(args.data, n)
            own = {"gamma": 0.5} if name == "kdlor" else {}
            seconds, _, model = best_time(args.repeat, fit, X, y, **own)
            other = inverse = None
            if not args.quick:
                other = best_time(args.repeat, theirs, peer, X, y, **own)[0]
                A = np.random.default_rng(0).standard_normal((n, n))
                inverse = best_time(args.repeat, np.linalg.inv, A @ A.T + np.eye(n))[0]
            ratio = None if other is None else other / seconds
            gap = model.convergence.rel_gap
            rows.row(name, n, seconds, other, ratio, inverse, gap)


PARTS = {f.__name__: f for f in (errors, times)}


def main() -> None:
    options = parser(__doc__, PARTS)
    options.add_argument("--splits", type=int, default=10, help="hold-outs, of 30")
    run(options.parse_args(), PARTS, PARTS, ordinal)


if __name__ == "__main__":
    main()
