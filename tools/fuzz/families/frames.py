"""Data frames and columns of pandas, polars and pyarrow, in any state."""

import random
from dataclasses import replace

import plain
from call import Call
from callables import Callable, public_callables

KINDS = ("pandas", "polars", "pyarrow")

# Sources in which {} is a data frame.
WAYS = {
    "pandas": [
        "{}.astype('Float64')", "{}.astype('float32')", "{}.round().astype('Int64')",
        "{}.round().astype('int8')", "({} > 0)", "({} > 0).astype('boolean')",
        "{}.astype('string')", "{}.astype(str)", "{}.astype('category')",
        "{}.astype(object)", "{}.astype('Sparse[float]')", "{}.astype(complex)",
        "{}.round().astype('datetime64[ns]')", "{}.round().astype('timedelta64[ns]')",
        "{}.convert_dtypes()", "{}.convert_dtypes(dtype_backend='pyarrow')",
        "{}.assign(b='x')", "{}.assign(b=None)", "{}.assign(b=pd.NA)",
        "{}.assign(b=pd.Timestamp('2020'))", "{}.assign(b=np.nan)", "{}.assign(b=1)",
        "{}.assign(b=np.inf)", "{}.assign(b=1e300)", "{}.assign(b=10**400)",
        "{}.assign(b=[[1, 2]] * len({}))", "{}.assign(b=object())", "{}.assign(z=1)",
        "{}.assign(c=pd.Categorical(['u', 'v'] * 12))", "{}.assign(b=1j)",
        "{}.assign(c=pd.Categorical([1, 2] * 12, ordered=True))", "{}[['c', 'a', 'b']]",
        "{}.assign(c=pd.cut(rows()[:, 0], 3))", "{}[['a', 'a', 'b']]", "{}[['a', 'a']]",
        "{}.drop(columns='a')", "{}.iloc[:0]", "{}.iloc[:, :0]", "{}.iloc[:1]",
        "{}.iloc[:5]", "{}.iloc[::-1]", "{}.sample(frac=1, random_state=0)", "{}.T",
        "{}.set_axis([0] * len({}))", "{}.set_axis([0, 1, 2], axis=1)", "{}.a", "{}.b",
        "{}.set_axis([1, 'a', None], axis=1)", "{}.set_axis(['a', 'b', ''], axis=1)",
        "{}.set_axis(['a', 'b', 'x' * 10_000], axis=1)", "{}.mask({} > 1)",
        "{}.set_axis([('a', 1), ('a', 2), ('b', 1)], axis=1)", "{}.mask({} > 1, pd.NA)",
        "{}.set_axis(['\\ud800', 'b', 'c'], axis=1)", "{}.set_axis('ABC', axis=1)",
        "{}.set_axis(pd.MultiIndex.from_product([[1], [1, 2, 3]]), axis=1)",
        "{}.set_axis(pd.CategoricalIndex(list('abc')), axis=1)", "{} * 1e300",
        "{}.set_axis(pd.date_range('2020', periods=3), axis=1)", "{} * 1e155",
        "{}.to_numpy()", "{}.to_dict('list')", "{}.to_records()", "{}.groupby('a')",
        "{}.style", "{}.values.tolist()", "pd.concat([{}, {}])", "{} * 1e-300",
        "pd.concat([{}, {}], axis=1)", "{}.iterrows()", "{}.set_index('a')",
        "{}.rename_axis('n')", "{}.stack()", "{}.loc[:, 'a':'b']", "{}.describe()",
    ],
    "polars": [
        "{}.cast(pl.Float32)", "{}.cast(pl.String)", "{}.lazy()", "{}.head(0)",
        "{}.cast(pl.Decimal(20, 3))", "{}.cast(pl.Int8, strict=False)", "{}.head(5)",
        "{}.cast(pl.String).cast(pl.Categorical)", "{}.select('c', 'a', 'b')",
        "{}.cast(pl.Int64).cast(pl.Date)", "{}.cast(pl.Int64).cast(pl.Duration)",
        "{}.with_columns(b=None)", "{}.with_columns(b=pl.lit('x'))", "{}.drop('a')",
        "{}.with_columns(b=pl.lit(float('nan')))", "{}.with_columns(z=1)",
        "{}.with_columns(b=pl.lit([1, 2]))", "{}.with_columns(b=pl.struct('a'))",
        "{}.with_columns(b=pl.lit(b'x'))", "{}.with_columns(b=pl.lit(True))",
        "{}.with_columns(b=pl.Series([object()] * len({}), dtype=pl.Object))",
        "{}.with_columns(pl.all() * 1e300)", "{}.with_columns(pl.all() * 1e155)",
        "{}.with_columns(pl.when(pl.col('a') > 0).then('a').alias('a'))",
        "{}.rename({'a': ''})", "{}.rename({'a': 'x' * 10_000})", "{}.select([])",
        "{}.to_numpy()", "{}.to_dict()", "{}.to_arrow()", "{}.to_pandas()", "{}['a']",
        "pl.concat([{}, {}], rechunk=False)", "{}.transpose()", "{}.to_dummies()",
        "{}.with_columns(c=grades('polars'))", "{}.iter_rows()", "{}.reverse()",
        "{}.with_columns(c=grades('polars', False))", "{}.clear(3)", "{}.clear()",
        "{}.with_columns(b=pl.lit(2**63, dtype=pl.UInt64))",
        "{}.with_columns(b=pl.lit(2**100, dtype=pl.Int128))",
    ],
    "pyarrow": [
        "{}.slice(0, 0)", "{}.slice(3, 5)", "{}.select(['c', 'a', 'b'])",
        "{}.drop(['a'])", "{}.append_column('z', {}['a'])", "{}['a']", "{}.to_pydict()",
        "{}.append_column('a', {}['a'])", "{}.rename_columns(['', 'b', 'c'])",
        "{}.set_column(1, 'b', pa.array(['x'] * 24))", "{}.to_batches()[0]",
        "{}.set_column(1, 'b', pa.array([None] * 24))", "{}.to_reader()",
        "{}.set_column(1, 'b', pa.array([None] * 24, pa.float64()))",
        "{}.set_column(2, 'c', pa.array(['u', 'v'] * 12).dictionary_encode())",
        "{}.set_column(1, 'b', pa.array([[1.0]] * 24))", "pa.concat_tables([{}, {}])",
        "{}.set_column(1, 'b', pa.array([{'a': 1}] * 24))", "{}.to_pandas()",
        "{}.set_column(1, 'b', pa.array([b'x'] * 24))", "{}.combine_chunks()",
        "{}.set_column(1, 'b', pa.array([True] * 24))", "{}.schema",
        "{}.set_column(1, 'b', pa.array([decimal.Decimal('1.5')] * 24))",
        "{}.set_column(1, 'b', pa.array([datetime.date(2020, 1, 1)] * 24))",
        "{}.cast(pa.schema([(c, pa.float32()) for c in {}.column_names]))",
        "{}.cast(pa.schema([(c, pa.string()) for c in {}.column_names]))",
    ],
}  # fmt: skip

