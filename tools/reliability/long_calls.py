"""Calls of this package that take many seconds, for interrupts.py to press Ctrl-C in.

A function of CALLS makes what its call needs, and returns the call. Sizes are near the
largest that the documents speak of: 20 000 rows, 5000 of a Gaussian process, 200
columns.
"""

import itertools
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ordinal
from ordinal import (
    comparison,
    datasets,
    kernels,
    metrics,
    model_selection,
    preprocessing,
)

Call = Callable[[], object]
CALLS: dict[str, Callable[[], Call]] = {}
COMMANDS: dict[str, Callable[[], list[str]]] = {}  # arguments of `ordinal`


def call(name: str) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Enter a function into CALLS."""

    def prepare(make: Callable[[], Call]) -> Callable[[], Call]:
        CALLS[name] = make
        return make

    return prepare


def rows(n: int, d: int, r: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose ranks follow from the first features, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    score = X[:, :3].sum(axis=1) + np.sin(2 * X[:, 0]) + rng.standard_normal(n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)


def function_of(name: str) -> Any:
    """A `fit_*` function of `ordinal`, or of its companions."""
    return getattr(ordinal, name, None) or getattr(ordinal.companions, name)


def fit(function: str, n: int, d: int, **options: object) -> Callable[[], Call]:
    """Return a function that makes a fit of n rows and d features."""

    def make() -> Call:
        return partial(function_of(function), *rows(n, d), **options)

    return make


def user_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A kernel of the caller's."""
    return np.exp(-0.1 * np.abs(A[:, None, 0] - B[None, :, 0]))


CALLS |= {
    "fit_npsvor, K of 20 000 rows in memory": fit(
        "fit_npsvor", 20_000, 10, C=10.0, cache_mb=1700.0
    ),
    "fit_npsvor, rows of K evicted": fit(
        "fit_npsvor", 20_000, 200, C=10.0, cache_mb=100.0
    ),
    "fit_npsvor, C=1000, tol=1e-8": fit(
        "fit_npsvor", 8000, 20, C=1000.0, tol=1e-8
    ),
    "fit_npsvor, linear": fit("fit_npsvor", 20_000, 100, kernel="linear", C=100.0),
    "fit_npsvor, probability=True": fit("fit_npsvor", 4000, 10, probability=True),
    "fit_npsvor, admm, dense factor": fit("fit_npsvor", 8000, 20, solver="admm"),
    "fit_npsvor, admm, thin factor": fit(
        "fit_npsvor", 20_000, 2, solver="admm", e_abs=0.0, e_rel=1e-6
    ),
    "fit_npsvor, admm, basis=2000": fit(
        "fit_npsvor", 20_000, 20, solver="admm", basis=2000, e_rel=1e-6
    ),
    "fit_npsvor, admm, basis of named rows": fit(
        "fit_npsvor", 20_000, 20, solver="admm", basis=range(2000), e_rel=1e-6
    ),
    "fit_npsvor, admm, polish=True": fit(
        "fit_npsvor", 5000, 10, solver="admm", polish=True, C=10.0
    ),
    "fit_npsvor, user's kernel": fit("fit_npsvor", 5000, 5, kernel=user_kernel),
    "fit_svorim, C=100": fit("fit_svorim", 10_000, 10, C=100.0),
    "fit_svorim, probability=True": fit("fit_svorim", 4000, 10, probability=True),
    "fit_svorex, C=100": fit("fit_svorex", 8000, 10, C=100.0),
    "fit_shashua_levin, C=100": fit("fit_shashua_levin", 8000, 10, C=100.0),
    "fit_redsvm, C=100": fit("fit_redsvm", 8000, 10, C=100.0),
    "fit_svc, C=100": fit("fit_svc", 8000, 10, C=100.0),
    "fit_svmop, C=100": fit("fit_svmop", 8000, 10, C=100.0),
    "fit_svr, C=100": fit("fit_svr", 8000, 10, C=100.0),
    "fit_opbe, C=100": fit("fit_opbe", 8000, 10, C=100.0),
    "fit_kdlor": fit("fit_kdlor", 8000, 10),
    "fit_kdlor, basis=2000": fit("fit_kdlor", 20_000, 10, basis=2000),
    "fit_tlssvor, all rows": fit("fit_tlssvor", 5000, 10),
    "fit_tlssvor, K of 10 000 rows": fit("fit_tlssvor", 10_000, 200),
    "fit_tlssvor, basis=1000": fit("fit_tlssvor", 20_000, 10, basis=1000),
    "fit_tlssvor, probability=True": fit(
        "fit_tlssvor", 4000, 10, basis=1000, probability=True
    ),
    "fit_gpor, ep": fit("fit_gpor", 5000, 10, max_iter=1),
    "fit_gpor, ep, optimize=False": fit("fit_gpor", 5000, 10, optimize=False),
    "fit_gpor, laplace": fit("fit_gpor", 5000, 10, inference="laplace", max_iter=3),
    "fit_gpor, ard": fit(
        "fit_gpor", 5000, 50, inference="laplace", kernel="ard", max_iter=3
    ),
    "fit_gpor, basis=500": fit("fit_gpor", 20_000, 10, basis=500, max_iter=10),
    "fit_gpor, basis=1000": fit("fit_gpor", 20_000, 10, basis=1000, max_iter=3),
    "fit_gpor, basis=2000": fit("fit_gpor", 20_000, 10, basis=2000, max_iter=3),
    "fit_gpor, n_restarts=5": fit("fit_gpor", 1000, 5, n_restarts=5),
    "fit_gpor, user's kernel": fit("fit_gpor", 3000, 5, kernel=user_kernel),
    "fit_xofm, lbfgs": fit("fit_xofm", 20_000, 100, n_intervals=20, max_iter=300),
    "fit_xofm, 300 000 rows": fit("fit_xofm", 300_000, 30, max_iter=300),
    "fit_nnor": fit("fit_nnor", 20_000, 100, n_hidden=100),
    "fit_nnpom": fit("fit_nnpom", 20_000, 100, n_hidden=100),
    "fit_elmor": fit("fit_elmor", 20_000, 100, n_hidden=500),
    "fit_cnnor": fit("fit_cnnor", 20_000, 100),
    "fit_ofmhs": fit("fit_ofmhs", 20_000, 100, l1=1e-3),
    "fit_boosting": fit("fit_boosting", 200_000, 20),
    "fit_boosting, scores": fit("fit_boosting", 20_000, 20, structure="scores"),
    "fit_xofm, sgd": fit("fit_xofm", 20_000, 100, solver="sgd", n_epochs=1e-2),
}  # fmt: skip


