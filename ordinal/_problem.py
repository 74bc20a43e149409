"""The one place where user input becomes arrays that a solver can trust."""

from __future__ import annotations  # numpy.random is slow to import

import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from ._sparse import CSR, frozen

F = TypeVar("F", bound=Callable)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Validated training data: what a solver may assume without looking.

    Attributes
    ----------
    X : (n, d) float64 array, C-contiguous and finite, or CSR
        May share memory with the caller's data; never written to. Holds NaN only
        where missing entries were allowed.
    rank : (n,) int32
        Values 0..r-1; `classes[rank]` are the caller's labels.
    classes : (r,) array of integers, floats, booleans or strings, never objects
        Labels in rank order. Some may have no row, or none of positive weight.
    weight : (n,) float64, >= 0
        Sample weight times class weight.
    sample_weight : (n,) float64, >= 0
        Ones unless given.
    """

    X: np.ndarray | CSR
    rank: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray

    @classmethod
    def from_arrays(
        cls,
        X,
        y,
        *,
        classes=None,
        sample_weight=None,
        class_weight=None,
        missing: bool = False,
    ) -> Problem:
        """Validate training data.

        Parameters
        ----------
        X : (n, d) array of real numbers, or anything with the attributes of a CSR
        y : (n,) labels
            Integers, booleans or whole floats, ranked by value; an ordered pandas
            Categorical or a polars Enum, ranked by its categories; with `classes`,
            anything of numbers or strings.
        classes : sequence of labels in rank order, optional
            Takes precedence over the order that `y` implies, and may name labels
            that no row holds.
        sample_weight : (n,) weights >= 0, optional
            Weight 2 means the same as the row written twice, 0 as the row left out.
        class_weight : None, "balanced" or mapping from label to weight, optional
            Multiplies the weights of a class; labels that are not named keep theirs.
            "balanced" gives every class that is present the same total weight.
        missing : bool
            As for `check_features`.

        Raises
        ------
        TypeError
            Data of a kind that has no order or is not numeric.
        ValueError
            Everything else; the message names the argument, the rule and the row.
        """
        X = check_features(X, missing=missing)
        n = X.shape[0]
        if classes is None:
            classes = _categories(y)
        y = _labels(y, "y")
        if y.size != n:
            raise ValueError(f"y has shape {y.shape}, expected ({n},) as X")
        classes = _classes_in_rank_order(y, classes)
        rank = _ranks(y, classes)

        sample_weight = _sample_weights(sample_weight, n)
        factor = _class_weights(class_weight, classes, rank, sample_weight)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            weight = frozen(sample_weight * factor[rank])
            total = weight.sum()
        if not np.isfinite(total):
            raise ValueError("the sum of sample_weight times class_weight overflows")
        problem = cls(X, rank, classes, weight, sample_weight)
        if problem.present.sum() < 2:
            raise ValueError(
                "y needs at least 2 classes with positive weight, got "
                f"{_listed(classes[problem.present])}"
            )
        return problem

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_classes(self) -> int:
        return self.classes.size

    @property
    def present(self) -> np.ndarray:
        """Which classes have a row of positive weight, (r,) bool."""
        return np.bincount(self.rank, self.weight, minlength=self.n_classes) > 0


def around_ranks(inner: np.ndarray, present: np.ndarray, r: int) -> np.ndarray:
    """The r - 1 thresholds of all ranks from those between the ranks that are present.

    -inf and +inf where no rank lies beyond; equal on both sides of an absent rank.
    """
    out = np.full(r - 1, np.inf)
    out[: present[0]] = -np.inf
    for t, value in enumerate(inner):
        out[present[t] : present[t + 1]] = value
    return out


# Features


def check_features(
    X: Any, n_features: int | None = None, name: str = "X", missing: bool = False
) -> np.ndarray | CSR:
    """Return X as a finite C-contiguous (n, d) float64 array or a CSR, or raise.

    Parameters
    ----------
    X : 2-dimensional array-like of real numbers, or sparse in CSR format
    n_features : int, optional
        The number of columns that a fitted model expects.
    name : str
        What the messages call X.
    missing : bool
        Whether a dense X may hold NaN, for entries that are not known.
    """
    a: np.ndarray | CSR
    if hasattr(X, "tocsr") or all(
        hasattr(X, part) for part in ("indptr", "indices", "data", "shape")
    ):
        a = CSR.from_any(X, name)
    else:
        a = _array(X, name)
        if a.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold real numbers, got dtype {a.dtype}")
    if len(a.shape) != 2 or 0 in a.shape:
        raise ValueError(
            f"{name} must be 2-dimensional and non-empty, got shape {a.shape}"
        )
    if n_features is not None and a.shape[1] != n_features:
        raise ValueError(
            f"{name} has {a.shape[1]} features, the model was fitted on {n_features}"
        )
    if isinstance(a, CSR):
        return a
    with np.errstate(over="ignore"):  # a long double too large becomes an infinity
        a = np.require(a, np.float64, ["C", "A"])
    bad = np.isinf(a) if missing else ~np.isfinite(a)
    if bad.any():
        row = np.flatnonzero(bad.any(axis=1))[0]
        rule = "finite or NaN" if missing else "finite"
        raise ValueError(f"{name} must be {rule}; first bad row is {row}")
    return a


def _array(values: Any, name: str) -> np.ndarray:
    """np.asarray that names the argument and does not drop a mask."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: fill or drop what it masks")
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{name} is not an array: {error}") from error


