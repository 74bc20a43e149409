"""The fits whose kernels are counted: at least one for every kernel.

A fit is told its number of steps where these may depend on the last bits of numpy's
BLAS, so that every machine counts the same work. The data are drawn, and few: callgrind
takes some fifty times as long as the processor.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

import ordinal
from ordinal.kernels import RBF


def rows(n: int, d: int = 4, r: int = 5) -> tuple[Any, Any]:
    """(X, y): r equally frequent ranks of a curved, noisy sum of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + np.sin(2 * X[:, 1:]).sum(axis=1) + 0.5 * rng.normal(size=n)
    return X, np.argsort(np.argsort(score)) * r // n


def thinned(n: int, d: int) -> tuple[Any, Any]:
    """The same with a tenth of the entries, as a sparse matrix."""
    X, y = rows(n, d)
    return sparse.csr_array(np.where(np.abs(X) > 1.64, X, 0.0)), y


def fit(method: Callable[..., Any], data: tuple[Any, Any], **options: Any) -> Any:
    # It is meant to end before it has converged.
    with warnings.catch_warnings(action="ignore"):
        return method(*data, n_threads=1, **options)


def predictions() -> None:
    """Cases of a Gaussian process, and of a model of sparse rows."""
    X, y = rows(300)
    fit(ordinal.fit_gpor, (X[::5], y[::5]), optimize=False).predict_proba(X)
    model = fit(ordinal.fit_svorim, (X[::5], y[::5]), max_iter=100)
    model.predict(sparse.csr_array(X))


def boosting() -> None:
    """Case of the kernels beside LightGBM: derivatives, scores and contributions."""
    X, y = rows(1000)
    model = fit(ordinal.fit_boosting, (X, y), n_rounds=10)
    model.contributions(X[:100])


def case(method: Callable[..., Any], data: tuple[Any, Any], **options: Any) -> Any:
    return lambda: fit(method, data, **options)


CASES: Mapping[str, Callable[[], object]] = {
    "npsvor": case(ordinal.fit_npsvor, rows(300), C=10.0, gamma=0.3, max_iter=2500),
    "npsvor, few rows": case(
        ordinal.fit_npsvor, rows(300), C=10.0, gamma=0.3, max_iter=1000, cache_mb=0.05
    ),
    "npsvor, ADMM": case(
        ordinal.fit_npsvor, rows(300), C=10.0, solver="admm", max_iter=60
    ),
    "svorim": case(ordinal.fit_svorim, rows(300), C=10.0, max_iter=1500),
    "svorim, few rows": case(
        ordinal.fit_svorim, rows(300), C=10.0, max_iter=1500, cache_mb=0.05
    ),
    "svorim, sparse": case(ordinal.fit_svorim, thinned(300, 30), max_iter=300),
    "svorim, 100 ranks": case(ordinal.fit_svorim, rows(200, r=100), max_iter=100),
    "svorim, basis": case(ordinal.fit_svorim, rows(2000), basis=20, max_iter=6),
    "svorex": case(ordinal.fit_svorex, rows(300), C=10.0, max_iter=1500),
    "redsvm": case(ordinal.companions.fit_redsvm, rows(300), C=10.0, max_iter=1500),
    "svc": case(ordinal.companions.fit_svc, rows(300), C=10.0, max_iter=800),
    "tlssvor": case(ordinal.fit_tlssvor, rows(300), C=10.0, u=1.5, max_iter=8),
    "gpor, EP": case(ordinal.fit_gpor, rows(200), optimize=False),
    "gpor, Laplace": case(
        ordinal.fit_gpor, rows(200), inference="laplace", optimize=False
    ),
    "xofm": case(ordinal.fit_xofm, rows(1000), max_iter=10),
    "xofm, SGD": case(ordinal.fit_xofm, rows(300), solver="sgd", n_epochs=0.2, rng=0),
    "pom": case(ordinal.fit_pom, rows(2000), max_iter=4),
    "pom, sparse": case(ordinal.fit_pom, thinned(1000, 20), max_iter=4),
    "pom path": case(ordinal.fit_pom_path, rows(500, 30), n_lambdas=5, max_iter=20),
    "pom path, sparse": case(
        ordinal.fit_pom_path, thinned(60, 100), n_lambdas=2, max_iter=3
    ),
    "ofmhs": case(ordinal.companions.fit_ofmhs, rows(300, 8), l1=0.02, max_iter=20),
    "boosting": boosting,
    "lat": case(ordinal.companions.fit_lat, rows(1000), max_iter=5),
    "lit": case(ordinal.companions.fit_lit, rows(1000), max_iter=5),
    "nnor": case(ordinal.companions.fit_nnor, rows(1000), max_iter=10, rng=0),
    "nnpom": case(ordinal.companions.fit_nnpom, rows(1000), max_iter=10, rng=0),
    "kernel matrix": lambda: RBF(0.3)(*[rows(400)[0]] * 2),
    "predictions": predictions,
}
