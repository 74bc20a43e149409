"""A whole hyperparameter search on half a million rows, beside liquidSVM.

    OPENBLAS_NUM_THREADS=1 python tools/bench/large_search.py [--rows N] [--only PART]

The rows are simulated in the shape of covtype: 10 measurements, two one-hot categories
of 4 and 40 levels, and 7 ranks of its shares. A search has 10 x 10 points and 5 folds,
on one thread; errors are those on 20 000 other rows. With --store a search that was
interrupted (Ctrl-C) goes on with what it has done, and its seconds are a sum.

search     `select("svorim", basis=--basis, halving=True)`, the refit included
full       the same without halving, which takes far longer: pass --rows 46000
liquidsvm  liquidSVM's default search with cells and all-versus-all hinge losses, on
           standardised features, from the library --library. In the source package on
           PyPI it is built by `g++ -O3 -march=native -fpermissive -w -shared -fPIC
           -Isrc src/common/liquidSVM.cpp -o libliquid.so`.
samples    a path over C on samples, with the whole kernel and on a basis of 1000 rows
"""

import ctypes
import time
from functools import partial
from itertools import product, starmap

import numpy as np
from _common import Table, best_time, parser, run

import ordinal
from ordinal._model.registry import path_of
from ordinal.model_selection import Grid
from ordinal.preprocessing import Standardizer

TEST, TOL = 20_000, 1e-2
SHARES = (0.365, 0.488, 0.0615, 0.0047, 0.0163, 0.0299, 0.0346)  # of covtype
WIDTHS = (4, 40)  # of its categories
POINTS = Grid(
    C=[10.0**k for k in np.linspace(-2, 2.5, 10)],
    gamma=[10.0**k for k in np.linspace(-3, 0, 10)],
)


def score(X: np.ndarray, effects: list[np.ndarray], noise: np.ndarray) -> np.ndarray:
    """Return scores of which ranks are intervals: bends, products and categories."""
    smooth = 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3])
    smooth += np.cos(2 * X[:, 4] + X[:, 5]) + 0.5 * X[:, 6]
    start = 10
    for effect in effects:
        smooth += X[:, start : start + effect.size] @ effect
        start += effect.size
    return smooth + 0.3 * noise


