"""Effects and averages of columns of every dtype, against those of floats."""

import random

from call import Call

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
        return Call("compared", arguments, "from perturbed import *", tuple(arguments))
