"""Model files, which hold data only, and pickles of models.

A model file is an archive (see below) of the model's arrays and of a node:

    node = null, a boolean, a number, a string, a list of nodes, or one of
           {"class": name, "fields": {field: node}}    model, kernel or record
           {"array": member}    {"tuple": [node]}    {"mapping": {key: node}}
           {"status": value}

Reading one runs no code from the file: a name is looked up among the classes known
here, and every value is checked against the annotation of its field (see `fields`).

An archive is an .npz file, stored without compression, of plain .npy members. The first
member, `header`, holds JSON in ASCII bytes:

    {"format": "ordinal-model", "version": 3, "checksum": hex digits, "model": node}

The checksum is blake2b, of 16 bytes, of the JSON of `model` as Python writes it, and
then, in the order of their names, of each array's name, dtype and shape and of its
entries in C order and little endian. It detects damage on a disk or in a transfer, but
not changes on purpose, after which the checksum can be computed anew.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import json
import math
import os
import stat
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from .._files.writing import not_binary, writing
from .._input.checks import as_path, shown
from .._input.fields import check_fields, field_values
from .._input.immutable import Immutable, read_only
from .._input.sparse import CSR
from .._watch.convergence import Convergence, Status
from ..kernels.functions import NAMED, PerFeature
from .links import CumulativeLink, PartitionLink, SoftmaxLink
from .public import import_all

ARRAY_KINDS = "biufU"  # kinds without pickles: booleans, numbers, strings
_FORMAT, _VERSION = "ordinal-model", 3
_MARK = b'{"format": "ordinal-model"'
_MARK_ENDS = 1024  # bytes from the beginning within which the mark ends
_CHUNK = 1 << 24  # bytes of one call, between which Ctrl-C is handled


class DamagedError(ValueError):
    """Error of a file that begins as a model file, but is damaged."""


def checksum(node: Any, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the checksum of an archive's content, in hexadecimal digits."""
    digest = hashlib.blake2b(json.dumps(node).encode("ascii"), digest_size=16)
    for name in sorted(arrays):
        a = arrays[name]
        little = np.asarray(a, a.dtype.newbyteorder("<"), order="C")
        digest.update(f"\n{name} {little.dtype.str} {a.shape}\n".encode())
        content = _bytes_of(little)
        for start in range(0, len(content), _CHUNK):
            digest.update(content[start : start + _CHUNK])
    return digest.hexdigest()


def write_archive(file: IO[bytes], node: Any, arrays: Mapping[str, Any]) -> None:
    """Write plain data, which JSON can hold, and the arrays that belong to it."""
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "checksum": checksum(node, arrays),
        "model": node,
    }
    as_bytes = np.frombuffer(json.dumps(header).encode("ascii"), dtype=np.uint8)
    np.savez(file, header=as_bytes, **arrays)


def read_archive(file: IO[bytes]) -> tuple[Any, dict[str, np.ndarray]]:
    """Read the file that `write_archive` wrote.

    Raises `DamagedError` if some of it has changed since. A file of another kind is an
    error of any type that zipfile, json or numpy raise over it.
    """
    marked = _MARK in file.read(_MARK_ENDS)
    try:
        arrays = _read_members(file)
        if "header" not in arrays:
            raise ValueError("it has no header")
        header = json.loads(arrays.pop("header").tobytes().decode("ascii"))
    except MemoryError:
        raise
    except Exception as error:
        if marked:
            raise DamagedError(str(error) or type(error).__name__) from error
        raise
    _check_header(header)
    if checksum(header["model"], arrays) != header["checksum"]:
        raise DamagedError("its content does not have the checksum that it states")
    return header["model"], arrays


def _check_header(header: Any) -> None:
    """Raise ValueError unless a header has this format and version."""
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"its header does not name the format {shown(_FORMAT)}")
    version = header.get("version")
    if type(version) is int and version != _VERSION:
        cure = "upgrade the package" if version > _VERSION else "fit and save it again"
        raise ValueError(
            f"its format has version {version}, this package reads {_VERSION}; {cure}"
        )
    if version != _VERSION or set(header) != {"format", "version", "checksum", "model"}:
        raise ValueError("its header is malformed")


