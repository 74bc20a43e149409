"""The package inside another one: what it works under, and what it leaves alone.

`grades`, a package that stands in a folder of the test, fits and predicts in threads.
Its interpreter makes errors of all warnings, its numpy raises all floating point
errors, it has no home and its folder is not to be written to. Children of a fork are
the subject of test_forks.py.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from registry import every_method, stepwise
from strategies import sample

import ordinal

PACKAGE = {
    "__init__.py": """
import numpy as np

np.seterr(all="raise")

from .grader import fits
""",
    "grader.py": '''
"""What `grades` does with `ordinal`."""

import ordinal

X, y = ordinal.datasets.make_gaussians(rng=0)
FITS = [
    lambda **o: ordinal.fit_svorim(X, y, C=10.0, probability=True, **o),
    lambda **o: ordinal.fit_npsvor(X, y, C=10.0, **o),
    lambda **o: ordinal.fit_gpor(X[::3], y[::3], max_iter=200, **o),
    lambda **o: ordinal.fit_xofm(X, y, **o),
    lambda **o: ordinal.fit_pom(X, y, **o),
    lambda **o: ordinal.companions.fit_kdlor(X, y, **o),
]


def fits(order=1):
    """Predictions of each fit, as bytes; the fits are made in this order."""
    found = [fit(n_threads=2).predict(X).tobytes() for fit in FITS[::order]]
    return found[::order]
''',
    "state.py": '''
"""What belongs to the process, and to nobody in it."""

import logging
import multiprocessing
import os
import random
import signal
import sys
import threading
import warnings

import numpy as np
from threadpoolctl import threadpool_info


def state():
    pools = [(p["filepath"], p["num_threads"]) for p in threadpool_info()]
    return {
        "errors of numpy": np.geterr(),
        "its handler of errors": np.geterrcall(),
        "its printing": np.get_printoptions(),
        "its random numbers": str(np.random.get_state()),
        "random numbers": random.getstate(),
        "filters of warnings": list(warnings.filters),
        "how warnings are shown": warnings.showwarning,
        "signals": {s: signal.getsignal(s) for s in signal.valid_signals()},
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": list(sys.path),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook),
        "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace()),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "logging": (list(logging.root.handlers), logging.root.level),
        "start method": multiprocessing.get_start_method(allow_none=True),
        "recursion": sys.getrecursionlimit(),
        "digits": sys.get_int_max_str_digits(),
        "threads of libraries": dict(pools),
    }


def changes(before, after):
    """Names of what is not as it was; a library that was loaded since is none."""
    known = before["threads of libraries"]
    kept = {p: n for p, n in after["threads of libraries"].items() if p in known}
    after = after | {"threads of libraries": kept}
    return [name for name in before if before[name] != after[name]]
''',
    "__main__.py": """
import sys
import threading


def left_alone():
    from grades import state

    before = state.state()
    import ordinal

    assert state.changes(before, state.state()) == []
    heavy = {"scipy", "sklearn", "pandas", "matplotlib", "dask", "polars"}
    assert not heavy & set(sys.modules), heavy & set(sys.modules)

    seen = []

    def watch(_):
        seen.append(state.changes(before, state.state()))

    from grades.grader import FITS, fits

    for fit in FITS:
        fit(callback=watch)
    fits()
    assert state.changes(before, state.state()) == []
    # a fit itself holds one thing, which it gives back
    assert len(seen) > len(FITS)
    assert {name for names in seen for name in names} <= {"errors of numpy"}


def threads():
    from grades import fits

    expected, found = fits(), []
    work = [lambda order=order: found.append(fits(order)) for order in (1, -1, 1)]
    begun = [threading.Thread(target=call) for call in work]
    for thread in begun:
        thread.start()
    for thread in begun:
        thread.join()
    assert found == [expected] * 3


if __name__ == "__main__":
    {"left_alone": left_alone, "threads": threads}[sys.argv[1]]()
    print("done")
""",
}


@pytest.fixture(scope="module")
def grades(tmp_path_factory):
    """A function that runs the package with a word."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "grades").mkdir()
    for name, text in PACKAGE.items():
        (folder / "grades" / name).write_text(text)
    bare = folder / "bare"
    bare.mkdir(mode=0o500)
    home = folder / "no-home"

    def run(word):
        places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(home))
        done = subprocess.run(
            [sys.executable, "-B", "-W", "error", "-m", "grades", word],
            cwd=bare, env=os.environ | places | {"PYTHONPATH": str(folder)},
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
        # whoever may write anywhere would have left something here
        assert not home.exists()
        assert not list(bare.iterdir())

    return run


@pytest.mark.slow("processes that make twelve fits")
@pytest.mark.parametrize("word", ["left_alone", "threads"])
def test_fits_in_another_package(word, grades):
    """Leaves alone what belongs to the process; threads fit the same."""
    grades(word)


def use(model, method, X):
    """All that the model predicts of rows, near and far."""
    for rows in (X, 30.0 * X, 1e4 * X):
        for rule in method.rules:
            if rule in ("mode", "median", "cost") and not certain(model):
                continue
            model.predict(rows, rule=rule)
        if certain(model):
            assert np.isfinite(model.predict_proba(rows)).all()
        assert np.isfinite(method.numbers(model, rows)).all()


def certain(model):
    """Return whether the model has probabilities."""
    return getattr(model, "link", True) is not None


@every_method
@pytest.mark.parametrize("spread", [1e-3, 1.0, 40.0])
def test_every_method_works_where_numpy_raises(method, spread):
    X, y = sample(60, 3, noise=0.0)  # probabilities of rows that are far away vanish
    probable = {"probability": True} if method.can("probability") else {}
    # scores of a linear kernel grow without bound
    linear = [{"kernel": "linear"}] * (spread == 1.0 and method.can("kernel"))
    with np.errstate(all="raise"):
        for kernel in ({}, *linear):
            model = method.cut_short(spread * X, y, **probable, **kernel)
            use(model, method, spread * X)
        assert np.geterr() == dict.fromkeys(np.geterr(), "raise")


@stepwise
def test_errors_of_numpy_are_the_callers_again_after_any_end(method):
    """Models of a fit that is stopped, and of one whose callback fails."""
    X, y = sample(60, 3)

    def fails(state):
        raise KeyError(state.method)

    with np.errstate(all="raise", under="print"):
        before = np.geterr()
        method.cut_short(X, y, callback=lambda state: True)
        assert np.geterr() == before
        with pytest.raises(KeyError):
            method.cut_short(X, y, callback=fails)
        assert np.geterr() == before


def test_numbers_that_vanish_in_a_standardised_column():
    X, y = sample(40, 3)
    X[0] = 5e-324
    with np.errstate(all="raise"):
        found = ordinal.model_selection.select(
            ordinal.fit_svorim, X, y, search=ordinal.model_selection.Grid(C=[1.0])
        )
        assert found.predict(X).shape == y.shape
