"""The methods as the command line names them, and their arguments as it gives them."""

import argparse
import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._input.checks import shortened, shown
from .._model.registry import methods

Fit = Callable[..., Any]  # fit(X, y, **params) -> model

# For each name on the command line the function, and what makes it this method.
METHODS: dict[str, tuple[Fit, dict[str, Any]]] = {
    name: (method.fit, dict(fixed))
    for method in methods()
    for name, fixed in method.variants.items()
}

# Arguments that the command line cannot hold, or has an option of its own for.
_NOT_SETTABLE = {"X", "y", "classes", "sample_weight", "start", "callback"}


def method_of(
    name: str, settings: Sequence[str], args: argparse.Namespace
) -> tuple[Fit, dict[str, Any]]:
    """The method's function and arguments, with those of the command line."""
    fit, fixed = METHODS[name]
    given = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {shortened(setting)}: expected ARG=VALUE")
        given[key] = _value(value)
    if args.threads is not None:
        given["n_threads"] = args.threads
    known = [k for k in inspect.signature(fit).parameters if k not in _NOT_SETTABLE]
    for key in given:
        if key in fixed:
            raise ValueError(f"--set: {name} means {key}={shown(fixed[key])}")
        if key not in known:
            raise ValueError(
                f"--set: {name} has no argument {shown(key)}; it has {', '.join(known)}"
            )
    return fit, fixed | given


def _value(text: str) -> Any:
    """A Python literal such as 10, None or {1: 2.0}; any other text is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
