"""Validation of arguments that are numbers, choices, flags or random generators.

An invalid argument raises a ValueError, also for a wrong type, that names the argument,
the rule and the value. An unknown keyword argument raises a TypeError that suggests a
similar one.
"""

from __future__ import annotations  # numpy.random is slow to import

import math
import numbers
import os
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, isfunction, signature, unwrap
from typing import Any, TypeVar, cast

import numpy as np

_LARGEST = float(np.finfo(np.float64).max)
LEAST, MOST = 1e-50, 1e50  # bounds of a factor, so that products of three are finite
_WIDTH, _LIST_WIDTH = 80, 240  # most characters of a value and of a list in a message

# Types that are integers for Python and numpy, but not numbers here.
NO_NUMBERS = (bool, np.timedelta64)


def check_positive(name: str, value: Any) -> float:
    """Return the value as a float if it is positive and finite."""
    number = as_real(value)
    if not 0 < number < math.inf:
        raise _broken(name, value, "a positive finite number")
    return number


def check_nonnegative(name: str, value: Any) -> float:
    """Return the value as a float if it is finite and >= 0."""
    number = as_real(value)
    if not 0 <= number < math.inf:
        raise _broken(name, value, "a finite number >= 0")
    return number


def check_factor(name: str, value: Any, most: float = MOST) -> float:
    """Return a positive number that multiplies terms of a problem, such as C or tau."""
    number = check_positive(name, value)
    if not LEAST <= number <= most:
        raise _broken(name, value, f"between {LEAST:g} and {most:g}")
    return number


def check_factor_or_zero(name: str, value: Any) -> float:
    """Return the value as a float if it is 0 or as `check_factor` requires."""
    number = as_real(value)
    if not 0 <= number < math.inf:
        raise _broken(name, value, "a finite number >= 0")
    return check_factor(name, value) if number else number


def check_share(name: str, value: Any) -> float:
    """Return the value as a float if it is between 0 and 1."""
    return check_real(name, value, lambda v: 0 < v < 1, "a number between 0 and 1")


def check_real(
    name: str, value: Any, holds: Callable[[float], bool], rule: str
) -> float:
    """Return the value as a float if `holds` is true for it, but not for NaN."""
    number = as_real(value)
    if not holds(number):
        raise _broken(name, value, rule)
    return number


def check_range(
    name: str, value: Any, check: Callable[[str, Any], float]
) -> tuple[float, float]:
    """Return a pair (low, high), low < high, of numbers that each pass `check`."""
    if not isinstance(value, Sequence | np.ndarray) or len(value) != 2:
        raise _broken(name, value, "two numbers, (low, high)")
    low, high = (check(f"{name}[{i}]", end) for i, end in enumerate(value))
    if not low < high:
        raise _broken(name, value, "(low, high) with low < high")
    return low, high


def check_finite(name: str, value: Any) -> float:
    """Return the value as a float if it is finite."""
    return check_real(name, value, math.isfinite, "a finite number")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return the value as an int if it is an integer >= `least`."""
    # Kernels count in 64 bits.
    if not (_is_whole(value) and least <= value < 2**63):
        rule = "a positive integer" if least == 1 else f"an integer >= {least}"
        raise _broken(name, value, rule)
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return the value as a bool if it is one."""
    if not isinstance(value, bool | np.bool_):
        raise _broken(name, value, "True or False")
    return bool(value)


def check_verbosity(name: str, value: Any) -> bool:
    """Return whether a flag or a number >= 0, such as verbose=1, asks for lines."""
    if isinstance(value, bool | np.bool_) or (_is_whole(value) and value >= 0):
        return bool(value)
    raise _broken(name, value, "True or False, or a number >= 0")


def check_choice(
    name: str, value: Any, allowed: Iterable[str | None], otherwise: str = ""
) -> None:
    """Raise ValueError unless the value is one of the allowed ones.

    The message suggests a value of the same meaning or a similar name; `otherwise` is
    its end where there is none.
    """
    allowed = list(allowed)
    if not (value is None or isinstance(value, str)) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        end = similar_to(value, allowed) or (f"; {otherwise}" if otherwise else "")
        raise ValueError(f"{name} must be one of {choices}, got {shown(value)}{end}")


