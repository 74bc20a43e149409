"""One thread of numpy's BLAS while a fit runs.

The threads of a BLAS wait for each other in busy loops. A product of small matrices, of
which a fit has thousands, then takes a hundred times as long as soon as another process
needs a processor. Large products are instead shared by threads of this package, which
wait without using a processor (`_numerics/threads.py`). A fit thus needs no threads of
the BLAS, and its last bits do not depend on their number.

A BLAS whose number of threads cannot be set is left as it is: Accelerate, whose threads
wait without using a processor, and any that exports none of the names below.
"""

import os
import threading
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

# Names of functions that get and set the number, in the order of the search.
_NAMES = [
    *(
        (f"{prefix}_get_num_threads{suffix}", f"{prefix}_set_num_threads{suffix}")
        for prefix, suffix in product(
            ("openblas", "scipy_openblas"), ("", "64_", "_64")
        )
    ),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
]


class _Threads(NamedTuple):
    """Functions of a BLAS that get and set its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], Any]


@cache
def _threads() -> _Threads | None:
    """Return the functions of numpy's BLAS for its number of threads, if it has any."""
    try:
        import ctypes
    except ImportError:  # WebAssembly
        return None
    # Except on Windows, symbols are also found in the libraries linked to a library.
    linked = [np.linalg._umath_linalg.__file__]
    bundled = (Path(np.__file__).parents[1] / "numpy.libs").glob("*openblas*")
    for path in [*linked, *map(str, bundled)]:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for get, set_ in _NAMES:
            if hasattr(library, get) and hasattr(library, set_):
                return _Threads(getattr(library, get), getattr(library, set_))
    return None


_lock = threading.Lock()
_within = WeakSet["OneThread"]()  # weak: Ctrl-C may come before a context is left
_before: list[int] = []  # the number to restore, while the present number is one


def _after_fork() -> None:
    """Replace the lock in a child process, where a thread that held it is missing."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class OneThread:
    """Context in which numpy's BLAS has one thread; contexts of threads may overlap.

    The number applies to the whole process, so other calls of numpy have one thread
    meanwhile, too. When the last context is left, the former number is restored,
    unless other code has changed it.
    """

    def __enter__(self) -> None:
        threads = _threads()
        if threads is not None:
            with _lock:
                if not _before:
                    _before.append(threads.get())
                    threads.set(1)
                _within.add(self)

    def __exit__(self, *error: object) -> None:
        threads = _threads()
        if threads is not None:
            with _lock:
                _within.discard(self)
                if _before and not _within:
                    before = _before.pop()
                    if threads.get() == 1:
                        threads.set(before)
