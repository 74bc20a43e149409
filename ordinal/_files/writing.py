"""Atomic writing of files: a regular file is replaced as a whole or not at all.

The content of a regular file, or of a new one, is written to a temporary file beside
it, which then takes its name. A pipe, a character device such as a terminal or
/dev/null, and a descriptor of this process, such as /dev/stdout, are streams, to which
the content is written at the end. An open binary file is a stream as well. Any other
kind of path is an error. A symbolic link is followed, and remains a link.
"""

import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from .._input.checks import as_path, shown

_CHUNK = 1 << 20  # bytes of one write to a stream; Ctrl-C is handled in between
_FOLDERS_OF_DESCRIPTORS = ("/dev/fd", "/proc/{}/fd")  # {} is the process


@contextmanager
def writing(path: str | os.PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    """Open a file that is written as a whole at the end of the context, or not at all.

    Until then, and after an error, the path is unchanged. Raises OSError if it cannot
    be written to, and TypeError for an open text file.
    """
    if not isinstance(path, str | os.PathLike) and hasattr(path, "write"):
        try:
            path.write(b"")  # raises at once for a text file or a closed file
        except TypeError:
            raise not_binary(path, "wb") from None
        content = io.BytesIO()
        yield content
        _write_all(content.getbuffer(), path)
        return
    target, is_stream = _target(path)
    if is_stream:
        content = io.BytesIO()
        yield content
        _send(content.getbuffer(), target)
        return
    temporary = target.with_name(f".ordinal-{os.urandom(8).hex()}.tmp")
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        with open(temporary, "xb", opener=partial(_opened, mode)) as file:
            yield file
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def not_binary(file: Any, mode: str) -> TypeError:
    """Return the error for an argument that is no path and no binary file."""
    return TypeError(
        "path must be a path or a file that is open in binary mode, such as "
        f"open(name, {shown(mode)}), got {shown(file)}"
    )


def _opened(mode: int | None, path: str, flags: int) -> int:
    """Open a new file with no more permissions than `mode` at any moment."""
    return os.open(path, flags, 0o666 if mode is None else mode & 0o777)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise OSError for a path that cannot be written to, before long computations."""
    _target(path)


def replaces(path: Any, read: str) -> bool:
    """Return whether writing to a path would replace a file that is read.

    The file may have several names; "-" is standard input.
    """
    try:
        own = os.stat(path)
        others = os.fstat(sys.stdin.fileno()) if read == "-" else os.stat(read)
    except (OSError, ValueError):  # there is no such file yet
        return False
    return stat.S_ISREG(own.st_mode) and os.path.samestat(own, others)


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """Return the descriptor that a path such as /dev/stdout stands for, or None."""
    folders = [folder.format(os.getpid()) for folder in _FOLDERS_OF_DESCRIPTORS]
    for _ in range(40):  # the system follows 40 links at most
        folder, name = os.path.split(path)
        if os.path.realpath(folder) in folders and name.isdecimal():
            return int(name)
        if not os.path.islink(path):
            break
        path = os.path.join(folder, os.readlink(path))
    return None


def _target(path: Any) -> tuple[Path, bool]:
    """Return the target of a path, and whether it is a stream.

    Raises OSError if it is neither a stream nor a regular file, nor free.
    """
    path = Path(as_path("path", path))
    if (number := descriptor_of(path)) is not None:
        os.fstat(number)  # raises unless it is open
        return path, True
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(
                errno.ENOENT,
                "The folder of this file does not exist and must be created first",
                str(path),
            ) from None
        return target, False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise OSError(
            errno.EINVAL, f"is {kind}: pass the path of a regular file", str(path)
        )
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "may not be written to", str(path))
    return target, not stat.S_ISREG(mode)


def _send(content: memoryview, target: Path) -> None:
    """Write a file's content to a stream, such as a pipe or a terminal.

    A descriptor is duplicated: opened by its name, a redirected file would be written
    from its beginning.
    """
    number = descriptor_of(target)
    with open(target if number is None else os.dup(number), "wb", buffering=0) as file:
        _write_all(content, file)


def _write_all(content: memoryview, file: Any) -> None:
    """Write everything to an open file, in chunks."""
    for start in range(0, len(content), _CHUNK):
        chunk = content[start : start + _CHUNK]
        while chunk:  # a stream may accept a part only
            chunk = chunk[file.write(chunk) or 0 :]
