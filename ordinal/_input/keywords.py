"""Unknown keyword arguments, and what the caller may have meant by them."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature, unwrap
from typing import Any, TypeVar, cast

from .checks import shown

Function = TypeVar("Function", bound=Callable[..., Any])

# Names that other packages have for arguments of ours.
_OURS = {
    "groups": "cluster",
    "labels": "classes",
    "max_iterations": "max_iter",
    "maxiter": "max_iter",
    "n_iter": "max_iter",
    "n_jobs": "n_threads",
    "nthreads": "n_threads",
    "num_threads": "n_threads",
    "random_seed": "rng",
    "random_state": "rng",
    "sample_weights": "sample_weight",
    "seed": "rng",
    "threads": "n_threads",
    "timeout": "max_time",
    "tolerance": "tol",
    "weight": "sample_weight",
    "weights": "sample_weight",
}
# What does the work of arguments that a function might be expected to have.
_INSTEAD = {
    "executor": "pass n_threads= for the processors of one machine, or a collection of "
    "dask as X for several; `select` and `nested` take executor=",
}
_SIMILAR = 0.7  # of `difflib`, up to 1: slips of the pen are above .8


def with_suggestions(function: Function) -> Function:
    """Decorate a function so that its TypeError for an unknown keyword argument says
    which one may have been meant. Signature, docstring and type stay the same.
    """
    known = signature(function).parameters
    assert all(p.kind is not Parameter.VAR_KEYWORD for p in known.values())

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_keywords(function.__name__, kwargs, known)
        return function(*args, **kwargs)

    return cast(Function, call)


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for the first keyword argument that a function does not have."""
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise TypeError(
            f"{function}() got an unexpected keyword argument {shown(unknown)}"
            f"{suggestion(unknown, known) or f'; help({function}) lists those it has'}"
        )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown argument: what does its work, or
    which known one may be meant. Empty where none is similar.
    """
    known = list(known)
    if name in _INSTEAD:
        return f": {_INSTEAD[name]}"
    meant = [_OURS[name]] if _OURS.get(name) in known else []
    meant = meant or get_close_matches(name, known, n=1, cutoff=_SIMILAR)
    return f"; did you mean {meant[0]}=?" if meant else ""


def keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of a function's keyword-only arguments."""
    return dict(unwrap(function).__kwdefaults__ or {})
