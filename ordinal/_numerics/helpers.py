"""Threads of a pool that take part in the kernels' regions, where OpenMP does not.

`_solvers/_parts.pyx` says what a region is, how helpers share one, and when it calls
for more of them. A helper without work leaves after a second, and all leave when the
interpreter ends.
"""

import atexit
import os

from .._solvers import _parts
from .._watch.monitor import ended_by, never
from .pool import Pool


def _start(n: int) -> None:
    for _ in range(n):
        pool = Pool(2)
        with ended_by(never):  # or it would hold on to the fit that calls it
            if not pool.begin(_help, pool):
                return


def _help(pool: Pool) -> None:
    """Run parts of regions in a helper thread until it leaves the pool."""
    with pool:
        _parts.help()


def way() -> str:
    """Return what runs the parts of regions: "openmp" or "pool"."""
    return "openmp" if _parts.by_openmp() else "pool"


_parts.started_by(_start)
atexit.register(_parts.dismiss)  # before `pool` waits for its threads
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_parts.after_fork)