def similar_to(value: Any, known: Iterable[Any]) -> str:
    """Return the end of a message that names the known text that a value stands for.

    It is empty if no known text is similar.
    """
    texts = {text.casefold(): text for text in known if isinstance(text, str)}
    text = value.casefold() if type(value) is str else ""
    plain = text.removeprefix("neg_").removesuffix("_score")
    meant = [v for v in (plain, *_VALUES.get(plain, ())) if v in texts]
    meant = meant or get_close_matches(text, texts, 1, SIMILAR)
    return f"; did you mean {shown(texts[meant[0]])}?" if meant else ""


def can_be_listed(value: Any) -> bool:
    """Return whether a value has entries that can be listed, as a sequence has.

    Text and bytes are one entry; memoryviews and sparse matrices cannot always be
    iterated.
    """
    scalar = isinstance(value, np.ndarray) and value.ndim == 0
    text = isinstance(value, str | bytes | bytearray | memoryview)
    single = scalar or text or hasattr(value, "tocsr")
    return isinstance(value, Iterable) and not single


def as_path(name: str, value: Any) -> str:
    """Return a path of any type as text."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{name} must be a path, got {shown(value)}") from None


def resolve_rng(rng: Any) -> np.random.Generator:
    """Return a Generator from itself, from a seed, or from None for a random seed."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if not _is_whole(rng) or rng < 0:
        raise ValueError(
            f"rng must be None, an integer >= 0 or a numpy Generator, got {shown(rng)}"
        )
    return np.random.default_rng(int(rng))


