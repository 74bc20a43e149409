"""Forks: what a child finds of the threads, the locks and the memory of its parent."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from files import solution
from registry import every_method
from strategies import sample

import ordinal

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
SECONDS = 300  # after which a child hangs


def forked(call) -> int:
    """The exit code of a child that makes the call, and whose code is what it gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: threads and fork
        child = os.fork()
    if child == 0:
        code = 99
        try:
            code = int(call())
        finally:
            os._exit(code)
    deadline = time.monotonic() + SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)


def test_no_lock_is_shared_by_all_fits():
    """The lock of `cached_property` in Python 3.11 is shared: a child that is forked
    while another thread holds it would wait for ever."""
    sources = list(Path(ordinal.__file__).parent.rglob("*.py"))
    assert len(sources) > 90
    assert not [path for path in sources if "cached_property" in path.read_text()]


@every_method
def test_a_forked_child_fits_the_same_model(method):
    """After fits whose threads are there in the parent, and not in the child."""
    X, y = sample(200, 4)
    options = {"n_threads": 2, **method.brief}
    expected = solution(method.cut_short(X, y, **options))
    assert forked(lambda: solution(method.cut_short(X, y, **options)) == expected) == 1


BESIDE = """
import threading

import numpy as np
import ordinal
from files import solution
from strategies import sample
from test_forks import forked

X, y = sample(300, 5)
ended = threading.Event()

def fits():
    return [
        solution(ordinal.fit_npsvor(X, y, C=30.0, n_threads=2)),
        solution(ordinal.fit_npsvor(X, y, solver="admm", n_threads=2)),
        solution(ordinal.fit_svorex(X, y, C=3.0, cache_mb=0.1, n_threads=2)),
    ]

def again_and_again():
    while not ended.is_set():
        fits()

expected = fits()
threads = [threading.Thread(target=again_and_again) for _ in range(2)]
for thread in threads:
    thread.start()
same = [forked(lambda: fits() == expected) for _ in range(8)]
ended.set()
for thread in threads:
    thread.join()
assert same == [1] * 8, same
"""


@pytest.mark.slow("eight forks, each with three fits")
def test_forks_beside_fits_of_other_threads():
    """Fork at any moment of fits in which numpy's BLAS has one thread: with several it
    may not be forked while it computes."""
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BESIDE],
        cwd=os.path.dirname(__file__), env=os.environ | one, check=True,
        timeout=8 * SECONDS,
    )  # fmt: skip
