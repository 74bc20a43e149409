"""Classes of the models that fits return, and of what models hold.

They serve isinstance and annotations, and `ordinal.load(path, kind)` checks that a file
holds a model of one of them. All models are an `ordinal.Model`.
"""

from ._model.public import find_public, public_names

__all__ = public_names("models")


def __getattr__(name: str) -> object:
    """Import the module of a class when it is first used."""
    globals()[name] = found = find_public(name, "models")
    return found


def __dir__() -> list[str]:
    return __all__
