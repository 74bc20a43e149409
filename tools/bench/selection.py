"""Searches: the protocol of the SVOR paper, and NPSVOR's grid, against plain loops.

    OPENBLAS_NUM_THREADS=1 python tools/bench/selection.py --data FOLDER [--only ...]

`svorim` runs the whole protocol of Chu and Keerthi (49 + 81 points, 5 folds, then a
refit) on 300 training rows of Boston housing in 5 bins, and the same search over
skordinal's SVOR, which is the authors' C code, by scikit-learn's GridSearchCV behind a
StandardScaler: first its coarse grid, then the fine one around its own best point.
With --part N only every Nth point of both of its grids is fitted and its seconds are
multiplied by what that leaves out. `npsvor` runs the 7 x 7 grid over C and gamma with
5 folds on 1000 Abalone rows in 5 bins, and the 245 separate fits to the same rows of
the same folds, each with its scaling and its predictions, by SMO and by ADMM.
`sklearn` runs 7 x 7 grids by `select`, and by GridSearchCV over a pipeline of a
StandardScaler and the estimator of `ordinal.sklearn`, on the same folds of 1000 Abalone
rows in 5 bins, both with their refit.

`halving` runs the grid of SVORIM (25 points, 5 folds, refit) in full and by successive
halving, which is the default from 1500 training rows on, on the training rows of five
random splits of each set, at most 4000 rows, and prints the errors of both on 1000
test rows.

`customers` does the same on 3500 rows of a table with categories and missing values,
which the script --customers makes, and scores 1500 others.

Seconds are CPU seconds of this process, and wall seconds besides, on --threads threads
of `select`; the loops, and GridSearchCV, run on one.
"""

import runpy
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from _common import Table, exceptions, parser, run
from _common import table as of_data

import ordinal
from ordinal._model.registry import resolve_fit
from ordinal.model_selection import CoarseToFine, Grid, select, stratified_kfold
from ordinal.preprocessing import Standardizer, TablePreprocessor

LOGS = range(-3, 4)


def rows(args, name, n):
    """(X, y): the first n training rows of the first official partition, 5 bins."""
    X, _ = of_data(args.data, name)
    folder = Path(args.data) / "splits" / name
    stored = np.load(folder / "orreview_equalfreq.npz")
    train = stored["train_idx_5"][0][:n]
    return X[train], stored["y5"][train]


def timed(call, *args, **kwargs):
    """(CPU seconds, wall seconds, result)"""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call(*args, **kwargs)
    return time.process_time() - cpu, time.perf_counter() - wall, result


def least(repeat, call, *args, **kwargs):
    """The same, of the run with the least CPU seconds."""
    runs = [timed(call, *args, **kwargs) for _ in range(repeat)]
    return min(runs, key=lambda run: run[0])


def svorim(args) -> None:
    X, y = rows(args, "boston_housing", 300)
    table = Table(
        args, f"SVORIM on {len(X)} rows of Boston, 129 points, 5 folds, refit",
        "what:17", "ours:6.2f", "theirs:6.1f", "theirs/ours:6.1f", "wall:6.2f",
        "their wall:6.1f", "ratio:6.1f",
    )  # fmt: skip
    cpu, wall, found = least(
        args.repeat, select, ordinal.fit_svorim, X, y, search=CoarseToFine(),
        n_threads=args.threads,
    )  # fmt: skip
    if args.quick:
        return table.row("select", cpu, None, None, wall, None, None)
    their_cpu, their_wall, best = protocol_of_skordinal(X, y, args.part_of_theirs)
    table.row(
        "select", cpu, their_cpu, their_cpu / cpu, wall, their_wall, their_wall / wall
    )
    table.note(f"best by select {found.params}, by GridSearchCV {best}")
    return None