# Sources in which {} is a column.
COLUMN_WAYS = {
    "pandas": [
        "{}.astype(float)", "{}.astype('Int64')", "{}.astype('Int64').mask({} == 1)",
        "{}.astype('float64').mask({} == 1)", "{}.astype(str)", "{}.astype('string')",
        "{}.astype('category')", "{}.astype('category').cat.as_ordered()", "{} > 1",
        "grades()", "grades(ordered=False)", "grades().cat.add_categories(['top'])",
        "grades().where({} > 1)",
        "grades().cat.reorder_categories(['high', 'mid', 'low'])",
        "{}.astype(complex)", "{}.astype(object)", "{}.astype('datetime64[ns]')",
        "{}.set_axis(range(24, 0, -1))", "{}.set_axis([0] * len({}))", "{}.iloc[:0]",
        "{}.iloc[:-1]", "{}.iloc[::-1]", "pd.Index({})", "pd.array({})",
        "{}.to_frame()",
        "pd.cut({}, 3)", "{}.values", "{}.tolist()", "pd.Categorical({})", "{} * 0",
        "{}.convert_dtypes(dtype_backend='pyarrow')", "{} * 10**18", "{} / 3",
        "{} * 1e300", "{}.astype('Sparse[int]')", "{}.rename('y' * 10_000)",
        "pd.Series([[1]] * 24)",
        "pd.Series([None] * 24)", "pd.Series([pd.NA, *{}[1:]])",
        "pd.period_range('2020', periods=24)",
    ],
    "polars": [
        "{}.cast(pl.Float64)", "{}.cast(pl.String)", "grades('polars')", "{}.head(0)",
        "grades('polars', False)", "{}.cast(pl.String).cast(pl.Categorical)", "{} > 1",
        "{}.to_frame()", "{}.shift(1)", "{}.cast(pl.Date)", "{}.cast(pl.Decimal(9, 2))",
        "{}.reverse()", "{}.head(23)", "{}.to_numpy()", "{}.to_arrow()", "{} * 0",
        "pl.Series([None] * 24)", "pl.Series([[1]] * 24)", "{} / 3", "{} * 1e300",
        "grades('polars').shift(1)",
        "pl.concat([{}.head(4), {}.tail(20)], rechunk=False)",
        "pl.Series([object()] * 24, dtype=pl.Object)", "{}.alias('y' * 10_000)",
    ],
    "pyarrow": [
        "{}.cast(pa.float64())", "{}.cast(pa.string())", "grades('pyarrow')",
        "{}.slice(0, 0)", "{}.slice(1)", "{}.combine_chunks()", "{}.to_pylist()",
        "{}.dictionary_encode()", "pa.array([None] * 24)", "pa.nulls(24, pa.int64())",
        "pa.scalar(1)", "pa.array([[1]] * 24)", "{}.chunk(0)",
    ],
}  # fmt: skip

