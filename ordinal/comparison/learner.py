"""Methods together with their preprocessing and, on request, a hyperparameter search;
the choice of methods by the argument `methods`.

`compare` and the command fit methods by this class.
"""

from __future__ import annotations  # numpy.random is slow to import

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._input.checks import shown
from .._input.frame import Frame
from .._input.intervals import RankIntervals
from .._model.registry import (
    Method,
    fits_by_name,
    method_of,
    resolve_fit,
    unwrapped,
)
from .._model.registry import methods as registered
from ..model_selection import select
from ..model_selection.scoring import Rule, Scorer, ruled
from ..model_selection.spaces import open_grid
from ..preprocessing import PreprocessedModel, Standardizer, TablePreprocessor
from ..preprocessing.base import Preprocess
from .estimators import fit_of_estimator

FOLDS = 5  # number of folds of a search, as in the papers
METHODS = ("constant-median", "constant-mode", "pom", "svorim", "npsvor", "xofm")
GPOR = "gpor-ep"  # the default of `fit_gpor`
TREES = "boosting"  # a default if LightGBM is installed
GPOR_ROWS = 500  # training rows up to which a fit takes some seconds at most


@dataclass(frozen=True, slots=True)
class Learner:
    """Method with given parameters, whose other parameters may be tuned.

    Attributes
    ----------
    fit : callable
    params : dict
    tune : bool
        Whether to search the grid of the method, without the parameters in `params`.
    preprocess : TablePreprocessor, or None
        None for a method that accepts categories and missing values, and for sparse
        matrices.
    n_threads : int or None
    """

    fit: Callable[..., Any]
    params: dict[str, Any]
    tune: bool = False
    preprocess: TablePreprocessor | None = None
    n_threads: int | None = None

    @classmethod
    def from_fit(
        cls,
        fit: Callable[..., Any],
        params: Mapping[str, Any],
        *,
        tune: bool,
        preprocess: TablePreprocessor | None,
        n_threads: int | None = None,
    ) -> Learner:
        """Make the learner of a function, or of a partial of one.

        `preprocess` is ignored for the baselines, which ignore X, and, unless it states
        columns of dates or the order of categories, for a method that accepts
        categories and missing values. A method composed of others passes it on to them,
        unless it is the default, which they choose by what they accept.
        """
        learner = cls(fit, dict(params), tune, None, n_threads)
        method = learner._method
        if method is not None and method.composed:
            default = preprocess in (None, TablePreprocessor())
            given = {} if default else {"preprocess": preprocess}
            return replace(learner, params=given | learner.params)
        stated = preprocess is not None and bool(preprocess.dates or preprocess.order)
        takes_tables = unwrapped(fit)[0] is fit_constant or (
            method is not None
            and {"missing", "categories"} <= method.accepts_with(learner._given)
            and not stated
        )
        return learner if takes_tables else replace(learner, preprocess=preprocess)

    @property
    def _method(self) -> Method | None:
        return method_of(unwrapped(self.fit)[0])

    def advice(self, X: Any) -> str:
        """Return the end of the message about a failure on the columns of a table."""
        named = isinstance(X, Frame) and X.names is not None
        if self._method is not None or self.preprocess is None or not named:
            return ""
        return (
            "; a function of your own receives the features as an array of numbers: "
            "pass a fit_* function, or functools.partial(fit, ...), which reads the "
            "table itself"
        )

    @property
    def _given(self) -> dict[str, Any]:
        """Options of every fit, those of a partial included."""
        return {**unwrapped(self.fit)[1], **self.params}

    @property
    def grid(self) -> Mapping[str, Sequence[Any]]:
        """Return the grid to search, empty without a search."""
        return open_grid(self.fit, self.params) if self.tune else {}

    @property
    def takes_groups(self) -> bool:
        """Return whether a search or the fit itself has folds of the training rows."""
        own = self._method is not None and self._method.groups_folds(self._given)
        return own or bool(self.grid)

    @property
    def package(self) -> str | None:
        """Return the package that a fit imports beside numpy."""
        return None if self._method is None else self._method.package

    @property
    def points(self) -> int:
        """Return the number of points of the grid, at least 1."""
        return int(np.prod([len(values) for values in self.grid.values()], dtype=int))

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.fit).parameters

    @property
    def is_left_untuned(self) -> bool:
        """Return whether a search was asked for, and no grid is known."""
        baseline = unwrapped(self.fit)[0] is fit_constant
        return self.tune and self._method is None and not baseline

    @property
    def takes_weights(self) -> bool:
        """Return whether the fit has the argument `sample_weight`."""
        known = self.parameters.values()
        return "sample_weight" in self.parameters or any(
            p.kind is p.VAR_KEYWORD for p in known
        )

    @property
    def calibrates(self) -> bool:
        """Return whether `probability` is an option that `params` leaves open."""
        return "probability" in self.parameters and "probability" not in self._given

    def uncalibrated(self) -> Learner:
        """Return the learner without probabilities that fits calibrate."""
        if not self.calibrates:
            return self
        return replace(self, params={**self.params, "probability": False})

    def scorers(
        self, scorers: tuple[Scorer, ...], rule: Rule | None
    ) -> tuple[Scorer, ...]:
        """Return the scorers with the rules by which the models of this method predict.

        The baselines are rules themselves.
        """
        if unwrapped(self.fit)[0] is fit_constant:
            rule = None
        return ruled(scorers, self.fit, self._given, rule)

    def learn(
        self,
        X: Any,
        y: np.ndarray | RankIntervals | None,
        rng: np.random.Generator,
        progress: bool = False,
        callback: Callable[[Any], bool] | None = None,
        rule: Rule | None = None,
        **options: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """Return a model for raw features, and the hyperparameters that were chosen.

        A search minimises the mean absolute error in folds of these rows, of which
        `rule` is the rule of `select`. `callback` is called after the steps of a fit
        without a search. Without y, X is a source of numeric features and labels, which
        is read in chunks at every pass.
        """
        how = self.preprocess
        if self.grid:
            options |= {"standardize": True} if y is None else {"preprocess": how}
            if y is not None and not isinstance(X, np.ndarray | Frame):
                options["standardize"] = False
            return self._searched(X, y, rng, progress, rule=rule, **options)
        options |= self._fit_options(progress) | {"callback": callback}
        known = self.parameters
        if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
            options = {k: v for k, v in options.items() if k in known}
        if how is None:
            return self.fit(X, y, **options), {}
        scaling: Preprocess = Standardizer if y is None else how
        return PreprocessedModel.fit(self.fit, X, y, preprocess=scaling, **options), {}

    def _searched(
        self, X: Any, y: Any, rng: np.random.Generator, progress: bool, **options: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Return the refitted model and its hyperparameters."""
        found = select(
            self.fit,
            X,
            y,
            cv=FOLDS,
            rng=rng,
            n_threads=self.n_threads,
            progress=progress,
            **self.params,
            **options,
        )
        return found.model, found.params

    def _fit_options(self, progress: bool) -> dict[str, Any]:
        """Return the options of a fit without a search."""
        threads = {} if self.n_threads is None else {"n_threads": self.n_threads}
        return self.params | {"verbose": progress, "progress": progress} | threads


def fit_constant(
    X: Any,
    y: np.ndarray,
    *,
    rule: str = "median",
    classes: Sequence[Any] | None = None,
    sample_weight: np.ndarray | None = None,
) -> ConstantModel:
    """Fit the baseline that every method must beat: the shares of the ranks."""
    labels = np.unique(y) if classes is None else np.asarray(classes)
    rank = np.argmax(np.asarray(y)[:, None] == labels, axis=1)
    share = np.bincount(rank, sample_weight, labels.size)
    share = share / share.sum()
    if rule == "mode":
        best = int(share.argmax())
    else:
        best = int((share.cumsum() < 0.5 - 1e-12).sum())
    return ConstantModel(labels, share, best)


@dataclass(frozen=True, slots=True)
class ConstantModel:
    """Model that predicts one label for all rows, and the shares of the ranks.

    Attributes
    ----------
    classes : (r,) array
    share : (r,) array
    best : int
        The rank that is predicted, from 0.
    """

    classes: np.ndarray
    share: np.ndarray
    best: int

    def predict(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], self.classes[self.best])

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile(self.share, (X.shape[0], 1))


CONSTANTS: dict[str, Callable[..., Any]] = {
    "constant-median": fit_constant,
    "constant-mode": partial(fit_constant, rule="mode"),
}


def chosen_fits(methods: Any, n_train: int) -> dict[str, Callable[..., Any]]:
    """Return the functions of the argument `methods`, by their names."""
    known = CONSTANTS | fits_by_name()
    if methods is None:
        trees = (TREES,) * (find_spec("lightgbm") is not None)
        names = METHODS + trees + (GPOR,) * (n_train <= GPOR_ROWS)
        return {name: known[name] for name in names}
    if isinstance(methods, str):
        if methods == "all":
            composed = {
                method.fit for method in registered(every=True) if method.composed
            }
            return {k: fit for k, fit in known.items() if fit not in composed}
        methods = [methods]
    if isinstance(methods, Mapping):
        named = dict(methods)
    elif isinstance(methods, Sequence):
        named = {_name(method): method for method in methods}
    else:
        raise TypeError(
            "methods must be names, functions or classifiers in a sequence or a "
            f"mapping, or 'all', got {shown(methods)}"
        )
    if not named or (not isinstance(methods, Mapping) and len(named) < len(methods)):
        raise ValueError(
            "methods must be one or more methods of different names, got "
            f"{shown(methods)}: pass a mapping to give them names"
        )
    return {
        str(name): resolve_fit(fit_of_estimator(fit), "methods", CONSTANTS)
        for name, fit in named.items()
    }


def _name(method: Any) -> str:
    """Return the name of a method that was given as a name or a function."""
    if isinstance(method, str):
        return method
    for name, fit in fits_by_name().items():
        if fit is method:
            return name
    if isinstance(method, partial):
        options = ", ".join(f"{k}={shown(v)}" for k, v in method.keywords.items())
        return f"{_name(method.func)}({options})"
    return getattr(fit_of_estimator(method), "__name__", None) or shown(method)