def boosted(call: str) -> Callable[[], Call]:
    """Return a function that makes a call of a large boosting model on many rows."""

    def make() -> Call:
        X, y = rows(20_000, 20)
        model = ordinal.fit_boosting(X, y, n_rounds=200)
        many = np.tile(X, (50, 1)) if call == "predict" else X
        return partial(getattr(model, call), many)

    return make


CALLS |= {
    f"BoostingModel.{name}": boosted(name)
    for name in ("predict", "contributions", "explain")
}


@call("fit_gpor, precomputed")
def _() -> Call:
    X, y = rows(5000, 10)
    K = kernels.RBF(0.05)(X, X)
    return partial(
        ordinal.fit_gpor, K, y, kernel="precomputed", inference="laplace", max_iter=5
    )


@call("fit_npsvor, CSR rows of 100 000 columns")
def _() -> Call:
    rng = np.random.default_rng(0)
    n, d, k = 10_000, 100_000, 50
    indptr = np.arange(0, n * k + 1, k)
    indices = rng.integers(0, d, n * k)
    y = rng.integers(0, 3, n)
    from scipy.sparse import csr_matrix

    X = csr_matrix((rng.standard_normal(n * k), indices, indptr), shape=(n, d))
    X.sum_duplicates()
    return partial(ordinal.fit_npsvor, X, y, C=10.0)


def fitted(function: str, n: int, d: int, **options: object) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function_of(function)(*rows(n, d), **options)


def of_model(
    method: str, n_new: int, function: str, n: int, d: int, **options: object
) -> Callable[[], Call]:
    """Return a function that calls a model's method on new rows."""

    def make() -> Call:
        model = fitted(function, n, d, **options)
        return partial(getattr(model, method), rows(n_new, d)[0])

    return make


CALLS |= {
    "NpsvorModel.predict": of_model(
        "predict", 200_000, "fit_npsvor", 4000, 20, tol=0.1
    ),
    "NpsvorModel.predict_proba": of_model(
        "predict_proba", 100_000, "fit_npsvor", 2000, 20, probability=True
    ),
    "SvorModel.predict_proba": of_model(
        "predict_proba", 200_000, "fit_svorim", 2000, 20, probability=True
    ),
    "TlsSvorModel.predict": of_model(
        "predict", 200_000, "fit_tlssvor", 4000, 20, basis=1000
    ),
    "GporModel.predict_proba": of_model(
        "predict_proba", 50_000, "fit_gpor", 3000, 20, optimize=False
    ),
    "GporModel.predict_latent, low rank": of_model(
        "predict_latent", 200_000, "fit_gpor", 3000, 20, optimize=False, basis=500
    ),
    "XofmModel.predict": of_model(
        "predict", 200_000, "fit_xofm", 4000, 100, max_iter=10
    ),
}  # fmt: skip


