"""The sum-of-margins policy of Shashua and Levin: certificates, oracles, symmetries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import NuSVC
from strategies import raises

import ordinal
from ordinal.companions import fit_shashua_levin
from ordinal.exceptions import ConvergenceWarning


def fit(X, y, **options):
    return fit_shashua_levin(X, y, margin="sum", n_threads=1, **options)


def overlapping(seed, n=40, r=3, d=2, noise=0.6):
    """Rows in random order whose ranks overlap along one direction."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % r)
    X = rng.normal(size=(n, d))
    X[:, 0] = y + noise * rng.normal(size=n)
    return X, y


def value(f, y, C, weight, a, b):
    """(S) row by row, at scores f of a direction of length 1."""
    total = sum(a) - sum(b)
    for score, k, v in zip(f, y, weight, strict=True):
        if k < len(a):
            total += C * v * max(0.0, score - a[k])
        if k > 0:
            total += C * v * max(0.0, b[k - 1] - score)
    return total


@given(
    st.integers(0, 10**6),
    st.integers(2, 5),
    st.sampled_from([1.05, 1.5, 3.0]),
    st.booleans(),
)
def test_the_model_is_optimal(seed, r, above, weighted):
    """Lengths, bounds, sums, (KKT) and the gap, all from the kernel matrix."""
    X, y = overlapping(seed, n=10 * r, r=r)
    K = ordinal.kernels.RBF(gamma=0.3)(X, X)
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, y.size) if weighted else np.ones(y.size)
    sizes = np.bincount(y, weight)
    C = above / min(sizes[0], sizes[-1])
    model = fit(K, y, C=C, kernel="precomputed", sample_weight=weight, tol=1e-4)
    c = model.convergence
    assert c.converged

    scaled = np.zeros((y.size, r - 1))
    scaled[model.support] = model.dual
    w = scaled.sum(axis=1)
    assert_array_equal(w[model.support], model.coef)
    f = K @ w
    assert_allclose(w @ f, 1, rtol=1e-10)
    norm = -c.dual
    g = norm * scaled

    a, b = model.thresholds - model.margins / 2, model.thresholds + model.margins / 2
    assert np.all(np.diff(np.stack([a, b], axis=1).ravel()) >= -1e-12)
    sums, low, up = [], [], []
    for t in range(2 * r - 2):
        rows = y == (t + 1) // 2
        sign = 1 if t % 2 else -1
        mine = sign * g[rows, t // 2]
        bound = C * weight[rows]
        assert np.all((mine >= 0) & (mine <= bound * (1 + 1e-12)))
        sums.append(mine.sum())
        grows = mine < bound * (1 - 1e-12) if sign == 1 else mine > 0
        falls = mine > 0 if sign == 1 else mine < bound * (1 - 1e-12)
        up.append(f[rows][grows].min(initial=np.inf))
        low.append(f[rows][falls].max(initial=-np.inf))
    assert not g[
        (y[:, None] != np.arange(r - 1)) & (y[:, None] != np.arange(1, r))
    ].any()
    # u_1, t_1, u_2, ... of (T): what the sums exceed 1 by, group after group
    ties = np.cumsum([(1 if t % 2 == 0 else -1) * (s - 1) for t, s in enumerate(sums)])
    assert np.all(ties >= -1e-10)
    assert abs(ties[-1]) < 1e-10
    violation = 0.0
    for t in range(2 * r - 2):
        first = last = t
        while first > 0 and ties[first - 1] > 1e-10:
            first -= 1
        while last < 2 * r - 3 and ties[last] > 1e-10:
            last += 1
        violation = max(violation, max(low[: last + 1]) - min(up[first:]))
    assert violation / norm <= c.tol * (1 + 1e-6) + 1e-9
    assert_allclose(c.primal, value(f, y, C, weight, a, b), atol=1e-9)
    assert -1e-9 <= c.gap <= c.violation * norm * C * weight.sum() + 1e-9


def test_with_two_ranks_it_is_nu_svc():
    X, y = overlapping(4, n=60, r=2)
    nu, gamma = 0.6, 0.3
    model = fit(X, y, C=2 / (nu * y.size), gamma=gamma, tol=1e-6)
    other = NuSVC(nu=nu, gamma=gamma, tol=1e-8).fit(X, y)
    ours, theirs = model.decision_function(X), other.decision_function(X)
    ours = ours - model.thresholds[0]
    assert_allclose(ours / np.ptp(ours), theirs / np.ptp(theirs), atol=1e-5)


def test_rare_and_absent_ranks():
    X, y = overlapping(2)
    few = fit(X, y, C=0.1)
    model = fit(X, 2 * y + 1, C=0.1, classes=range(7))
    assert_array_equal(model.predict(X), 2 * few.predict(X) + 1)
    assert_array_equal(model.margins, [0, *np.repeat(few.margins, 2), 0])
    assert model.thresholds[0] == -np.inf
    assert model.thresholds[-1] == np.inf
    # sums of (T) below 1 tie the ends of two margins: b_1 = a_2
    X, y = overlapping(3, n=40, r=2)
    X, y = np.vstack([X, [[0.5, 0.0]]]), np.append(2 * y, 1)
    model = fit(X, y, C=0.1, tol=1e-5)
    b1 = model.thresholds[0] + model.margins[0] / 2
    assert_allclose(b1, model.thresholds[1] - model.margins[1] / 2, atol=1e-5)
    assert model.convergence.rel_gap < 1e-5


def test_what_it_cannot_do_is_said():
    X, y = overlapping(0)
    raises(ValueError, r"^C must be at least 0\.0769231 with m", fit, X, y, C=0.05)
    with pytest.raises(ValueError, match=r"^no direction has a margin for C=1\.0 with"):
        fit(X, y, kernel="linear")
    fixed = fit_shashua_levin(X, y)
    for name, given_ in ("basis", 5), ("start", fixed), ("cost", 1 - np.eye(3)):
        with pytest.raises(ValueError, match=f'^{name} is for margin="fixed" only'):
            fit(X, y, C=0.1, **{name: given_})
    with pytest.raises(ValueError, match=r"^margin must be one of"):
        fit_shashua_levin(X, y, margin="both")
    assert fixed.margins is None
    with pytest.warns(ConvergenceWarning, match="max_iter after 1 steps"):
        model = fit(X, y, C=0.1, max_iter=1)
    assert model.convergence.gap > 0


def test_probabilities_files_and_searches(tmp_path):
    X, y = overlapping(5, n=90)
    # 1 / 30 is the least C of all rows, and would be too small for a fold
    model = fit(X, y, C=0.0334, probability=True)
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)
    assert (P.argmax(axis=1) == y).mean() > 0.6
    model.save(tmp_path / "model")
    assert_array_equal(ordinal.load(tmp_path / "model").margins, model.margins)
    found = ordinal.select(
        "shashua-levin", X, y, search={"C": [0.06, 0.2]}, margin="sum", n_threads=1
    )
    assert found.points[found.best]["C"] in (0.06, 0.2)
