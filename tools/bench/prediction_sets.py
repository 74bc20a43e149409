"""Prediction sets on real tables: how often they hold the rank, and how large they are.

    OPENBLAS_NUM_THREADS=1 python tools/bench/prediction_sets.py --data FOLDER

Each figure is a mean over --splits random thirds: 300 rows to fit, 300 to calibrate,
the others (1000 at most) to count. `methods` has sets around every kind of model;
`nonconformity` compares those around one model, and with sets that collect probability
from the mode outwards (ordinal adaptive prediction sets: C. Lu, A. N. Angelopoulos,
S. Pomerantz, MICCAI 2022); `classes` shows the worst rank, with and without `by_class`;
`cross` compares a fit to 300 rows and 300 to calibrate with CV+ on all 600. Tables of a
numeric target have five bins of equal frequency. Arguments are those of the script: the
sets hold what they promise whatever these are. The peer is the nonconformity of the
paper named above, in the same run; seconds are not printed, as models take nearly all.
"""

import warnings
from functools import partial

import numpy as np
from _common import Table, parser, run, table

import ordinal
from ordinal.preprocessing import Binning, Standardizer

SETS = ("ERA", "LEV", "abalone", "california_housing", "cpu_act", "bank32nh")
BINNED = SETS[2:]
COVERAGES = (0.8, 0.9, 0.95)


def thirds(args, name):
    """(fit, calibration, test) rows as (X, ranks from 0) of every split."""
    X, y = table(args.data, name)
    if name in BINNED:
        y = Binning.equal_frequency(y, 5).transform(y)
    rank = np.unique(y, return_inverse=True)[1]
    for seed in range(args.splits):
        order = np.random.default_rng(seed).permutation(len(rank))
        parts = order[:300], order[300:600], order[600:1600]
        scaling = Standardizer.fit(X[parts[0]])
        yield [(scaling.transform(X[rows]), rank[rows]) for rows in parts]


def svorim(X, y, r, **options):
    gamma = 0.1 / X.shape[1]
    return ordinal.fit_svorim(X, y, C=10.0, gamma=gamma, classes=range(r), **options)


def npsvor(X, y, r, **options):
    gamma = 0.3 / X.shape[1]
    return ordinal.fit_npsvor(X, y, C=1.0, gamma=gamma, classes=range(r), **options)


FITS = {
    "svorim, distance": svorim,
    "svorim, rps": partial(svorim, probability=True),
    "npsvor, distance": npsvor,
    "npsvor, rps": partial(npsvor, probability=True),
    "gpor, rps": lambda X, y, r: ordinal.fit_gpor(X, y, classes=range(r)),
    "xofm, rps": lambda X, y, r: ordinal.fit_xofm(
        X, y, classes=range(r), probability=True
    ),
}


def means(args, name, judge):
    """Mean over the splits of what `judge` makes of the thirds and the ranks."""
    found = []
    for parts in thirds(args, name):
        r = 1 + max(int(y.max()) for _, y in parts)
        found.append(judge(*parts, r))
    return np.nanmean(np.array(found), axis=0)


def methods(args) -> None:
    columns = [f"{what} {c}:6.3f" for c in COVERAGES for what in ("held", "size")]
    out = Table(
        args, "Share held and mean size, by coverage", "set:18", "by:16", *columns
    )
    for name in SETS:
        for label, fit in FITS.items():

            def judge(train, cal, test, r, fit=fit):
                sets = ordinal.conformal(fit(*train, r), *cal)
                tables = [sets.evaluate(*test, coverage=c) for c in COVERAGES]
                return [t[key][-1] for t in tables for key in ("coverage", "size")]

            out.row(name, label, *means(args, name, judge))


def collected(P):
    """(n, r): the probability that is collected from the mode outwards, to the more
    probable side, before each rank is."""
    out = np.zeros(P.shape)
    for p, before in zip(P, out, strict=True):
        low = high = int(p.argmax())
        mass = p[low]
        while high - low + 1 < p.size:
            down = high + 1 == p.size or (low > 0 and p[low - 1] >= p[high + 1])
            low, high = (low - 1, high) if down else (low, high + 1)
            new = low if down else high
            before[new] = mass
            mass += p[new]
    return out