# Labels


def _categories(y: Any) -> Any:
    """Rank order that a pandas Categorical or a polars Enum carries, else None."""
    dtype: Any = getattr(y, "dtype", None)
    if not hasattr(dtype, "categories"):
        return None
    # A polars Categorical sorts by first appearance or by the alphabet: no order.
    if type(dtype).__name__ == "Enum" or getattr(dtype, "ordered", False):
        return _labels(dtype.categories, "the categories of y")
    raise TypeError(
        "y is an unordered categorical: make it ordered (pandas) or an Enum (polars), "
        f"or pass classes={_listed(dtype.categories)} in rank order"
    )


def _labels(values: Any, name: str) -> np.ndarray:
    """A 1-D array of booleans, integers, finite floats or strings."""
    a = _array(values, name)
    if a.ndim != 1:
        raise ValueError(f"{name} must be 1-dimensional, got shape {a.shape}")
    if a.dtype.kind in "UT" and not isinstance(values, np.ndarray):
        a = np.array(values, dtype=object)  # numpy has turned [1, "a"] into strings
    if a.dtype.kind in "OT":
        labels = a.tolist()
        for row, label in enumerate(labels):
            if _is_missing(label):
                raise ValueError(f"{name} has no label in row {row}")
            if not isinstance(label, str):
                raise TypeError(
                    f"{name} must hold integers or strings, got "
                    f"{type(label).__name__} {label!r} in row {row}"
                )
        a = np.array(labels, dtype=np.str_)
    if a.dtype.kind not in "biufU":
        raise TypeError(f"{name} must hold integers or strings, got dtype {a.dtype}")
    if a.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(a))
        if bad.size:
            raise ValueError(f"{name} holds {a[bad[0]].item()} in row {bad[0]}")
    return a


def _is_missing(label: Any) -> bool:
    """None, NaN or pandas.NA, whose comparisons have no truth value."""
    is_nan = isinstance(label, float) and math.isnan(label)
    return label is None or is_nan or type(label).__name__ == "NAType"


def _classes_in_rank_order(y: np.ndarray, classes: Any) -> np.ndarray:
    """The labels named by the caller, or those of y when their values rank them."""
    if classes is not None:
        classes = _labels(classes, "classes")
        values, counts = np.unique(classes, return_counts=True)
        if values.size < classes.size:
            twice = _listed(values[counts > 1])
            raise ValueError(f"classes must be distinct, got {twice} more than once")
        return frozen(classes.copy())
    if y.dtype.kind == "U":
        # Sorting strings would silently order high < low < medium.
        raise TypeError(
            "y holds strings, whose order is not known: pass "
            f"classes={_listed(np.unique(y))} in rank order"
        )
    if y.dtype.kind == "f":
        bad = np.flatnonzero(y != np.floor(y))
        if bad.size:
            raise ValueError(
                f"y holds {y[bad[0]].item()} in row {bad[0]}, not a whole number: bin "
                "it with ordinal.preprocessing, or pass classes= in rank order"
            )
    return frozen(np.unique(y))


def _ranks(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Position of every label among the classes, (n,) int32."""
    # Python's own equality: exact between int64, uint64 and float64, and "1" != 1
    position = {label: k for k, label in enumerate(classes.tolist())}
    values, inverse = np.unique(y, return_inverse=True)
    of_value = [position.get(label, -1) for label in values.tolist()]
    rank = np.array(of_value, dtype=np.int32)[inverse]
    bad = np.flatnonzero(rank < 0)
    if bad.size:
        raise ValueError(
            f"y holds {y[bad[0]].item()!r} in row {bad[0]}, which is not among "
            f"classes={_listed(classes)}"
        )
    return frozen(rank)


def _listed(labels: Iterable, at_most: int = 10) -> str:
    """The labels as a list to paste, cut short."""
    shown = [repr(label) for label in np.asarray(labels).tolist()]
    return f"[{', '.join(shown[:at_most] + ['...'] * (len(shown) > at_most))}]"


# Weights


def _sample_weights(sample_weight: Any, n: int) -> np.ndarray:
    """The caller's weights, or ones."""
    if sample_weight is None:
        return frozen(np.ones(n))
    a = _array(sample_weight, "sample_weight")
    if a.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight must hold real numbers, got dtype {a.dtype}")
    if a.shape != (n,):
        raise ValueError(f"sample_weight has shape {a.shape}, expected ({n},) as X")
    with np.errstate(over="ignore"):
        a = np.array(a, dtype=np.float64)  # a copy: the caller's own stays writeable
    bad = np.flatnonzero(~(np.isfinite(a) & (a >= 0)))
    if bad.size:
        raise ValueError(
            "sample_weight must be finite and >= 0, got "
            f"{a[bad[0]].item()} in row {bad[0]}"
        )
    if not a.any():
        raise ValueError("sample_weight must not be zero everywhere")
    return frozen(a)


def _class_weights(
    class_weight: Any, classes: np.ndarray, rank: np.ndarray, sample_weight: np.ndarray
) -> np.ndarray:
    """Factor of every class, (r,)."""
    factor = np.ones(classes.size)
    if class_weight is None:
        return factor
    if isinstance(class_weight, str) and class_weight == "balanced":
        held = np.bincount(rank, sample_weight, minlength=classes.size)
        present = held > 0
        with np.errstate(over="ignore", invalid="ignore"):  # seen in the product
            factor[present] = held.sum() / present.sum() / held[present]
        return factor
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a mapping from label to weight, "
            f"got {class_weight!r}"
        )
    position = {label: k for k, label in enumerate(classes.tolist())}
    for label, weight in class_weight.items():
        if label not in position:
            raise ValueError(
                f"class_weight names {label!r}, which is not among "
                f"classes={_listed(classes)}"
            )
        check_nonnegative(**{f"class_weight[{label!r}]": weight})
        factor[position[label]] = weight
    return factor


