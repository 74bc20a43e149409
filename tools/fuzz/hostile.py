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
