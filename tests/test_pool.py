"""Calls on several threads, and what becomes of them and of Ctrl-C."""

import gc
import signal
import threading
import time
from contextlib import suppress

import pytest
from internals import OutOfTime, at_work, check_cancelled, ended_by
from processes import printed

from ordinal._numerics import threads as pool_module
from ordinal._numerics.threads import Pool, in_order


def soon(true):
    deadline = time.monotonic() + 300
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


def idle():
    return not at_work


@pytest.mark.parametrize("n_threads", [1, 2])
def test_calls_in_other_threads_end_with_the_time_of_the_one_that_waits(n_threads):
    """Each looks at the clock of the thread that made it, and not at another one."""
    begun, looked = threading.Event(), []

    def call(i):
        begun.set()
        for _ in range(1000):
            check_cancelled()
            looked.append(i)
            time.sleep(1e-3)

    with ended_by(begun.is_set), Pool(n_threads) as pool:
        with pytest.raises(OutOfTime):
            pool.run(call, [0, 1])
    assert looked == []
    with Pool(n_threads) as pool:
        pool.run(lambda i: check_cancelled(), [0, 1])


def test_what_a_call_raises_is_raised_and_others_go_on():
    with Pool(2) as pool:
        bad, good = (pool.submit(lambda x: 1 / x, x) for x in (0, 2))
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                bad.result()
        assert good.result() == 0.5
        assert bad.done()
        assert good.done()


def test_a_brief_pool_ends_what_has_begun_and_nothing_else():
    begun, gate, ended = threading.Semaphore(0), threading.Event(), []

    class Left(Pool):
        """Lets what has begun end once nothing else may begin."""

        def _over(self):
            gate.set()
            return super()._over()

    def call(i):
        begun.release()
        gate.wait(300)
        ended.append(i)

    with Left(2, brief=True) as pool:
        for i in range(4):
            pool.submit(call, i)
        for _ in range(2):
            begun.acquire()
    assert sorted(ended) == [0, 1]
    assert soon(idle)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_order(n_threads):
    def call(i):
        time.sleep(0.002 * (i % 3))
        return i

    assert list(in_order(call, range(20), n_threads)) == list(range(20))
    assert soon(idle)


def test_threads_of_a_pool_that_nobody_left_end():
    pool = Pool(2)
    assert pool.submit(abs, -1).result() == 1
    assert at_work
    del pool
    gc.collect()
    assert soon(idle)


@pytest.fixture(params=[0, 1], ids=["no thread", "one thread"])
def few_threads(request, monkeypatch):
    """A system that starts so many threads, and has no memory for more."""
    start, started = pool_module.start_new_thread, []

    def start_or_refuse(*args):
        if len(started) == request.param:
            raise RuntimeError("can't start new thread")
        started.append(start(*args))

    monkeypatch.setattr(pool_module, "start_new_thread", start_or_refuse)
    yield started
    assert len(started) <= request.param  # a single chunk of rows needs none


def test_a_pool_goes_on_with_the_threads_that_there_are(few_threads):
    made = []
    with Pool(3) as pool:
        pool.run(made.append, range(9))
        with pytest.raises(ZeroDivisionError):
            pool.submit(lambda x: 1 / x, 0).result()
        assert pool.submit(abs, -2).result() == 2
    assert sorted(made) == list(range(9))
    assert soon(idle)


def test_results_come_in_order_from_the_threads_that_there_are(few_threads):
    assert list(in_order(abs, range(9), 3)) == list(range(9))
    assert soon(idle)


def test_calls_in_this_thread_end_with_their_time(monkeypatch):
    def refuse(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool_module, "start_new_thread", refuse)
    with ended_by(lambda: True), Pool(2) as pool, pytest.raises(OutOfTime):
        pool.submit(lambda i: check_cancelled(), 0)


PRESSED = """
import random, signal, sys
from ordinal._numerics.threads import Pool, at_work, in_order

signal.signal(signal.SIGALRM, signal.default_int_handler)
rng = random.Random(0)
for _ in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 3e-3))
        while True:  # passes as a fit makes them
            with Pool(2, brief=True) as pool:
                pool.run(abs, range(3))
            assert list(in_order(abs, range(3), 2)) == [0, 1, 2]
    except KeyboardInterrupt:
        pass
with Pool(2, brief=True) as pool:
    pool.run(abs, range(3))
print("every press was heard")
"""


@pytest.mark.slow("an interpreter that is pressed many times")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer")
def test_no_press_is_lost_and_nobody_waits_for_ever():
    assert printed(PRESSED, warnings="ignore") == "every press was heard\n"


def test_a_call_that_nobody_waits_for_ends_at_its_next_turn():
    begin = threading.Event()

    def busy(seconds):
        begin.set()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            check_cancelled()

    with suppress(ZeroDivisionError), Pool(2, brief=True) as pool:
        begun = pool.submit(busy, 300)
        assert begin.wait(300)
        raise ZeroDivisionError
    with pytest.raises(OutOfTime):
        begun.result()
