"""Hook of the views of models and results, which stand above all that they show."""

from collections.abc import Callable
from types import ModuleType

_registered: Callable[[], ModuleType]


def register(load: Callable[[], ModuleType]) -> None:
    """Let models call the functions that load() returns; the package does so once."""
    global _registered
    _registered = load


def views() -> ModuleType:
    """Return the package `_views`, imported at the first use."""
    return _registered()
