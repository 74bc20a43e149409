"""Names for fits to a source of chunks whose later passes differ from the first."""

# ruff: noqa: F403, F405
from collections.abc import Iterator, Sequence

from subjects import *

ON_BASIS = {"basis": 8}
OPTIONS: dict[str, dict[str, Any]] = {
    "svorim": ON_BASIS, "svorex": ON_BASIS, "redsvm": ON_BASIS, "npsvor": ON_BASIS,
    "opbe": ON_BASIS, "svc": ON_BASIS, "tlssvor": ON_BASIS, "gpor": ON_BASIS,
    "kdlor": {"kernel": "linear"}, "shashua_levin": {"kernel": "linear"}, "pom": {},
    "lit": {}, "lat": {}, "elmor": {}, "xofm": {"solver": "lbfgs"},
}  # fmt: skip

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