def made(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n simulated rows and their ranks."""
    fixed = np.random.default_rng(0)
    effects = [0.7 * fixed.normal(size=width) for width in WIDTHS]
    cuts = np.quantile(score(*drawn(100_000, fixed, effects)), np.cumsum(SHARES)[:-1])
    X, effects, noise = drawn(n, np.random.default_rng(seed + 1), effects)
    return X, np.searchsorted(cuts, score(X, effects, noise))


def drawn(n: int, rng: np.random.Generator, effects: list[np.ndarray]):
    """Return the features of n rows, and what `score` takes besides."""
    levels = [(rng.random(n) ** 2 * width).astype(int) for width in WIDTHS]
    indicators = starmap(one_hot, zip(levels, WIDTHS, strict=True))
    X = np.hstack([rng.normal(size=(n, 10)), *indicators])
    return X, effects, rng.normal(size=n)


def one_hot(levels: np.ndarray, width: int) -> np.ndarray:
    return np.eye(width)[levels]


def searched(args, X, y, halving=True):
    """Return our predictor, and what was chosen."""
    found = ordinal.select(
        "svorim", X, y, search=POINTS, halving=halving, basis=args.basis, tol=TOL,
        n_threads=1, store=args.store, cache_mb=3000,
    )  # fmt: skip
    return found.predict, ", ".join(f"{k} {v:.3g}" for k, v in found.params.items())


class LiquidSVM:
    """liquidSVM by its C interface, whose stages read their options as words."""

    def __init__(self, path: str, X, y):
        self.lib = ctypes.CDLL(path)
        table, text = ctypes.POINTER(ctypes.c_double), ctypes.c_char_p
        rows = np.ctypeslib.ndpointer(np.float64)
        size, number, words = ctypes.c_uint, ctypes.c_int, ctypes.POINTER(text)
        self.lib.liquid_svm_init.argtypes = [rows, size, size, rows]
        self.lib.liquid_svm_set_param.argtypes = [number, text, text]
        self.lib.liquid_svm_get_config_line.argtypes = [number, number]
        self.lib.liquid_svm_get_config_line.restype = text
        for name in ("train", "select", "test"):
            getattr(self.lib, f"liquid_svm_{name}").restype = table
        self.lib.liquid_svm_test.argtypes = [
            number, number, words, rows, size, size, rows, ctypes.POINTER(table)
        ]  # fmt: skip
        self.scaler = Standardizer.fit(X)
        Z, ranks = self.scaler.transform(X), np.asarray(y + 1, float)
        self.cookie = self.lib.liquid_svm_init(Z, *Z.shape, ranks)
        options = {"THREADS": "1", "PARTITION_CHOICE": "6", "SCENARIO": "MC AvA_hinge"}
        for name, value in options.items():
            self.lib.liquid_svm_set_param(self.cookie, name.encode(), value.encode())
        self.stage(1, "train")
        self.stage(2, "select")

    def stage(self, number: int, name: str, *more):
        line = self.lib.liquid_svm_get_config_line(self.cookie, number).split()
        words = (ctypes.c_char_p * (1 + len(line)))(b"liquidSVM", *line)
        call = getattr(self.lib, f"liquid_svm_{name}")
        found = call(self.cookie, len(words), words, *more)
        if not found:
            raise RuntimeError(f"liquidSVM: {name} failed")
        return found

    def predict(self, X):
        Z, unknown = self.scaler.transform(X), np.zeros(len(X))
        errors = ctypes.POINTER(ctypes.c_double)()
        found = self.stage(3, "test", Z, *Z.shape, unknown, ctypes.byref(errors))
        shape = int(found[0]), int(found[1])
        values = np.ctypeslib.as_array(found, (2 + shape[0] * shape[1],))[2:]
        return np.rint(values.reshape(shape)[:, 0]).astype(int) - 1


def by_liquidsvm(args, X, y):
    if args.library is None:
        raise SystemExit("no liquidSVM: give --library FILE")
    return LiquidSVM(args.library, X, y).predict, "cells of 2000 rows"


def report(args, name: str, fit) -> None:
    table = Table(
        args, f"{name} on {args.rows} rows x {10 + sum(WIDTHS)}", "rows:6", "basis:5",
        "ours:7.1f", "MAE:6.4f", "wrong:6.4f", "chosen:20",
    )  # fmt: skip
    X, y = made(args.rows, 1)
    X_test, y_test = made(TEST, 2)
    start = time.process_time()
    try:
        predict, chosen = fit(args, X, y)
    except KeyboardInterrupt:
        table.note(f"interrupted after {time.process_time() - start:.1f} s of CPU")
        raise SystemExit(1) from None
    seconds = time.process_time() - start
    miss = np.abs(predict(X_test) - y_test)
    basis = None if fit is by_liquidsvm else str(args.basis)
    table.row(str(args.rows), basis, seconds, miss.mean(), (miss > 0).mean(), chosen)


def samples(args) -> None:
    table = Table(
        args, "Paths over 10 values of C", "gamma:5.3f", "rows:5d", "ours:6.2f",
        "on 1000 basis rows:6.2f", "basis/whole:6.1f",
    )  # fmt: skip
    X, y = made(10_000, 1)
    X = Standardizer.fit(X).transform(X)
    path = path_of(ordinal.fit_svorim)
    points = [{"C": C} for C in POINTS.values["C"]]
    for gamma, n in product((0.002, 0.1), (1500, 4500, 9000)):
        seconds = [
            best_time(
                1, path.fit, X[:n], y[:n], points, gamma=gamma, basis=basis, tol=TOL,
                classes=range(7), n_threads=1,
            )[0]
            for basis in (None, 1000)
        ]  # fmt: skip
        table.row(gamma, n, *seconds, seconds[1] / seconds[0])


PARTS = {
    "search": partial(report, name="Search by halving", fit=searched),
    "full": partial(report, name="Full search", fit=partial(searched, halving=False)),
    "liquidsvm": partial(report, name="liquidSVM", fit=by_liquidsvm),
    "samples": samples,
}


def main():
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--rows", type=int, default=460_000, metavar="N")
    arguments.add_argument("--basis", type=int, default=1000, metavar="M")
    arguments.add_argument("--store", metavar="FOLDER", help="of finished tasks")
    arguments.add_argument(
        "--library", metavar="FILE", help="shared library of liquidSVM"
    )
    args = arguments.parse_args()
    if args.quick:
        args.rows, args.basis = 6000, 100
    run(args, PARTS, ("search",), ordinal)


if __name__ == "__main__":
    main()
