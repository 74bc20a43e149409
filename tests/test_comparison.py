import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import raises

from ordinal._numerics import tails
from ordinal.comparison import friedman, rank_sum, wilcoxon, win_draw_loss

grid = st.integers(0, 6).map(float)  # many ties
spread = st.integers(-(10**9), 10**9).map(float)  # hardly any


def tables(elements, max_rows=12, max_columns=6):
    shape = st.tuples(st.integers(2, max_rows), st.integers(2, max_columns))
    return shape.flatmap(lambda s: hnp.arrays(np.float64, s, elements=elements))


def close(value, rel=1e-9):
    return pytest.approx(value, rel=rel, abs=1e-300)


@given(st.floats(0, 300), st.integers(1, 60))
@example(0.0, 1)
@example(1e-300, 7)
@example(9.50596530057778, 79)  # a sum of 1 + 9e-16
def test_chi2_tail(x, df):
    assert tails.chi2_tail(x, df) <= 1
    assert tails.chi2_tail(x, df) == close(scipy.special.chdtrc(df, x))


@given(
    st.floats(0, 1e3),
    st.integers(1, 60) | st.integers(60, 2000),
    st.integers(1, 60) | st.integers(60, 100_000),
)
@example(0.0, 1, 1)
@example(1e-300, 3, 5)
@example(1.001, 2000, 100_000)  # where the fraction converges slowest
def test_f_tail(x, df1, df2):
    assert tails.f_tail(math.inf, df1, df2) == 0  # of perfect agreement
    expected = scipy.special.fdtrc(df1, df2, x)
    assume(expected > 1e-250)
    assert tails.f_tail(x, df1, df2) == close(expected, rel=1e-8)


@pytest.mark.parametrize("k", [2, 3, 5, 12, 50])
def test_range_quantile(k):
    for p in (0.01, 0.5, 0.9, 0.95, 0.999):
        q = tails.range_quantile(p, k)
        assert scipy.stats.studentized_range.cdf(q, k, np.inf) == close(p)
    # the range of two is sqrt(2) times a half-normal variable
    if k == 2:
        assert q == close(math.sqrt(2) * scipy.special.ndtri(0.9995))


@given(st.data(), st.integers(1, 60), st.sampled_from([grid, spread]))
def test_wilcoxon_agrees_with_scipy(data, n, elements):
    a, b = data.draw(hnp.arrays(np.float64, (2, n), elements=elements))
    ours = wilcoxon(a, b)
    d = a[a != b] - b[a != b]
    assert ours.exact == (np.unique(abs(d)).size == d.size and d.size <= 50)
    assert ours.plus + ours.minus == d.size * (d.size + 1) / 2
    if d.size == 0:
        assert ours.p_value == 1
        return
    method = "exact" if ours.exact else "approx"
    theirs = scipy.stats.wilcoxon(d, method=method, correction=False)
    assert min(ours.plus, ours.minus) == theirs.statistic
    assert ours.p_value == close(theirs.pvalue)


@given(
    st.data(), st.integers(1, 55), st.integers(1, 20), st.sampled_from([grid, spread])
)
def test_rank_sum_agrees_with_scipy(data, n, m, elements):
    a, b = (data.draw(hnp.arrays(float, k, elements=elements)) for k in (n, m))
    ours = rank_sum(a, b)
    both = np.concatenate([a, b])
    assert ours.exact == (np.unique(both).size == both.size and n <= 50)
    assert ours.a + ours.b == (n + m) * (n + m + 1) / 2
    assert rank_sum(b, a) == (ours.b, ours.a, ours.p_value, ours.exact)
    if np.ptp(both) == 0:
        assert ours.p_value == 1
        return
    method = "exact" if ours.exact else "asymptotic"
    theirs = scipy.stats.mannwhitneyu(a, b, method=method, use_continuity=False)
    assert ours.a - n * (n + 1) / 2 == theirs.statistic
    assert ours.p_value == close(theirs.pvalue)


@pytest.mark.parametrize("power", [1020, -1060])
def test_the_unit_of_the_scores_does_not_matter(power):
    scores = np.array([[3.0, -8.0, 7.0], [1.0, 15.0, -15.0], [0.0, 2.0, 9.0]])
    scores = np.concatenate([scores, -scores[:2]])
    there = np.ldexp(scores, power)  # where differences overflow, or are subnormal
    for test in (wilcoxon, rank_sum):
        assert test(there[:, 0], there[:, 1]) == test(scores[:, 0], scores[:, 1])
    a, b = friedman(there), friedman(scores)
    assert a.ranks.tolist() == b.ranks.tolist()
    assert a[1:] == b[1:]
    one, other = (win_draw_loss([of]).pairs.tolist() for of in (there, scores))
    assert one == other


