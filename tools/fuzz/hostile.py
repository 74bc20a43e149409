"""Sources of values that a caller might pass, by mistake or to do harm."""

NUMBERS = [
    "0", "-0.0", "1", "-1", "2", "3", "0.5", "1.5", "-2.5", "7", "100", "1e-3",
    "np.nan", "np.inf", "-np.inf", "1e300", "-1e300", "1e-300", "5e-324", "1e308",
    "1.7976931348623157e308", "1e155", "1e168", "1e190", "1e-155", "1e-190", "1e16",
    "1e-16", "2**31", "2**31 - 1", "2**32", "2**53 + 1", "2**62", "2**63", "2**63 - 1",
    "-2**63", "2**64", "10**18", "10**30", "10**400", "-10**400", "np.float32(0.1)",
    "np.float16(6e4)", "np.float32(3e38)", "np.longdouble('1e4000')", "np.int8(-128)",
    "np.uint8(255)", "np.uint64(2**64 - 1)", "np.int64(-2**63)", "True", "False",
    "np.True_", "fractions.Fraction(1, 3)", "fractions.Fraction(10**400)",
    "decimal.Decimal('NaN')", "decimal.Decimal('1e4000')", "decimal.Decimal('0.5')",
    "decimal.Decimal('sNaN')", "1j", "complex(1, 0)", "complex(np.nan, 0)",
    "np.complex64(1)", "np.datetime64('2020-01-01')", "np.datetime64('NaT')",
    "np.timedelta64(1, 's')", "datetime.date(2020, 1, 1)", "np.array(1.0)",
    "np.array(np.nan)", "np.array(2)", "np.array([1.0])", "np.array([1, 2])",
    "np.array('1')", "np.array(None)", "np.array([])", "np.ma.masked",
    "np.ma.array(1.0, mask=True)",
]  # fmt: skip

TEXTS = [
    "''", "'a'", "'1'", "'1e400'", "'nan'", "'rbf'", "'linear'", "'precomputed'",
    "'scale'", "'balanced'", "'mae'", "'x' * 10_000", "'\\ud800'", "'\\0'", "'a\\nb'",
    "'\\u202e'", "b''", "b'rbf'", "bytearray(b'1')", "memoryview(b'12')",
    "np.str_('rbf')", "np.bytes_(b'rbf')", "'rbf '", "'RBF'", "'%s %d {}'",
    "pathlib.Path('a')", "pathlib.Path('')", "'a' * 300", "'missing/folder/file'",
]  # fmt: skip

OBJECTS = [
    "None", "...", "NotImplemented", "object()", "int", "float", "np.ndarray", "type",
    "len", "print", "lambda: None", "lambda *a, **k: None", "lambda *a: np.nan",
    "lambda *a: a[0]", "np", "ValueError", "ValueError('x')", "slice(None)", "range(3)",
    "range(10**12)", "iter([1, 2])", "(x for x in [1.0, 2.0])", "zip([1], [2])",
    "functools.partial(int)", "np.dtype(float)", "np.random.default_rng(0)",
    "np.random.RandomState(0)", "Odd()", "Odd(float=1.0)", "Odd(float=ValueError)",
    "Odd(float=Foreign)", "Odd(index=3)", "Odd(index=10**30)", "Odd(index=Foreign)",
    "Odd(bool=Foreign)", "Odd(bool=ValueError)", "Odd(eq=Foreign, hash=1)",
    "Odd(hash=Foreign)", "Odd(len=3)", "Odd(len=2**62)", "Odd(len=Foreign)",
    "Odd(len=3, getitem=IndexError)", "Odd(len=3, getitem=Foreign)",
    "Odd(iter=Foreign)",
    "Odd(repr=Foreign)", "Odd(repr='x' * 10_000)", "Odd(str=Foreign, repr=Foreign)",
    "Odd(array=None)", "Odd(array=np.ones(3))", "Odd(array=Foreign)",
    "Odd(array=ValueError)", "Odd(shape=(10, 2**40))", "Odd(shape=None)",
    "Odd(shape=(3,), dtype=float)", "Odd(call=np.nan)", "Odd(call=Foreign)",
    "Odd(fspath=Foreign)", "Odd(fspath='a')", "Odd(lt=Foreign, gt=Foreign)",
    "Odd(getattr=Foreign)", "Odd(getattribute=Foreign)",
]  # fmt: skip

