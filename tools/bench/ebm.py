"""XOFM beside InterpretML's explainable boosting machine (EBM).

    OPENBLAS_NUM_THREADS=1 python tools/bench/ebm.py --data FOLDER [--only PART ...]

mae            mean absolute error on eight sets with their official splits: XOFM by the
               paper's rule and by the median of its probabilities, EBM as a classifier,
               and as a regressor on ranks, rounded; the paired differences from XOFM,
               with standard errors, and the seconds.
probabilities  ranked probability score and log loss on the same splits, of XOFM's link
               and its shares of Definition 5, of SVORIM and of EBM's classifier.
made           curves and pairs that are known: how those of either method correlate
               with them over new rows.
pictures       both methods' curves of the made data, side by side, into --png.

Both have their defaults, but EBM runs in one process, and looks for 10 pairs in the
made data. On the last set, car, ranks go by rules of categories. Needs
`interpret-core`, which the extra `[bench]` installs. EBM takes minutes a
split: its predictions are kept in --cache, if given, by set and split.
"""

import os
import time
from pathlib import Path

import numpy as np
from _common import Table, parser, run, table

import ordinal

SETS = (
    "boston_housing", "abalone", "california_housing", "cpu_act", "house_16H", "LEV",
    "ERA", "car",
)  # fmt: skip
EVENTS = 1e-15  # least probability in a log loss, as scikit-learn had it


def official(args, name):
    """(X, ranks from 0, training rows of every split, test rows of every split)."""
    X, y = table(args.data, name)
    splits = Path(args.data) / "splits" / name
    binned = splits / "orreview_equalfreq.npz"
    stored = np.load(binned if binned.exists() else splits / "orreview_30holdout.npz")
    if "y5" in stored:
        return X, stored["y5"] - 1, stored["train_idx_5"], stored["test_idx_5"]
    return X, y.astype(int) - 1, stored["train_idx"], stored["test_idx"]


def timed(call, *args, **options):
    """Return the result of a call, and its CPU seconds."""
    began = time.process_time()
    return call(*args, **options), time.process_time() - began


def fitted(X, y, r, **options):
    """An XOFM of ranks 0..r-1, and its seconds."""
    options = {"classes": range(r), "n_threads": 1, **options}
    return timed(ordinal.fit_xofm, X, y, **options)


def boosted(args, name, split, X, y, train, test):
    """Predictions of EBM, both ways, its probabilities and seconds; from the cache
    where they are there."""
    kept = args.cache and Path(args.cache) / f"{name}-{split}.npz"
    if kept and kept.exists():
        return dict(np.load(kept))
    from interpret.glassbox import (
        ExplainableBoostingClassifier,
        ExplainableBoostingRegressor,
    )

    options = {"n_jobs": 1, "random_state": 0}
    classifier = ExplainableBoostingClassifier(**options)
    regressor = ExplainableBoostingRegressor(**options)
    _, c_seconds = timed(classifier.fit, X[train], y[train])
    _, r_seconds = timed(regressor.fit, X[train], y[train])
    P = np.zeros((len(test), y.max() + 1))
    P[:, classifier.classes_] = classifier.predict_proba(X[test])
    found = {
        "classifier": classifier.predict(X[test]),
        "regressor": np.clip(np.rint(regressor.predict(X[test])), 0, y.max()),
        "proba": P,
        "c_seconds": c_seconds,
        "r_seconds": r_seconds,
    }
    if kept:
        np.savez(kept, **found)
    return found


def split_rows(args, name):
    """(split, X, y, training rows, test rows) of the first --splits of a set."""
    X, y, trains, tests = official(args, name)
    for split in range(min(args.splits, len(trains))):
        yield split, X, y, trains[split], tests[split]


