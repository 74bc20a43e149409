"""Every `fit_*` function and variant, and what the conformance suite may ask of each.

The suite is test_methods.py (results), test_methods_input.py (what callers give),
test_methods_tables.py (data frames and the names of columns; tables with words and
gaps, through models, searches, files and estimators), test_methods_control.py (watching
and ending a fit), test_methods_files.py (models as values) and test_methods_chunks.py
(rows that are read in chunks). A new method joins it with one entry of METHODS; what
only that method promises, and its mathematics, belong into a file of its own. `Method`
says what the fields of an entry mean; `takes` is held against the signature, so that no
option of a method can be forgotten here.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from internals import methods
from strategies import sample

import ordinal
from ordinal.exceptions import (
    CollinearColumnsWarning,
    ConvergenceWarning,
    DisorderedThresholdsWarning,
)

# every `fit_*` function by its name
FITS = {
    name: getattr(module, name)
    for module in (ordinal, ordinal.companions)
    for name in dir(module)
    if name.startswith("fit_")
}
REQUIRED = {"classes", "sample_weight", "n_threads", "max_time"}
OF_STEPS = {"tol", "max_iter", "callback", "verbose"}
OPTIONAL = {
    "basis", "cache_mb", "class_weight", "cost", "kernel", "probability",
    "rng",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Method:
    """A `fit_*` function with the options that make it one variant.

    Called as the function itself, with `variant` and one thread unless the call says
    otherwise; out-of-order thresholds, which some methods may have, are no failure.
    """

    name: str  # in the id of a test
    fit: Callable[..., Any]
    model: type
    takes: frozenset[str]  # of OPTIONAL
    rules: tuple[str, ...]  # of predict; the first one is its default
    endless: Mapping[str, Any]  # options of a fit to `endless_rows` that takes minutes
    variant: Mapping[str, Any] = field(default_factory=dict)
    # Options under which two fits of one problem agree within `atol` on the decision of
    # a row of a few units; None: rows or pairs are drawn, so that the order of the rows
    # matters and only the same call gives the same model.
    precise: Mapping[str, Any] | None = field(default_factory=dict)
    atol: float = 1e-4
    # Options that end the fit at its limit of iterations, and what the warning advises.
    brief: Mapping[str, Any] = field(default_factory=lambda: {"max_iter": 1})
    advice: str = "raise max_iter or tol$"
    parts: int = 3  # of the record of a fit to three ranks, if it has any
    directed: Mapping[str, Any] = field(default_factory=dict)  # for asymmetric costs
    missing: str = "pearson"  # NaN goes with that kernel only; or "always"
    whole_weights: bool = False  # a weight is 0, or 1 and more
    counts_rows: bool = False  # trees: two rows are not one row of weight 2
    reversible: bool = True  # reversed ranks give the mirrored model
    distances: bool = False  # of ranks matter, and so do ranks without rows between
    decision: str = "decision_function"  # the method of the model with numbers of a row
    needs_diagonal: bool = False  # predictions by a precomputed kernel take k(x, x)
    starts: bool = False  # start= takes a model
    # Sums are in single precision: kernels and weights of any size are refused
    single: bool = False
    n_endless: int = 1200
    foreign: frozenset[str] = frozenset()  # options that are for other variants only
    # Its members have tol, max_iter, callback and verbose; the method has `progress`
    composed: bool = False
    # (number of rows, options) of fits that many threads share in every way they can
    threaded: tuple[tuple[int, Mapping[str, Any]], ...] = ((300, {}),)

    def __call__(self, X: Any, y: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisorderedThresholdsWarning)
            return self.fit(X, y, **{"n_threads": 1, **self.variant, **options})

    def cut_short(self, X: Any, y: Any, **options: Any) -> Any:
        """The same where it does not matter whether the fit converges, or which columns
        it does without."""
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            warnings.simplefilter("ignore", CollinearColumnsWarning)
            return self(X, y, **options)

    def numbers(self, model: Any, X: Any, **options: Any) -> np.ndarray:
        """Return what the model predicts for rows, as an array: the mean of a latent
        function, a score, or a distance a rank."""
        values = getattr(model, self.decision)(X, **options)
        return values[0] if isinstance(values, tuple) else values

    def endless_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that the options `endless` make the work of minutes."""
        return sample(self.n_endless, 5, noise=2.0)

    def can(self, *names: str) -> bool:
        return self.takes.issuperset(names)

    def __str__(self) -> str:
        return self.name


