"""Ways to choose the rows of a basis: error and time by way and number of rows.

    OPENBLAS_NUM_THREADS=1 python tools/bench/basis_ways.py --data FOLDER [--only PART]

  ways        SVORIM on five sets, three quarters of the rows, three splits
  growth      SVORIM on 16 000 rows of California housing beside the exact fit, as the
              basis grows, and beside "auto"; --picture FILE draws it

gamma of `ways`, in units of 1 / d, and C did best with 300 rows, of gamma 0.25, 1, 3
and C 1, 100; the ways agree on them. `growth` has two settings: where the exact fit
and where 1000 random rows do best. `choose` is the part of our seconds (`ours`) that it
takes to find the rows and their factor; `left` is the part of the trace of the kernel
matrix that they leave. The peer is the way `random`, which is that of scikit-learn's
Nystroem: `to random` is the difference of errors. Its seconds are in `scale.py`.
"""

import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
from _common import Table, california, parser, run, standardized, table
from scale import made

import ordinal

WAYS = ("random", "kmeans++", "cholesky")
SETS = {  # gamma d, C
    "california_housing": (1.0, 100.0),
    "house_16H": (0.25, 100.0),
    "cpu_act": (0.25, 100.0),
    "bank32nh": (0.25, 1.0),
    "made": (0.25, 100.0),
}
SETTINGS = ((0.5, 10.0), (0.125, 100.0))  # gamma and C for `growth`
SIZES = (100, 200, 500, 1000, 2000, 4000)
SPLITS = 3


def split(folder, name: str, seed: int):
    """(X, y, X_rest, y_rest): three quarters of the rows and the rest."""
    if name == "made":
        X, y = made(26_000, 0)
        X = X.astype(float)
    else:
        X, _ = table(folder, name)
        stored = f"{folder}/splits/{name}/orreview_equalfreq.npz"
        y = np.unique(np.load(stored)["y5"], return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(X))
    train, rest = np.split(order, [3 * len(X) // 4])
    X = standardized(X, train)
    return X[train], y[train], X[rest], y[rest]


def fitted(X, y, gamma: float, C: float, basis, seed: int = 0):
    """(model, CPU seconds); an exact one without a basis."""
    began = time.process_time()
    on_basis = {} if basis is None else {"basis": basis, "rng": seed, "cache_mb": 1000}
    model = ordinal.fit_svorim(X, y, gamma=gamma, C=C, n_threads=1, **on_basis)
    return model, time.process_time() - began


def error(model, X, y) -> float:
    return float(np.abs(model.predict(X) - y).mean())


def chosen(X, y, gamma: float, way: str, m: int, seed: int):
    """(part of the trace that is left, CPU seconds) of a basis alone."""
    from ordinal._input.basis import read_choice
    from ordinal.kernels import RBF
    from ordinal.kernels.basis_rows import choose

    began, choice = time.process_time(), read_choice((way, m), *X.shape)
    rng = np.random.default_rng(seed)
    features = choose(choice, RBF(gamma), X.__getitem__, y, np.ones(len(X)), rng)
    seconds = time.process_time() - began
    Z = np.empty((len(X), features.m), np.float32)
    features.single(X, Z)
    return 1 - float(np.einsum("ij,ij->", Z, Z, dtype=float)) / len(X), seconds


def ways(args) -> None:
    out = Table(
        args, f"SVORIM, one thread, means of {SPLITS} splits", "set:18", "m:5d",
        "way:9", "ours:7.2f", "choose:7.2f", "left:7.4f", "MAE:7.4f",
        "to random:10.4f",
    )  # fmt: skip
    for name, (gamma, C) in SETS.items():
        data = [split(args.data, name, seed) for seed in range(SPLITS)]
        gamma /= data[0][0].shape[1]
        for m in (100, 300, 1000):
            errors = {}
            for way in WAYS:
                rows = []
                for seed, (X, y, X_rest, y_rest) in enumerate(data):
                    model, seconds = fitted(X, y, gamma, C, (way, m), seed)
                    left, choosing = chosen(X, y, gamma, way, m, seed)
                    rows.append((seconds, choosing, left, error(model, X_rest, y_rest)))
                seconds, choosing, left, errors[way] = np.mean(rows, axis=0)
                more = errors[way] - errors["random"]
                out.row(name, m, way, seconds, choosing, left, errors[way], more)


def growth(args) -> None:
    out = Table(
        args, "California housing, 16 000 rows, SVORIM, one thread", "gamma:6g", "C:4g",
        "way:9", "m:5d", "ours:7.2f", "MAE:7.4f",
    )  # fmt: skip
    data = california(args.data, 16_000)
    sizes = SIZES[:3] if args.quick else SIZES
    found = {}
    for (gamma, C), (way, m, basis) in product(SETTINGS, growing(sizes)):
        m, seconds, miss = grown(data, gamma, C, m, basis)
        found[gamma, C, way, m] = miss, seconds
        out.row(gamma, C, way, m, seconds, miss)
    if args.picture:
        draw(found, args.picture)


def growing(sizes) -> list[tuple]:
    """(what it is called, how many rows, `basis`) of each fit of `growth`."""
    fixed = [(way, m, (way, m)) for m in sizes for way in WAYS]
    return [("exact", None, None), ("auto", None, "auto"), *fixed]


def grown(data, gamma: float, C: float, m: int | None, basis) -> tuple:
    """(support rows or `m`, CPU seconds, error on the rest) of a fit of `growth`."""
    X, y, X_rest, y_rest = data
    model, seconds = fitted(X, y, gamma, C, basis)
    return m or len(model.support), seconds, error(model, X_rest, y_rest)


def draw(found, file: str) -> None:
    import matplotlib.pyplot as plt
    from pictures import save, use_style

    use_style()
    figure, panels = plt.subplots(
        2, 2, figsize=(8, 5.6), layout="constrained", sharex=True, sharey="col"
    )
    for (gamma, C), row in zip(SETTINGS, panels, strict=True):
        here = {
            key[2:]: values for key, values in found.items() if key[:2] == (gamma, C)
        }
        for k, (axes, name) in enumerate(zip(row, ("MAE", "seconds"), strict=True)):
            for way in WAYS:
                line = [(m, values[k]) for (of, m), values in here.items() if of == way]
                axes.plot(*zip(*line, strict=True), "o-", label=way, ms=4)
            for (of, m), values in here.items():
                if of == "exact":
                    axes.axhline(values[k], color="black", ls=":", label=of)
                elif of == "auto":
                    axes.plot(m, values[k], "k*", label=of, ms=9)
            axes.set(xscale="log", ylabel=name, title=f"gamma {gamma:g}, C {C:g}")
            axes.set_xticks(SIZES, [str(m) for m in SIZES])
            axes.minorticks_off()
        row[1].set_yscale("log")
    for axes in panels[1]:
        axes.set_xlabel("basis rows")
    panels[0, 0].legend()
    save(figure, Path(file))


PARTS = {f.__name__: f for f in (ways, growth)}


def main() -> None:
    options = parser(__doc__, PARTS)
    options.add_argument("--picture", metavar="FILE", help="where to draw `growth`")
    run(options.parse_args(), PARTS, PARTS, ordinal)


if __name__ == "__main__":
    sys.exit(main())
