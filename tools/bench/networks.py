"""Networks with one hidden layer: defaults, steps beside skordinal's, many rows.

    OPENBLAS_NUM_THREADS=1 python tools/bench/networks.py --data FOLDER [--only PART]

One thread. Errors are means over the first --splits official hold-outs, with their
standard deviation in brackets where there is one. `peers` needs skordinal, whose NNOP
and NNPOM fit at their defaults: 50 units, a penalty alpha of 0.01, 500 steps of L-BFGS.
Ours fit at these, too: l2 is alpha over the number of rows. Both sides with arguments
that they have searched are in `companions.py`.
"""

import time
import warnings
from pathlib import Path

import numpy as np
from _common import (
    Table,
    best_time,
    california,
    companions,
    parser,
    run,
    standardized,
    table,
)

import ordinal

SETS = ("ERA", "LEV", "bondrate", "tae", "toy", "balance-scale", "car", "pasture",
        "squash-stored")  # fmt: skip
PEERS = ("tae", "toy", "LEV", "balance-scale")
UNITS, PENALTIES = (5, 10, 20, 50), (1e-4, 1e-3, 3e-3, 1e-2, 3e-2)


def holdouts(args, name):
    """(X, y, X_test, y_test) of every hold-out, standardised by its training rows."""
    X, y = table(args.data, name)
    stored = np.load(Path(args.data) / "splits" / name / "orreview_30holdout.npz")
    for train, test in zip(stored["train_idx"], stored["test_idx"], strict=True):
        with np.errstate(invalid="ignore"):
            Z = np.nan_to_num(standardized(X, train))  # of constant columns
        yield Z[train], y[train].astype(int), Z[test], y[test].astype(int)


def judged(args, name, fit):
    """Mean seconds, steps, MAE and MZE of fits to the hold-outs, and deviation of MAE;
    of a model of ours or of skordinal's."""
    found = []
    for _, (X, y, X_test, y_test) in zip(range(args.splits), holdouts(args, name)):  # noqa: B905
        start = time.process_time()
        model = fit(X, y)
        seconds = time.process_time() - start
        ours = getattr(model, "convergence", None)
        steps = model.n_iter_ if ours is None else ours.n_iter
        miss = np.abs(model.predict(X_test) - y_test)
        found.append((seconds, steps, miss.mean(), (miss > 0).mean()))
    means, deviation = np.mean(found, axis=0), np.std(found, axis=0)
    return *means, deviation[2]


def ours(name, **options):
    fit = {"nnor": companions.fit_nnor, "nnpom": companions.fit_nnpom}[name]
    return lambda X, y: fit(X, y, n_threads=1, **options)


def theirs(**options):
    """Ours at the penalty and the limits of skordinal."""

    def fit(X, y):
        l2 = 0.01 / len(y)
        return ours(**options, n_hidden=50, l2=l2, max_iter=500, tol=1e-5)(X, y)

    return fit


def defaults(args) -> None:
    table = Table(
        args, f"Mean MAE of {', '.join(SETS)}", "method:6", "units:5d",
        *(f"l2={l2:g}:6.3f" for l2 in PENALTIES),
    )  # fmt: skip
    for method in ("nnor", "nnpom"):
        for h in UNITS:
            errors = [
                np.mean([
                    judged(args, name, ours(method, n_hidden=h, l2=l2, max_iter=500))[2]
                    for name in SETS
                ])
                for l2 in PENALTIES
            ]  # fmt: skip
            table.row(method, h, *errors)


def peers(args) -> None:
    from skordinal.classifiers import NNOP, NNPOM

    squared = {"loss": "squared"}
    fits = {
        "fit_nnor": theirs(name="nnor", **squared),
        "NNOP": NNOP(random_state=0).fit,
        "fit_nnpom": theirs(name="nnpom"),
        "NNPOM": NNPOM(random_state=0).fit,
    }
    table = Table(
        args, f"{args.splits} hold-outs, seconds of one fit", "set:13", "fit:9",
        "ours:8.3f", "to ours:7.1f", "steps:6.0f", "MAE:6.3f", "(sd):5.3f", "MZE:6.3f",
    )  # fmt: skip
    for name in PEERS:
        for label, fit in fits.items():
            seconds, steps, mae, mze, sd = judged(args, name, fit)
            if label.startswith("fit_"):  # the peer of each follows it
                own = seconds
            table.row(name, label, seconds, seconds / own, steps, mae, sd, mze)


def rows(args) -> None:
    table = Table(
        args, "California housing, 20 units", "method:6", "rows:6d", "ours:8.2f",
        "steps:6d", "step (ms):9.2f", "MAE:6.3f",
    )  # fmt: skip
    for n in (2000, 5000) if args.quick else (2000, 5000, 20640):
        X, y, X_rest, y_rest = california(args.data, n)
        for method in ("nnor", "nnpom"):
            seconds, _, model = best_time(args.repeat, ours(method), X, y)
            steps = model.convergence.n_iter
            mae = np.abs(model.predict(X_rest) - y_rest).mean() if len(X_rest) else None
            table.row(method, n, seconds, steps, 1e3 * seconds / steps, mae)


PARTS = {f.__name__: f for f in (defaults, peers, rows)}


def main() -> None:
    options = parser(__doc__, PARTS)
    options.add_argument("--splits", type=int, default=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that end at their limit of steps
        run(options.parse_args(), PARTS, ("rows",), ordinal)


if __name__ == "__main__":
    main()