def as_real(value: Any) -> float:
    """Return the value of a real number.

    Anything else, and an integer or fraction beyond the largest double, gives NaN,
    which no rule accepts.
    """
    if isinstance(value, NO_NUMBERS) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def to_double(value: Any) -> float:
    """Return float(value) of a real number, infinite beyond the largest double."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_array(values: Any, name: str) -> np.ndarray:
    """Return `np.asarray` of an argument, which messages name.

    Masked arrays, also as rows, are refused instead of losing their masks. Missing
    values in dictionaries of pyarrow, which numpy replaces by a category, stay missing.
    """
    items = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(item, np.ma.MaskedArray) for item in items):
        raise TypeError(f"{name} is a masked array: fill or drop what it masks")
    try:
        kind: Any = getattr(values, "type", None)
        return np.asarray(
            values.cast(kind.value_type) if hasattr(kind, "index_type") else values
        )
    except (TypeError, MemoryError):
        raise
    except Exception as error:  # rows of unequal length, or an object of the caller
        raise ValueError(f"{name} is not an array: {shortened(error)}") from error


def as_real_array(
    values: Any, name: str, shape: tuple[int, ...] | None = None, of: str = ""
) -> np.ndarray:
    """Return a new array of doubles, of the shape if one is given.

    `of` is appended to the message about a wrong shape. Numbers beyond the largest
    double become infinite.
    """
    a = as_array(values, name)
    if a.dtype.kind == "O":
        a = _doubles(a)
    if a.dtype.kind not in "biuf":
        got = f"dtype {shortened(a.dtype)}"
        if isinstance(values, str):
            got = string_shown(values)
        raise TypeError(f"{name} must hold real numbers, got {got}")
    if shape is not None and a.shape != shape:
        raise ValueError(f"{name} has shape {a.shape}, expected {shape}{of}")
    with np.errstate(over="ignore"):  # of long doubles
        return np.array(a, dtype=np.float64, order="C")


def string_shown(value: str) -> str:
    """Return the words about a string in place of values, which may name a column."""
    column = f"table[{shown(value)}]"
    return f"the string {shown(value)}: pass the column of the table, such as {column}"


def _doubles(a: np.ndarray) -> np.ndarray:
    """Return objects that are all real numbers, such as long integers, as doubles.

    Other arrays are returned unchanged.
    """
    values = a.ravel().tolist()
    if not all(isinstance(v, numbers.Real | np.bool_) for v in values):
        return a
    return np.array([to_double(v) for v in values], dtype=np.float64).reshape(a.shape)


def check_entries(name: str, a: np.ndarray, holds: np.ndarray, rule: str) -> None:
    """Raise ValueError for the first entry of a vector or matrix that breaks a rule."""
    bad = np.argwhere(~holds)
    if bad.size:
        place = zip(("row", "column"), bad[0], strict=False)
        raise ValueError(
            f"{name} must {rule}, got {a[tuple(bad[0])]} in "
            f"{', '.join(f'{line} {k}' for line, k in place)}"
        )


def check_spans(low: np.ndarray, high: np.ndarray, names: Sequence[str]) -> None:
    """Raise ValueError for the first column of X whose range exceeds every double.

    Fits take differences of the entries of a column. Columns of NaN pass.
    """
    wide = np.flatnonzero(high / 2 - low / 2 >= _LARGEST / 2)
    if wide.size:
        raise ValueError(
            f"column {shown(names[wide[0]])} of X spans more than {_LARGEST:.3g}, the "
            f"largest double, from {low[wide[0]]:.3g} to {high[wide[0]]:.3g}: divide "
            "the column by 4 or more"
        )


def shown(value: Any) -> str:
    """Return a value of the caller for a message, on one line of 80 characters.

    An object that shows its fields below the name of its class, such as a model, is
    shown by this name.
    """
    try:
        text = repr(value)
    except Exception:  # a caller's class may raise anything, a long integer ValueError
        text = f"<{type(value).__name__}>"
    name = type(value).__name__
    return name if text.startswith(f"{name}\n") else shortened(text)


def shortened(text: Any) -> str:
    """Return a text for a message, on one line of at most 80 characters."""
    line = " ".join(part.strip() for part in str(text).splitlines())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def listed(labels: Iterable[Any], at_most: int = 10) -> str:
    """Return labels as a Python list for a message, shortened if it is long."""
    return f"[{enumerated(labels, at_most)}]"


def enumerated(labels: Iterable[Any], at_most: int = 10) -> str:
    """Return labels for a sentence, separated by commas and shortened if many."""
    words = [shown(label) for label in np.asarray(labels).tolist()]
    ends = np.cumsum([len(word) for word in words])
    fit = min(at_most, max(1, int(np.count_nonzero(ends <= _LIST_WIDTH))))
    return ", ".join(words[:fit] + ["..."] * (len(words) > fit))


def _broken(name: str, value: Any, rule: str) -> ValueError:
    """Return the error for a value that breaks a rule."""
    return ValueError(f"{name} must be {rule}, got {shown(value)}")


def _is_whole(value: Any) -> bool:
    """Return whether a value is an integer, but no boolean or time."""
    return isinstance(value, numbers.Integral) and not isinstance(value, NO_NUMBERS)


Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class")

# Names by which other packages call arguments of this one.
_OURS = {
    "C1": "C",
    "bagging_fraction": "row_share",
    "cache_size": "cache_mb",
    "class_weights": "class_weight",
    "delimiter": "separator",
    "eps_abs": "e_abs",
    "eps_rel": "e_rel",
    "conf_level": "level",
    "colsample_bytree": "feature_share",
    "disp": "verbose",
    "endog": "y",
    "estimators": "methods",
    "exog": "X",
    "feature_fraction": "feature_share",
    "folds": "cv",
    "grid": "search",
    "k": "n_factors",
    "labels": "classes",
    "max_leaf_nodes": "n_leaves",
    "max_iterations": "max_iter",
    "maxiter": "max_iter",
    "metric": "scoring",
    "metrics": "scoring",
    "min_child_samples": "min_rows",
    "min_data_in_leaf": "min_rows",
    "min_samples_leaf": "min_rows",
    "models": "methods",
    "n_estimators": "n_rounds",
    "na_action": "missing",
    "newdata": "X",
    "newx": "X",
    "n_iter": "max_iter",
    "n_jobs": "n_threads",
    "n_splits": "cv",
    "nsim": "n",
    "nthreads": "n_threads",
    "num_boost_round": "n_rounds",
    "num_leaves": "n_leaves",
    "num_threads": "n_threads",
    "random_seed": "rng",
    "random_state": "rng",
    "sample_weights": "sample_weight",
    "scorer": "scoring",
    "seed": "rng",
    "sep": "separator",
    "space": "search",
    "subsample": "row_share",
    "threads": "n_threads",
    "timeout": "max_time",
    "tolerance": "tol",
    "weight": "sample_weight",
    "weights": "sample_weight",
}
# Values that have other names in other packages.
_VALUES = {
    "acat": ("adjacent",),
    "brier": ("rps",),
    "class": ("mode",),
    "cohen_kappa": ("kappa",),
    "crps": ("rps",),
    "cross_entropy": ("log_loss",),
    "gaussian": ("rbf", "probit"),
    "logistic": ("logit",),
    "mean_absolute_error": ("mae",),
    "na.fail": ("error",),
    "na.omit": ("drop",),
    "poly": ("polynomial",),
    "prob": ("probability",),
    "quadratic_weighted_kappa": ("kappa",),
    "qwk": ("kappa",),
    "raise": ("error",),
    "squared_exponential": ("rbf",),
    "sratio": ("stopping",),
    "zero_one_loss": ("mze",),
}
# Replacements for arguments that a function might be expected to have.
_INSTEAD = {
    "parm": "the result has a row per parameter, for all parameters",
    "subset": "pass the rows that are meant, such as table[rows]",
    "executor": "pass n_threads= for the processors of one machine, or a collection of "
    "dask as X for several; `select` and `nested` take executor=",
    "REML": "fit_clmm maximises the likelihood, and has no restricted one",
    "digits": "results hold all digits: round what is printed",
    # Fits of a path lack it; every function that fits one model has it.
    "preprocess": "fit a Standardizer or a TablePreprocessor to X, and pass its "
    "transform(X)",
}
# Symbols of papers and names of other packages: the argument with that meaning, where
# a function has it, and what differs. The first one that a function has counts, and ""
# stands for any. Arguments of formulas are those of functions with reference=.
_FORMULAS = "formulas are those of fit_pom, fit_pom_path, fit_ratio and fit_clmm"
_SYMBOLS = {
    "Hess": {"cluster": "a model without penalty has its `covariance`"},
    "Delta": {
        "monotone": "Delta >= 0 of the paper is monotone=, per feature",
        "inference": "Delta of the paper is fitted, and the model has `thresholds`",
    },
    "Ratio": {"basis": "Ratio = n / h of the paper is basis=h, the number of rows"},
    "eta": {
        "n_intervals": "eta of the paper is learning_rate= with solver='algorithm1'",
        "learning_rate": "it is learning_rate=",
    },
    "gamma": {"n_intervals": "gamma_j of the paper is n_intervals="},
    "gamma_j": {"n_intervals": "gamma_j of the paper is n_intervals="},
    "alpha": {
        "ratio": "alpha of glmnet and ordinalNet is ratio=, the share of l1",
        "level": "alpha of statsmodels is 1 - level: pass level=",
    },
    "classes": {"labels": "it is labels="},
    "condVar": {"group": "the table always has standard errors"},
    "contrasts": {
        "reference": "a category is compared with the first one or that of reference="
    },
    "control": {
        "tol": "its entries, such as max_iter= and tol=, are arguments themselves"
    },
    "data": {
        "reference": "a data frame is the second argument, after its formula",
        "y": f"features are X and labels y; {_FORMULAS}",
    },
    "distr": {"link": "distr of statsmodels is link=, and its 'logit' our default"},
    "early_stopping_rounds": {
        "n_rounds": "n_rounds='auto' chooses the number of rounds by folds"
    },
    "eval_set": {"n_rounds": "n_rounds='auto' chooses the number of rounds by folds"},
    "family": {
        "threshold": "the family is cumulative; fit_ratio and fit_clmm have family= "
        "for stopping ratios and adjacent categories"
    },
    "formula": {
        "reference": "the formula is the first argument, before its data frame",
        "y": f"features are X and labels y; {_FORMULAS}",
    },
    "groups": {
        "cluster": "cluster= makes standard errors robust; random effects of groups "
        "are those of fit_clmm",
        "preprocess": "select and compare draw folds by groups=",
    },
    "id": {
        "n_quadrature": "id of mixor is (1 | id) in the formula, or groups=",
    },
    "iter": {
        "n_epochs": "iter of the paper, passes over all pairs, is n_epochs=",
        "max_iter": "it is max_iter=",
    },
    "k": {"criterion": "k = 2 of R is criterion='aic', and k = log(n) 'bic'"},
    "kappa": {
        "gamma": "kappa of the papers is 2 gamma: pass gamma=kappa / 2",
        "inference": "kappa of the paper is 2 gamma, which is fitted from "
        "start={'gamma': kappa / 2} on",
    },
    "iterations": {"n_rounds": "it is n_rounds=", "max_iter": "it is max_iter="},
    "l1_ratio": {"ratio": "it is ratio="},
    "lambda1": {
        "l2_main": "lambda1 of the paper is l2_main= with solver='algorithm1', and M "
        "l2_main in its (14), for M pairs of rows"
    },
    "lambda2": {
        "l2_pair": "lambda2 of the paper is l2_pair= with solver='algorithm1', and M "
        "l2_pair in its (14), for M pairs of rows"
    },
    "link": {
        "preprocess": "of the fits, fit_pom, fit_pom_path, fit_ratio, fit_clmm and "
        "fit_boosting have it"
    },
    "location": {"reference": "the formula of the location is the first argument"},
    "max_depth": {
        "n_leaves": "trees grow leaf by leaf, and a tree of depth d has at most 2**d "
        "leaves: pass n_leaves="
    },
    "method": {"link": "method of polr is link=, and its 'logistic' link='logit'"},
    "mode": {
        "kind": "mode of emmeans is kind=, its mean.class 'mean', prob 'probability' "
        "and exc.prob 'exceedance'",
        "rule": "the most probable rank is that of rule='mode'",
    },
    "nAGQ": {
        "n_quadrature": "it is n_quadrature=, and 1 is Laplace's approximation",
        "preprocess": "of the fits, fit_clmm has it, as n_quadrature=",
    },
    "parallel": {
        "nominal": "parallel = FALSE of VGAM is nominal=, with names of features"
    },
    "param_grid": {"": "select(fit, X, y, search=param_grid) tunes"},
    "random": {
        "preprocess": "of the fits, fit_clmm has random effects, as (1 | g) in its "
        "formula"
    },
    "reverse": {
        "family": "sratio of ordinalNet and cratio of VGAM with reverse = TRUE are "
        "family='backward'",
        "classes": "the order of the ranks is that of classes=",
    },
    "robust": {"cluster": "cluster= makes standard errors robust"},
    "scope": {"keep": "the lower scope of R is keep=, terms that stay"},
    "se_fit": {
        "as_frame": "linear models have standard errors of probabilities in "
        "predictions(X, each=True)"
    },
    "sigma": {
        "init_scale": "sigma of the paper is init_scale=",
        "inference": "sigma of the paper is fitted, and the model has `noise`",
    },
    "start": {"max_time": "this fit finds its own starting point"},
    "start_params": {
        "start": "it is start=",
        "max_time": "this fit finds its own starting point",
    },
    "test": {"criterion": "the table always has likelihood-ratio tests"},
    "trace": {
        "verbose": "it is verbose=",
        "progress": "it is progress=",
        "criterion": "the table has a row per step",
    },
    "type": {
        "kind": "type of R is kind=",
        "method": "type of R is method=",
        "rule": "for type='prob' of R call predict_proba, and for 'class' pass "
        "rule='mode'",
        "as_frame": "each type of R is a method: predict, predict_proba or "
        "decision_function",
    },
    "verbose": {"progress": "it is progress="},
}
_SYMBOLS["init"] = _SYMBOLS["start_params"]
_SYMBOLS["param_distributions"] = _SYMBOLS["param_grid"]
_OF_METHODS = {
    "C", "basis", "gamma", "kernel", "l1", "l2", "link", "max_iter", "max_time", "tol",
}  # fmt: skip
# Names of the strength of a penalty elsewhere, and arguments that state it here.
_PENALTY = {
    "alpha", "l1_ratio", "lam", "lambda", "lambda_", "penalty", "reg_alpha",
    "reg_lambda",
}  # fmt: skip
_STRENGTHS = "l1", "l2", "l2_main", "l2_pair", "lambdas", "ridge"
_OF_TREES = {"feature_share", "min_rows", "n_leaves", "n_rounds", "row_share"}
SIMILAR = 0.7  # ratio of `difflib`; typing errors have more than 0.8


def with_suggestions(function: Function) -> Function:
    """Make the TypeError of a function for unknown keyword arguments suggest a name.

    That for too many arguments by position names those that it takes. Signature,
    docstring and type of the function stay the same.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        known = _keywords(function) if kwargs else None
        if known is not None and not known.issuperset(kwargs):
            name, estimator = function.__name__, None
            if args and {"self", "cls"} & known:
                owner = args[0] if isinstance(args[0], type) else type(args[0])
                name = f"{owner.__name__}.{name}".removesuffix(".__init__")
                if owner is not args[0] and hasattr(owner, "get_params"):
                    estimator = owner
            check_keywords(name, kwargs, signature(function).parameters, estimator)
        taken = _by_position(function) if len(args) > 1 else None
        if taken is not None and len(args) > len(taken):
            own = [name for name in taken if name not in ("self", "cls")]
            raise TypeError(
                f"{function.__name__}() takes {', '.join(own) or 'nothing'} by "
                f"position, and got {len(args) - len(taken) + len(own)} values: pass "
                "the others by name"
            )
        return function(*args, **kwargs)

    call._suggests = True  # type: ignore[attr-defined]
    return cast(Function, call)


