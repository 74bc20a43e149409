"""Print the public functions, methods and properties that no test has run.

    python -P tools/coverage/unreached.py OUT/python.json

OUT is the folder of a run of `run.sh`. Functions without code of their own do not
count; the exit code is 1 if anything is printed.
"""

import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
        yield inspect.unwrap(item)
    elif inspect.isclass(item):
        for name, member in inspect.getmembers_static(item):
            if name.startswith("_") and name not in ("__call__", "__init__"):
                continue
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, classmethod | staticmethod):
                member = member.__func__
            if inspect.isfunction(member):
                yield inspect.unwrap(member)


def main(report: str) -> int:
    files = json.loads(Path(report).read_text())["files"]
    known = {
        path.rpartition("/ordinal/")[2]: files[path]["functions"] for path in files
    }
    missing = set()
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            for function in functions_of(getattr(module, name)):
                file = function.__code__.co_filename.rpartition("/ordinal/")[2]
                full = function.__qualname__.replace(".<locals>", "")
                lines = known.get(file, {}).get(full)  # none if a dataclass made it
                if lines and lines["missing_lines"] and not lines["executed_lines"]:
                    missing.add(f"{file}: {full}")
    print(*sorted(missing), sep="\n")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
