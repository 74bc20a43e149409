"""The line that tells how far a fit or a search is, and `verbose`."""

import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from internals import (
    Line,
    Monitor,
    OutOfTime,
    Stopped,
    check_cancelled,
    ended_by,
    stopped_by,
)
from processes import Terminal
from registry import every_method
from strategies import sample

import ordinal
from ordinal._watch.progress import duration


@pytest.fixture
def at_once(monkeypatch):
    """Make every text due at once."""
    monkeypatch.setattr(Line, "EVERY", 0.0)
    monkeypatch.setattr(Line, "SELDOM", 0.0)


@pytest.fixture
def notebook(monkeypatch):
    """Make this process look like the kernel of a notebook."""
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)


@pytest.mark.usefixtures("at_once")
def test_terminals_and_files_have_their_lines():
    stream = Terminal()
    line = Line(stream)
    line.show("a long text")
    line.show("short")
    line.close("x" * 500)
    first, *texts = stream.getvalue().split("\r")
    assert first == ""
    assert [text.rstrip() for text in texts[:2]] == ["a long text", "short"]
    assert len({len(text.rstrip("\n")) for text in texts}) == 1  # nothing stays behind
    assert stream.getvalue().endswith("x\n")
    assert stream.getvalue().count("\n") == 1
    stream = io.StringIO()
    line = Line(stream)
    line.show("one")
    line.close("two" * 100)
    assert stream.getvalue() == f"one\n{'two' * 100}\n"


@pytest.mark.parametrize(("stream", "shown"), [(Terminal(), 2), (io.StringIO(), 1)])
def test_texts_that_come_too_soon_are_dropped_but_the_last(stream, shown):
    line = Line(stream)
    line.EVERY = 0.0
    for text in ("one", "end"):
        (line.close if text == "end" else line.show)(text)
    assert sum(stream.getvalue().count(text) for text in ("one", "end")) == shown


@pytest.mark.usefixtures("at_once")
def test_a_notebook_has_lines_also_by_default(notebook, monkeypatch):
    X, y = ordinal.datasets.make_gaussians(40, rng=0)
    for asked, patience in ((True, 5.0), (None, 0.0), (None, 5.0)):
        monkeypatch.setattr(Line, "PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        pool = {"methods": ["pom", "lit"], "tune": False, "cv": 2, "progress": asked}
        ordinal.fit_stacking(X, y, **pool)
        lines = sys.stderr.getvalue()
        assert not re.search("\r| at ", lines)
        named = r"(pom  ./2 fits  .*\n)+(lit  ./2 fits  .*\n)+"
        assert re.fullmatch(named if asked or not patience else "", lines)


def test_a_process_without_a_console_is_told_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    line = Line()
    line.show("one")
    line.close("two")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.usefixtures("at_once")
def test_stages_are_named_while_they_last():
    stream = io.StringIO()
    monitor = Monitor("fit_it", 0.01, line=Line(stream))
    with monitor, monitor.numbered("fold", 1, 5):
        with monitor.stage("kernel matrix"):
            check_cancelled()
        with monitor.numbered("point", 0, 1):  # the only one
            monitor.to_tol(0.5).stop(7, 0.25)
    stages, steps, end = stream.getvalue().splitlines()
    assert stages.endswith(" s: fold 2 of 5, kernel matrix")
    assert steps.endswith(" s: fold 2 of 5: 7 steps, violation 2.5e-01, tol 0.5")
    assert end.startswith("fit_it, 0.0 s: ")
    check_cancelled()  # which tells nothing any more
    assert stream.getvalue().count("\n") == 3


def test_the_line_ends_with_what_broke_the_fit_off():
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt):
        with Monitor("fit_it", 0.01, line=Line(stream)):
            raise KeyboardInterrupt
    assert stream.getvalue().rstrip() == "\rfit_it, 0.0 s: KeyboardInterrupt"
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize("line", [None, Line(io.StringIO())])
def test_a_stage_leaves_the_limit_around_it(line):
    monitor = Monitor("fit_it", 0.01, max_time=1e-9, line=line)
    with monitor.limited(), monitor.stage("kernel matrix"), pytest.raises(OutOfTime):
        check_cancelled()
    with monitor.limited(1e9), monitor.stage("kernel matrix"):
        check_cancelled()


def test_a_task_within_a_task_ends_with_it():
    ended = {"outer": False, "inner": False}

    def flag(name):
        return lambda: ended[name]

    with stopped_by(flag("outer")):
        with stopped_by(flag("inner")), ended_by(lambda: False):
            check_cancelled()
            ended["outer"] = True
            with pytest.raises(Stopped):
                check_cancelled()
            ended["outer"] = False
        ended["inner"] = True
        check_cancelled()  # that task is over
        ended["outer"] = True
        with pytest.raises(Stopped):
            Monitor("fit_it", 0.01).stop(1, 1.0)
    check_cancelled()


@pytest.mark.usefixtures("at_once")
@every_method
def test_verbose_tells_how_a_fit_goes_and_changes_no_bit(method, monkeypatch):
    X, y = sample(80, 3)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    silent = method.cut_short(X, y)
    assert sys.stderr.getvalue() == ""
    asked = "progress" if method.composed else "verbose"
    model = method.cut_short(X, y, **{asked: True})
    *lines, last = sys.stderr.getvalue().splitlines()
    np.testing.assert_array_equal(method.numbers(model, X), method.numbers(silent, X))
    if method.composed:
        assert any("5/5 fits" in line for line in [*lines, last])
        return
    name = method.fit.__name__
    assert all(line.startswith(f"{name}, ") for line in lines)
    assert any(" steps, violation " in line for line in lines)
    assert last.startswith(f"{name}, ")
    assert last.endswith(f" s: {model.convergence}")
