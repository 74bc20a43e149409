"""Available memory, errors where it does not suffice, and reuse of arrays."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

import numpy as np

_SHARE = 0.25  # share of this machine's memory above which `zeros` uses a file


def physical_memory() -> int | None:
    """Return the memory of this machine in bytes, or None if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(name: str, needed: float, what: str, advice: str = "") -> None:
    """Raise MemoryError if a fit needs more bytes than this machine has.

    Otherwise the system would end the process. `what` describes the data in the
    message.
    """
    there = physical_memory()
    if there is not None and needed > there:
        raise MemoryError(
            f"{name} needs {in_gib(needed)} of memory for {what}, and this machine has "
            f"{in_gib(there)}{advice}"
        )


def zeros(shape: tuple[int, ...], dtype: type[np.number[Any]]) -> np.ndarray:
    """Return an array of zeros for sequential access.

    If it is very large, it lies in a temporary file, of which the system caches as much
    in memory as it can. The file has no name, and is deleted with the array.
    """
    there = physical_memory()
    size = np.dtype(dtype).itemsize * float(np.prod(shape, dtype=float))
    if there is None or size <= _SHARE * there:
        return np.zeros(shape, dtype)
    with TemporaryFile() as file:
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))


def in_gib(size: float) -> str:
    """Return a number of bytes as text in GiB."""
    return f"{size / 2**30:.3g} GiB"


class Scratch:
    """Arrays of one shape that calls on several threads use in turn.

    Page faults of new memory would cost more than filling it.

    Parameters
    ----------
    shape : tuple of int
    dtype : float32 or float64
    """

    def __init__(self, shape: tuple[int, ...], dtype: type[np.floating[Any]]):
        self._shape, self._dtype = shape, dtype
        self._free: deque[np.ndarray] = deque()

    @contextmanager
    def lent(self) -> Iterator[np.ndarray]:
        """Yield an array with arbitrary contents."""
        try:
            array = self._free.pop()
        except IndexError:
            array = np.empty(self._shape, self._dtype)
        yield array
        self._free.append(array)