CONTAINERS = [
    "[]", "()", "{}", "set()", "frozenset()", "[[]]", "[[], []]", "[None]", "[np.nan]",
    "[np.inf]", "[1, 'a']", "['a', 'b', 'c']", "[1, [2, 3]]", "[[1, 2], [3]]", "[1j]",
    "[10**400]", "[10**400, 1]", "[2**63]", "[-1]", "[0]", "[0, 0]", "[1, 1, 1]",
    "[1, 2, 3]", "[3, 2, 1]", "(1, 2)", "(2, 1)", "(0, np.inf)", "(1e-300, 1e300)",
    "(np.nan, 1)", "(1, 2, 3)", "[True, False]", "[object()]", "[Odd(float=Foreign)]",
    "{1}", "{1: 2}", "{1: 1e300}", "{1: 1e-300, 2: 1e300}", "{1: np.nan}", "{1: 'a'}",
    "{1: None}", "{1: -1}", "{1: 0}", "{None: 1}", "{'a': 1}", "{1: 10**400}",
    "{1: 1, 2: 1, 3: 1, 4: 1}", "{1: [1.0]}", "{'noise': 1e200}", "{'noise': 1e-200}",
    "{'noise': -1}", "{'C': []}", "{'C': [1.0], 'gamma': []}", "{'C': 'abc'}",
    "{np.nan: 1}", "{(1,): 1}", "['x' * 10_000]", "[[1.0, 2.0], [3.0, 4.0]]",
    "list(range(1000))", "['x'] * 1000", "{i: 1.0 for i in range(1000)}",
    "np.arange(3)", "np.zeros((0,))", "np.zeros((0, 3))", "np.zeros((3, 0))",
    "np.zeros((2, 2, 2))", "np.full((3, 3), np.nan)", "np.eye(3)", "-np.eye(3)",
    "np.full(24, 1e306)", "np.full(24, 1e-311)", "np.array(['a'] * 24)",
    "np.array([None] * 24)", "np.array([1, 'a'] * 12, dtype=object)",
]  # fmt: skip

ANY = [*NUMBERS, *TEXTS, *OBJECTS, *CONTAINERS]