_FRAMES = {"X", "A", "B", "scores", "proba"}
_COLUMNS = {
    "y", "y_true", "y_pred", "sample_weight", "values", "classes", "labels", "diagonal",
    "x",
}  # fmt: skip


class Frames:
    """Any public callable that takes features or labels, given in data frames."""

    name = "frames"

    def __init__(self) -> None:
        self._callables = [c for c in public_callables() if _places(c)]

    def draw(self, rng: random.Random) -> Call:
        chosen = rng.choice(self._callables)
        call = replace(chosen.call(rng, 0.08), prelude="from tables import *")
        if rng.random() < 0.7:  # a model that remembers the names of columns
            call = replace(call, function=call.function.replace("fit('", "framed('"))
            if "fit_xofm" in call.function or "'xofm'" in call.function:
                words = call.function.replace("'xofm'", "'xofm', categorical=('c',)")
                call = replace(call, function=words) if rng.random() < 0.4 else call
        given, places = dict(call.arguments), _places(chosen)
        for name in places:
            if name in given or rng.random() < 0.2:
                given[name] = _table(rng, chosen.source, name)
        if "classes" in given or (rng.random() < 0.2 and "classes" in places):
            given["classes"] = rng.choice(["['low', 'mid', 'high']", "['low', 'top']"])
        return replace(call, arguments=given)


def _table(rng: random.Random, function: str, name: str) -> str:
    """The source of a frame or a column for this argument, with up to three changes."""
    kind = rng.choice(KINDS)
    if name in _FRAMES:
        a = plain.needed(function, name) or "rows()"
        a = "rows(6, 3)" if a.startswith(("[", "{")) else a
        source = rng.choice([f"frame({kind!r}, {a})"] * 5 + [f"mixed({kind!r})"])
        ways = WAYS[kind]
    else:
        a = plain.allowed(rng, function, name) or "ranks()"
        source, ways = f"column({kind!r}, {a})", COLUMN_WAYS[kind]
    changed = source
    for _ in range(rng.choices((0, 1, 2, 3), (2, 5, 2, 1))[0]):
        changed = rng.choice(ways).replace("{}", changed)
        if not changed.endswith((")", "]")):
            changed = f"({changed})"
    return source if changed == source else f"either(lambda: {changed}, {source})"


def _places(callable: Callable) -> list[str]:
    """Its arguments that may be data frames or columns of one."""
    pairs = zip(callable.names, callable.parameters, strict=False)
    return [name for name, p in pairs if p.name in _FRAMES | _COLUMNS]
