"""Archives of arrays with a header, which tell whether they are whole.

An archive is an .npz file, stored without compression, of plain .npy members. The first
member, `header`, holds JSON in ASCII bytes:

    {"format": "ordinal-model", "version": 3, "checksum": hex digits, "model": node}

The checksum is blake2b, of 16 bytes, of the JSON of `model` as Python writes it, and
then, in the order of their names, of each array's name, dtype and shape and of its
entries in C order and little endian. It finds what went wrong on the way, on a disk or
in a transfer; whoever changes a file on purpose can compute it anew.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import IO, Any, Literal

import numpy as np

from .._input.checks import shown
from .._input.sparse import read_only

ARRAY_KINDS = "biufU"  # whatever needs no pickle: booleans, numbers, strings
_FORMAT, _VERSION = "ordinal-model", 3
_MARK = b'{"format": "ordinal-model"'
_MARK_ENDS = 1024  # bytes from the beginning within which the mark ends
_CHUNK = 1 << 24  # bytes between two chances for Ctrl-C


class DamagedError(ValueError):
    """The file begins as an archive of ours does, but is not whole."""


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
    """Return the array of an .npy member of so many bytes, whatever size it claims
    itself.
    """
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):  # the later ones serve structured types
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
    if stream.read(1):  # which compares the archive's own checksum, too
        raise ValueError(f"member {shown(name)} does not end")
    a = np.asarray(a, dtype.newbyteorder("="), order="C")
    if a.dtype.kind == "U":
        a.tolist()  # raises for characters outside Unicode, which numpy lets pass
    return read_only(a)


def _bytes_of(a: np.ndarray) -> memoryview:
    """Return the memory of an array in C order."""
    return a.reshape(-1).view(np.uint8).data