@cache
def _keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of the arguments of a function, or None if it takes any."""
    known = signature(function).parameters
    loose = any(p.kind is Parameter.VAR_KEYWORD for p in known.values())
    return None if loose else frozenset(known)


@cache
def _by_position(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the arguments that a function takes by position, or None if any."""
    known = signature(function).parameters
    if any(p.kind is Parameter.VAR_POSITIONAL for p in known.values()):
        return None
    return tuple(name for name, p in known.items() if p.kind < Parameter.VAR_POSITIONAL)


def suggest_in_methods(cls: type[Class]) -> type[Class]:
    """Make a class and its public methods suggest names for unknown arguments."""
    for name, own in list(vars(cls).items()):
        inner = getattr(own, "__func__", own)  # of a class method
        public = name == "__init__" or not name.startswith("_")
        if public and isfunction(inner) and not hasattr(inner, "_suggests"):
            made: Any = with_suggestions(inner)
            setattr(cls, name, made if inner is own else type(own)(made))
    return cls


def check_keywords(
    function: str,
    given: Iterable[str],
    known: Iterable[str],
    estimator: type | None = None,
    outer: Iterable[str] = (),
) -> None:
    """Raise TypeError for the first keyword argument that a function does not have.

    `outer` are arguments of the function that passes them on, which may be meant.
    `estimator` is the class of an estimator of which the function is a method: what
    its constructor takes is named as that.
    """
    for name in given:
        if name in known:
            continue
        remedy = suggestion(name, [*known, *outer])
        remedy = remedy or f"; help({function}) lists those it has"
        if estimator is not None and name in signature(estimator).parameters:
            owner = estimator.__name__
            remedy = f": it is a parameter of the estimator, {owner}({name}=...)"
        raise TypeError(
            f"{function}() got an unexpected keyword argument {shown(name)}{remedy}"
        )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown argument.

    It names the replacement, or a known argument of a similar name; it is empty if
    there is neither.
    """
    known = list(known)
    if name in _INSTEAD:
        return f": {_INSTEAD[name]}"
    if "methods" in known and name in _OF_METHODS:
        return f": pass functools.partial(fit, {name}=...) as one of methods="
    for argument, meaning in _SYMBOLS.get(name, {}).items():
        if argument in known or not argument:
            return f": {meaning}"
    if name in _PENALTY:
        strengths = [f"{argument}=" for argument in _STRENGTHS if argument in known]
        if strengths:
            return f": the strength of the penalty is {' or '.join(strengths)}"
        if "C" in known:
            return ": C= weights the losses, so that a smaller C penalises more"
    ours = _OURS.get(name, "n_leaves" if name == "max_depth" else "")
    if ours in _OF_TREES and ours not in known:
        return f"; of the fits, fit_boosting has it, as {ours}="
    if name in _OURS:
        meant = [_OURS[name]] if _OURS[name] in known else []
    else:
        meant = get_close_matches(name, known, n=1, cutoff=SIMILAR)
    return f"; did you mean {meant[0]}=?" if meant else ""


_in_pipeline = ContextVar("in_pipeline", default=False)


def with_remedies_of_pipelines(function: Function) -> Function:
    """Make the messages of an estimator's method name pipelines, not `preprocess=`."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        token = _in_pipeline.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            _in_pipeline.reset(token)

    return cast(Function, call)


def by_table_preprocessor(does: str, options: str = "") -> str:
    """Return the remedy that a `TablePreprocessor` does what a message asks for."""
    if _in_pipeline.get():
        name, where = "sklearn.TableTransformer", "before the estimator in a pipeline"
    else:
        name, where = "preprocessing.TablePreprocessor", "preprocess= of a fit"
    return f"ordinal.{name}{options} {does} ({where})"


def by_dates(column: str) -> str:
    """Return the remedy for a column of dates, whose name is given as it is shown."""
    return by_table_preprocessor("makes numbers of dates", f"(dates=[{column}])")


def by_standardizer() -> str:
    """Return the remedy to standardise features."""
    if _in_pipeline.get():
        return (
            "put sklearn.preprocessing.StandardScaler before the estimator in a "
            "pipeline"
        )
    return "pass preprocess=ordinal.preprocessing.Standardizer"


def keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of a function's keyword-only arguments."""
    return dict(unwrap(function).__kwdefaults__ or {})
