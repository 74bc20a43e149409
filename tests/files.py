"""Models through files and pickles, and files that someone has edited."""

import dataclasses
import functools
import io
import json
import pickle
import tempfile
from pathlib import Path

import numpy as np
from internals import checksum
from numpy.testing import assert_array_equal

import ordinal


def assert_same_fields(a, b):
    """Equal to the last bit, field by field, and the arrays of b read-only."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert_array_equal(a, b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert not b.flags.writeable
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same_fields(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, tuple | list):
        for x, y in zip(a, b, strict=True):
            assert_same_fields(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key, value in a.items():
            assert_same_fields(value, b[key])
    else:
        assert a == b or (a != a and b != b)  # nan


def copies(model, folder):
    """The model from a file and from a pickle, each with the same fields."""
    model.save(folder / "model.npz")
    for copy in (ordinal.load(folder / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert_same_fields(model, copy)
        yield copy


def loaded(model):
    """Return the model as another process reads it from a file."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return ordinal.load(file)


def load_edited(model, folder, edits):
    """Save the model, change members of the file by the functions `edits`, load it.

    A member is named "header", which is then given as text, or as a field. The checksum
    is computed anew.
    """
    path = folder / "model.npz"
    header, arrays = saved_members(model)
    arrays = dict(arrays)
    for name, edit in edits.items():
        if name == "header":
            header = json.loads(edit(json.dumps(header)))
        else:
            assert f"model.{name}" in arrays
            arrays[f"model.{name}"] = edit(arrays[f"model.{name}"])
    write_members(path, header, arrays)
    return ordinal.load(path)


@functools.lru_cache(maxsize=2)  # tests edit the members of one model in turn
def saved_members(model):
    """The header of the model's file, and its arrays by name."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "m"))
        header, arrays = members_of(Path(folder, "m"))
    for a in arrays.values():
        a.flags.writeable = False
    return header, arrays


def members_of(path):
    """The header of a model file, and its arrays by name."""
    with np.load(path) as members:
        arrays = dict(members)
    return json.loads(arrays.pop("header").tobytes()), arrays


def write_members(path, header, arrays):
    """A model file of these, with the checksum that belongs to them."""
    sealed = header | {"checksum": checksum(header["model"], arrays)}
    as_bytes = np.frombuffer(json.dumps(sealed).encode("ascii"), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, header=as_bytes, **arrays)


def replaced_once(old, new):
    """An edit of text in which `old` stands once."""

    def edit(text):
        assert text.count(old) == 1
        return text.replace(old, new)

    return edit


def solution(value):
    """All that a model holds but the origin and the seconds of its fit, as bytes."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    if dataclasses.is_dataclass(value):
        origin = "seconds", "origin"
        names = [f.name for f in dataclasses.fields(value) if f.name not in origin]
        return b"".join(solution(getattr(value, name)) for name in names)
    if isinstance(value, tuple | list):
        return b"".join(solution(item) for item in value)
    return f"{value!r};".encode()