def table(n: int, d: int, known: float = 0.7) -> np.ndarray:
    """Draw a table of rank 3, with noise and holes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    X += 0.1 * rng.standard_normal((n, d))
    return np.where(rng.random((n, d)) < known, X, np.nan)


@call("impute_low_rank, 20 000 x 200")
def _() -> Call:
    return partial(preprocessing.impute_low_rank, table(20_000, 200), 3)


@call("impute_low_rank, 200 x 20 000")
def _() -> Call:
    return partial(preprocessing.impute_low_rank, table(200, 20_000), 3)


@call("impute_low_rank, 5000 x 3000, rank=50")
def _() -> Call:
    return partial(preprocessing.impute_low_rank, table(5000, 3000), 50, max_iter=20)


@call("Standardizer.fit and transform, 20 000 x 200")
def _() -> Call:
    X = rows(20_000, 200)[0]

    def both() -> None:
        for _ in range(20):
            preprocessing.Standardizer.fit(X).transform(X)

    return both


@call("Binning.equal_frequency and transform, 10^6")
def _() -> Call:
    values = np.random.default_rng(0).standard_normal(10**6)

    def both() -> None:
        preprocessing.Binning.equal_frequency(values, 10).transform(values)

    return both


def of_kernel(kernel: Callable[..., object]) -> Callable[[], Call]:
    def make() -> Call:
        X = rows(10_000, 200)[0]
        return partial(kernel, X, X)

    return make


CALLS |= {
    f"kernels.{type(kernel).__name__}, 10 000 x 10 000": of_kernel(kernel)
    for kernel in (
        kernels.Linear(), kernels.Polynomial(), kernels.RBF(0.01),
        kernels.ARD(np.full(200, 0.01)), kernels.LinearARD(np.full(200, 0.01)),
        kernels.Pearson(),
    )
}  # fmt: skip


@call("every metric of 10^6 rows")
def _() -> Call:
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 5, (2, 10**6))
    P = rng.dirichlet(np.ones(5), 10**6)

    def every() -> None:
        for name in metrics.__all__:
            getattr(metrics, name)(y, P if name in ("rps", "log_loss") else p)

    return every


@call("comparison, 10^6 folds")
def _() -> Call:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 10**6))

    def every() -> None:
        comparison.wilcoxon(a, b)
        comparison.friedman(rng.random((20_000, 20)))
        comparison.win_draw_loss([rng.random((100, 20)) for _ in range(100)])

    return every


@call("datasets, 10^6 rows")
def _() -> Call:
    def every() -> None:
        datasets.make_gaussians(333_333)
        datasets.make_tlssvor(10**6)

    return every


@call("splits, designs, gamma_range")
def _() -> Call:
    X, y = rows(200_000, 20)

    def every() -> None:
        model_selection.stratified_kfold(y, 10)
        model_selection.stratified_holdout(y, 20)
        model_selection.gamma_range(X)
        design = model_selection.uniform_design(200, 5)
        model_selection.centred_discrepancy((design - 0.5) / len(design))

    return every


GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}


@call("select on threads")
def _() -> Call:
    grid = model_selection.Grid(**GRID)
    return partial(
        model_selection.select, ordinal.fit_svorim, *rows(4000, 10), search=grid
    )


@call("select of fit_gpor on threads")
def _() -> Call:
    grid = model_selection.Grid(inference=["ep", "laplace"])
    return partial(
        model_selection.select, ordinal.fit_gpor, *rows(3000, 10), search=grid
    )


@call("select on processes")
def _() -> Call:
    grid, data = model_selection.Grid(**GRID), rows(4000, 10)

    def search() -> None:
        with ProcessPoolExecutor(2) as pool:
            model_selection.select(
                ordinal.fit_svorim, *data, search=grid, executor=pool
            )

    return search


@call("nested")
def _() -> Call:
    grid = model_selection.Grid(**GRID)
    return partial(
        model_selection.nested, ordinal.fit_npsvor, *rows(2000, 10), search=grid
    )


@call("save and load, 128 MB")
def _() -> Call:
    model: ordinal.models.GporModel = fitted(
        "fit_gpor", 4000, 20, optimize=False, inference="laplace"
    )
    path = Path(tempfile.mkdtemp()) / "model.npz"

    def both() -> None:
        for _ in range(3):
            model.save(path)
            ordinal.load(path)

    return both


def csv_file() -> str:
    X, y = rows(8000, 10)
    path = Path(tempfile.mkdtemp()) / "rows.csv"
    header = ",".join([*(f"x{j}" for j in range(10)), "y"])
    np.savetxt(path, np.column_stack([X, y]), "%.6g", ",", header=header, comments="")
    return str(path)


def _fit_command(method: str, *options: str) -> list[str]:
    path = csv_file()
    out = str(Path(path).with_name("model.npz"))
    return ["fit", path, "--method", method, "--out", out, "--set", *options]


COMMANDS |= {
    "ordinal fit --method npsvor": lambda: _fit_command("npsvor", "C=1000", "tol=1e-8"),
    "ordinal fit --method gpor-ep": lambda: _fit_command("gpor-ep", "max_iter=20"),
    "ordinal compare": lambda: ["compare", csv_file(), "--splits", "3"],
}


if __name__ == "__main__":
    print("\n".join(itertools.chain(CALLS, COMMANDS)))
