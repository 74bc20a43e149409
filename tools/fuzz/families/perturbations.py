"""Effects and averages of columns of every dtype, against those of floats."""

# ruff: noqa: F403, F405
import random

from call import Call
from tables import *

# Sources of functions that change the dtype of column b of a frame of pandas.
DTYPES = [
    *(
        f"lambda t: t.astype({{'b': {dtype!r}}})"
        for dtype in ("int64", "int8", "uint8", "Int64", "Int8", "float32", "Float64")
    ),
    "lambda t: t.assign(b=[decimal.Decimal(int(v)) for v in t['b']])",
    "lambda t: pl.from_pandas(t.astype({'b': 'int64'}))",
    "lambda t: pl.from_pandas(t.astype({'b': 'int8'}))",
    "lambda t: pl.from_pandas(t).with_columns(pl.col('b').cast(pl.Decimal(9, 2)))",
    "lambda t: t.convert_dtypes(dtype_backend='pyarrow').astype({'c': 'category'})",
]  # fmt: skip
TRUTH = [
    "lambda t: t.astype({'b': bool})", "lambda t: t.astype({'b': 'boolean'})",
    "lambda t: pl.from_pandas(t.astype({'b': bool}))",
]  # fmt: skip


class Perturbations:
    """A method that moves a column, of a model of a frame."""

    name = "perturbations"

    def draw(self, rng: random.Random) -> Call:
        way = rng.choice(("matrix", "formula", "truth"))
        arguments = {
            "dtype": rng.choice(TRUTH if way == "truth" else DTYPES),
            "method": repr(rng.choice(("marginal_effects", "predictions"))),
            "way": repr(way),
            "seed": str(rng.randrange(100)),
        }
        prelude = "from families.perturbations import *"
        return Call("compared", arguments, prelude, tuple(arguments))


def compared(dtype: Callable[[Any], Any], method: str, way: str, seed: int) -> Any:
    """Compare a method of a model for a column of a dtype and for one of floats."""
    rng = np.random.default_rng(seed)
    n = 120
    count = rng.integers(0, 2 if way == "truth" else 5, n)
    columns = {"a": rng.normal(size=n), "b": count, "c": rng.choice(["u", "v"], n)}
    y = np.digitize(columns["a"] + 0.5 * count + rng.logistic(size=n), [0.0, 2.0])
    floats = pd.DataFrame(columns).astype({"b": float, "c": "category"})
    typed = dtype(floats)
    results = []
    for table in (floats, typed):
        if way == "formula" and isinstance(table, pd.DataFrame):
            model = ordinal.fit_pom("y ~ a + b + c", table.assign(y=y))
        else:
            model = ordinal.fit_pom(table, y)
        found = getattr(model, method)(table)
        results.append(np.array([v for v in found.values() if v.dtype.kind == "f"]))
    if not np.allclose(*results, rtol=1e-6, atol=1e-9):
        raise BrokenPromise(f"{results[1]} of {method}, and {results[0]} of floats")
    return results[1]