DUAL = frozenset({"cache_mb", "class_weight", "cost", "kernel", "probability", "rng"})
PROBABLE = ("threshold", "mode", "median", "cost")
DUAL_FIT: Mapping[str, Any] = {
    "precise": {"tol": 1e-8},
    "brief": {"max_iter": 1, "C": 30.0},
    "advice": "raise max_iter or tol, or lower C$",
    "endless": {"C": 1e5, "gamma": 1.0, "tol": 1e-12},
    "threaded": (
        (400, {"C": 30.0, "tol": 1e-6}), (400, {"C": 30.0, "cache_mb": 0.02}),
        (400, {"C": 30.0, "kernel": "linear"}), (400, {"probability": True}),
    ),
}  # fmt: skip


def svor(name: str, fit: Callable[..., Any], **fields: Any) -> Method:
    return Method(
        name, fit, ordinal.models.SvorModel, takes=DUAL | {"basis"}, rules=PROBABLE,
        distances=fit in (ordinal.fit_svorim, ordinal.companions.fit_redsvm),
        starts=True, **{**DUAL_FIT, **fields},
    )  # fmt: skip


ON_BASIS: Mapping[str, Any] = {
    "variant": {"basis": 12},
    "precise": None,  # rows are drawn
    "single": True,
    "n_endless": 30_000,
    # three chunks of rows, with a sample of them first; some of their features kept
    "threaded": (
        (20_000, {"tol": 1e-2}), (20_000, {"tol": 1e-2, "cache_mb": 0.5}),
        (20_000, {"tol": 1e-2, "probability": True}),
    ),
}  # fmt: skip


def svor_on_basis(name: str, fit: Callable[..., Any]) -> Method:
    endless = {"C": 1e5, "gamma": 1.0, "tol": 1e-300, "max_iter": 10**9}
    brief = {"max_iter": 1, "C": 30.0, "tol": 1e-6}
    return svor(name, fit, endless=endless, brief=brief, **ON_BASIS)


def npsvor(name: str, endless: Mapping[str, Any], **fields: Any) -> Method:
    return Method(
        name, ordinal.fit_npsvor, ordinal.models.NpsvorModel, takes=DUAL | {"basis"},
        rules=("nearest", "mode", "median", "cost"),
        **{**DUAL_FIT, "endless": {"C": 1e5, "gamma": 1.0, **endless}, **fields},
    )  # fmt: skip


ADMM = {"solver": "admm", "e_abs": 0.0, "e_rel": 1e-14, "max_iter": 10**9}
SMALL = {"e_abs": 1e-10, "e_rel": 1e-10}


def gpor(name: str, **fields: Any) -> Method:
    return Method(
        name, ordinal.fit_gpor, ordinal.models.GporModel,
        takes=frozenset({"basis", "cache_mb", "kernel", "rng"}),
        rules=("median", "mode", "cost"), decision="predict_latent",
        endless={"n_restarts": 10_000}, n_endless=150, atol=1e-3, needs_diagonal=True,
        **{"precise": {"tol": 1e-5}, **fields},
    )  # fmt: skip


def xofm(name: str, **fields: Any) -> Method:
    return Method(
        name, ordinal.fit_xofm, ordinal.models.XofmModel,
        takes=frozenset({"cache_mb", "probability", "rng"}),
        rules=("share", "mode", "median", "cost"), missing="always", **fields,
    )  # fmt: skip


def thresholded(name: str, fit: Callable[..., Any]) -> Method:
    return Method(
        name, fit, ordinal.models.LinearThresholdModel, rules=PROBABLE,
        takes=frozenset({"class_weight", "probability", "rng"}),
        precise={"tol": 1e-10}, missing="never",
        endless={"tol": 1e-300, "max_iter": 10**9}, n_endless=100_000,
        distances=fit is ordinal.companions.fit_lat,
        threaded=((5000, {}), (5000, {"probability": True})),  # five chunks of rows
    )  # fmt: skip