# Costs


def check_cost(cost: Any, n_classes: int, convex: bool = False) -> np.ndarray:
    """Return the cost of predicting column j for row i, (r, r), or raise.

    Parameters
    ----------
    cost : (r, r) array-like
        Zero on the diagonal, positive elsewhere; along a row it must not fall with
        the distance from the diagonal.
    n_classes : int
    convex : bool
        Whether the rows must be convex too.
    """
    a = _array(cost, "cost")
    if a.dtype.kind not in "biuf":
        raise TypeError(f"cost must hold real numbers, got dtype {a.dtype}")
    if a.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost has shape {a.shape}, expected ({n_classes}, {n_classes})"
        )
    with np.errstate(over="ignore"):
        a = np.array(a, dtype=np.float64, order="C")
    _every_row(np.isfinite(a), "must be finite")
    diagonal = np.eye(n_classes, dtype=bool)
    _every_row((a == 0) | ~diagonal, "must be zero on the diagonal")
    _every_row((a > 0) | diagonal, "must be positive off the diagonal")
    step = np.diff(a, axis=1)
    to_the_left = np.tri(n_classes, n_classes - 1, -1, dtype=bool)
    _every_row(
        np.where(to_the_left, step <= 0, step >= 0),
        "must not fall with the distance from the diagonal",
    )
    if convex:
        # a row such as 0.1 * |i - j| is convex up to the rounding of its entries
        rounding = 4 * np.finfo(float).eps * a.max(axis=1, keepdims=True, initial=0)
        _every_row(np.diff(step, axis=1) >= -rounding, "must be convex")
    return frozen(a)


def absolute_cost(n_classes: int) -> np.ndarray:
    """|j - k|, (r, r)."""
    rank = np.arange(float(n_classes))
    return np.abs(rank[:, None] - rank)


def _every_row(holds: np.ndarray, rule: str) -> None:
    bad = np.flatnonzero(~holds.all(axis=1))
    if bad.size:
        raise ValueError(f"every row of cost {rule}; row {bad[0]} breaks this")


# Parameters: a bad one is a ValueError, whatever its type


def check_positive(**values: Any) -> None:
    for name, value in values.items():
        if not 0 < _real(value) < math.inf:
            raise ValueError(f"{name} must be a positive finite number, got {value!r}")


def check_nonnegative(**values: Any) -> None:
    for name, value in values.items():
        if not 0 <= _real(value) < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")


def check_count(**values: Any) -> None:
    for name, value in values.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not (whole and 1 <= value < 2**63):  # what a kernel's counter can hold
            raise ValueError(f"{name} must be a positive integer, got {value!r}")


def check_choice(name: str, value: Any, allowed: Iterable[str | None]) -> None:
    allowed = list(allowed)
    if not (value is None or isinstance(value, str)) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")


def check_flag(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}")


def all_options(
    name: str, like: Callable, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Every keyword argument of `like`: those given to the function `name`, and the
    defaults of the others."""
    defaults = _keyword_defaults(like)
    foreign = [option for option in options if option not in defaults]
    if foreign:
        raise TypeError(f"{name}() has no argument {', '.join(foreign)}")
    return {**defaults, **options}


@cache  # of the few functions that others resemble
def _keyword_defaults(function: Callable) -> Mapping[str, Any]:
    return inspect.getfullargspec(function).kwonlydefaults or {}


def takes_options_of(like: Callable) -> Callable[[F], F]:
    """Show the arguments of `like` as those of a function of (X, y, **options)."""

    def show(function: F) -> F:
        function.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
        return function

    return show


def resolve_rng(rng: Any) -> np.random.Generator:
    """A Generator from itself, a seed, or None for one the system chooses."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    whole = isinstance(rng, numbers.Integral) and not isinstance(rng, bool)
    if not whole or rng < 0:
        raise ValueError(
            f"rng must be None, an integer >= 0 or a numpy Generator, got {rng!r}"
        )
    return np.random.default_rng(int(rng))


def _real(value: Any) -> float:
    """The value of a real number; NaN, which no rule accepts, for anything else."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
