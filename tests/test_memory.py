"""Tests that fits, predictions and cancelled fits leave no array behind."""

import gc
import tracemalloc

import numpy as np
import pytest
from registry import Method, stepwise
from strategies import sample

from ordinal._numerics import memory

_REPEATS = 3
# Bytes that Python may come to hold meanwhile, and numpy, which keeps some blocks of
# every size below 1 kB for its next arrays.
_ELSE = 80_000


def interrupt(*_):
    raise KeyboardInterrupt


def bytes_in_use() -> int:
    """Count the bytes of numpy's arrays and of Python's objects."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def growth(once) -> int:
    """Count bytes that remain each time; another thread may allocate once."""
    before = bytes_in_use()
    for _ in range(_REPEATS):
        once()
    return bytes_in_use() - before


@pytest.mark.slow("fits of every method under a tracer of memory")
@stepwise
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
        assert growth(once) < _ELSE or growth(once) < _ELSE
    finally:
        tracemalloc.stop()


def test_large_zeros_lie_in_a_file_without_a_name(monkeypatch):
    here = memory.zeros((3, 5), np.float32)
    assert not here.any()
    assert here.base is None
    monkeypatch.setattr(memory, "physical_memory", lambda: 200)
    filed = memory.zeros((3, 5), np.float32)
    assert filed.shape == (3, 5)
    assert filed.dtype == np.float32
    assert not filed.any()
    assert isinstance(filed.base, np.memmap)
    filed[1] = 7.0
    assert filed.sum() == 35.0
    assert memory.zeros((2, 5), np.float32).base is None