def network(name: str, fit: Callable[..., Any], model: type, plain: str) -> Method:
    return Method(
        name, fit, model, takes=frozenset({"class_weight", "rng"}),
        rules=tuple(dict.fromkeys([plain, "mode", "median", "cost"])),
        precise={"n_hidden": 3, "l2": 1e-2, "tol": 1e-9}, missing="never",
        endless={"tol": 1e-300, "max_iter": 10**9}, n_endless=50_000,
        threaded=((5000, {"max_iter": 20}), (300, {"n_starts": 3})),  # five chunks
    )  # fmt: skip


def svm(name: str, fit: Callable[..., Any], **fields: Any) -> Method:
    own = {"takes": DUAL | {"basis"}, "rules": ("largest", *PROBABLE[1:]), **DUAL_FIT}
    return Method(name, fit, **{"model": ordinal.models.SvmModel, **own, **fields})


def tlssvor(name: str, **fields: Any) -> Method:
    return Method(
        name, ordinal.fit_tlssvor, ordinal.models.TlsSvorModel,
        takes=DUAL - {"cost"} | {"basis"}, rules=PROBABLE, distances=True,
        endless={"tol": 1e-300, "C": 1e4, "u": 0.5, "max_iter": 10**9}, n_endless=400,
        **fields,
    )  # fmt: skip


def boosting(name: str, **fields: Any) -> Method:
    return Method(
        name, ordinal.fit_boosting, ordinal.models.BoostingModel,
        takes=frozenset({"class_weight", "rng"}), rules=("median", "mode", "cost"),
        variant={"n_rounds": 40, **fields.pop("variant", {})},
        precise={"row_share": 1.0, "feature_share": 1.0},
        brief={"n_rounds": "auto", "max_iter": 1}, missing="always", counts_rows=True,
        endless={"n_rounds": 10**9, "learning_rate": 1e-6},
        # five chunks of rows
        threaded=((5000, {}), (2000, {"n_rounds": "auto", "max_iter": 10})),
        **fields,
    )  # fmt: skip


class ByFirstFeature:
    """Splitter whose folds do not depend on the order or the number of equal rows."""

    def split(self, X, y, groups=None):
        fold = np.floor(1e6 * np.abs(np.asarray(X, float)[:, 0])).astype(int) % 3
        for k in range(3):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def members(**options: Any) -> Mapping[str, Any]:
    """Return a linear method, and one whose probabilities the folds calibrate."""
    pom = partial(ordinal.fit_pom, l2=1e-3)
    return {"methods": {"pom": pom, "svorim": partial(ordinal.fit_svorim, **options)}}


