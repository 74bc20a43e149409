"""Number of threads of a fit, helpers of kernels, and the vector code in use.

Without OpenMP, threads of a pool help with the parallel regions of kernels, which
`_solvers/_parts.pyx` describes. It starts more helpers when a region needs them. A
helper without work ends after a second, and all end with the interpreter.
"""

import atexit
import math
import os
import sys
from functools import cache
from pathlib import Path, PurePosixPath

from .._input.checks import check_count, shown
from .._solvers import _build_info, _parts
from .._watch.cancellation import ended_by, never
from .pool import Pool


def _start(n: int) -> None:
    """Start n helper threads, or as many as the system allows."""
    for _ in range(n):
        pool = Pool(2)
        with ended_by(never):  # a helper outlives the fit that starts it
            if not pool.begin(_help, pool):
                return


def _help(pool: Pool) -> None:
    """Run parts of regions in a helper thread until it leaves the pool."""
    with pool:
        _parts.help()


def way() -> str:
    """Return what runs the parts of parallel regions: "openmp" or "pool"."""
    return "openmp" if _parts.by_openmp() else "pool"


_parts.started_by(_start)
atexit.register(_parts.dismiss)  # before `pool` waits for its threads
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_parts.after_fork)


THREADS = sys.platform not in ("emscripten", "wasi")

_forked = False
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def _mark_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_fork)


def is_forked() -> bool:
    """Return whether this process was forked, so that OpenMP's threads are missing."""
    return _forked


def resolve_n_threads(n_threads: int | None) -> int:
    """Return the number of threads to use.

    It is the argument, else ORDINAL_NUM_THREADS, else the first number of
    OMP_NUM_THREADS, else the number of CPUs that this process may use (`cpus_allowed`).
    A forked child uses one thread unless it is asked for more, because there are often
    as many children as CPUs. The number is 1 if the system has no threads.
    """
    if n_threads is None:
        n_threads = _threads_of_environment() or (1 if _forked else cpus_allowed())
    else:
        n_threads = check_count("n_threads", n_threads)
    return min(n_threads, 256) if THREADS else 1


def _threads_of_environment() -> int | None:
    if text := os.environ.get("ORDINAL_NUM_THREADS", ""):
        if not (text.strip().isdecimal() and int(text)):
            raise ValueError(
                f"ORDINAL_NUM_THREADS must be a positive integer, got {shown(text)}"
            )
        return int(text)
    # A list has one number per level of nested parallelism. The variable is not ours,
    # so anything malformed is ignored.
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(text) or None if text.isdecimal() else None


def cpus_allowed() -> int:
    """Return the number of CPUs in the affinity mask of this process.

    It is no more than the quota of the control groups, rounded up.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, math.ceil(min(count, _quota())))


@cache
def _quota() -> float:
    """Return the CPU quota of this process by the control groups of Linux, in CPUs."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return math.inf
    quotas = [math.inf]
    for line in lines:  # "number:controllers:path"; version 2 has no controllers
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # The quota of a parent bounds its children. A container may see its own group
        # as the root.
        group = PurePosixPath(path.strip("/"))
        for folder in (group, *group.parents):
            quotas.append(_quota_of(_GROUPS / ("cpu" if controllers else "") / folder))
    return min(quotas)


def _quota_of(group: Path) -> float:
    """Return the CPU quota of one group; inf if it has none or cannot be read."""
    try:
        if (group / "cpu.max").exists():  # version 2: "quota period" or "max period"
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()  # -1 is no bound
            period = (group / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def show_config() -> dict[str, object]:
    """Return the build options, and the choices made on this machine.

    Returns
    -------
    dict
        `version`; `compiler`, with its version; `openmp`, whether this build has it;
        `threads`, what runs the kernels' parts on several threads here: "openmp", or
        "pool" where it is not built in and in a forked child, or "none" where the
        system has no threads; `n_threads`, the default; `simd`, the vector code in use,
        and `simd_levels`, all that this build holds and this processor can run, best
        first; `index_checks`, True in a debug build.

    See Also
    --------
    load : Load a model from a file written by its method `save`.

    Notes
    -----
    The environment variable ORDINAL_SIMD chooses a level by name when ordinal is
    imported. The default number of threads is that of ORDINAL_NUM_THREADS, else the
    first of OMP_NUM_THREADS, else the number of CPUs that this process may use: those
    of its affinity mask, but no more than the CPU quota of its control group (as
    containers set it), rounded up.

    Examples
    --------
    >>> import ordinal
    >>> ordinal.show_config()["simd_levels"][-1]
    'baseline'
    """
    return {
        "version": _build_info.VERSION,
        "compiler": _build_info.COMPILER,
        "openmp": _parts.OPENMP,
        "threads": way() if THREADS else "none",
        "n_threads": resolve_n_threads(None),
        "simd": _build_info.simd_name(),
        "simd_levels": _build_info.simd_levels(),
        "index_checks": _build_info.INDEX_CHECKS,
    }
