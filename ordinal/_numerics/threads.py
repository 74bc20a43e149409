"""How many threads a fit uses, and which vector code was built and chosen."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from .._input.checks import check_count
from .._solvers import _build_info

_forked = False


def _mark_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_fork)


def resolve_n_threads(n_threads: int | None) -> int:
    """Threads to use: the argument, else ORDINAL_NUM_THREADS, else what is allowed.

    Always 1 without OpenMP, and in a forked child, whose copy of the parent's
    OpenMP threads does not exist: waiting for them would hang.
    """
    if n_threads is None:
        text = os.environ.get("ORDINAL_NUM_THREADS", "")
        if text:
            try:
                n_threads = int(text)
                check_count(ORDINAL_NUM_THREADS=n_threads)
            except ValueError:
                raise ValueError(
                    f"ORDINAL_NUM_THREADS must be a positive integer, got {text!r}"
                ) from None
        elif hasattr(os, "sched_getaffinity"):
            n_threads = len(os.sched_getaffinity(0))
        else:
            n_threads = os.cpu_count() or 1
    else:
        check_count(n_threads=n_threads)
    return 1 if _forked or not _build_info.OPENMP else min(int(n_threads), 256)


class Pool:
    """Independent calls on n_threads threads; in this one where that is 1.

    For calls that spend their time in numpy or a kernel, without the interpreter's
    lock. Ctrl-C leaves at once: what has not begun never will.
    """

    def __init__(self, n_threads: int):
        self._executor = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def submit(self, call: Callable, argument) -> Future | None:
        """Begin call(argument) beside what goes on here; None if it is done already."""
        if self._executor is None:
            call(argument)
            return None
        return self._executor.submit(call, argument)

    def run(self, call: Callable, arguments: Iterable) -> None:
        """call(argument) for each; returns when all have."""
        for future in [self.submit(call, argument) for argument in arguments]:
            if future is not None:
                future.result()


def show_config() -> dict[str, object]:
    """What was built and what was chosen on this machine.

    Returns
    -------
    dict
        `version`; `openmp`, whether fits can use several threads; `n_threads`, the
        default; `simd`, the vector code in use, and `simd_levels`, all that this
        build holds and this processor can run, best first; `index_checks`, True in a
        debug build.

    Notes
    -----
    The environment variable ORDINAL_SIMD chooses a level by name when ordinal is
    imported, ORDINAL_NUM_THREADS the default number of threads.

    Examples
    --------
    >>> import ordinal
    >>> ordinal.show_config()["simd_levels"][-1]
    'baseline'
    """

    return {
        "version": _build_info.VERSION,
        "openmp": _build_info.OPENMP,
        "n_threads": resolve_n_threads(None),
        "simd": _build_info.simd_name(),
        "simd_levels": _build_info.simd_levels(),
        "index_checks": _build_info.INDEX_CHECKS,
    }
