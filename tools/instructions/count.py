"""Runs the cases with every kernel called through a C function of its own name.

    valgrind --tool=callgrind ... python count.py SLOTS [CASE ...]

SLOTS is the module of those functions, as `__main__.py` builds it: so callgrind tells
the instructions of each kernel apart, whatever the compiler has made of its name. The
counts of each case are written down under its name.
"""

import sys
from pathlib import Path
from typing import Any

from cases import CASES
from kernels import METHODS, kernels, slot_of

from ordinal._watch.monitor import Monitor


def through(slots: Any, name: str, call: Any) -> Any:
    """A function that does as `call` does, by way of the slot of that name."""
    slot = slots.bound(slot_of(name), call)
    return lambda *args, **options: slot(*args, **options)  # a class binds it


def replaced(slots: Any, public: str, value: Any) -> Any:
    if public not in METHODS:
        return through(slots, public, value)
    methods = {
        name: through(slots, f"{public}.{name}", getattr(value, name))
        for name in METHODS[public]
    }
    return type(value.__name__, (value,), methods)


def replace_all(slots: Any) -> None:
    """In the modules of the kernels, and in those that have imported one by name."""
    new = {
        id(value): (value, replaced(slots, public, value))
        for public, value in kernels()
    }
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "ordinal":
            for key, value in list(vars(module).items()):
                if id(value) in new and new[id(value)][0] is value:
                    setattr(module, key, new[id(value)][1])


def main(library: str, *chosen: str) -> None:
    sys.path.insert(0, str(Path(library).parent))
    import slots

    replace_all(slots)
    # The kernels of SMO and SGD return when time is up, and callgrind is slow: the
    # number of their calls is to be that of the work alone.
    Monitor.SLICE = 1.0
    slots.begin()
    for name in chosen or CASES:
        CASES[name]()
        slots.end_of(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