def _read_members(file: IO[bytes]) -> dict[str, np.ndarray]:
    """Return the arrays of an archive by name."""
    import zipfile  # slow to import, and few processes load a model

    size = file.seek(0, os.SEEK_END)
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        # Stored members that together fit the file cannot unpack to more than it,
        # not even where their extents overlap.
        if any(m.compress_type != zipfile.ZIP_STORED for m in members):
            raise ValueError("a member is compressed")
        if sum(m.file_size for m in members) > size:
            raise ValueError("its members claim more bytes than it has")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays or name == member.filename:
                raise ValueError(f"member {shown(member.filename)} is misplaced")
            with archive.open(member) as stream:
                arrays[name] = _read_array(stream, member.file_size, name)
    return arrays


def _read_array(stream: IO[bytes], size: int, name: str) -> np.ndarray:
    """Return the array of an .npy member of `size` bytes.

    ValueError unless its header states the same size, so that no more memory is taken.
    """
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):  # later versions are for structured types
        raise ValueError(f"member {shown(name)} is of .npy version {version}")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in ARRAY_KINDS or dtype.itemsize == 0:
        raise ValueError(f"member {shown(name)} has dtype {dtype}")
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError(f"member {shown(name)} does not have the size it claims")
    order: Literal["C", "F"] = "F" if fortran else "C"
    a = np.empty(shape, dtype, order)
    content = _bytes_of(a.T if fortran else a)
    filled = 0
    while filled < len(content):
        part = content[filled : filled + _CHUNK]
        got = stream.readinto(part)  # type: ignore[attr-defined]
        if not got:
            raise ValueError(f"member {shown(name)} ends early")
        filled += got
    if stream.read(1):  # reading to the end also checks the CRC-32 of the archive
        raise ValueError(f"member {shown(name)} does not end")
    a = np.asarray(a, dtype.newbyteorder("="), order="C")
    if a.dtype.kind == "U":
        a.tolist()  # raises for characters outside Unicode, which numpy lets pass
    return read_only(a)


def _bytes_of(a: np.ndarray) -> memoryview:
    """Return the memory of an array in C order."""
    return a.reshape(-1).view(np.uint8).data


_RECORDS: dict[str, type] = {
    cls.__name__: cls
    for cls in (CSR, Convergence, CumulativeLink, PartitionLink, SoftmaxLink)
}
_KINDS: dict[str, type[Storable]] = {}
# Fields that files of this version may hold and classes no longer have.
_FORMER = {"Convergence": {"sample", "basis"}}


