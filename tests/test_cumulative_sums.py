"""The fused pass over dense rows against sums made of the terms of every row."""

import numpy as np
import pytest
from internals import LINKS, Design, Likelihood, Problem, RowwiseLikelihood
from numpy.testing import assert_allclose, assert_array_equal

from ordinal._model.preparation import prepare


def problem_of(X, y, weight) -> Problem:
    return prepare(
        "fit_pom", X, y, tol=1e-6, classes=None, sample_weight=weight,
        class_weight=None, n_threads=1, max_time=None, callback=None, verbose=False,
    ).problem  # fmt: skip


@pytest.mark.slow("sums by row of 14 000 rows")
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("threshold", "nominal", "scale"), [
    ("flexible", (), ()), ("symmetric", (1,), ()), ("equidistant", (), (0, 2)),
    ("flexible", (0, 2), (1,)),
])  # fmt: skip
def test_the_pass_gives_the_sums_of_the_rows(link, threshold, nominal, scale):
    """On ragged blocks, with weights (0 among them) and offsets, by any threads."""
    rng = np.random.default_rng(0)
    for n, d, r in ((300, 7, 5), (5000, 21, 3), (9000, 4, 3)):  # two blocks a share
        y = rng.integers(0, r, n)
        weight = rng.integers(0, 4, n).astype(float)
        y[:r], weight[:r] = np.arange(r), 1
        problem = problem_of(rng.normal(5, 3, (n, d)), y, weight)
        chosen = (np.array(c, dtype=np.int64) for c in (nominal, scale))
        location = np.setdiff1d(np.arange(d), nominal)
        offset = 0.1 * rng.normal(size=n)
        offset[weight == 0] = 1e9  # where no rank but the highest has a probability
        design = Design.from_problem(problem, location, *chosen, offset, threshold)
        loss = Likelihood(design, link, 0.1, 1)
        x = loss.start() + 0.02 * rng.normal(size=design.n_parameters)
        got, exact = loss.at(x), RowwiseLikelihood(design, link, 0.1, 1).at(x)
        assert_allclose(got.value, exact.value, rtol=1e-12)
        assert_allclose(got.gradient, exact.gradient, rtol=0, atol=1e-12)
        size = np.abs(exact.hessian.dense()).max()
        H, expected = got.hessian.dense(), exact.hessian.dense()
        assert_allclose(H, expected, rtol=0, atol=1e-12 * size)
        threads = Likelihood(design, link, 0.1, 3).at(x)
        assert threads.value == got.value
        assert_array_equal(threads.gradient, got.gradient)
        assert_array_equal(threads.hessian.dense(), got.hessian.dense())
