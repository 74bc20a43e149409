"""Functions that are counted: those of the compiled modules that Python calls."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from ordinal import _solvers

# What builds share, choose and run kernels by
_OTHERS = "_shared", "_build_info", "_parts", "_simd"
# Methods that compute. Those of `_pair_smo.Smo` only set up what `advance` works on.
METHODS = {"_active_set.ActiveSet": ("minimise",)}
_KINDS = {
    "cython_function_or_method", "fused_cython_function", "builtin_function_or_method",
}  # fmt: skip


def kernels() -> Iterator[tuple[str, Any]]:
    """("module.name", function or class)."""
    for found in pkgutil.iter_modules(_solvers.__path__):
        if found.name in _OTHERS:
            continue
        module = importlib.import_module(f"{_solvers.__name__}.{found.name}")
        for name, value in vars(module).items():
            public = f"{found.name}.{name}"
            is_kernel = type(value).__name__ in _KINDS or public in METHODS
            if is_kernel and not name.startswith("_"):
                yield public, value


def names() -> list[str]:
    """Return all names that have a slot: functions, and methods of METHODS."""
    found = {name for name, _ in kernels()} - METHODS.keys()
    methods = {f"{name}.{m}" for name, of in METHODS.items() for m in of}
    return sorted(found | methods)


def slot_of(name: str) -> str:
    return "kernel_" + name.replace(".", "__")