# For parameters whose value is called, or has a form of its own.
_VALUES = "lambda A, B: np.full((len(A), len(B)), {})"
_NO_KERNELS = [
    *(_VALUES.format(v) for v in ("np.nan", "np.inf", "1e200", "-1.0", "1j", "'a'")),
    *(_VALUES.format(v) for v in ("0.0", "1e-300", "1e99", "1e150", "None", "True")),
    "lambda A, B: np.zeros((1, 1))", "lambda A, B: None", "lambda A, B: 1.0",
    "lambda A, B: -np.eye(len(A), len(B))", "lambda A, B: rows(len(A), len(B))",
    "lambda A, B: [[1.0] * len(B)] * len(A)", "lambda A: A", "Odd(call=Foreign)",
    "lambda A, B: np.asarray(A)[:, :1] * 1e10", "kernels.ARD([1.0])", "kernels.RBF",
    "lambda A, B: (np.asarray(A) @ np.asarray(B).T).astype('f4')[::-1]",
    "kernels.RBF(1e-300)", "kernels.RBF(1e300)", "kernels.Polynomial(50)",
    "kernels.ARD([1e-300, 1.0, 1e300])", "kernels.LinearARD([1e300] * 3)",
]  # fmt: skip
_NO_CALLBACKS = [
    "lambda state: np.ones(3)", "lambda state: 'yes'", "lambda state: np.nan",
    "lambda state: Odd(bool=Foreign)", "lambda: True", "Odd(call=Foreign)",
    "lambda state: state.n_iter > 2", "lambda state: Odd(bool=3)",
]  # fmt: skip
_NO_FITS = [
    "lambda X, y, **k: None", "lambda X, y, **k: fit('npsvor')", "Odd(call=Foreign)",
    "lambda X, y, **k: Odd(m_predict=np.ones(3))", "ordinal.fit_xofm", "lambda X: X",
    "lambda X, y, **k: Odd(m_predict=Foreign)", "ordinal.fit_gpor", "ordinal.load",
    "lambda X, y, **k: Odd(m_predict=['a'] * 12, classes=[1, 2, 3])",
    "ordinal.fit_npsvor", "functools.partial(ordinal.fit_npsvor, C=-1)", "'svorim'",
]  # fmt: skip
_NO_SCORES = [
    "lambda y, p: np.nan", "lambda y, p: 'a'", "lambda y, p: np.ones(2)", "[]", "{}",
    "lambda y, p: None", "lambda y, p: 1e308", "('mae', 'mae')", "lambda y: 1",
    "lambda y, p: -np.inf", "lambda y, p: 1j", "('mae', lambda y, p: 1)", "'nothing'",
    "Odd(call=Foreign)", "metrics.mae", "metrics.rps", "metrics.confusion_matrix",
]  # fmt: skip
_NO_SEARCHES = [
    *(
        f"Odd(m_stages=(points for points in {stages}))"
        for stages in (
            "[]", "[[]]", "[[{}]]", "[3]", "[None]", "[[{'C': 1.0}]]", "[[{'C': -1}]]",
            "[[{'C': [1]}]]", "[[{'nothing': 1}]]", "[[{1: 2}]]", "[[{'C': np.nan}]]",
            "[[{'C': 1.0}], 3]", "[[{'C': 1.0}, {'C': 'a'}]]", "[[{'X': 1}]]",
        )
    ),
    "Odd(m_stages=Foreign)", "Odd(m_stages=[[{'C': 1.0}]])", "Odd(m_stages=None)",
    "model_selection.Grid(C=[1.0, -1.0])", "model_selection.Grid(C=['a'])",
    "model_selection.Grid(nothing=[1])", "model_selection.Grid(C=[1e-300, 1e300])",
    "model_selection.Grid(kernel=['rbf', 'nothing'])", "model_selection.Grid",
    "model_selection.Grid(C=[1.0], gamma=[np.nan])", "model_selection.Grid(C=[[1]])",
]  # fmt: skip
_NO_SPLITS = [
    "[(np.arange(12), np.arange(12, 24))]", "[([], [])]", "[([0], [99])]", "[(0, 1)]",
    "[(np.arange(24), np.arange(24))]", "[(np.arange(24) > 5, np.arange(24) <= 5)]",
    "Odd(m_split=iter([(np.arange(12), np.arange(12))]))", "Odd(m_split=None)",
    "Odd(m_split=iter([]))", "Odd(m_split=Foreign)", "[([-1, -2], [0])]", "100", "24",
    "[(np.arange(12.0), np.arange(12.0))]", "[([0] * 30, [1] * 3)]", "[([0, 1], [2])]",
]  # fmt: skip
_NO_STARTS = [
    "fit('svorim')", "fit('redsvm', kernel='linear')", "fit('xofm')",
    "{'gamma': 1e300}",
    "{'noise': 1e-300}", "{'thresholds': [0.0, 0.0]}", "{'thresholds': [1, 'a']}",
    "{'nothing': 1}", "{'variance': 0}", "fit('npsvor')", "fit('gpor', optimize=False)",
    "{'noise': (1e-300, 1e300)}", "{'gamma': (0, 1)}", "{'noise': [np.nan, 1]}",
]  # fmt: skip
BY_NAME = {
    "kernel": _NO_KERNELS, "callback": _NO_CALLBACKS, "fit": _NO_FITS,
    "scoring": _NO_SCORES, "search": _NO_SEARCHES, "cv": _NO_SPLITS,
    "outer": _NO_SPLITS, "start": _NO_STARTS, "prior": _NO_STARTS,
}  # fmt: skip