def test_differences_that_differ_by_rounding_tie():
    errors = np.array([[5, 4], [3, 2], [8, 7], [9, 10]]) / 75
    assert np.unique(abs(np.diff(errors))).size > 1
    assert wilcoxon(*errors.T)[:2] == (7.5, 2.5)
    assert wilcoxon([0.1 + 0.2, 1], [0.3, 2])[:2] == (0, 1)


@given(tables(st.one_of(grid, spread)))
@example(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))  # F = inf
def test_friedman_agrees_with_scipy(scores):
    ours = friedman(scores)
    N, k = scores.shape
    rank = scipy.stats.rankdata(scores, axis=1)
    assert ours.ranks == close(rank.mean(axis=0))
    if np.ptp(scores, axis=1).max() == 0:
        assert (ours.chi2, ours.F, ours.chi2_p, ours.F_p) == (0, 0, 1, 1)
        return
    if k > 2:  # scipy wants three
        chi2, p = scipy.stats.friedmanchisquare(*scores.T)
        assert ours.chi2 == pytest.approx(chi2, rel=1e-9, abs=1e-9)
        assert ours.chi2_p == close(p)
    # two-way analysis of variance of the ranks
    between = N * ((rank.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    rest = ((rank - rank.mean(axis=0)) ** 2).sum()
    if rest < 1e-9:
        assert (ours.F, ours.F_p) == (math.inf, 0)
        return
    F = between / (rest / (N - 1))
    assert ours.F == pytest.approx(F, rel=1e-9, abs=1e-9)
    expected = scipy.special.fdtrc(k - 1, (k - 1) * (N - 1), F)
    assert ours.F_p == pytest.approx(expected, rel=1e-6)


def test_the_example_of_the_literature():
    """Demsar 2006, section 3.2: four classifiers on 14 sets, with the figures rounded
    there: average ranks 3.143, 2.000, 2.893, 1.964; chi2 9.28, CD 1.25. The 974
    is printed as 975 and ranked below the other 975."""
    scores = np.array(
        """763 768 771 798  599 591 590 569  954 971 968 967  628 661 654 657
        882 888 886 898  936 931 916 931  661 668 609 685  583 583 563 625
        775 838 866 875  1000 1000 1000 1000  940 962 965 962  619 666 614 669
        972 981 975 974  957 978 946 970""".split(),
        dtype=float,
    ).reshape(14, 4)
    result = friedman(-scores)
    assert result.ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert result.critical_difference == pytest.approx(1.25, abs=0.005)
    # the paper's 9.28 leaves out the correction for ties
    k, N = 4, 14
    plain = 12 * N / (k * (k + 1)) * ((result.ranks - 2.5) ** 2).sum()
    assert plain == pytest.approx(9.28, abs=0.01)
    assert plain < result.chi2 < 1.15 * plain


@given(st.data(), st.integers(2, 4), st.integers(1, 3))
def test_every_comparison_is_won_drawn_or_lost(data, k, n_sets):
    rows = data.draw(st.lists(st.integers(1, 9), min_size=n_sets, max_size=n_sets))
    scores = [data.draw(hnp.arrays(np.float64, (n, k), elements=grid)) for n in rows]
    result = win_draw_loss(scores, alpha=0.2)
    for i in range(k):
        outcome = {"win": 0, "draw": 0, "loss": 0}
        for j in range(k):
            beaten = 0
            for table in scores:
                test = wilcoxon(table[:, i], table[:, j])
                if test.p_value > 0.2:
                    outcome["draw"] += i != j
                else:
                    won = test.plus < test.minus  # errors: a - b < 0
                    outcome["win" if won else "loss"] += 1
                    beaten += won
            assert result.pairs[i, j] == beaten
        assert outcome == {name: getattr(result, name)[i] for name in outcome}


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: wilcoxon([1, 2], [1]), ValueError, "same length > 0, got 2 and 1"),
    (lambda: wilcoxon([], []), ValueError, "same length > 0, got 0 and 0"),
    (lambda: wilcoxon([1], [[1]]), ValueError,
     r"b must be 1-dimensional.*\(1, 1\)"),
    (lambda: wilcoxon([1, np.nan], [1, 2]), ValueError,
     "a must be .* nan in row 1"),
    (lambda: rank_sum([1], []), ValueError, "lengths > 0, got 1 and 0"),
    (lambda: friedman([1, 2]), ValueError, r"2-dimensional, got shape \(2,\)"),
    (lambda: friedman([[1, 2]]), ValueError, r"2 rows .* got shape \(1, 2\)"),
    (lambda: friedman([[1], [2]]), ValueError, r"2 columns .* got shape \(2, 1\)"),
    (lambda: friedman([[1, 2], [np.inf, 1]]), ValueError, "inf in row 1"),
    (lambda: friedman(np.eye(2), alpha=0), ValueError, "alpha .* got 0"),
    (lambda: win_draw_loss([np.eye(2)], alpha=1), ValueError, "alpha .* got 1"),
])  # fmt: skip
def test_bad_input(call, error, message):
    raises(error, message, call)
