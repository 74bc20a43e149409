"""The `ordinal` command: its options, tables, files of splits and models."""

import random

from call import Call

METHODS = [
    "npsvor", "npsvor-admm", "svorim", "svorex", "shashua-levin", "redsvm", "tlssvor",
    "gpor-laplace", "gpor-ep", "xofm", "boosting", "clmm",
]  # fmt: skip
EFFECTS = ["'new'", "'average'", "'known'", "'known_or_new'"]

# What may stand in the place of any word of a command.
WORDS = [
    "''", "' '", "'-'", "'--'", "'--help'", "'-h'", "'--nothing'", "'--proba'", "'0'",
    "'-1'", "'1'", "'2'", "'3'", "'1.5'", "'nan'", "'inf'", "'1e400'", "'9' * 50",
    "'9' * 5000", "'grade'", "'a'", "'b'", "'GRADE'", "'low,mid,high'", "'high,low'",
    "'1,2,3'", "'3,2,1'", "'1,1'", "','", "'t.csv'", "'m.npz'", "'s.npz'", "'.'",
    "'nothing.csv'", "'no/folder'", "'\\0'", "'\\udcff'", "'a\\nb'", "'x' * 10_000",
    "'C=1'", "'C=nan'", "'C'", "'=1'", "'C=-1'", "'C=10**9'", "'C=\"a\"'", "'tol=0'",
    "'kernel=linear'", "'kernel=x'", "'kernel=precomputed'", "'gamma=1e-300'",
    "'gamma=1e300'", "'max_iter=1'", "'probability=True'", "'class_weight={1: 1e300}'",
    "'class_weight=balanced'", "'classes=[1]'", "'rng=-1'", "'basis=5'", "'cost=[[0]]'",
    "'n_threads=0'", "'monotone={\"a\": 1}'", "'monotone=[1, 0, -1]'",
    "'interactions=[[0, 1]]'", "'interactions=[[\"a\"], [\"b\", \"c\"]]'",
    "'interactions=[[9]]'", "'interactions=[]'", "'C=' + '[' * 5000",
    "'C=' + '9' * 5000", "'X=1'", "'start=None'",
    "'svorim.C=1'", "'xofm.tau=2'", "'svorim.max_time=1'", "'svorim.'", "'.C=1'",
    "'équité'", "'%s%n'", "'--threads'", "'--set'", "'--bins'", "'length'", "'o.csv'",
]  # fmt: skip

# Sources of tables. In the second list {} is the source of one.
TABLES = [
    "table()", "table(header='')", "table(labels='low,mid,high')", "table(6)",
    "table(1)",
    "table(header='a,b,c', labels='')", "table(header='', labels='')",
    "table(header='a,a,b,grade')", "table(header='a,b,,')",
]  # fmt: skip
WAYS = [
    "{}[:0]", "{}[:20]", "{}[:-7]", "{}[40:]", "{}.replace(b',', b';')", "{} * 2",
    "{}.replace(b',', b'\\t')", "{}.replace(b'\\n', b'\\r\\n')",
    "b'\\xef\\xbb\\xbf' + {}",
    "{}.replace(b'\\n', b'\\r')", "{}.decode('latin1').encode('utf-16')",
    "gzip.compress({})",
    "gzip.compress({})[:-9]", "b'\\x1f\\x8b' + {}", "{}.replace(b'0.1', b'nan')",
    "{}.replace(b'0.1', b'')", "{}.replace(b'0.1', b'1e999')", "{} + b'1,2'",
    "{}.replace(b'0.1', b'1e155')", "{}.replace(b'0.', b'9e307')", "{} + b'\\n\\n\\n'",
    "{}.replace(b'0.1', b'x')", "{}.replace(b'-', b'\\xff')", "{} + b'\"'",
    "{}.replace(b'0.1', b'\"0.1')", "{}.replace(b'0.1', b'\\0')",
    "{}.replace(b',', b'')",
    "{}.replace(b',1\\n', b',1.5\\n')", "{}.replace(b',1\\n', b',2\\n')", "b'#' + {}",
    "{}.replace(b',1\\n', b',1e18\\n')", "{}.replace(b',1\\n', b',\\n')", "b' ' + {}",
    "{}.replace(b',1\\n', b',9223372036854775808\\n')", "{}.replace(b'0', b'9' * 400)",
    "{}.replace(b',', b',' * 3000, 3)", "b'a' * 200_000 + {}", "{}.replace(b'.', b'_')",
    "{}.replace(b'0.1', b'0x1p3')", "{}.replace(b'0.1', b'1_0')", "{}[::-1]",
    "{}.replace(b'a', b'a' * 5000, 1)", "{}.replace(b'a', '\\u202e'.encode(), 1)",
    "{}.replace(b'0.1', '\\u0661'.encode())", "b'\\n' + {}", "{}.upper()",
]  # fmt: skip
SPLITS = [
    "splits()", "splits()[:-30]", "splits()[:0]", "splits(25)", "splits(1)", "table()",
    "splits(test_idx=np.array([[0.5]]))", "splits(train_idx=np.zeros((1, 0), int))",
    "splits(train_idx=np.array([[-1]]))", "splits(train_idx=np.array([[10**18]]))",
    "splits(train_idx=np.array([['a']]))", "splits(train_idx=np.zeros((0, 5), int))",
    "splits(train_idx=np.zeros((1, 5), int))", "splits(test_idx=np.arange(24))",
    "splits(train_idx_3=np.arange(24)[None], test_idx_3=np.arange(24)[None])",
    "splits(y3=np.arange(24) % 3 + 1)", "splits(y3=np.zeros(24))", "npz(a=np.ones(3))",
    "splits(y3=np.array([None] * 24))", "splits(test_idx=np.ones((1, 24), bool))",
    "splits(train_idx=np.array([None]))", "model()",
]  # fmt: skip
MODELS = [
    *(f"model({name!r})" for name in (
        "svorim", "npsvor", "tlssvor", "gpor", "xofm", "clmm")),
    "model()[:-30]", "model()[:0]", "model()[:100] + b'x' + model()[101:]", "table()",
    "npz(header=np.zeros(3))", "splits()", "model() + b'x'", "b'PK' + model()",
]  # fmt: skip


