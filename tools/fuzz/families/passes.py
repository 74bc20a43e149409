"""Sources of chunks whose later passes differ in values, order or number of rows."""

# ruff: noqa: F403, F405
import random
from collections.abc import Iterator, Sequence

from call import Call
from subjects import *

ON_BASIS = {"basis": 8}
OPTIONS: dict[str, dict[str, Any]] = {
    "svorim": ON_BASIS, "svorex": ON_BASIS, "redsvm": ON_BASIS, "npsvor": ON_BASIS,
    "opbe": ON_BASIS, "svc": ON_BASIS, "tlssvor": ON_BASIS, "gpor": ON_BASIS,
    "kdlor": {"kernel": "linear"}, "shashua_levin": {"kernel": "linear"}, "pom": {},
    "lit": {}, "lat": {}, "elmor": {}, "xofm": {"solver": "lbfgs"},
}  # fmt: skip

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
        prelude = "from families.passes import *"
        return Call("refit", arguments, prelude, tuple(arguments))


Later = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Source:
    """Plain rows in chunks that end at `ends`. From pass `since` on, features and row
    numbers are what `later` makes of them, in blocks of another size."""

    def __init__(self, later: Later, since: int, ends: Sequence[int], n: int):
        self.later, self.since, self.ends, self.n = later, since, ends, n
        self.passes = 0

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        self.passes += 1
        X, y, numbers = rows(self.n), ranks(self.n), np.arange(self.n)
        ends = list(self.ends)
        if self.passes >= self.since:
            X, numbers = self.later(X, numbers)
            ends = [end // 2 for end in ends]
        for part in np.split(numbers, sorted({*ends} - {0})):
            if part.size:
                yield X[part], y[part]


def refit(name: str, later: Later, since: int, ends: Sequence[int], n: int) -> Any:
    """The model of a fit to such a source, which gives the same rows at every pass."""
    source = Source(later, since, ends, n)
    X, numbers = later(rows(n), np.arange(n))
    same = np.array_equal(numbers, np.arange(n)) and np.array_equal(X, rows(n))
    try:
        with warnings.catch_warnings(action="ignore"):
            model = function_of(name)(source, None, n_threads=1, **OPTIONS[name])
    except ValueError as error:
        if same:
            raise BrokenPromise("the same rows are refused") from error
        raise
    if not same and source.passes >= since:
        raise BrokenPromise(f"other rows in pass {since} are not refused")
    return model
