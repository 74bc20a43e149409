"""How much memory there is, and whether it is enough."""

import os


def physical_memory() -> int | None:
    """Bytes of this machine's memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(name: str, needed: float, what: str, advice: str = "") -> None:
    """Raise MemoryError if what a fit is asked for needs more bytes than this machine
    has: before the system ends the process for it."""
    there = physical_memory()
    if there is not None and needed > there:
        raise MemoryError(
            f"{name} needs {gib(needed)} of memory for {what}, and this machine has "
            f"{gib(there)}{advice}"
        )


def gib(size: float) -> str:
    """Bytes in units for people."""
    return f"{size / 2**30:.3g} GiB"