class Command:
    """A command with up to three of its words or files changed."""

    name = "command"

    def draw(self, rng: random.Random) -> Call:
        words, files = rng.choice((_fit, _fit, _predict, _compare))(rng)
        for _ in range(rng.choices((0, 1, 2, 3), (6, 5, 2, 1))[0]):
            place = rng.randrange(len(words) + 1)
            way = rng.random()
            if way < 0.25 and words:
                del words[min(place, len(words) - 1)]
            elif way < 0.5:
                words.insert(place, rng.choice(WORDS))
            elif words:
                words[min(place, len(words) - 1)] = rng.choice(WORDS)
        if "'--splits'" not in words and "'compare'" in words:
            words += ["'--splits'", "'2'"]  # thirty take their time
        arguments = {str(i): word for i, word in enumerate(words)} | files
        return Call("command", arguments, "from commands import *")


def _fit(rng: random.Random) -> tuple[list[str], dict[str, str]]:
    method = rng.choice(METHODS)
    words = ["'fit'", "'t.csv'", "'--method'", repr(method), "'--out'", "'o.npz'"]
    if method == "clmm":
        words += ["'--random'", rng.choice(["'(1 | c)'", "'(1 + a || c)'", "'(1 |'"])]
    for _ in range(rng.choice((0, 0, 1, 2))):
        words += rng.choice(
            [
                ["'--target'", rng.choice(["'grade'", "'a'"])],
                ["'--bins'", rng.choice(["'2'", "'3'", "'30'"]), "'--target'", "'a'"],
                ["'--bins'", "'3'", "'--binning'", "'length'"],
                ["'--classes'", rng.choice(["'low,mid,high'", "'1,2,3,4'"])],
                ["'--set'", rng.choice([w for w in WORDS if "=" in w])],
                ["'--threads'", "'2'"],
            ]
        )
    return [*words, "'--set'", "'max_time=1'"], {"t_csv": _table(rng)}


def _predict(rng: random.Random) -> tuple[list[str], dict[str, str]]:
    words = ["'predict'", "'m.npz'", "'t.csv'"]
    words += rng.choice([[], ["'--proba'"], ["'--out'", "'o.csv'"]])
    words += rng.choice([[], [], ["'--effects'", rng.choice(EFFECTS)]])
    table = _table(rng, "table(header='a,b,c', labels='')")
    return words, {"m_npz": rng.choice(MODELS[:6] * 3 + MODELS), "t_csv": table}


def _compare(rng: random.Random) -> tuple[list[str], dict[str, str]]:
    words = ["'compare'", "'t.csv'", "'--methods'", repr(rng.choice(METHODS))]
    files = {"t_csv": _table(rng)}
    if rng.random() < 0.6:
        words += ["'--splits'", "'s.npz'"]
        files["s_npz"] = rng.choice(SPLITS[:1] * 10 + SPLITS)
    else:
        words += ["'--splits'", rng.choice(["'1'", "'2'", "'3'"])]
        words += rng.choice([[], ["'--test-size'", "'0.5'"], ["'--seed'", "'1'"]])
    if rng.random() < 0.3:
        words += ["'--bins'", "'3'", "'--target'", "'a'"]
    return words, files


def _table(rng: random.Random, usual: str = TABLES[0]) -> str:
    source = rng.choice([usual] * 8 + TABLES)
    for _ in range(rng.choices((0, 1, 2), (6, 5, 1))[0]):
        source = f"({rng.choice(WAYS).replace('{}', source)})"
    return source
