"""The blocks of docs/results.md are what the commands above them print."""

import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "tools/reproduce"
PIECE = re.compile(r"^```(\w+)\n(.*?)^```|^##+ ([^\n]*)$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"tools/reproduce/(\S+\.py)(.*)")


def tables():
    named, found = [], []
    for kind, text, heading in PIECE.findall((ROOT / "docs/results.md").read_text()):
        if heading:
            named = []
        elif kind == "sh":
            named = named + COMMAND.findall(text.replace("\\\n", ""))
        elif kind == "text" and not text.startswith("$"):
            found.append((named, text.splitlines()))
    return found


TABLES = tables()
COMMANDS = sorted({command for named, _ in TABLES for command in named})


@pytest.fixture
def module(monkeypatch):
    """Imports a script by its name; its modules are gone afterwards."""
    monkeypatch.syspath_prepend(str(TOOLS))
    yield lambda script: importlib.import_module(script.removesuffix(".py"))
    for name, loaded in [*sys.modules.items()]:
        if (getattr(loaded, "__file__", None) or "").startswith(str(ROOT / "tools")):
            del sys.modules[name]


@pytest.mark.parametrize("script", ["xofm", "tlssvor_tables"])
def test_searches_of_the_scripts_vary_arguments_of_their_fits(script, module):
    for name, (fit, search) in module(script).METHODS.items():
        if fit is not None:
            given = search.values if hasattr(search, "values") else search.others
            assert {*(given or ())} <= {*inspect.signature(fit).parameters}, name


class Accepted(Exception):
    """The arguments are those of the script."""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: f"{c[0]}{c[1][:30]}")
def test_commands_of_results_have_arguments_of_scripts(command, module, monkeypatch):
    script, arguments = command
    parse = ArgumentParser.parse_args

    def accept(parser):
        raise Accepted(parse(parser, shlex.split(arguments)))

    monkeypatch.setattr(ArgumentParser, "parse_args", accept)
    with pytest.raises(Accepted):
        module(script).main()


def cells(line):
    """Where the cells of a line are, two spaces or more apart."""
    return [m.span() for m in re.finditer(r"\S+(?: \S+)*", line)]


def missed(some, others):
    """The cells that have none of the others above or below them."""
    return [(a, b) for a, b in some if not any(a <= d and c <= b for c, d in others)]


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_blocks_of_the_results_have_the_layout_that_their_scripts_print(number, module):
    """A heading of a script, perhaps without its last columns, and rows below it."""
    named, lines = TABLES[number]
    assert named, f"no command above {lines[0]!r}"
    headings = set()
    for script, _ in named:
        of = module(script)
        headings |= {*getattr(of, "HEADINGS", [getattr(of, "HEADING", "-")])}
    below, seen = None, 0
    for line in lines:
        if any(line.strip() and heading.startswith(line) for heading in headings):
            below, seen = line, seen + 1
        elif (
            below
            and line.strip()
            and not line.startswith(("##", "Table", "Fried", "  sig"))
        ):
            row = cells(line)  # which may lack the last cells
            above = [cell for cell in cells(below) if cell[0] < row[-1][1]]
            assert not missed(above, row), (below, line)
            assert not missed(row[1:], above), (below, line)
    assert seen, (lines[:2], headings)


@pytest.mark.slow("runs a benchmark of every page")
@pytest.mark.parametrize(("command", "module"), [
    ("pictures_of_papers.py --figures gpor_likelihood", "matplotlib"),
    ("gpor.py --sets diabetes --methods MAP", ""),
])  # fmt: skip
def test_rows_of_the_results_are_those_that_a_command_prints(command, module):
    """What takes seconds. Rows of the page may lack the last cells."""
    if module:
        pytest.importorskip(module)
    elif "ORDINAL_DATA" not in os.environ:
        pytest.skip("ORDINAL_DATA names no folder")
    script, *arguments = command.split()
    run = [sys.executable, "-W", "ignore", str(TOOLS / script), *arguments]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    rows = [line for line in printed.splitlines() if line and not line.startswith("#")]
    known = [line for _, block in TABLES for line in block if line]
    assert len(rows) > 3
    for row in rows:
        assert any(row.startswith(line) for line in known), row


def test_the_whole_run_goes_on_where_it_ended(module, monkeypatch, tmp_path, capsys):
    every = module("all.py")
    page = [command for command, *_ in every.of_page(every.PAGE.read_text())]
    tables = {path.name for path in TOOLS.glob("[a-z]*.py")} - {*every.LEFT_OUT}
    quick = {line.split()[0] for line in every.QUICK.strip().split("\n")}
    assert {*page} == tables == quick
    monkeypatch.setattr(every, "QUICK", "check.py --help\ncheck.py --nothing\n")

    def run():
        monkeypatch.setattr(sys, "argv", ["all.py", "--out", str(tmp_path), "--quick"])
        with pytest.raises(SystemExit) as ended:
            every.main()
        assert ended.value.code == 1
        return capsys.readouterr().out

    assert "FAILED" in run()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "01-check.txt", "02-check.part",
    ]  # fmt: skip
    assert "finished before: check.py --help" in run()