def sizes_of_collected(model, cal, test):
    """Mean size of ordinal adaptive prediction sets, for every coverage."""
    (X, y), (X_new, _) = cal, test
    scores = np.sort(collected(model.predict_proba(X))[np.arange(len(y)), y])
    new = collected(model.predict_proba(X_new))
    places = [int(np.ceil(c * (len(y) + 1) - 1e-9)) - 1 for c in COVERAGES]
    return [(new <= scores[k]).sum(axis=1).mean() for k in places]


def nonconformity(args) -> None:
    columns = [f"{what} {c}:6.2f" for c in COVERAGES for what in ("rps", "dist", "aps")]
    out = Table(args, "Mean size by nonconformity", "set:18", "model:7", *columns)
    shares = partial(ordinal.fit_xofm, probability=False)
    kinds = {"svorim": FITS["svorim, rps"], "gpor": FITS["gpor, rps"],
             "xofm": lambda X, y, r: shares(X, y, classes=range(r))}  # fmt: skip
    for name in SETS:
        for label, fit in kinds.items():

            def judge(train, cal, test, r, fit=fit, label=label):
                model = fit(*train, r)
                by = [ordinal.conformal(model, *cal)]
                if label == "svorim":
                    by.append(ordinal.conformal(model, *cal, nonconformity="distance"))
                size = [
                    [s.evaluate(*test, coverage=c)["size"][-1] for c in COVERAGES]
                    for s in by
                ]
                size += [[np.nan] * len(COVERAGES)] * (2 - len(by))
                if label == "xofm":  # its paper's shares, some of which are 0
                    model = _Shares(model)
                return np.array([*size, sizes_of_collected(model, cal, test)]).T.ravel()

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of means of no number
                found = means(args, name, judge)
            out.row(name, label, *(None if np.isnan(v) else v for v in found))


class _Shares:
    def __init__(self, model):
        self.predict_proba = partial(model.predict_proba, proba="share")


def classes(args) -> None:
    out = Table(
        args, "Coverage 0.9: share held of all rows and of the worst rank, mean size",
        "set:18", "all:6.3f", "worst:6.3f", "size:6.2f",
        "by class all:6.3f", "worst :6.3f", "size :6.2f",
    )  # fmt: skip
    for name in SETS:

        def judge(train, cal, test, r):
            model = svorim(*train, r, probability=True)
            found = []
            for by_class in (False, True):
                t = ordinal.conformal(model, *cal, by_class=by_class).evaluate(*test)
                worst = np.nanmin(t["coverage"])
                found += [t["coverage"][-1], worst, t["size"][-1]]
            return found

        out.row(name, *means(args, name, judge))


def cross(args) -> None:
    out = Table(
        args, "Coverage 0.9 from 600 rows: split in two, and CV+ with 5 folds",
        "set:18", "split held:6.3f", "size:6.2f", "cross held:6.3f", "size :6.2f",
    )  # fmt: skip
    for name in SETS:

        def judge(train, cal, test, r):
            split = ordinal.conformal(svorim(*train, r, probability=True), *cal)
            both = [np.concatenate(parts) for parts in zip(train, cal, strict=True)]
            crossed = ordinal.cross_conformal(
                ordinal.fit_svorim, *both, C=10.0, gamma=0.1 / both[0].shape[1],
                classes=range(r), probability=True,
            )  # fmt: skip
            tables = [sets.evaluate(*test) for sets in (split, crossed)]
            return [t[key][-1] for t in tables for key in ("coverage", "size")]

        out.row(name, *means(args, name, judge))


PARTS = {
    "methods": methods, "nonconformity": nonconformity, "classes": classes,
    "cross": cross,
}  # fmt: skip


if __name__ == "__main__":
    options = parser(__doc__, PARTS)
    options.add_argument("--splits", type=int, default=10)
    run(options.parse_args(), PARTS, ["classes"])
