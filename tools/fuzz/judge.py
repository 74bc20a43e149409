"""One call, and whether what became of it is allowed.

Failures are exceptions other than those of `call.ALLOWED`, NaN in what is returned for
finite arguments or in what a returned model predicts, unless the docstring says
"nan if" or "nan for", warnings that are not the package's own, messages that are empty
or longer than 500 characters, exceptions that nobody could catch, and a changed
treatment of floating point errors.
"""

import functools
import linecache
import re
import sys
import traceback
import warnings
from types import TracebackType
from typing import Any

import numpy as np
from call import ALLOWED, Call, Outcome
from results import complaint
from subjects import Foreign

_LONGEST = 500  # characters of a message


@functools.cache
def namespace(prelude: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(prelude, names)
    return names


def judge(call: Call) -> Outcome:
    try:
        names = namespace(call.prelude)
        function = eval(call.function, names)
        given = {k: eval(v, names) for k, v in call.arguments.items()}
    except Exception as error:
        return Outcome("bad source", True, f"{call.source}\n{error!r}", call.function)
    positional = [value for name, value in given.items() if name.isdigit()]
    named = {name: value for name, value in given.items() if not name.isdigit()}
    lost: list[Any] = []  # exceptions that nobody could catch
    before = np.geterr()
    sys.unraisablehook = lost.append
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*positional, **named)
            promised = re.search(r"\bnan\s+(if|for)\b", function.__doc__ or "")
            said = "" if promised else complaint(given, result)
            outcome = (
                Outcome("nan", True, said, call.function) if said else Outcome("ok")
            )
        except Exception as error:
            outcome = _of_exception(error)
    sys.unraisablehook = sys.__unraisablehook__
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    if outcome.failed:
        return outcome
    if lost:
        said = repr(lost[0].exc_value)
        return Outcome("unraisable", True, said, place(lost[0].exc_traceback)[0])
    if np.geterr() != before:
        np.seterr(**before)
        return Outcome("errstate", True, "np.geterr() changed", call.function)
    for warning in caught:
        if not warning.category.__module__.startswith("ordinal"):
            where = f"{_short(warning.filename)}:{warning.lineno}"
            said = f"{warning.category.__name__}: {warning.message}"
            return Outcome("warning", True, said[:1000], where)
        if len(str(warning.message)) > _LONGEST:
            said = str(warning.message)[:1000]
            return Outcome("long message", True, said, call.function)
    return outcome


def _of_exception(error: Exception) -> Outcome:
    where, raised_by_us = place(error.__traceback__)
    name, message = type(error).__name__, str(error)
    if isinstance(error, Foreign):
        return Outcome("Foreign", place=where)
    absent = isinstance(error, ImportError) and "pip install" in message
    if not absent and not isinstance(error, ALLOWED):
        lines = "".join(traceback.format_exception(error))
        return Outcome(name, True, lines[-3000:], where)
    # A path is the caller's, and Python's own errors name it whole.
    if len(message) > _LONGEST and not getattr(error, "filename", None):
        said = f"{name} of {len(message)} characters: {message[:300]}..."
        return Outcome("long message", True, said, where or message[:60])
    if not message and not isinstance(error, MemoryError):
        return Outcome("empty message", True, name, where)
    return Outcome(name, False, message, where, incidental=not raised_by_us)


def place(trace: TracebackType | None) -> tuple[str, bool]:
    """The innermost line of the package, and whether it raised the exception itself."""
    where, by_us = "", False
    for frame, line in traceback.walk_tb(trace):
        name = frame.f_code.co_filename
        by_us = "ordinal/" in name
        if by_us:
            where = f"{_short(name)}:{line}"
            text = linecache.getline(name, line).strip()
            by_us = text.startswith("raise") or not text
    return where, by_us


def _short(path: str) -> str:
    return path[path.rfind("ordinal/") :] if "ordinal/" in path else path
