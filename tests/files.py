"""Models through files and pickles, and files that someone has edited."""

import dataclasses
import pickle

import numpy as np
from numpy.testing import assert_array_equal

import ordinal


def assert_same_fields(a, b):
    """Equal to the last bit, field by field, and the arrays of b read-only."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert_array_equal(a, b)
        assert a.dtype == b.dtype
        assert not b.flags.writeable
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same_fields(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, tuple | list):
        for x, y in zip(a, b, strict=True):
            assert_same_fields(x, y)
    else:
        assert a == b


def copies(model, folder):
    """The model from a file and from a pickle, each with the same fields."""
    model.save(folder / "model.npz")
    loaded = ordinal.load(folder / "model.npz")
    for copy in (loaded, pickle.loads(pickle.dumps(model))):
        assert_same_fields(model, copy)
        yield copy


def load_edited(model, folder, edits):
    """Save the model, change members of the file by the functions `edits`, load it.

    A member is named "header", which is then given as text, or as a field.
    """
    path = folder / "model.npz"
    model.save(path)
    with np.load(path) as members:
        arrays = dict(members)
    for name, edit in edits.items():
        if name == "header":
            text = edit(arrays[name].tobytes().decode())
            arrays[name] = np.frombuffer(text.encode(), np.uint8)
        else:
            assert f"model.{name}" in arrays
            arrays[f"model.{name}"] = edit(arrays[f"model.{name}"])
    np.savez(path, **arrays)
    return ordinal.load(path)


def replaced_once(old, new):
    """An edit of text in which `old` stands once."""

    def edit(text):
        assert text.count(old) == 1
        return text.replace(old, new)

    return edit


def solution(value):
    """All that a model holds but the seconds of its fit, as bytes."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if f.name != "seconds"]
        return b"".join(solution(getattr(value, name)) for name in names)
    if isinstance(value, tuple | list):
        return b"".join(solution(item) for item in value)
    return f"{value!r};".encode()
