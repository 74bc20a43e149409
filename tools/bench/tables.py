"""Measure how categories and missing values are best coded: defaults of
TablePreprocessor.

    OPENBLAS_NUM_THREADS=1 python tools/bench/tables.py --data FOLDER [--only ...]

Ranks are those of the set, or five bins, of up to 500 rows. Every way is fitted to the
same training rows, SVORIM by a search over C and gamma within them, and judged by the
mean absolute error of the same test rows; what is printed is its mean over --splits
hold-outs, and the mean difference from the first way with its standard error.

`coding` takes sets with columns of 0 and 1 for categories: left at their scale, less
their means, or standardised as numbers are. `gaps` removes a tenth of the values, by
chance, or where a value is large: so that the gap says something. Our ways are compared
with one another, by their errors; there is no peer, as seconds do not matter here.
"""

import numpy as np
from _common import Table, parser, run, table

import ordinal
from ordinal.metrics import mae
from ordinal.model_selection import Grid, select, stratified_holdout
from ordinal.preprocessing import Standardizer, TablePreprocessor

GRID = Grid(C=[0.1, 1.0, 10.0, 100.0], gamma=[0.003, 0.01, 0.03, 0.1, 0.3])
CODED = ("tae", "bondrate", "pasture", "squash-stored", "g_affairs", "car", "abalone")
NUMBERS = ("diabetes", "g_auto_riskness", "pyrimidines", "triazines", "boston_housing")
FILLS = {
    "median, indicator": TablePreprocessor(),
    "mean, indicator": TablePreprocessor(impute="mean"),
    "median": TablePreprocessor(indicator=False),
    "mean": TablePreprocessor(impute="mean", indicator=False),
    "most frequent": TablePreprocessor(impute="most_frequent", indicator=False),
}


def ranked(args, name):
    """(X, y) of a set, numbers in five bins of as many rows."""
    X, y = table(args.data, name)
    if np.unique(y).size > 10:
        y = ordinal.preprocessing.Binning.equal_frequency(y, 5).transform(y)
    rows = np.random.default_rng(0).permutation(len(y))[:500]
    return X[rows], y[rows].astype(int)


def with_gaps(X, by_size, rng):
    """A tenth of the values removed: by chance, or those that are large and lucky."""
    chance = rng.random(X.shape)
    if by_size:
        chance += 2 * (X < np.quantile(X, 0.8, axis=0))
    return np.where(chance < np.quantile(chance, 0.1, axis=0), np.nan, X)


def error(Z, y, train, test):
    found = select(
        ordinal.fit_svorim, Z[train], y[train], search=GRID, standardize=False
    )
    return mae(y[test], found.predict(Z[test]))


def compared(args, title, sets, ways, made) -> None:
    """A row a set and way; `made` turns (X, way, training rows) into features."""
    out = Table(
        args, title, "set:16", "way:18", "MAE:6.3f", "less first:10.4f", "se:6.4f"
    )
    for name in sets:
        X, y = ranked(args, name)
        splits = stratified_holdout(y, args.splits)
        errors = {
            way: np.array(
                [error(made(X, way, train), y, train, test) for train, test in splits]
            )
            for way in ways
        }
        first = next(iter(errors.values()))
        for way, values in errors.items():
            d = values - first
            out.row(name, way, values.mean(), d.mean(), d.std(ddof=1) / len(d) ** 0.5)


def coding(args) -> None:
    def made(X, way, train):
        if way == "standardised":
            return Standardizer.fit(X[train]).transform(X)
        binary = ((X == 0) | (X == 1)).all(axis=0)
        s = Standardizer.fit(X[train])
        return Standardizer(s.mean, np.where(binary, 1.0, s.scale)).transform(X)

    compared(args, "Columns of 0 and 1", CODED, ("own scale", "standardised"), made)


def gaps(args) -> None:
    for by_size in (False, True):
        holes = {}

        def made(X, way, train, holes=holes, by_size=by_size):
            key = X.tobytes()
            if key not in holes:
                holes[key] = with_gaps(X, by_size, np.random.default_rng(1))
            return FILLS[way].fit(holes[key][train]).transform(holes[key])

        how = "of large values" if by_size else "by chance"
        compared(args, f"Gaps {how}", NUMBERS, FILLS, made)


PARTS = {"coding": coding, "gaps": gaps}

if __name__ == "__main__":
    options = parser(__doc__, PARTS)
    options.add_argument("--splits", type=int, default=20)
    run(options.parse_args(), PARTS, ("coding",))
