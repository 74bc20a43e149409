"""Write the stubs of what is made or imported too late for type checkers to see it.

    python tools/estimators.py [--write]

The estimators of `ordinal.sklearn` are made from the fits that they call:
`ordinal/_estimators.pyi` states every class with the parameters of its `__init__`. The
names of `ordinal` are imported when they are used: `ordinal/__init__.pyi` imports those
of `ordinal/_model/public.py`. Without --write the exit status is 1 if a file is out of
date; a test calls it so.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from stubs import ROOT, update, wrapped

import ordinal.sklearn as estimators
from ordinal._model.public import MODULES, NAMES
from ordinal._model.registry import Method, methods

PACKAGE = ROOT / "ordinal"
HEAD = '''\
"""Estimators of `ordinal.sklearn`; written by tools/estimators.py."""

'''
BUILTINS = {"str", "float", "int", "bool", "object", "tuple", "dict", "None"}


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))


def origin(name: str, module: str) -> str:
    """Return the module that defines a name of a module."""
    package = module if hasattr(import_module(module), "__path__") else ""
    package = package or module.rpartition(".")[0]
    for node in parsed(module).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    parts = package.split(".")
                    base = parts[: len(parts) - node.level + 1] if node.level else []
                    source = ".".join([*base, *([node.module] if node.module else [])])
                    return source if node.level == 0 else origin(name, source)
    return module


def names_in(annotation: str) -> set[str]:
    """Return the names that an annotation uses."""
    tree = ast.parse(annotation, mode="eval")
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return found - BUILTINS


def default_of(value: object) -> str:
    """Return a default as a stub shows it."""
    return repr(value) if isinstance(value, int | float | str | None) else "..."


def class_of(method: Method, imports: dict[str, str]) -> list[str]:
    """Return the lines of a class, and note what they import."""
    own = getattr(estimators, method.estimator)
    module = inspect.unwrap(method.fit).__module__
    base = own.__bases__[0].__name__
    attributes, given = [], ["self", "*"]
    for p in list(inspect.signature(own.__init__).parameters.values())[1:]:
        for name in names_in(p.annotation):
            source = origin(name, module).removeprefix("ordinal")
            known = imports.setdefault(name, source)
            assert known == source, (name, known, source)
        given.append(f"{p.name}: {p.annotation} = {default_of(p.default)}")
        if p.name not in estimators.Estimator.__annotations__:
            attributes.append(f"    {p.name}: {p.annotation}")
    head = f"class {method.estimator}({base}):"
    made = f"    def __init__(\n{wrapped(given, '        ')}\n    ) -> None: ..."
    return [head, *attributes, made, ""]


def stub() -> str:
    """Return the stub of all estimators."""
    imports: dict[str, str] = {}
    every = [class_of(method, imports) for method in methods(every=True)]
    bases = {getattr(estimators, m.estimator).__bases__[0] for m in methods(every=True)}
    by_module = {".sklearn.estimators": [base.__name__ for base in bases]}
    for name, module in imports.items():
        by_module.setdefault(module, []).append(name)
    heads = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(by_module.items())
    ]
    text = HEAD + "\n".join([*heads, "", *(line for of in every for line in of)])
    return text.rstrip() + "\n"


def public_stub(within: str) -> str:
    """Return the stub of the package, or of one of its modules."""
    head = f'"""Public names of `{f"ordinal.{within}".rstrip(".")}`'
    lines = [f'{head}; written by tools/estimators.py."""', ""]
    if not within:
        lines += [f"from . import {name} as {name}" for name in MODULES]
    for module, names in NAMES[within].items():
        lines += [f"from .{module} import {name} as {name}" for name in names]
    return "\n".join([*lines, *([] if within else ["", "__version__: str"]), ""])


def current() -> Iterator[tuple[Path, str]]:
    """Yield every stub, and what it should be."""
    yield PACKAGE / "_estimators.pyi", stub()
    for within in NAMES:
        yield PACKAGE / f"{within or '__init__'}.pyi", public_stub(within)


if __name__ == "__main__":
    update(current, __doc__)