class Storable(Immutable):
    """Base class of objects that can be saved: frozen dataclasses with slots.

    A field may hold an array of numbers, booleans or strings, a CSR, a number, a
    string, a bool, None, a `Convergence`, a kernel of `ordinal.kernels`, another of
    these, or a tuple, list or mapping from strings of these. A subclass may define
    `_check(self)`, which raises ValueError if its fields contradict each other; `load`
    calls it.
    """

    # The rows that a model has used are no field, so that files and copies lack them.
    # mypy takes every class that inherits a slot for one that adds it.
    __slots__ = () if TYPE_CHECKING else ("_rows_used",)
    __dataclass_fields__: ClassVar[dict[str, Any]]
    _wrapped: Any = None  # the model that this object passes features on to

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # dataclass(slots=True) makes a second class: the later one is the real one
        _KINDS[cls.__name__] = cls

    def __reduce__(self) -> tuple[Any, ...]:
        # dataclass(frozen=True, slots=True) would shadow __getstate__ of a base, and
        # unpickled arrays are writable until `_rebuild` has seen them.
        return _rebuild, (type(self), field_values(self))

    def _check(self) -> None:
        """Raise ValueError if the fields contradict each other."""

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write this object to a file that `ordinal.load` reads.

        The file holds no code and no pickle, and the same values give the same bytes.
        It appears whole or not at all, under exactly the name given.

        Parameters
        ----------
        path : path, or file that is open for writing in binary mode
            A file that exists is replaced, and keeps its mode; a symbolic link is
            followed. To a pipe, a terminal, a name such as /dev/stdout or an open file
            the content is sent at once; an open file stays open.

        Raises
        ------
        TypeError
            It holds what a file cannot, such as a function for a kernel, or `path` is
            neither a path nor a binary file, such as a file of text; nothing is written
            then.
        ValueError
            Its fields contradict each other, as those of no fitted model do.
        OSError
            The path cannot be written to, or is a folder, a socket or a disk; an open
            file is not open for writing.
        """
        arrays: dict[str, Any] = {}
        node = _encode(self, "model", arrays)
        _decode_model(node, arrays)  # never write what load would refuse
        with writing(path) as file:
            write_archive(file, node, arrays)


def read_file(path: str | os.PathLike[str] | IO[bytes]) -> Storable:
    """Read what `save` wrote to a path or file; ValueError unless it is such a file."""
    with _content(path) as file:
        try:
            return _decode_model(*read_archive(file))
        except MemoryError:
            raise
        except Exception as error:
            # zipfile, json and numpy raise a dozen types for a malicious file.
            damaged = isinstance(error, DamagedError)
            what = "a damaged" if damaged else "not an"
            reason = str(error) or type(error).__name__
            raise ValueError(
                f"{path!s} is {what} ordinal model file: {reason:.200}"
            ) from error


def _content(path: Any) -> IO[bytes]:
    """Return the content of a regular file, or the rest of an open one."""
    if not isinstance(path, str | os.PathLike) and hasattr(path, "read"):
        content = path.read()
        if not isinstance(content, bytes | bytearray):
            raise not_binary(path, "rb")
        return io.BytesIO(content)
    if isinstance(path, bytes | bytearray | memoryview) and bytes(path[:2]) == b"PK":
        raise TypeError(
            "path holds the content of a file: pass io.BytesIO(content), or its path"
        )
    # open() takes a number for a descriptor, and closes it
    return open(as_path("path", path), "rb", opener=_opened)


def _opened(path: str, flags: int) -> int:
    """Open a regular file; reading anything else might never end."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # open() refuses a folder
        os.close(descriptor)
        raise OSError(
            errno.EINVAL,
            "is not a regular file: to read it, pass an open binary file",
            path,
        )
    return descriptor


def _rebuild(cls: type[Storable], fields: dict[str, Any]) -> Storable:
    """Make a model from its pickled fields."""
    return cls(**{name: _frozen_within(value) for name, value in fields.items()})


def _frozen_within(value: Any) -> Any:
    """Return the value with read-only arrays; models and CSR do this by themselves."""
    if isinstance(value, np.ndarray):
        return read_only(value)
    if isinstance(value, CumulativeLink | PartitionLink | SoftmaxLink | PerFeature):
        fields = field_values(value)
        return type(value)(**{k: _frozen_within(v) for k, v in fields.items()})
    if type(value) in (list, tuple):
        return type(value)(_frozen_within(item) for item in value)
    if type(value) is dict:
        return {key: _frozen_within(item) for key, item in value.items()}
    return value


# Values to nodes and back