def protocol_of_skordinal(X, y, part):
    """(CPU seconds, wall seconds, best point), scaled up to all points."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from skordinal.classifiers import SVOR

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    fit = make_pipeline(StandardScaler(), SVOR(constraints="implicit"))
    coarse = list(product(LOGS, LOGS))
    cpu = wall = 0.0
    centre = None
    for fine in (False, True):
        points = coarse
        if fine:
            steps = 0.2 * np.arange(-4, 5)
            points = list(product(*(x + steps for x in centre)))
        tried = points[:: 1 if part == 1 else part]
        values = [
            {"svor__C": [10.0**a], "svor__gamma": [10.0**b / 2]} for a, b in tried
        ]
        search = GridSearchCV(
            fit, values, cv=folds, scoring="neg_mean_absolute_error", refit=fine
        )
        seconds = timed(search.fit, X, y)
        cpu += seconds[0] * len(points) / len(tried)
        wall += seconds[1] * len(points) / len(tried)
        centre = tried[int(np.argmax(search.cv_results_["mean_test_score"]))]
    return cpu, wall, {"C": 10.0 ** centre[0], "gamma": 10.0 ** centre[1] / 2}


def npsvor(args) -> None:
    X, y = rows(args, "abalone", 500 if args.quick else 1000)
    table = Table(
        args, f"NPSVOR on {len(X)} rows of Abalone, 49 points, 5 folds, against 245 "
        "fits", "solver:6", "ours:6.2f", "fits:6.2f", "fits/ours:6.1f", "wall:6.2f",
        "fits' wall:6.2f", "ratio:6.1f", "scores differ:6.0%",
    )  # fmt: skip
    grid = Grid(C=[10.0**a for a in LOGS], gamma=[10.0**b / 2 for b in LOGS])
    for solver in ("smo", "admm"):
        fit = partial(ordinal.fit_npsvor, solver=solver)
        cpu, wall, found = least(
            args.repeat, select, fit, X, y, search=grid, refit=False,
            n_threads=args.threads,
        )  # fmt: skip
        if args.quick:
            table.row(solver, cpu, None, None, wall, None, None, None)
            continue
        loop_cpu, loop_wall, scores = timed(loop, fit, X, y, found)
        table.row(
            solver, cpu, loop_cpu, loop_cpu / cpu, wall, loop_wall, loop_wall / wall,
            np.mean(np.abs(scores - found.scores) > 1e-9),
        )  # fmt: skip


def loop(fit, X, y, found):
    """MAE of separate fits at the points and in the folds of a search."""
    scores = np.empty(found.scores.shape)
    for (i, point), (k, (train, test)) in product(
        enumerate(found.points), enumerate(found.splits)
    ):
        s = Standardizer.fit(X[train])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
            model = fit(s.transform(X[train]), y[train], n_threads=1, **point)
        scores[i, k] = np.abs(model.predict(s.transform(X[test])) - y[test]).mean()
    return scores


def by_sklearn(args) -> None:
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import ordinal.sklearn as estimators

    X, y = rows(args, "abalone", 300 if args.quick else 1000)
    table = Table(
        args, f"49 points on {len(X)} rows of Abalone, 5 folds, refit, against "
        "GridSearchCV over ordinal.sklearn", "method:8", "ours:6.2f", "grid:6.2f",
        "grid/ours:6.1f", "wall:6.2f", "grid's wall:6.2f", "ratio:6.1f",
        "scores differ:6.1e",
    )  # fmt: skip
    folds = stratified_kfold(y, 5)
    for name in ("svorim", "redsvm", "npsvor"):
        grid = {"C": [10.0**a for a in LOGS], "gamma": [10.0**b / 2 for b in LOGS]}
        fit = resolve_fit(name)
        cpu, wall, found = least(
            args.repeat, select, fit, X, y, search=Grid(**grid), cv=folds,
            n_threads=args.threads,
        )  # fmt: skip
        if args.quick:
            table.row(name, cpu, None, None, wall, None, None, None)
            continue
        estimator = getattr(estimators, name.upper())(n_threads=1)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), estimator),
            {f"{name}__{key}": values for key, values in grid.items()},
            cv=folds, scoring=estimators.scorer("mae"),
        )  # fmt: skip
        their_cpu, their_wall, _ = timed(search.fit, X, y)
        best = search.cv_results_["mean_test_score"].max()
        table.row(
            name, cpu, their_cpu, their_cpu / cpu, wall, their_wall, their_wall / wall,
            abs(found.score + best),
        )  # fmt: skip


def halving(args) -> None:
    n = 1500 if args.quick else 4000
    table = Table(
        args, f"SVORIM's grid on at most {n} training rows, by halving and in full",
        "set:18", "split:2d", "ours:6.1f", "full:6.1f", "full/ours:6.1f", "MAE:6.4f",
        "full MAE:6.4f", "difference:7.4f",
    )  # fmt: skip
    more = []
    for name in LARGE[:1] if args.quick else LARGE:
        X, _ = of_data(args.data, name)
        stored = np.load(Path(args.data) / "splits" / name / "orreview_equalfreq.npz")
        y = stored["y5"]
        for k in range(1 if args.quick else 5):
            rng = np.random.default_rng(k)
            rows = rng.permutation(len(X))
            train, test = rows[:-1000][:n], rows[-1000:]
            of = [
                halved(args, how, k, (X[train], y[train]), (X[test], y[test]))
                for how in (True, False)
            ]
            more.append(row_of_halving(table, name, k, of))
    table.note(f"mean difference {np.mean(more):.4f}, largest {np.max(more):.4f}")


def halved(args, how, seed, train, test, **options):
    """(CPU seconds, MAE on the test rows) of the default search, halved or in full."""
    cpu, _, found = timed(
        select,
        "svorim",
        *train,
        halving=how,
        n_threads=args.threads,
        rng=seed,
        **options,
    )
    X, y = test
    classes = found.classes
    return cpu, ordinal.metrics.mae(y, found.predict(X), labels=classes)


def row_of_halving(table, name, split, of):
    """Show a split, and return by how much halving has the larger error."""
    (ours, mae), (full, full_mae) = of
    table.row(name, split, ours, full, full / ours, mae, full_mae, mae - full_mae)
    return mae - full_mae


def customers(args) -> None:
    if args.customers is None:
        return
    made = runpy.run_path(args.customers)
    frame = made["make_customers"]().drop(columns=["customer_id", "signup"])
    X, y = frame.drop(columns="satisfaction"), frame["satisfaction"].to_numpy(str)
    n = 1600 if args.quick else 3500
    table = Table(
        args, f"SVORIM's grid on {n} customers with categories and missing values",
        "set:18", "split:2d", "ours:6.1f", "full:6.1f", "full/ours:6.1f", "MAE:6.4f",
        "full MAE:6.4f", "difference:7.4f",
    )  # fmt: skip
    more = []
    for k in range(1 if args.quick else 5):
        rows = np.random.default_rng(k).permutation(len(y))
        train, test = rows[:n], rows[3500:]
        options = {"classes": made["LEVELS"], "preprocess": TablePreprocessor()}
        of = [
            halved(
                args,
                how,
                k,
                (X.iloc[train], y[train]),
                (X.iloc[test], y[test]),
                **options,
            )
            for how in (True, False)
        ]
        more.append(row_of_halving(table, "customers", k, of))
    table.note(f"mean difference {np.mean(more):.4f}, largest {np.max(more):.4f}")


LARGE = ("abalone", "california_housing", "cpu_act", "bank32nh", "house_16H")
PARTS = {
    "customers": customers, "halving": halving, "svorim": svorim, "npsvor": npsvor,
    "sklearn": by_sklearn,
}  # fmt: skip


def main() -> None:
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--threads", type=int, default=1, help="of select")
    arguments.add_argument(
        "--part", type=int, default=1, dest="part_of_theirs", metavar="N",
        help="fit 1 in N of GridSearchCV's points",
    )  # fmt: skip
    arguments.add_argument(
        "--customers",
        metavar="FILE",
        help="script with LEVELS and make_customers(), a table of 5000 customers",
    )
    run(arguments.parse_args(), PARTS, PARTS, ordinal)


if __name__ == "__main__":
    main()