def mae(args):
    columns = [
        f"{ours} - {theirs}:15"
        for ours in ("share", "median") for theirs in ("class.", "regr.")
    ]  # fmt: skip
    errors = Table(
        args, "Mean absolute error over splits, and differences", "set:18", "splits:3d",
        "XOFM paper:.4f", "median:.4f", "EBM class.:.4f", "regr.:.4f", *columns,
    )  # fmt: skip
    found = {
        name: [mae_of(args, name, *split) for split in split_rows(args, name)]
        for name in args.sets
    }
    for name, rows in found.items():
        m = np.array([missed for missed, _ in rows])
        differences = [m[:, i] - m[:, j] for i in (0, 1) for j in (2, 3)]
        errors.row(name, len(m), *m.mean(axis=0), *map(with_error, differences))
    times = Table(
        args, "CPU seconds of a fit, and those of the quicker EBM over ours", "set:18",
        "ours:.3f", "with link:.3f", "EBM class.:.2f", "regr.:.2f", "ratio:.0f",
        "ratio with link:.0f",
    )  # fmt: skip
    for name, rows in found.items():
        s = np.mean([seconds for _, seconds in rows], axis=0)
        times.row(name, *s, min(s[2:]) / s[0], min(s[2:]) / s[1])


def mae_of(args, name, split, X, y, train, test):
    """Errors by the paper's rule, the median, and EBM's two; seconds of the fits."""
    r = y.max() + 1
    plain, ours = fitted(X[train], y[train], r)
    linked, with_link = fitted(X[train], y[train], r, probability=True)
    ebm = boosted(args, name, split, X, y, train, test)
    predicted = (
        plain.predict(X[test]), linked.predict(X[test], rule="median"),
        ebm["classifier"], ebm["regressor"],
    )  # fmt: skip
    missed = [np.abs(p - y[test]).mean() for p in predicted]
    return missed, [ours, with_link, float(ebm["c_seconds"]), float(ebm["r_seconds"])]


def with_error(values) -> str:
    """The mean, and its standard error."""
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return f"{values.mean():+.4f}±{error:.4f}"


def scores(P, y):
    """Ranked probability score, log loss, and the share of rows with no chance."""
    below = np.cumsum(P, axis=1)[:, :-1]
    event = y[:, None] <= np.arange(P.shape[1] - 1)
    true = P[np.arange(len(y)), y]
    rps = ((below - event) ** 2).sum(axis=1).mean()
    return rps, -np.log(np.maximum(true, EVENTS)).mean(), (true == 0).mean()


def probabilities(args):
    columns = [
        f"{name} {what}:.3f"
        for name in ("link", "share", "SVORIM", "EBM")
        for what in ("RPS", "log loss")
    ]
    shown = Table(args, "Probabilities", "set:18", *columns, "paper 0:.3f")
    for name in args.sets:
        rows = [proba_of(args, name, *split) for split in split_rows(args, name)]
        shown.row(name, *np.mean(rows, axis=0))


def proba_of(args, name, split, X, y, train, test):
    """Scores of the probabilities of XOFM by both ways, SVORIM and EBM."""
    r = y.max() + 1
    xofm, _ = fitted(X[train], y[train], r, probability=True)
    scaling = ordinal.preprocessing.Standardizer.fit(X[train])
    svorim = ordinal.fit_svorim(
        scaling.transform(X[train]), y[train], classes=range(r), probability=True
    )
    ebm = boosted(args, name, split, X, y, train, test)
    link, paper, thresholds, boosts = (
        scores(P, y[test])
        for P in (
            xofm.predict_proba(X[test]),
            xofm.predict_proba(X[test], proba="share"),
            svorim.predict_proba(scaling.transform(X[test])),
            ebm["proba"],
        )
    )
    return [*link[:2], *paper[:2], *thresholds[:2], *boosts[:2], paper[2]]


TERMS = "x1", "x2", "x3", "x4", "x7", "x5:x6", "x1:x7"
LEVELS = np.array([0.6, -0.6, 0.0])  # the main effect of the categories 0, 1, 2


def made(n: int, seed: int = 0):
    """Rows of eight features on [-1, 1], the seventh of three categories, and their
    known effects; x1 and x2 are correlated, and so are x3 and x4, and x8 does nothing.

    All effects have mean 0, those of pairs along both features.
    """
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 8))
    z[:, [1, 3]] = 0.6 * z[:, [0, 2]] + 0.8 * z[:, [1, 3]]
    X = 2 * normal_share(z) - 1
    group = np.minimum(2, (1.5 * (X[:, 6] + 1)).astype(int))
    X[:, 6] = group
    effects = {
        "x1": np.sin(np.pi * X[:, 0]),
        "x2": 1.5 * (X[:, 1] ** 2 - 1 / 3),
        "x3": np.tanh(4 * X[:, 2]),
        "x4": 0.8 * X[:, 3],
        "x7": LEVELS[group],
        "x5:x6": 1.5 * X[:, 4] * X[:, 5],
        "x1:x7": np.cos(np.pi * X[:, 0]) * np.array([1.0, -0.5, -0.5])[group],
    }
    return X, effects, sum(effects.values()) + 0.5 * rng.standard_normal(n)