def _encode(value: Any, where: str, arrays: dict[str, Any]) -> Any:
    """Return the node of a value, and add its arrays to `arrays`.

    `where` is the path of the value in the model, and the name of its array.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        # The same values give the same bytes, whatever their order in memory was.
        arrays[where] = np.asarray(value, value.dtype.newbyteorder("<"), order="C")
        return {"array": where}
    if type(value) in (list, tuple):
        nodes = [_encode(v, f"{where}.{i}", arrays) for i, v in enumerate(value)]
        return nodes if type(value) is list else {"tuple": nodes}
    if type(value) is dict and all(isinstance(key, str) for key in value):
        # A key that is no identifier may not be a valid name of a member.
        places = [
            key if key.isascii() and key.isidentifier() else i
            for i, key in enumerate(value)
        ]
        items = zip(value.items(), places, strict=True)
        mapping = {k: _encode(v, f"{where}.{at}", arrays) for (k, v), at in items}
        return {"mapping": mapping}
    if isinstance(value, Status):
        return {"status": value.value}
    name = type(value).__name__
    if dataclasses.is_dataclass(value) and _known_class(name) is type(value):
        defaults = _later_fields(type(value))
        fields = {
            field: _encode(held, f"{where}.{field}", arrays)
            for field, held in field_values(value).items()
            if field not in defaults or _differs(held, defaults[field])
        }
        return {"class": name, "fields": fields}
    if callable(value):
        raise TypeError(
            f"{where} is {shown(value)}, and a model file holds data only: fit "
            "with a kernel of ordinal.kernels, or use pickle if the callable can "
            "be pickled"
        )
    raise TypeError(
        f"{where} is {shown(value)}, which a model file cannot hold: use pickle, and "
        "load it only from files that you trust"
    )


def _differs(held: Any, default: Any) -> bool:
    """Return whether a field does not have its default, which is no array."""
    return isinstance(held, np.ndarray) or held != default


def _decode_model(node: Any, arrays: dict[str, np.ndarray]) -> Storable:
    """Return the model that a node and its arrays describe."""
    used: set[str] = set()
    model = _decode(node, arrays, used)
    if not isinstance(model, Storable):
        raise ValueError("it does not describe a model")
    if used != set(arrays):
        raise ValueError(f"members belong to no field: {sorted(set(arrays) - used)}")
    return model


def _decode(node: Any, arrays: dict[str, np.ndarray], used: set[str]) -> Any:
    """Return the value of a node; `used` collects the arrays it refers to."""
    if isinstance(node, list):
        return [_decode(item, arrays, used) for item in node]
    if not isinstance(node, dict):
        return node
    match node:
        case {"array": str(member)}:
            if member not in arrays:
                raise ValueError(f"member {shown(member)} is missing")
            used.add(member)
            return arrays[member]
        case {"tuple": list(items)}:
            return tuple(_decode(item, arrays, used) for item in items)
        case {"mapping": dict(items)}:
            return {key: _decode(item, arrays, used) for key, item in items.items()}
        case {"status": value}:
            return Status(value)
        case {"class": str(name), "fields": dict(fields)}:
            values = {k: _decode(v, arrays, used) for k, v in fields.items()}
            return _construct(name, values)
    raise ValueError("its header is malformed")


def _construct(name: str, values: dict[str, Any]) -> Any:
    """Return an instance of a known class, if the values suit its fields."""
    cls = _known_class(name)
    if cls is None or not dataclasses.is_dataclass(cls) or _is_base(cls):
        raise ValueError(f"unknown class {shown(name)}")
    former = _FORMER.get(name, set())
    values = {field: v for field, v in values.items() if field not in former}
    values = _later_fields(cls) | values
    wrong = {f.name for f in dataclasses.fields(cls)} ^ set(values)
    if wrong:
        raise ValueError(f"unknown or missing fields of {name}: {sorted(wrong)}")
    check_fields(cls, values)
    made = cls(**values)
    if isinstance(made, Storable):
        made._check()
    return CSR.from_any(made, "CSR") if isinstance(made, CSR) else made


def _later_fields(cls: Any) -> dict[str, Any]:
    """Return the defaults of keyword-only fields.

    These were added after files had been written. A file holds such a field only if it
    differs from its default, so that files without it can be read.
    """
    return {f.name: f.default for f in dataclasses.fields(cls) if f.kw_only}


def _is_base(cls: Any) -> bool:
    """Return whether a class is a base class of models, without fields of its own."""
    return issubclass(cls, Storable) and all(f.kw_only for f in dataclasses.fields(cls))


def _known_class(name: str) -> type | None:
    """Return the class of this name that a file may hold, or None."""
    known = _RECORDS.get(name) or NAMED.get(name) or _KINDS.get(name)
    if known is None:  # its module may not have been imported yet
        import_all()
        known = _KINDS.get(name)
    return known
