"""numpy's BLAS has one thread while a fit runs, and afterwards as many as before."""

import contextlib
import warnings

import numpy as np
import pytest

import ordinal
from ordinal._watch import blas
from ordinal._watch.blas import OneThread

X, Y = ordinal.datasets.make_gaussians(40, rng=0)


@pytest.fixture
def threads():
    """The functions of the BLAS, which has three threads meanwhile."""
    found = blas._threads()
    if found is None:
        pytest.skip("the number of threads of this BLAS cannot be set")
    before = found.get()
    found.set(3)
    assert found.get() == 3
    yield found
    found.set(before)


@pytest.mark.parametrize("fails", [False, True])
def test_a_fit_has_one_thread_of_the_blas(threads, fails):
    """An error gives the threads back, too."""
    seen = []

    def callback(state):
        seen.append(threads.get())
        if fails:
            raise RuntimeError

    with contextlib.suppress(RuntimeError):
        ordinal.fit_svorim(X, Y, callback=callback)
    assert set(seen) == {1}
    assert threads.get() == 3


def test_the_last_of_several_fits_gives_them_back(threads, monkeypatch):
    first, second = OneThread(), OneThread()
    with first:
        second.__enter__()
    assert threads.get() == 1
    second.__exit__()
    assert threads.get() == 3
    # Ctrl-C may come between `__enter__` and the block.
    lost = OneThread()
    lost.__enter__()
    del lost
    with OneThread():
        pass
    assert threads.get() == 3
    with OneThread():
        threads.set(2)  # a number that is set meanwhile stays
    assert threads.get() == 2
    monkeypatch.setattr(blas, "_threads", lambda: None)
    with OneThread():  # another BLAS is left alone
        assert np.isfinite(np.ones((50, 50)) @ np.ones(50)).all()


def test_last_bits_do_not_depend_on_the_threads_of_the_blas(threads):
    X, y = ordinal.datasets.make_gaussians(150, rng=0)
    fits = []
    for number in (1, 3):
        threads.set(number)
        fits.append(ordinal.companions.fit_kdlor(X, y).coef.tobytes())
    assert fits[0] == fits[1]


@pytest.mark.parametrize("name", ["pom", "gpor", "nnor", "elmor", "ofmhs"])
def test_predictions_do_not_depend_on_them_either(threads, name):
    """A fit of another thread may have taken the threads from a prediction."""
    rows, y = np.random.default_rng(0).normal(size=(2500, 800)), np.arange(300) % 3
    options = {"max_iter": 3} if name in ("nnor", "gpor") else {}
    options |= {"l2": 1.0} if name == "pom" else {}
    with warnings.catch_warnings(action="ignore"):
        model = getattr(ordinal, f"fit_{name}", None) or getattr(
            ordinal.companions, f"fit_{name}"
        )
        model = model(rows[:300], y, **options)
    found = []
    for number in (1, 2):
        threads.set(number)
        f = getattr(model, "decision_function", None) or model.predict_latent
        found.append(np.asarray(f(rows)).tobytes())
    assert found[0] == found[1]


def test_inference_has_one_thread_of_the_blas_as_fits_do(threads):
    seen = []

    class Model:
        @property
        def __class__(self):
            seen.append(threads.get())
            return Model

    for name in filter(str.islower, ordinal.inference.__all__):
        seen.clear()
        for n in (1, 2):  # arguments that must be given
            with contextlib.suppress(Exception):
                getattr(ordinal.inference, name)(*[Model()] * n)
        assert {*seen} == {1}, name
    assert threads.get() == 3
