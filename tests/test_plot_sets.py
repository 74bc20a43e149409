"""The figure of prediction sets: what is drawn is what the sets say."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from strategies import sample

import ordinal
from ordinal.plot import prediction_sets

mpl.use("agg")


def made(n=90):
    X, y = sample(2 * n + 60, 4, noise=1.0)
    words = np.array(["a", "b", "c", "d"])
    model = ordinal.fit_svorim(X[:60], words[y[:60]], classes=words)
    sets = ordinal.conformal(model, X[60 : 60 + n], words[y[60 : 60 + n]], 0.8)
    return sets, X[60 + n :], words[y[60 + n :]]


@pytest.mark.parametrize("coverage", [None, 0.6])
def test_blocks_are_the_sets_and_dots_the_true_ranks(coverage):
    sets, X, y = made()
    ax = prediction_sets(sets, X, y, coverage=coverage)
    interval = np.searchsorted(
        sets.classes, sets.predict_interval(X, coverage=coverage)
    )
    blocks = {}
    for bar in ax.patches:
        low = bar.get_y() + 0.5
        key = round(low), round(low + bar.get_height()) - 1
        assert key not in blocks  # one block for all rows of a set
        blocks[key] = bar
    kinds, counts = np.unique(interval, axis=0, return_counts=True)
    assert {k: round(b.get_width()) for k, b in blocks.items()} == {
        tuple(k): c for k, c in zip(kinds.tolist(), counts.tolist(), strict=True)
    }
    # every dot is in the block of its row, at its true rank
    rank = np.searchsorted(sets.classes, y)
    dots, colours = [], []
    for collection in ax.collections:
        for x, at in collection.get_offsets():
            (key,) = (k for k, b in blocks.items() if 0 < x - b.get_x() < b.get_width())
            dots.append((*key, round(at)))
            inside = key[0] <= at <= key[1]
            colours.append((inside, to_hex(collection.get_facecolor()[0])))
    assert sorted(dots) == sorted(
        (*i, k) for i, k in zip(interval.tolist(), rank.tolist(), strict=True)
    )
    assert len(dots) == len(y)
    assert len(set(colours)) == 2  # one colour inside, another one outside
    assert [t.get_text() for t in ax.get_yticklabels()] == list("abcd")


def test_it_counts_and_draws_on_axes_that_are_given():
    sets, X, y = made()
    ax = plt.figure().subplots()
    assert prediction_sets(sets, X, y, ax) is ax
    with pytest.raises(TypeError, match=r"^sets must be a ConformalModel, got Svor"):
        prediction_sets(sets.model, X, y)
    with pytest.raises(ValueError, match=r"^y has 89 labels, and X 90 rows"):
        prediction_sets(sets, X, y[1:])
    with pytest.raises(ValueError, match=r"^coverage must be a number between 0 and 1"):
        prediction_sets(sets, X, y, coverage=1.5)
    table = sets.evaluate(X, y)
    assert prediction_sets(sets, X, y).get_title() == (
        f"{table['coverage'][-1]:.1%} of 90 rows in their set (80% asked for)\n"
        f"{table['size'][-1]:.2f} ranks in a set"
    )