UNTUNED = {"optimize": False}
METHODS = [
    npsvor(
        "npsvor", {"tol": 1e-12},
        threaded=(
            (400, {"C": 100.0, "tol": 1e-6}), (400, {"C": 100.0, "cache_mb": 0.01}),
            (400, {"kernel": "linear"}), (400, {"probability": True}),
        ),
    ),
    npsvor(
        "npsvor-admm", ADMM, variant={"solver": "admm"},
        precise={"max_iter": 100_000, **SMALL},
        threaded=((400, {"C": 3.0}), (200, {"C": 100.0, "polish": True})),
    ),
    npsvor("npsvor-basis", {"tol": 1e-300, "max_iter": 10**9}, **ON_BASIS),
    npsvor(
        "npsvor-admm-basis", ADMM, variant={"solver": "admm", "basis": 12},
        # as many rows as the kernel has dimensions: they span it, whichever are chosen
        precise={"kernel": "linear", "basis": 3, "max_iter": 100_000} | SMALL,
        threaded=((400, {"basis": 60}),),
    ),
    svor("svorim", ordinal.fit_svorim),
    svor("svorex", ordinal.fit_svorex),
    svor("shashua_levin", ordinal.companions.fit_shashua_levin),
    svor("redsvm", ordinal.companions.fit_redsvm),
    svor_on_basis("svorim-basis", ordinal.fit_svorim),
    svor_on_basis("svorex-basis", ordinal.fit_svorex),
    svor_on_basis("redsvm-basis", ordinal.companions.fit_redsvm),
    svm("svc", ordinal.companions.fit_svc, takes=DUAL - {"cost"} | {"basis"}),
    # ranks are numbers from 0, and a rank is not what the ranks below are not
    svm(
        "svr", ordinal.companions.fit_svr, model=ordinal.models.SvrModel,
        rules=PROBABLE, reversible=False, distances=True,
        directed={"thresholds": "fitted"},
    ),
    svm("cssvc", ordinal.companions.fit_cssvc, reversible=False),
    svm("svmop", ordinal.companions.fit_svmop, parts=2),
    tlssvor("tlssvor", precise={"tol": 1e-10}, threaded=((200, {"u": 1.5}),)),
    tlssvor(
        "tlssvor-basis", variant={"basis": 0.5}, precise=None,
        threaded=(  # more than two chunks of rows
            (2500, {"basis": 40, "u": 1.5}),
            (2500, {"basis": 40, "u": np.inf}),
            (2500, {"basis": 20, "u": 1.5, "probability": True}),
        ),
    ),
    gpor("gpor-ep", whole_weights=True, threaded=((500, UNTUNED), (60, {}))),
    gpor(
        "gpor-laplace", variant={"inference": "laplace"},
        threaded=((1001, UNTUNED), (60, {})),
    ),
    gpor(
        "gpor-basis", variant={"basis": 12}, whole_weights=True,
        precise={"kernel": "linear", "basis": 3, "tol": 1e-5},
        threaded=((1001, {"basis": 20, "max_iter": 3}),),
    ),
    Method(
        "opbe", ordinal.companions.fit_opbe, ordinal.models.OpbeModel,
        takes=DUAL - {"cost", "probability"} | {"basis"},
        rules=("mode", "median", "cost"),
        **{**DUAL_FIT, "threaded": (
            *DUAL_FIT["threaded"][:2], (20_000, {"basis": 12, "tol": 1e-2}),
        )},
    ),
    Method(
        "kdlor", ordinal.companions.fit_kdlor, ordinal.models.KdlorModel,
        takes=frozenset({"basis", "class_weight", "kernel", "probability", "rng"}),
        rules=PROBABLE, advice="raise max_iter or tol, or take a basis$",
        endless={"tol": 1e-300}, n_endless=2500,
        threaded=(
            (1100, {"ridge": 1e-4}),
            (300, {"probability": True}),
            (20_000, {"basis": 40}),  # three chunks of rows
        ),
    ),
    thresholded("lit", ordinal.companions.fit_lit),
    thresholded("lat", ordinal.companions.fit_lat),
    Method(
        "pom", ordinal.fit_pom, ordinal.models.PomModel,
        takes=frozenset({"class_weight"}), rules=("median", "mode", "cost"),
        precise={"tol": 1e-10}, missing="never",
        endless={"tol": 1e-300, "max_iter": 10**9}, n_endless=100_000,
        threaded=((5000, {}), (5000, {"l1": 1e-3})),  # five chunks of rows
    ),
    network("nnor", ordinal.companions.fit_nnor, ordinal.models.NnorModel, "scan"),
    network("nnpom", ordinal.companions.fit_nnpom, ordinal.models.NnpomModel, "mode"),
    Method(
        "cnnor", ordinal.companions.fit_cnnor, ordinal.models.CnnorModel,
        takes=frozenset({"class_weight", "rng"}),
        rules=("scan", "mode", "median", "cost"),
        variant={
            "n_filters": 3, "n_hidden": 5, "n_compared": 20, "n_triplets": 1000,
            "max_iter": 5000,
        },
        precise=None, missing="never",  # triplets are drawn
        endless={"tol": 1e-300, "max_iter": 10**9},
        threaded=((2500, {"max_iter": 5}),),  # three chunks of rows
    ),
    Method(
        "elmor", ordinal.companions.fit_elmor, ordinal.models.ElmorModel,
        takes=frozenset({"class_weight", "probability", "rng"}),
        rules=("nearest", "mode", "median", "cost"),
        precise={"tol": 1e-8}, missing="never",
        whole_weights=True,  # of what is left out for the ridge
        endless={"tol": 1e-300}, n_endless=30_000,
        threaded=((20_000, {"probability": True}),),  # three chunks of rows
    ),
    Method(
        "ofmhs", ordinal.companions.fit_ofmhs, ordinal.models.OfmhsModel,
        takes=frozenset({"class_weight"}), rules=PROBABLE,
        precise={"tol": 1e-10}, missing="never", threaded=((5000, {}),),
        advice="raise max_iter or tol, or raise the penalties$",
        endless={"tol": 1e-300, "max_iter": 10**9}, n_endless=20_000,
    ),
    boosting("boosting"),
    boosting("boosting-scores", variant={"structure": "scores"}),
    xofm(
        "xofm-lbfgs", precise={"n_factors": 0, "tol": 1e-9},
        endless={"tol": 1e-300, "n_factors": 8, "max_iter": 10**9},
        threaded=(  # five chunks of rows
            (5000, {}), (5000, {"early_stopping": 0.2}),
            (5000, {"monotone": [1, 0, -1]}), (2500, {"probability": True}),
        ),
    ),
    xofm(
        "xofm-sgd", variant={"solver": "sgd", "n_epochs": 400.0}, precise=None,
        foreign=frozenset({"max_iter"}), brief={"n_epochs": 0.01, "tol": 1e-9},
        advice="raise n_epochs or tol, or use another solver$",
        endless={"n_epochs": 1e9, "tol": 1e-300},
        threaded=((5000, {"n_epochs": 0.02, "batch_size": 600}),),
    ),
    Method(
        "stacking", ordinal.fit_stacking, ordinal.models.StackingModel,
        takes=frozenset({"class_weight", "cost", "rng"}),
        rules=("median", "mode", "cost"), variant={**members(), "tune": False},
        precise={**members(tol=1e-8), "cv": ByFirstFeature()}, missing="always",
        brief={}, endless=members(C=1e5, gamma=1.0, tol=1e-12),
        distances=True, decision="predict_proba", composed=True, threaded=((300, {}),),
    ),
]  # fmt: skip


