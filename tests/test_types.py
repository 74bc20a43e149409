"""Type checkers and `help` know the public names and their parameters."""

import io
import pydoc
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import ordinal

TESTS = Path(__file__).parent
WRONG = """
import ordinal
from ordinal.sklearn import SVORIM

SVORIM(c=1.0)
SVORIM(C="1")
ordinal.fit_svorim([[1.0]], [1], c=2.0)
ordinal.fit_pom([[1.0]], [1], link="logitt")
ordinal.load("file", ordinal.models.SvorModel).threshold
"""


def mypy(path, cache):
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, path],
        cwd=TESTS.parent,  # the sources, of an editable build, too
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stdout


@pytest.mark.slow("mypy reads the whole package")
def test_a_client_is_checked_by_mypy_and_runs(tmp_path):
    pytest.importorskip("mypy")
    client = TESTS / "typed_client.py"
    assert mypy(client, tmp_path) == (0, "Success: no issues found in 1 source file\n")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    lines = mypy(wrong, tmp_path)[1].splitlines()
    errors = [line.split(":")[1] for line in lines if ": error:" in line]
    assert errors == ["5", "6", "7", "8", "9"], lines
    subprocess.run([sys.executable, client], cwd=tmp_path, check=True)


@pytest.mark.slow("writes every stub")
def test_the_stubs_of_the_package_and_of_the_estimators_are_current():
    pytest.importorskip("sklearn")
    tool = TESTS.parent / "tools" / "estimators.py"
    run = subprocess.run(
        [sys.executable, tool], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_load_says_when_a_file_holds_something_else(tmp_path):
    X, y = ordinal.datasets.make_gaussians(rng=0)
    ordinal.fit_pom(X, y, l2=0.1).save(tmp_path / "m")
    assert isinstance(
        ordinal.load(tmp_path / "m", ordinal.models.PomModel), ordinal.models.PomModel
    )
    with pytest.raises(TypeError, match="holds a PomModel, not a SvorModel"):
        ordinal.load(tmp_path / "m", ordinal.models.SvorModel)
    with pytest.raises(TypeError, match="kind must be a class, got 'SvorModel'"):
        ordinal.load(tmp_path / "m", "SvorModel")


def test_help_is_short_and_begins_with_what_matters():
    text = pydoc.plain(pydoc.render_doc(ordinal))
    lines = text.splitlines()
    assert len(lines) <= 100
    beginning = "\n".join(lines[:25])
    for name in ("ordinal.compare", "ordinal.select", "ordinal.fit_", "explain"):
        assert name in beginning
    for name in dir(ordinal):
        if name.startswith("fit_"):
            assert name in text
    lists = ordinal.companions.__doc__
    assert {n for n in re.findall(r"\bfit_\w+", lists)} == {*dir(ordinal.companions)}
    with redirect_stdout(io.StringIO()) as shown:
        help(ordinal)
    assert shown.getvalue().count("\n") <= 102
    assert {"fit_pom", "metrics", "__version__"} <= {*dir(ordinal)}  # for completion
