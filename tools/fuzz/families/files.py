"""Files of models whose fields have changed, with a checksum that is right.

Changed bytes, which the checksum reveals, are the business of the tests.
"""

import random

from call import Call
from saved import SUBJECTS

# What stands in the place of a number, and in that of any value of the header.
NUMBERS = [
    "0", "-0.0", "1", "-1", "2", "0.5", "3", "7", "1e-3", "np.nan", "np.inf",
    "-np.inf", "1e300", "-1e300", "1e-300", "5e-324", "1.7976931348623157e308",
    "-1.7976931348623157e308", "1e155", "-1e155", "1e200", "1e-200", "2**31", "2**63",
    "-2**63", "2**62", "10**18",
]  # fmt: skip
VALUES = [
    *NUMBERS[:-6], "2**31", "2**63", "10**30", "10**400", "None", "True", "False", "''",
    "'a'", "'RBF'", "'Linear'", "'ARD'", "'Pearson'", "'Precomputed'", "'CSR'",
    "'Polynomial'", "'SvorModel'", "'XofmModel'", "'GporModel'", "'Convergence'",
    "'Standardizer'", "'Model'", "'os.system'", "'converged'", "'x' * 100_000",
    "'\\ud800'",
]  # fmt: skip
NODES = [
    *VALUES, "[]", "{}", "[[]]", "{'tuple': []}", "{'mapping': {}}", "{'array': 'no'}",
    "{'status': 'converged'}", "{'class': 'Linear', 'fields': {}}",
    "{'class': 'Precomputed', 'fields': {}}", "{'class': 'Pearson', 'fields': {}}",
    "{'class': 'RBF', 'fields': {'gamma': 1e300}}", "{'tuple': [1, 2]}",
    "{'class': 'Polynomial', 'fields': {'degree': 10**18, 'gamma': 1e300, 'coef0': 0}}",
    "{'class': 'Polynomial', 'fields': {'degree': 3, 'gamma': 1.0, 'coef0': 1e300}}",
    "{'class': 'CumulativeLink', 'fields': {'slope': 1.0, 'offsets': None}}",
    "eval('[' * 50 + ']' * 50)",
]  # fmt: skip
WAYS = [
    "lambda a: a[:-1]", "lambda a: a[1:]", "lambda a: a[:0]", "lambda a: a[None]",
    "lambda a: a[..., None]", "lambda a: a.T", "lambda a: a.ravel()",
    "lambda a: a[::-1]",
    "lambda a: a[:, :-1]", "lambda a: a[:, ::-1]", "lambda a: np.concatenate([a, a])",
    "lambda a: a.astype('f4')", "lambda a: a.astype('>f8')", "lambda a: a.astype('i8')",
    "lambda a: a.astype('i4')", "lambda a: a.astype(str)", "lambda a: a.astype(bool)",
    "lambda a: a.astype('f8')", "lambda a: a.astype('u8')", "lambda a: a.astype('c16')",
    "lambda a: a.astype('f2')", "lambda a: -a", "lambda a: a * 0", "lambda a: a * 2",
    "lambda a: a * 1e300", "lambda a: a * -1e300", "lambda a: a * 1e-300",
    "lambda a: a * 1e154", "lambda a: a + 1", "lambda a: a - 1e308",
    "lambda a: a + 1e308",
    "lambda a: np.sign(a) * 1.7976931348623157e308", "lambda a: a / 0", "np.sort",
    "lambda a: np.sort(a)[::-1]", "lambda a: a.flat[0]", "lambda a: np.zeros_like(a)",
    "lambda a: np.full_like(a, a.flat[0])", "np.asfortranarray", "np.exp", "np.sqrt",
    "lambda a: a * 5e-324", "lambda a: np.array(['\\ud800'] * len(a))",
    "lambda a: np.arange(a.size).reshape(a.shape)",
]  # fmt: skip


class Files:
    """A file with one to four changes of the fields in it."""

    name = "files"

    def draw(self, rng: random.Random) -> Call:
        some = rng.choices((1, 2, 3, 4), (8, 4, 2, 1))[0]
        changes = {str(i): _field(rng) for i in range(1, some + 1)}
        given = {"0": repr(rng.choice(SUBJECTS)), **changes}
        return Call("forged", given, "from saved import *", ("0",))


def _field(rng: random.Random) -> str:
    which, other = rng.randrange(1000), rng.randrange(1000)
    at = rng.choice((0.0, 0.999999, rng.random(), rng.random()))
    entry = f"entry({at}, {rng.choice(NUMBERS)})"
    way = rng.choice(
        [rng.choice(WAYS)] * 3
        + [entry] * 3
        + [f"shuffled({other})", f"noisy({10.0 ** rng.randint(-3, 300)}, {other})"]
    )
    return rng.choice(
        [f"array({which}, {way})"] * 6
        + [f"leaf({which}, {rng.choice(VALUES)})"] * 4
        + [
            f"node({which}, {rng.choice(NODES)})",
            f"moved({which}, {other})",
            f"every_array({way})",
            f"exchanged({which}, {other})",
            f"removed({which})",
            f"forgotten({which})",
        ]
    )