def normal_share(z):
    """The normal distribution function, by its series of Abramowitz and Stegun 26.2.17,
    to 7.5e-8."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    c = (0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)
    tail = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * np.polyval((*c[::-1], 0.0), t)
    return np.where(z > 0, 1 - tail, tail)


def fitted_to_made(n: int):
    """Both methods fitted to made rows in five ranks, with their seconds."""
    from interpret.glassbox import ExplainableBoostingRegressor

    X, _, score = made(n)
    y = np.searchsorted(np.quantile(score, [0.2, 0.4, 0.6, 0.8]), score)
    xofm, ours = timed(ordinal.fit_xofm, X, y, categorical=[6], n_threads=1)
    names = [f"x{j + 1}" for j in range(8)]
    types = ["nominal" if j == 6 else "continuous" for j in range(8)]
    ebm = ExplainableBoostingRegressor(
        names, types, n_jobs=1, random_state=0, interactions=10
    )
    _, theirs = timed(ebm.fit, X, y)
    return xofm, ours, ebm, theirs


def terms_of(ebm, X):
    """Contributions of every term of EBM to rows, by the names that XOFM has."""
    names = [name.replace(" & ", ":") for name in ebm.term_names_]
    return dict(zip(names, ebm.eval_terms(X).T, strict=True))


def truth(args):
    shown = Table(
        args, "Correlation with known effects, over 20 000 new rows", "n:6d",
        "method:6", *(f"{term}:.4f" for term in TERMS), "seconds:.2f",
    )  # fmt: skip
    X, effects, _ = made(20_000, seed=1)
    for n in (1000, 5000):
        xofm, ours, ebm, theirs = fitted_to_made(n)
        parts = xofm.contributions(X)
        found = dict(zip(parts.names, parts.values.T, strict=True))
        for method, by, seconds in (
            ("XOFM", found, ours), ("EBM", terms_of(ebm, X), theirs),
        ):  # fmt: skip
            agree = [
                np.corrcoef(by[term], effects[term])[0, 1] if term in by else np.nan
                for term in TERMS
            ]
            shown.row(n, method, *agree, seconds)


def pictures(args):
    """The curves of the made data by both methods, and a pair."""
    if not args.png:
        return print("no pictures: give --png FOLDER")
    import matplotlib.pyplot as plt
    from pictures import save, use_style

    use_style()
    xofm, _, ebm, _ = fitted_to_made(5000)
    figure, axes = plt.subplots(
        2, 5, figsize=(9, 4), layout="constrained", sharey="row"
    )
    shown = ordinal.plot.score_functions(xofm, top=5, axes=axes[0])
    terms = [name.replace(" & ", ":") for name in ebm.term_names_]
    for above, ax in zip(shown, axes[1], strict=True):
        name = above.get_xlabel()
        x = np.linspace(-1, 1, 400)
        rows = np.zeros((400, 8))
        column = int(name[1:]) - 1
        rows[:, column] = np.arange(400) % 3 if name == "x7" else x
        score = ebm.eval_terms(rows)[:, terms.index(name)]
        if name == "x7":
            ax.bar(range(3), score[:3], width=0.7)
        else:
            ax.plot(x, score)
        ax.axhline(0, color="0.8", lw=0.8, zorder=0)
        ax.set_xlabel(name)
    axes[0, 0].set_ylabel("XOFM")
    axes[1, 0].set_ylabel("EBM")
    save(figure, Path(args.png) / "xofm_and_ebm.png")
    return None


PARTS = {
    "mae": mae,
    "probabilities": probabilities,
    "made": truth,
    "pictures": pictures,
}


def main():
    options = parser(__doc__, PARTS)
    options.add_argument("--splits", type=int, default=10)
    options.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    options.add_argument("--cache", default=os.environ.get("ORDINAL_EBM_CACHE"))
    options.add_argument("--png", help="folder for pictures")
    args = options.parse_args()
    import interpret

    run(args, PARTS, (), ordinal, f"interpret-core {interpret.__version__}")


if __name__ == "__main__":
    main()
