"""What fits, predictions and fits that were broken off leave behind: no array."""

import gc
import tracemalloc

import numpy as np
import pytest
from registry import Method, every_method
from strategies import sample

_REPEATS = 3
# Bytes that Python may come to hold meanwhile, and numpy, which keeps some blocks of
# every size below 1 kB for its next arrays.
_ELSE = 80_000


def interrupt(*_):
    raise KeyboardInterrupt


def bytes_in_use() -> int:
    """Those of numpy's arrays and of Python's objects."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@every_method
def test_no_array_is_left_behind(method: Method):
    X, y = sample(60, 3)
    X = np.tile(X, 120)
    assert X.nbytes > 2 * _ELSE  # one copy kept would show

    seeded = {"rng": 0} if method.can("rng") else {}

    def once():
        method.cut_short(X, y, **seeded, **method.brief).predict(X)
        with pytest.raises(KeyboardInterrupt):
            method.cut_short(X, y, **seeded, callback=interrupt)

    tracemalloc.start()
    try:
        once()
        before = bytes_in_use()
        for _ in range(_REPEATS):
            once()
        assert bytes_in_use() - before < _ELSE
    finally:
        tracemalloc.stop()
