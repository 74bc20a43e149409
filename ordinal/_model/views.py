"""Hook of the views of models and results, which stand above all that they show."""

from collections.abc import Callable
from typing import Any, Protocol


class Views(Protocol):
    """Functions of the package `_views`, to which methods of models delegate."""

    def explain(self, model: Any, X: Any, y: Any, n_repeats: int, rng: Any) -> Any: ...
    def report(self, model: Any, path: Any, X: Any, y: Any, title: str) -> None: ...
    def summary_html(self, model: Any) -> str: ...
    def importance(self, explanation: Any, ax: Any, top: int | None) -> Any: ...
    def errors_by_method(
        self, scores: Any, methods: Any, axes: Any, xlabel: str
    ) -> Any: ...


_registered: Callable[[], Views]


def register(load: Callable[[], Views]) -> None:
    """Let models call the functions that load() returns; the package does so once."""
    global _registered
    _registered = load


def views() -> Views:
    """Return the registered functions, imported at the first use."""
    return _registered()
