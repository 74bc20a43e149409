import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from strategies import raises

from ordinal import datasets
from ordinal.datasets import make_gaussians, make_tlssvor


def test_gaussians_have_the_stated_moments():
    n = 20_000
    X, y = make_gaussians(n)
    assert X.shape == (3 * n, 2)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    for rank, mean in enumerate([(10, 10), (15, 15), (20, 10)], start=1):
        Z = X[y == rank]
        assert len(Z) == n
        # five standard errors: sqrt(5 / n) of a mean, 5 sqrt(2 / n) of a variance,
        # 5 / sqrt(n) of a covariance
        assert_allclose(Z.mean(axis=0), mean, atol=5 * np.sqrt(5 / n))
        assert_allclose(np.cov(Z.T), 5 * np.eye(2), atol=5 * 5 * np.sqrt(2 / n))


def test_tlssvor_without_noise_follows_the_formulas():
    X, y = make_tlssvor(2_000, noise=0)
    f = np.exp(-np.sum((X - 0.5) ** 2, axis=1) / 5)
    expected = 1 + sum((f >= b).astype(int) for b in (0.905, 0.925, 0.945))
    assert X.shape == (2_000, 5)
    assert 0 <= X.min() < 0.01
    assert 0.99 < X.max() < 1
    assert_array_equal(y, expected)


def test_tlssvor_noise_is_a_standard_deviation():
    X, y = make_tlssvor(20_000)
    f = np.exp(-np.sum((X - 0.5) ** 2, axis=1) / 5)
    edges = np.array([-np.inf, 0.905, 0.925, 0.945, np.inf])
    below = norm.cdf((edges[:, None] - f) / 0.026).mean(axis=1)
    share = np.bincount(y, minlength=5)[1:] / y.size
    # five standard errors are at most 5 sqrt(1/4 / 20000); the other reading of the
    # paper is 0.1 away, and so is its own count
    assert_allclose(share, np.diff(below), atol=0.018)
    assert_allclose(share, [0.35, 0.19, 0.19, 0.28], atol=0.018)


@pytest.mark.parametrize("make", [make_gaussians, make_tlssvor])
def test_a_seed_fixes_the_rows(make):
    for a, b in zip(make(50, rng=3), make(50, rng=3), strict=True):
        assert a.tobytes() == b.tobytes()
    assert not np.array_equal(make(50, rng=3)[0], make(50, rng=4)[0])
    generator = np.random.default_rng(3)
    assert np.array_equal(make(50, rng=generator)[0], make(50, rng=3)[0])
    assert not np.array_equal(make(50, rng=generator)[0], make(50, rng=3)[0])
    raises(ValueError, "must be a positive integer", make, 0)
    if make is make_tlssvor:
        raises(ValueError, "noise must be", make, noise=np.inf)


def test_the_election_is_the_published_table():
    X, y = datasets.load_election()
    assert X.shape == (944, 9)
    assert np.bincount(y).tolist() == [200, 180, 108, 37, 94, 150, 175]
    assert X.min(axis=0).tolist() == [0, 0, 1, 1, 1, 19, 1, 1, 0]
    assert X.max(axis=0).tolist() == [7300, 7, 7, 7, 7, 91, 7, 24, 1]
    mean = [306.381, 3.728, 4.325, 2.940, 5.394, 47.043, 4.566, 16.332, 0.416]
    assert_allclose(X.mean(axis=0), mean, atol=6e-4)
    frame, same = datasets.load_election(as_frame=True)
    assert frame.columns.tolist() == [
        "population", "tv_news", "self", "clinton", "dole", "age", "education",
        "income", "vote",
    ]  # fmt: skip
    assert_array_equal(frame.to_numpy(), X)
    assert_array_equal(same, y)


def test_the_wine_is_every_bottle_once_per_judge():
    X, y = datasets.load_wine()
    assert np.bincount(y).tolist() == [0, 5, 22, 26, 12, 7]
    assert len({(judge, bottle) for bottle, judge in X[:, 2:].tolist()}) == 72
    of_wine = {(b, t, c) for t, c, b in X[:, :3].tolist()}
    assert len(of_wine) == 8
    assert np.bincount([int(2 * t + c) for _, t, c in of_wine]).tolist() == [2] * 4
    frame, _ = datasets.load_wine(as_frame=True)
    assert_array_equal(frame["temp"] == "warm", X[:, 0] == 1)
    assert_array_equal(frame["judge"].astype(int), X[:, 3])
    raises(ValueError, "as_frame must be", datasets.load_wine, as_frame=1)


def test_the_houses_are_the_published_table():
    X, y = datasets.load_houses()
    assert X.isna().sum().sum() == X["frontage"].isna().sum() == 169
    assert y.cat.ordered
    assert y.value_counts(sort=False).to_dict() == {
        "poor": 30, "below average": 32, "average": 553, "above average": 178,
        "good": 130, "very good": 66,
    }  # fmt: skip
    assert X["price"].sum() == 176_405_941
    assert X["neighborhood"].nunique() == 26
    assert set(X["air"]) == {"yes", "no"}
