"""The methods as the command line names them, and their arguments as it gives them."""

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from .._formula.dates import Part
from .._input.checks import shortened, shown, suggestion
from .._model.registry import Method, methods
from ..comparison.learner import Learner
from ..preprocessing import TablePreprocessor
from .data import dates_of, orders_of

# An argument and its value in a message, unless they are those of an option or quote
# what the user wrote
_ADVICE = re.compile(
    r"(?<!--set )(?<![-.,\w'])(\w+)=(True|False|None|'\w+'|\d[\d.]*|\['[^]]*\])(?!\w)"
)

# Columns of the table, which Python calls X
_OF_X = re.compile(r"(\bcolumns? '[^']*'(?:, '[^']*')*) of X\b")

# A further argument in the value of one
_AFTER_COMMA = re.compile(r",\s*(\w+)=")

# Advice to leave columns out
_LEFT_OUT = re.compile(r"as X\.drop\(columns=\[([^]]*)\]\) does")

# A penalty that a message advises without a value
_PENALTY = re.compile(r"\b(l1|l2|ridge) > 0(?![.\d])")

# The same of an argument of the reader of tables
_LAYOUT = re.compile(r"\b(separator|encoding|decimal)='([^']+)'")

# For each name on the command line the method, and the arguments that the name means.
METHODS: dict[str, tuple[Method, dict[str, Any]]] = {
    name: (method, dict(fixed))
    for method in methods()
    for name, fixed in method.variants.items()
}

# Those that need an argument, which `fit` has an option for.
NEEDY: dict[str, tuple[Method, dict[str, Any]]] = {
    method.name: (method, {}) for method in methods(every=True) if method.needs
}

# Those that fit others, which "all" does not stand for.
COMPOSED: dict[str, tuple[Method, dict[str, Any]]] = {
    method.name: (method, {}) for method in methods(every=True) if method.composed
}

# Arguments that the command line cannot hold, or has an option of its own for.
_NOT_SETTABLE = {
    "X",
    "y",
    "classes",
    "sample_weight",
    "start",
    "callback",
    "verbose",
    "preprocess",
}


def learner_of(name: str, settings: Sequence[str], args: argparse.Namespace) -> Learner:
    """Return the method with the arguments of the command line.

    With --tune, the arguments of its grid that are not given are tuned.
    """
    method, fixed = (METHODS | NEEDY | COMPOSED)[name]
    given, wrong, unknown = {}, [], False
    known = settable(method)
    if getattr(args, "random", None) is not None:
        given["random"] = args.random
        if method.needs != "random":
            wrong.append(f"--random is for clmm only: {name} has no random effects")
    elif method.needs == "random":
        wrong.append(f"{name} needs --random, such as --random '(1 | judge)'")
    for setting in settings:
        key, equals, value = setting.partition("=")
        given[key] = _value(value)
        if not equals:
            wrong.append(f"--set {shortened(setting)}: expected ARG=VALUE")
        elif set(_AFTER_COMMA.findall(value)) & {*known}:
            wrong.append(f"--set {shortened(setting)}: put blanks between arguments")
        elif key in fixed:
            wrong.append(f"--set: {name} stands for {key}={shown(fixed[key])}")
        elif key not in known:
            meant = suggestion(key, known)
            unknown = unknown or not meant
            wrong.append(f"--set: {name} has no argument {shown(key)}{meant}")
    if unknown:
        wrong.append(f"{name} has {', '.join(known)}")
    if wrong:
        raise ValueError("; ".join(wrong))
    n_threads = given.pop("n_threads", args.threads)
    order: dict[str | int, Sequence[Any]] = {}
    order.update(orders_of(args.order))
    dates: dict[str | int, Sequence[Part]] = {}
    dates.update(dates_of(args.dates))
    return Learner.from_fit(
        method.fit,
        fixed | given,
        tune=args.tune,
        preprocess=TablePreprocessor(order=order, dates=dates),
        n_threads=n_threads,
    )


def settable(method: Method) -> list[str]:
    """Return the arguments of a method that --set takes."""
    others = _NOT_SETTABLE | method.by_row
    return [
        name for name in inspect.signature(method.fit).parameters if name not in others
    ]


def in_options(message: str) -> str:
    """Return a message about Python arguments, such as "fit it with probability=True",
    with the options of the command line in their place.
    """
    known = (METHODS | COMPOSED).values()
    names = {name for method, _ in known for name in settable(method)}

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        given = f"{name}={value.strip(chr(39))}"
        quoted = f'"{given}"' if "'" in given else given
        return f"--set {quoted}" if name in names else found[0]

    message = _LAYOUT.sub(lambda found: f"--{found[1]} {quote(found[2])}", message)
    message = message.replace("where preprocess is given", "in the command")
    message = _OF_X.sub(r"\1", message)
    message = _LEFT_OUT.sub(_by_drop, message)
    message = _PENALTY.sub(r"--set \1=0.1", message.replace(" of the command", ""))
    return _ADVICE.sub(option, message)


def _by_drop(found: re.Match[str]) -> str:
    """Return the option for the columns that a message lists as strings."""
    names = (name[1:-1] for name in found[1].split(", "))
    return f"by --drop {' '.join(map(quote, names))}"


def on_terminal() -> bool:
    """Return whether stderr is a terminal, on which progress is shown."""
    return sys.stderr is not None and sys.stderr.isatty()


def described(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_short(value)}" for key, value in point.items())


def described_grid(grid: Mapping[str, Sequence[Any]]) -> str:
    return "; ".join(
        f"{key} {', '.join(map(_short, values))}" for key, values in grid.items()
    )


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _value(text: str) -> Any:
    """Parse a Python literal such as 10, None or {1: 2.0}, or true or false.

    Any other text is a string.
    """
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
