"""The record of a fit, the warning it gives, and the clock that watches it."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Monitor

from ordinal import datasets, fit_npsvor, fit_npsvor_path
from ordinal.exceptions import ConvergenceWarning
from ordinal.models import Convergence, Status


def record(status=Status.CONVERGED, **changes):
    values = {"n_iter": 7, "violation": 0.5, "tol": 1e-3, "primal": 3.0, "dual": 1.0}
    return Convergence(status, **{**values, "seconds": 0.1, **changes})


finite = st.floats(-1e9, 1e9)


@given(finite, finite)
def test_the_gap_of_one_problem(primal, dual):
    c = record(primal=primal, dual=dual)
    assert c.gap == primal - dual
    assert c.rel_gap == (primal - dual) / max(abs(primal), abs(dual), 1)
    c = record(dual=None)
    assert np.isnan([c.gap, c.rel_gap]).all()
    assert "gap" not in str(c)


def test_the_record_of_several_problems():
    parts = (
        record(n_iter=3, violation=0.25e-3, primal=3.0, dual=1.0),
        record(Status.MAX_ITER, n_iter=4, violation=0.5, primal=0.5, dual=0.25),
        record(n_iter=0, violation=0.0, primal=-8.0, dual=-10.0),
    )
    whole = Convergence.of_parts(parts)
    assert whole.parts == parts
    assert whole.status is Status.MAX_ITER
    assert (whole.n_iter, whole.violation, whole.tol) == (7, 0.5, 1e-3)
    assert (whole.primal, whole.dual, whole.gap) == (-4.5, -8.75, 4.25)
    assert whole.rel_gap == 4.25 / 8.75
    assert Convergence.of_parts(parts[::2]).converged
    assert Convergence.of_parts([record(dual=None)]).dual is None


@pytest.mark.parametrize(("status", "remedy"), [
    (Status.MAX_ITER, "raise max_iter or tol, or lower C"),
    (Status.MAX_TIME, "raise max_time or tol, or lower C"),
    (Status.N_EPOCHS, "raise n_epochs or tol, or use another solver"),
    (Status.STOPPED, "the callback returned a true value"),
    (Status.STALLED, "rounding hides smaller violations; raise tol or scale the"),
    (Status.INDEFINITE, "use a positive semi-definite kernel"),
])  # fmt: skip
def test_the_warning_says_what_was_missed_and_what_helps(status, remedy):
    c = record(status, n_iter=7, primal=4.0, dual=1.0)
    message = (
        rf"^fit_it: {status.value} after 7 steps, violation 5.00e-01 against tol "
        rf"1.00e-03, relative duality gap 7.50e-01; .*{remedy}"
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        c.warn_unless_converged("fit_it")
    assert caught[0].filename == __file__
    assert "inf" not in str(record(status, violation=np.inf, primal=np.inf, dual=0.0))


@pytest.mark.parametrize("status", Status)
def test_all_but_ends_as_they_were_asked_are_warned_of(status):
    with warnings.catch_warnings(record=True, action="always") as caught:
        record(status).warn_unless_converged("fit_it")
    meant = {Status.CONVERGED, Status.N_STEPS, Status.HELD_OUT}
    kinds = [c.category for c in caught]
    assert kinds == ([] if status in meant else [ConvergenceWarning])


def test_a_stop_holds_for_what_is_left_of_the_fit():
    answers = iter([False, True, False])
    monitor = Monitor("fit_test", 1e-3, callback=lambda state: next(answers))
    assert monitor.stop(1, 1.0) is None
    assert monitor.stop(2, 1.0) is Status.STOPPED
    assert monitor.stop(3, 1.0) is Status.STOPPED
    assert next(answers) is False  # nobody was asked again


@pytest.mark.parametrize("solver", ["smo", "admm"])
def test_a_stop_ends_the_whole_path(solver):
    X, y = datasets.make_gaussians(rng=0)
    seen = []
    with pytest.warns(ConvergenceWarning, match="stopped"):
        models = fit_npsvor_path(
            X, y, [{"C": 1e3}, {"C": 1e4}], solver=solver,
            tol=1e-300,  # so that no slice can end it first
            callback=lambda state: seen.append(state) or True,
        )  # fmt: skip
    assert [m.convergence.status for m in models] == [Status.STOPPED] * 2
    assert len(seen) == 1


def test_a_polish_reports_its_own_tolerance():
    X, y = datasets.make_gaussians(rng=0)
    seen = []
    options = {"solver": "admm", "polish": True, "tol": 1e-4}
    fit_npsvor(X, y, callback=lambda state: seen.append(state.tol), **options)
    assert seen[0] == 1.0
    assert seen[-1] == 1e-4