# One method of each kind of model; tests of the others are slow, because every method
# here adds some 170 tests to the README's test command.
TYPICAL = {
    "npsvor", "svorim-basis", "gpor-laplace", "pom", "nnpom", "xofm-lbfgs", "boosting",
}  # fmt: skip
SIMILAR = pytest.mark.slow("one method of each kind is fast")
# The tests of a wheel run without it (test-requires in pyproject.toml).
TREES = pytest.mark.skipif(not find_spec("lightgbm"), reason="needs lightgbm")


def which(fast: Collection[str] = TYPICAL, **wanted: Any) -> Any:
    """Return a decorator that runs a test once per method for which `wanted` holds.

    The test is slow for methods whose names are not in `fast`.
    `takes` is held against the options of a method, other names against its fields;
    `precise=True` asks for methods that have such options.
    """

    def suits(method: Method) -> bool:
        for name, value in wanted.items():
            if name == "takes":
                value = {value} if isinstance(value, str) else set(value)
                if not method.takes >= value:
                    return False
            elif name == "precise":
                if (method.precise is not None) is not value:
                    return False
            elif getattr(method, name) != value:
                return False
        return True

    return those(filter(suits, METHODS), fast)


def those(chosen: Iterable[Method], fast: Collection[str] = TYPICAL) -> Any:
    """Return a decorator that runs a test once for each of these methods."""
    cases = [pytest.param(method, marks=marks_of(method, fast)) for method in chosen]
    return pytest.mark.parametrize("method", cases, ids=str)


def marks_of(method: Method, fast: Collection[str] = TYPICAL) -> Any:
    """Return the marks of a test that is slow unless the method's name is in `fast`."""
    marks = [] if method.name in fast else [SIMILAR]
    return [*marks, TREES] if method.name == "boosting" else marks


def registered(fast: Collection[str] = TYPICAL) -> list[Any]:
    """Return what is registered, slow for methods without a variant in `fast`."""
    fits = {method.fit for method in METHODS if method.name in fast}
    return [
        pytest.param(
            known, marks=() if known.fit in fits else SIMILAR, id=known.estimator
        )
        for known in methods()
    ]


every_method = which()
stepwise = which(composed=False)  # methods with callback, tol and max_iter
all_methods = which(
    fast={method.name for method in METHODS}
)  # for what no other test asks of some method
