"""Sources of chunks whose later passes differ in values, order or number of rows."""

import random

from call import Call
from streams import OPTIONS

# Changes of features X and row numbers i, which concern rows in the sample or all rows.
WAYS = [
    "lambda X, i: (X, i)", "lambda X, i: (X + 1e-9, i)", "lambda X, i: (-X, i)",
    "lambda X, i: (X * np.where(i == 7, np.nan, 1)[:, None], i)",
    "lambda X, i: (X + (i > len(i) // 2)[:, None], i)", "lambda X, i: (X[:, ::-1], i)",
    "lambda X, i: (X, i[::-1])", "lambda X, i: (X, np.roll(i, 5))",
    "lambda X, i: (X, np.random.default_rng(1).permutation(i))",
    "lambda X, i: (X, i[:-1])", "lambda X, i: (X, i[:0])",
    "lambda X, i: (X, np.append(i, i[0]))", "lambda X, i: (X[:, :2], i)",
    "lambda X, i: (np.rint(X), i)", "lambda X, i: (X.astype('f4'), i)",
]  # fmt: skip


class Passes:
    """A fit to a source that changes from some pass on."""

    name = "passes"

    def draw(self, rng: random.Random) -> Call:
        n = rng.choice((24, 60, 200))
        ends = sorted(rng.sample(range(1, n), rng.randrange(5)))
        arguments = {
            "name": repr(rng.choice(list(OPTIONS))),
            "later": rng.choice(WAYS),
            "since": str(rng.choice((2, 2, 3, 5))),
            "ends": repr(ends),
            "n": str(n),
        }
        return Call("refit", arguments, "from streams import *", tuple(arguments))
