"""Sources of blocks that tests read."""

import numpy as np
from numpy.testing import assert_array_equal


class Cut:
    """Arrays in blocks; counts the passes, and those that have not ended."""

    def __init__(self, ends, *arrays, fail=None):
        self.ends, self.arrays, self.passes, self.open = ends, arrays, 0, 0
        self.fail = fail

    def blocks(self):
        self.passes += 1
        self.open += 1
        try:
            start = 0
            for end in [*self.ends, self.arrays[0].shape[0]]:
                if self.fail is not None and self.passes > self.fail:
                    raise OSError("the disk is gone")
                yield tuple(a[start:end] for a in self.arrays)
                start = end
        finally:
            self.open -= 1


class Differing:
    """Arrays in three blocks whose later passes differ from the first one, by what a
    function makes of the features and of the order of the rows."""

    def __init__(self, later, *arrays):
        self.later, self.arrays, self.passes = later, arrays, 0

    def __repr__(self):
        return "Differing()"

    def blocks(self):
        self.passes += 1
        X, *others = self.arrays
        rows = np.arange(X.shape[0])
        if self.passes > 1:
            X, rows = self.later(X.copy(), rows)
        for part in np.array_split(rows, 3):
            yield (X[part], *(a[part] for a in others))


def assert_same_problem(a, b):
    """Equal rows, ranks and weights of a problem in chunks and one of arrays."""
    for name in ("rank", "classes", "weight", "sample_weight"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.classes.dtype, a.rank.dtype) == (b.classes.dtype, np.int32)
    assert (a.n_samples, a.n_features) == (b.n_samples, b.n_features)
    assert a.feature_names == b.feature_names


def mapped(X, folder):
    """The same numbers in a file of this folder."""
    stored = np.memmap(folder / "X", X.dtype, "w+", shape=X.shape)
    stored[:] = X
    return stored


def wavy(n, scale, noise):
    """(X, y): n rows of features of these deviations, and three ranks of a score that
    is a wave along the first one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, len(scale))) * scale + 1
    score = np.sin(X[:, 0]) + 0.3 * X[:, 1] + noise * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, [0.3, 0.6]), score) + 1
