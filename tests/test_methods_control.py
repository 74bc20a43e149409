"""Monitoring, stopping and records of every `fit_*`, over registry.py."""

import gc
import itertools
import re
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from files import solution
from hypothesis import settings
from internals import (
    Monitor,
    OutOfTime,
    Stopped,
    at_work,
    check_cancelled,
    driver,
    stopped_by,
)
from numpy.testing import assert_allclose
from registry import Method, all_methods, every_method, stepwise, which
from strategies import sample, slow

import ordinal
from ordinal.exceptions import ConvergenceWarning
from ordinal.models import Status


def warned(fit, *args, match, **options):
    """(model, warning): the one ConvergenceWarning, that the call to `fit` gives."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model = fit(*args, **options)
    caught = [w for w in caught if w.category is ConvergenceWarning]
    assert len(caught) == 1
    assert re.search(match, str(caught[0].message))
    return model, caught[0]


# Others count a step that is begun, or the steps of all ranks and trials
ENDS_AS_REPORTED = {
    "npsvor", "svorim", "svorex", "shashua_levin", "redsvm", "svc", "svr", "cssvc",
    "svmop", "opbe", "tlssvor", "lit", "lat", "pom", "ofmhs",
}  # fmt: skip


@stepwise
def test_a_callback_sees_the_state_and_what_it_raises_passes_through(method):
    X, y = sample(200, 4)
    states = []
    watched = method.cut_short(X, y, callback=states.append)
    assert states
    for state in states:
        assert type(state) is ordinal.models.State
        assert state.method == method.fit.__name__
        assert type(state.n_iter) is int
        assert type(state.violation) is float
        assert state.tol == watched.convergence.tol
    assert all(a.n_iter <= b.n_iter for a, b in itertools.pairwise(states))
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(states))
    assert states[0].seconds > 0
    assert states[-1].seconds <= watched.convergence.seconds
    record = watched.convergence
    if method.name in ENDS_AS_REPORTED:
        assert states[-1].n_iter == record.n_iter
    assert states[-1].n_iter <= record.n_iter
    # one that says nothing changes nothing
    assert solution(watched) == solution(method.cut_short(X, y))
    X, y = sample(60, 3)
    error = LookupError("from the callback")

    def fail(state):
        raise error

    with pytest.raises(LookupError) as caught:
        method(X, y, callback=fail)
    assert caught.value is error
    method.cut_short(X, y)  # nothing is left broken


@stepwise
def test_a_callback_or_a_limit_of_time_ends_a_fit(method):
    X, y = method.endless_rows()
    states = []

    def stop_the_second_time(state):
        states.append(state)
        return "yes" if len(states) == 2 else None

    model, warning = warned(
        method, X, y, **method.endless, callback=stop_the_second_time,
        match=rf"^{method.fit.__name__}: stopped after \d+ steps, .*; the callback retu"
    )  # fmt: skip
    assert len(states) == 2
    assert warning.category is ConvergenceWarning
    c = model.convergence
    assert c.status is Status.STOPPED
    assert not c.converged
    assert c.tol == states[0].tol
    assert np.isfinite(method.numbers(model, X[:9])).all()
    assert set(model.predict(X[:9]).tolist()) <= set(y.tolist())
    model, _ = warned(
        method, X, y, **method.endless, max_time=1e-3,
        match=r": max_time after \d+ steps, .*; raise max_time or (tol|lower n_rounds)",
    )  # fmt: skip
    c = model.convergence
    assert c.status is Status.MAX_TIME
    assert c.seconds >= 1e-3
    assert np.isfinite(method.numbers(model, X[:9])).all()


@every_method
def test_whenever_time_is_up_there_is_a_model_that_says_so(method, up_after, tmp_path):
    """In the kernel matrix, a factor, the basis, steps, and the folds of a link."""
    X, y = sample(90, 4, noise=1.0)
    linked = {"probability": True} if method.can("probability") else {}
    options = {**method.variant, **linked, "max_time": 60.0}
    if "n_epochs" in options:  # hundreds of them ask no other questions
        options["n_epochs"] = 20.0
    questions = up_after(np.inf)
    method.cut_short(X, y, **options)
    n_moments = min(40, settings.default.max_examples)
    moments = np.unique(np.linspace(0, len(questions) - 1, n_moments).astype(int))
    ends = set()
    for asked in moments:
        up_after(asked)
        model = method.cut_short(X, y, **options)
        ends.add(model.convergence.status)
        assert np.isfinite(method.numbers(model, X)).all()
        assert set(model.predict(X)) <= set(y)
        if linked:
            assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-12)
        model.save(tmp_path / "model")
        again = method.numbers(ordinal.load(tmp_path / "model"), X)
        assert_allclose(again, method.numbers(model, X), rtol=0)
        if asked == 0:
            assert model.convergence.status is Status.MAX_TIME
    assert ends <= {Status.MAX_TIME, Status.CONVERGED, Status.N_EPOCHS}


def test_a_factor_or_a_polish_for_which_there_is_no_time(monkeypatch):
    """The model says nothing, or is that of ADMM."""
    X, y = sample(200, 4, noise=1.0)
    for basis in (None, 50):
        with pytest.warns(ConvergenceWarning, match="max_time after 0 steps"):
            model = ordinal.fit_npsvor(X, y, solver="admm", basis=basis, max_time=1e-9)
        assert model.convergence.status is Status.MAX_TIME
        assert not model.decision_function(X).any()
        assert set(model.predict(X)) <= set(y)
    admm = ordinal.fit_npsvor(X, y, solver="admm")

    def no_time(*args, **options):
        raise OutOfTime

    monkeypatch.setattr("ordinal._quadratic.family.solve", no_time)
    model = ordinal.fit_npsvor(X, y, solver="admm", polish=True, max_time=60.0)
    assert_allclose(model.coef, admm.coef, rtol=0)
    assert model.convergence.primal == admm.convergence.primal


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("limit", ["max_time", "callback"])
def test_a_newton_step_under_way_ends_with_its_fit(limit, n_threads, monkeypatch):
    """With thousands of free variables one step takes many seconds."""
    begun = threading.Event()

    def endless(points, k, n_threads):
        begun.set()
        while True:
            check_cancelled()
            time.sleep(1e-3)

    monkeypatch.setattr(driver, "newton_step", endless)
    monkeypatch.setattr(driver, "_PATIENCE", 0.0)
    monkeypatch.setattr(driver, "_SHARED_AT_ONCE", 0)  # steps of few rows, too
    X, y = sample(300, 3, noise=2.0)
    options = {"max_time": 600.0}
    if limit == "callback" and n_threads == 2:  # one thread sees no callback meanwhile
        options = {"callback": lambda state: begun.is_set()}
    else:
        monkeypatch.setattr(Monitor, "late", lambda self, by=0.0: begun.is_set())
    with pytest.warns(ConvergenceWarning, match="max_time|stopped"):
        # of several groups, which an active set cannot end
        ordinal.fit_svorim(
            X, y, C=1e4, kernel="linear", tol=1e-12, n_threads=n_threads, **options
        )
    assert begun.is_set()


@stepwise
def test_a_limit_of_steps_is_reported_at_the_line_that_called(method):
    X, y = sample(60, 3)
    options = {**method.variant, **method.brief}
    message = (
        rf"^{method.fit.__name__}: \w+ after \d+ steps, violation \d.*e[+-]\d+ against "
        rf"tol \d.*e[+-]\d+(, relative duality gap .*)?; {method.advice}"
    )
    model, warning = warned(method.fit, X, y, **options, match=message)
    assert warning.filename.endswith("test_methods_control.py")
    c = model.convergence
    assert c.status in (Status.MAX_ITER, Status.N_EPOCHS)
    assert c.violation > c.tol
    assert set(model.predict(X).tolist()) <= {0, 1, 2}


@which(takes="probability")
def test_a_fold_that_falls_short_is_reported(method):
    X, y = sample(60, 3)
    options = {**method.brief, "probability": True}
    ends = "(max_iter|n_epochs)"
    model, _ = warned(method, X, y, **options, match=f"^{method.fit.__name__}: {ends}")
    assert model.convergence.status in (Status.MAX_ITER, Status.N_EPOCHS)
    assert np.isfinite(model.predict_proba(X)).all()


@all_methods
def test_a_fit_that_converges_says_nothing(method):
    X, y = sample(60, 3)
    with warnings.catch_warnings(action="error"):
        model = method.fit(X, y, **method.variant)
    c = model.convergence
    assert c.converged
    assert c.status is Status.CONVERGED
    assert c.violation <= c.tol
    assert c.seconds > 0
    assert c.n_iter > 0
    if c.dual is None:
        assert np.isnan(c.gap)
    else:
        assert c.gap >= -1e-9


@every_method
def test_a_record_holds_plain_numbers(method):
    X, y = sample(60, 3)
    c = method.cut_short(X, y, **method.brief).convergence
    for record in (c, *c.parts):
        assert type(record.n_iter) is int
        assert record.parts == () or record is c
        for value in (record.violation, record.tol, record.primal, record.seconds):
            assert type(value) is float
        assert record.dual is None or type(record.dual) is float
    if c.parts:  # one a problem
        assert len(c.parts) == method.parts
        assert c.n_iter == sum(part.n_iter for part in c.parts)
        assert c.violation == max(part.violation for part in c.parts)
        assert_allclose(c.primal, sum(part.primal for part in c.parts), rtol=1e-12)
        assert_allclose(c.dual, sum(part.dual for part in c.parts), rtol=1e-12)


# Each kind of loop that Ctrl-C may find
LOOPS = {"npsvor", "gpor-laplace", "pom", "xofm-lbfgs"}


def pressed_in(method: Method, n_threads, pressed):
    """Press Ctrl-C some time after the first callback of a fit that takes minutes.

    A fit that ends before the press, as on a very fast machine, is begun again.
    """
    X, y = method.endless_rows()
    seen = []

    def press_soon(state):
        if not seen:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
        seen.append(state)

    options = {**method.endless, "n_threads": n_threads}
    if not method.composed:
        options["callback"] = press_soon
    while not pressed:
        if method.composed:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
        method.cut_short(X, y, **options, max_time=600.0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer")
@pytest.mark.parametrize("n_threads", [*slow(1), 2])
@which(fast=LOOPS)
def test_ctrl_c_ends_a_fit(method, n_threads):
    pressed = []

    def press(*_):
        pressed.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    threads = threading.active_count()
    # Python drops an exception of a callback of the collector, and hypothesis has one
    gc.disable()
    try:
        with pytest.raises(KeyboardInterrupt):
            pressed_in(method, n_threads, pressed)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    gc.collect()  # of the traceback: pools end with the frames that held them
    deadline = time.monotonic() + 300.0
    while at_work or threading.active_count() > threads:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    X, y = sample(50, 3)
    method.cut_short(X, y, n_threads=n_threads)  # nothing is left broken


@which(fast=LOOPS, composed=False)
def test_a_fit_for_which_nobody_waits_ends_at_its_next_check(method):
    """As those of a search that has ended, whatever limits and callback they have."""
    X, y = method.endless_rows()
    seen = []
    with stopped_by(lambda: len(seen) >= 2), pytest.raises(Stopped):
        method.cut_short(X, y, **method.endless, callback=seen.append, max_time=600.0)
    assert len(seen) == 2
    method.cut_short(*sample(50, 3))  # nothing is left broken
