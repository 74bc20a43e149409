"""The fuzzer knows every public callable, and sees what it is there to see."""

import ast
import importlib
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "tools" / "fuzz"


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory):
    """A function that imports a module of the fuzzer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        patch.chdir(tmp_path_factory.mktemp("fuzz"))
        before = set(sys.modules)
        yield importlib.import_module
        for name in set(sys.modules) - before:  # their names are short
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(str(FOLDER)):
                del sys.modules[name]


@pytest.mark.slow("calls every public function")
def test_every_public_callable_works_with_its_plain_arguments(fuzz):
    judge = fuzz("judge").judge
    for callable in fuzz("callables").public_callables():
        call = callable.call(random.Random(0), share=0.0)
        outcome = judge(call)
        refused = any(
            part in call.source and re.search(message, outcome.detail)
            for part, message in fuzz("plain").REFUSED.items()
        )
        assert outcome.kind == "ok" or refused, f"{call.source}\n{outcome.detail}"


def test_relations_are_those_of_the_tests(fuzz, monkeypatch):
    def never(method, seed):
        assert seed < 0, "a relation that does not hold"

    relations, judge = fuzz("families.crossings"), fuzz("judge").judge
    monkeypatch.setitem(relations.RELATIONS, "never", (never, {"method": ["pom"]}))
    for name, kind in (("never", "never"), ("types_of_labels_do_not_matter", "ok")):
        arguments = {"relation": repr(name), "method": "'pom'"}
        prelude = "from families.crossings import *"
        assert judge(fuzz("call").Call("crossed", arguments, prelude)).kind == kind


def test_families_draw_programs_from_the_seed_alone(fuzz):
    families, drawn = fuzz("families").FAMILIES, fuzz("call").drawn
    for family in families.values():
        scripts = [drawn(family, 7, i).script for i in range(50)]
        assert scripts == [drawn(family, 7, i).script for i in range(50)]
        assert len(set(scripts)) > 25
        for script in scripts:
            ast.parse(script)


@pytest.mark.slow("reads many changed files")
def test_files_are_refused_or_the_same_or_good(fuzz, tmp_path, monkeypatch):
    """A few of the family; `tools/fuzz --family files` makes as many as one likes."""
    monkeypatch.chdir(tmp_path)
    family = fuzz("families").FAMILIES["files"]
    drawn, judge = fuzz("call").drawn, fuzz("judge").judge
    outcomes = [judge(drawn(family, 3, i)) for i in range(200)]
    assert not [outcome for outcome in outcomes if outcome.failed]
    assert {outcome.kind for outcome in outcomes} == {"ok", "ValueError"}


FORGED = [
    "npsvor", "svorim", "svc", "svr", "svmop", "opbe", "kdlor", "tlssvor",
    "gpor", "pom", "pom words", "lat", "cnnor", "elmor", "nnor", "nnpom", "ofmhs",
    "xofm", "standardized", "preprocessed", "selection", "conformal", "cross conformal",
]  # fmt: skip


@pytest.mark.slow("changes every field of 23 models")
@pytest.mark.parametrize("name", FORGED)
@pytest.mark.filterwarnings("ignore")
def test_no_field_makes_probabilities_that_are_none(fuzz, name):
    saved, files = fuzz("saved"), fuzz("families.files")
    values, numbers, ways = (
        [eval(text, vars(saved) | {"np": np}) for text in texts]
        for texts in (files.VALUES, files.NUMBERS, files.WAYS)
    )
    ways += [lambda a, v=v: np.full_like(a, v) for v in numbers]
    ways += [saved.entry(i, v) for i in (0.0, 0.999999) for v in numbers]
    header, arrays = saved.members(name)
    n_leaves = sum(
        not isinstance(holder[key], dict | list) for holder, key in saved.places(header)
    )
    changes = [
        *(saved.array(i, way) for i in range(len(arrays)) for way in ways),
        *(saved.leaf(i, value) for i in range(n_leaves) for value in values),
    ]
    # The fuzzer draws the others. Other ones meet each field, as long as 17 does not
    # divide the number of ways or of values.
    changes, good = changes[::17], 0
    assert len(ways) % 17
    assert len(values) % 17
    for change in changes:
        try:
            good += saved.forged_probabilities(name, change)
        except (ValueError, MemoryError):
            continue
    assert 0 < good < len(changes)


@pytest.mark.parametrize(("source", "kind"), [
    ("lambda: 1.0", "ok"),
    ("lambda: float('nan')", "nan"),
    ("lambda: [{'a': np.array([1.0, np.nan])}]", "nan"),
    ("lambda: np.zeros(3)[5]", "IndexError"),
    ("lambda: np.exp(np.float64(1e9))", "warning"),
    ("lambda: ordinal.fit_svorim(rows(), ranks(), C=-1)", "ValueError"),
    ("lambda: float('x' * 1000)", "long message"),
    ("lambda: np.seterr(all='ignore')", "errstate"),
    ("lambda: absent", "NameError"),
    ("absent", "bad source"),
])  # fmt: skip
def test_judge(fuzz, source, kind):
    outcome = fuzz("judge").judge(fuzz("call").Call(f"({source})", {}))
    assert outcome.kind == kind
    assert outcome.failed == (kind not in ("ok", "ValueError"))
