"""Methods that fit several points as one path; searches look them up here.

A search fits a method at many points, which are mappings from argument to value. Where
points differ in a few arguments only, such as C, a method may be able to fit them for
less together than one by one: over one kernel matrix, each fit started from the last.
Such a group of points is called a path. A method joins by one call at the bottom of its
own module:

    register_path(fit_new, varying=("C",), fit_path=_fit_path)

    fit_path(X, y, points, products, X_test, **options) -> (models, values)

    points      mappings that hold some of the `varying` arguments, and nothing else, in
                the order in which they are best fitted
    products    the `Products` of X, or None
    X_test      rows to judge, or None
    options     the other arguments of `fit_new`
    models      one a point, as `fit_new` returns
    values      for each model its `decision_function` of X_test, or None where that was
                not computed

`fit_path` raises what `fit_new` raises; the search then fits the points one by one to
find out which of them is at fault. A model that comes with values has `_labels(values)`
and `_proba(values)`, which are its `predict` and `predict_proba` of X_test.

A method that registers nothing can be searched as well, point by point.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any


@dataclass(frozen=True, slots=True)
class Path:
    """How a method fits a path: which arguments may vary along it, and the function."""

    varying: tuple[str, ...]
    fit: Callable[..., tuple[Any, Any]]


_PATHS: dict[Callable[..., Any], Path] = {}


def register_path(
    fit: Callable[..., Any],
    *,
    varying: tuple[str, ...],
    fit_path: Callable[..., tuple[Any, Any]],
) -> None:
    """Let searches fit points that differ in `varying` only by `fit_path`."""
    _PATHS[fit] = Path(varying, fit_path)


def path_of(fit: Callable[..., Any]) -> Path | None:
    """How this function, which is no partial, fits a path; None if it does not."""
    return _PATHS.get(fit)


def unwrapped(fit: Callable[..., Any]) -> tuple[Callable[..., Any], Mapping[str, Any]]:
    """The function within a `functools.partial` of any depth, and the arguments that
    are fixed there."""
    fixed: dict[str, Any] = {}
    while isinstance(fit, partial) and not fit.args:
        fixed = {**fit.keywords, **fixed}
        fit = fit.func
    return fit, fixed
