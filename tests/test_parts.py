"""Parts of kernels' regions, done by helpers from a pool where OpenMP does not."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from internals import _parts, at_work
from processes import printed
from test_forks import forked
from test_pool import idle, soon

from ordinal._numerics.threads import way


@pytest.fixture
def pool(regions):
    """Regions are done by helpers, as in a build without OpenMP."""
    regions(openmp=False)


def doers(count, n_threads, seconds=0.0):
    """The number of the worker that did each part, all of which are done once."""
    done, doer = np.zeros(count, np.int32), np.full(count, -1, np.int32)
    _parts.watched(done, doer, seconds, n_threads)
    assert (done == 1).all()
    assert (doer >= 0).all()
    assert (doer < n_threads).all()
    return doer


def shared(n_threads):
    """Return whether a region has had more workers than one."""
    return len(set(doers(20, n_threads, 1e-3))) > 1


def test_this_build_has_a_way(regions):
    assert way() == ("openmp" if _parts.OPENMP else "pool")
    regions(openmp=True)  # where it is not built in, it cannot be chosen
    assert _parts.by_openmp() == _parts.OPENMP


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_every_part_is_done_once(n_threads, pool):
    for count in (1, 2, 3, 7, 100):
        for _ in range(50):
            doers(count, n_threads)


def test_one_thread_asks_for_nobody(pool):
    def nobody():
        assert soon(idle)
        for _ in range(10):
            assert not doers(20, 1, 1e-3).any()
            assert not doers(1, 4, 1e-3).any()
        return not at_work

    # a helper that a test before has called may come as late as in the first round
    assert nobody() or nobody()


def test_helpers_come_and_leave(pool):
    assert soon(idle)
    assert soon(lambda: shared(3))
    assert soon(lambda: set(doers(60, 3, 1e-3)) == {0, 1, 2})
    assert soon(idle)  # after a second without work
    assert soon(lambda: shared(2))  # and others are called


def test_regions_of_many_threads_at_once(pool):
    ended = []

    def again_and_again(n_threads):
        for i in range(300):
            doers(1 + i % 40, n_threads, 1e-5 * (i % 3))
        ended.append(n_threads)

    threads = [
        threading.Thread(target=again_and_again, args=(1 + i % 4,)) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == len(threads)
    assert soon(idle)


def test_helpers_hold_on_to_nothing_of_the_fit_that_called_them(pool):
    from weakref import ref

    from ordinal._watch.cancellation import ended_by

    class Fit:
        def over(self):
            return False

    fit = Fit()
    gone = ref(fit)
    assert soon(idle)
    with ended_by(fit.over):
        assert soon(lambda: shared(2) and at_work)  # until one waits for more
    del fit
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_helpers_of_its_own(pool):
    assert soon(lambda: shared(2))
    assert forked(lambda: not at_work and soon(lambda: shared(3))) == 1
    assert soon(lambda: shared(2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_does_not_wait_for_openmp():
    doers(20, 2, 1e-3)
    assert forked(lambda: way() == "pool" and soon(lambda: shared(2))) == 1


HEAD = """
import random, signal, sys, threading
import numpy as np
from ordinal._numerics.threads import at_work
from ordinal._numerics import threads
from ordinal._solvers import _parts

_parts.use_openmp(False)
def doers(count, n_threads, seconds):
    done, doer = np.zeros(count, np.int32), np.full(count, -1, np.int32)
    _parts.watched(done, doer, seconds, n_threads)
    assert (done == 1).all(), done
    return doer
"""
LEFT = """
while not doers(20, 3, 1e-3).any():
    pass
def endless():
    while True:
        doers(20, 3, 1e-5)
threading.Thread(target=endless, daemon=True).start()
print("left", len(at_work) > 0)
"""
PRESSED = """
signal.signal(signal.SIGALRM, signal.default_int_handler)
rng = random.Random(0)
for i in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 3e-3))
        while True:
            doers(8, 1 + i % 5, 1e-5)
    except KeyboardInterrupt:
        pass
while not doers(20, 2, 1e-3).any():
    pass
print("every press was heard")
"""


@pytest.mark.slow("an interpreter of its own")
def test_the_interpreter_ends_while_helpers_are_at_work():
    assert printed(HEAD + LEFT, warnings="ignore") == "left True\n"


@pytest.mark.slow("an interpreter that is pressed many times")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer")
def test_no_press_is_lost_in_a_region():
    assert printed(HEAD + PRESSED, warnings="ignore") == "every press was heard\n"


def test_without_more_threads_a_region_is_done_by_one(pool, monkeypatch):
    """Refuse further threads, as a system may."""
    from ordinal._numerics import threads as module

    def refused(*args):
        raise RuntimeError("can't start new thread")

    assert soon(idle)
    monkeypatch.setattr(module, "start_new_thread", refused)
    time.sleep(0.02)  # after which helpers are called again
    assert not doers(20, 3, 1e-3).any()
