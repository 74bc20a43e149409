"""Print the public functions, methods and properties that no test has run.

    export COVERAGE_RCFILE=$PWD/tools/coverage/coverage.ini
    python -P -m coverage run $(which pytest) -n logical --dist worksteal
    python -P -m coverage combine
    python -P tools/coverage/unreached.py .coverage

A press of Ctrl-C within coverage's own code leaves its lock held: deselect
`test_ctrl_c_ends_a_fit` where that happens.

The README's test command leaves slow tests out: this says whether it still runs every
public function. Functions without code of their own do not count; the exit code is 1 if
anything is printed.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import coverage

import ordinal


def public_modules() -> Iterator[Any]:
    """Yield the package and its modules and folders without an underscore."""
    yield ordinal
    for module in pkgutil.walk_packages(ordinal.__path__, "ordinal."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield importlib.import_module(module.name)


def functions_of(item: Any) -> Iterator[Callable[..., Any]]:
    """Yield a function, or the public functions of a class, inherited ones included."""
    if inspect.isfunction(item):
        yield item
    elif inspect.isclass(item):
        for name, member in inspect.getmembers_static(item):
            if name.startswith("_") and name not in ("__call__", "__init__"):
                continue
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, classmethod | staticmethod):
                member = member.__func__
            if inspect.isfunction(member):
                yield member


def body_lines(function: Callable[..., Any]) -> set[int]:
    """Return the numbers of the lines of statements, without the docstring."""
    lines, first = inspect.getsourcelines(function)
    text = inspect.cleandoc("\n" + "".join(lines))
    node = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    body = node.body[ast.get_docstring(node) is not None :]
    if "NotImplementedError" in ast.unparse(body[:1]):
        return set()
    return {first - 1 + statement.lineno for statement in body}


def main(data: str) -> int:
    run = coverage.CoverageData(data)
    run.read()
    by_name = {
        Path(name).as_posix().rsplit("/ordinal/", 1)[-1]: set(run.lines(name) or ())
        for name in run.measured_files()
    }
    missing = set()
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            for function in functions_of(getattr(module, name)):
                function = inspect.unwrap(function)
                file = Path(function.__code__.co_filename).as_posix()
                if "/ordinal/" not in file or not Path(file).exists():
                    continue  # of the standard library, or made by a dataclass
                file = file.rsplit("/ordinal/", 1)[-1]
                lines = body_lines(function)
                if lines and not lines & by_name.get(file, set()):
                    missing.add(f"{file}: {function.__qualname__}")
    print(*sorted(missing), sep="\n")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
