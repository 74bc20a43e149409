"""Arrays of every dtype, layout, shape and magnitude, sparse matrices, and objects that
say they are arrays."""

import random
from dataclasses import replace

import plain
from call import Call
from callables import Callable, public_callables

# Sources in which {} is a plain array.
DTYPES = [
    f"{{}}.astype({dtype!r})"
    for dtype in (
        "f2", "f4", "f8", ">f8", ">f4", "g", "i1", "u1", "i2", "i4", ">i4", "i8", "u8",
        ">i8", "?", "c8", "c16", "O", "U", "S", "M8[s]", "m8[s]", "V8",
    )
]  # fmt: skip
LAYOUTS = [
    "np.asfortranarray({})", "{}[::-1]", "{}[::2]", "{}.T", "{}.copy()[()]",
    "np.repeat({}, 2, axis=0)[::2]", "np.repeat({}, 2, axis=-1)[..., ::2]",
    "unwritable({})", "unaligned({})", "np.broadcast_to({}[:1], {}.shape)",
    "{}.tolist()", "list({})", "tuple({})", "memoryview({})", "{}.view(Subclass)",
    "np.asmatrix({})", "np.ma.array({}, mask=False)", "np.ma.array({}, mask=True)",
    "np.ma.masked_less({}, 0)", "all_the_same({})",
    "as_records({})", "iter({})", "{}.flat", "Odd(array={})", "Odd(array={}.tolist())",
    "Changing({})", "Interfaced({})", "Odd(array={}, shape=(10, 2**40))",
    "Odd(array={}, shape=(3,), dtype=np.dtype(float))", "Odd(array={}, len=5)",
    "Odd(m_to_numpy={})", "Odd(m_toarray={}, shape={}.shape)", "dict(enumerate({}))",
]  # fmt: skip
SHAPES = [
    "{}[:0]", "{}[:1]", "{}[:2]", "{}[:5]", "{}[..., :0]", "{}[..., :1]",
    "{}[..., None]",
    "{}[None]", "{}.ravel()", "{}[0]", "{}[..., 0]", "np.concatenate([{}, {}])",
    "np.concatenate([{}, {}], axis=-1)", "np.repeat({}, 20, axis=0)", "np.array({}[0])",
    "np.repeat({}, 40, axis=-1)", "{}.reshape(-1, 2)", "np.zeros((0, 0))",
]  # fmt: skip
VALUES = [
    "put({}, np.nan)", "put({}, np.inf)", "put({}, -np.inf)", "put({}, -1)",
    "put({}, 0)", "put({}, 1e300)", "put({}, 1.7e308)", "put({}, 5e-324)",
    "put({}, 2**53)", "put({}, 0.5)", "put({}.astype(object), None)",
    "put({}.astype(object), 10**400)", "put({}.astype(object), 'a')",
    "put({}.astype(object), Odd(float=Foreign))", "put({}.astype(object), 1j)",
    "{} * np.nan", "{} * 0", "{} * 0.0 + 1", "-{}", "{} * 1e-320", "{} * 1e-300",
    "{} * 1e-160", "{} * 1e-30", "{} * 1e30", "{} * 1e76", "{} * 1e100", "{} * 1e150",
    "{} * 1e154", "{} * 1e155", "{} * 1e168", "{} * 1e200", "{} * 1e300", "{} * 5e307",
    "{} + 1e8", "{} + 1e16", "{} + 1e300", "np.sort({}, axis=0)", "np.rint({})",
    "np.tile({}[:3], (8,) + (1,) * ({}.ndim - 1))", "put({} * 1e300, 1e-300)",
    "put({} * 1e-300, 1e300)", "np.exp(300 * {})", "{} % 2", "{} // 1 % 2 * 10**9",
]  # fmt: skip
SPARSE = [
    f"sparse.{form}_{kind}({{}})"
    for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
    for kind in ("array", "matrix")
] + [
    "sparse.csr_array({} * ({} > 0.5))", "sparse.csr_matrix({} * ({} > 0.5)).T",
    "sparse.csr_array({}.astype('f4'))", "sparse.csr_array({}.astype('i8'))",
    "sparse.csr_array({}.astype(complex))", "sparse.csr_array({} > 0)",
    "sparse.csr_array(put({}, np.nan))", "sparse.csr_array({} * 1e200)",
    "sparse.csr_array({} * 1e154)", "sparse.csr_array({} * 1e-200)",
    "sparse.csr_array((24, 0))", "sparse.csr_array((0, 3))", "csr({})",
    "csr({}, columns=2**31 - 1)", "csr({}, columns=2**62)", "csr({}, columns=2)",
    "csr({}, columns=-1)", "csr({}, rows=5)", "csr({}, rows=2**40)",
    "csr({}, first=-1)",
    "csr({}, first=2**31 - 1)", "csr({}, first=10**9)", "csr({}, pointer=10**6)",
    "csr({}, pointer=-5)", "csr({}, last=10**9)", "csr({}, value=np.nan)",
    "csr({}, value=np.inf)", "csr({}, index_type='i8')", "csr({}, index_type='f8')",
    "csr({}, index_type='i2')", "csr({}, index_type='O')", "csr({}, data_type='O')",
    "csr({}, data_type='U')", "csr({}, data_type='c16')", "csr({}, unsorted=True)",
    "csr({}, twice=True)", "csr({}, short=True)",
]  # fmt: skip
# Too large for anything else to be done to them.
HUGE = [
    "np.empty((2**40, 0))", "np.empty((0, 2**40))", "np.broadcast_to(1.0, (2**40,))",
    "np.broadcast_to(1.0, (24, 2**40))", "np.broadcast_to(1.0, (2**40, 3))",
    "sparse.csr_array((24, 2**31 - 1))", "sparse.csr_array((24, 2**62))",
    "sparse.coo_array((24, 2**40))", "range(2**40)",
]  # fmt: skip
WAYS = [*DTYPES, *LAYOUTS, *SHAPES, *VALUES, *VALUES, *SPARSE]

# Parameters that take arrays, other than those whose plain argument is one.
_ARRAYS = {
    "sample_weight": "weights()",
    "weight": "proba(24, 3)",
    "cost": "cost()",
    "classes": "np.array([1, 2, 3])",
    "labels": "np.array([1, 2, 3])",
    "diagonal": "np.ones(24)",
    "gamma": "np.array([0.5, 1.0, 2.0])",
    "edges": "np.array([0.0, 1.0])",
    "basis": "np.array([0, 5, 9, 20])",
    "n_intervals": "np.array([1, 2, 3])",
    "monotone": "np.array([1, 0, -1])",
    "categorical": "np.array([0, 1])",
}
_PLAIN = ("rows(", "ranks(", "proba(", "weights(", "np.")
_KERNELS = ["'precomputed'", "kernels.Precomputed()"]


class Arrays:
    """Any public callable that takes arrays, with one or two of them spoiled."""

    name = "arrays"

    def __init__(self) -> None:
        self._callables = [c for c in public_callables() if _arrays_of(c)]

    def draw(self, rng: random.Random) -> Call:
        chosen = rng.choice(self._callables)
        call = chosen.call(rng, 0.08)
        given, sources = dict(call.arguments), _arrays_of(chosen)
        if "kernel" in chosen.names and rng.random() < 0.05:
            given["kernel"], sources["X"] = rng.choice(_KERNELS), "gram()"
            given["X"] = "gram()"
        for _ in range(rng.choice((1, 1, 2))):
            name = rng.choice([n for n in sources if n in given] or list(sources))
            if rng.random() < 0.3:
                name = rng.choice(list(sources))
            given[name] = spoiled(rng, sources[name])
        return replace(call, arguments=given)


def spoiled(rng: random.Random, source: str) -> str:
    """The source of an array with one to three changes, each in a random way."""
    if rng.random() < 0.02:
        return rng.choice(HUGE)
    spoilt = source
    for _ in range(rng.choice((1, 1, 2, 3))):
        spoilt = rng.choice(WAYS).replace("{}", spoilt)
        if not spoilt.endswith((")", "]")) or spoilt.startswith("-"):
            spoilt = f"({spoilt})"
    return f"either(lambda: {spoilt}, {source})"


def _arrays_of(callable: Callable) -> dict[str, str]:
    """The plain arrays that it takes, by the names of its arguments."""
    found = {}
    for name, parameter in zip(callable.names, callable.parameters, strict=False):
        source = plain.needed(callable.source, parameter.name) or ""
        if not source.startswith(_PLAIN):
            source = _ARRAYS.get(parameter.name, "")
        if source:
            found[name] = source
    return found
