"""Every example runs: in the docstrings, where it prints what it says, and in pages."""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from registry import FITS

import ordinal
from ordinal.__main__ import main

MODULES = [
    module.name
    for module in pkgutil.walk_packages(ordinal.__path__, "ordinal.")
    if module.name != "ordinal.__main__" and "._solvers" not in module.name
]
WITH_EXAMPLES = [
    name for name in MODULES if ">>> " in Path(find_spec(name).origin).read_text()
]
ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
METHOD_PAGES = [page for page in PAGES if page.parent.name == "methods"]
METHOD_PAGES = [page for page in METHOD_PAGES if page.stem != "index"]
FIRST_HEADINGS = [
    "Example", "The problem", "When to use it", "Main parameters", "A picture",
]  # fmt: skip
LAST_HEADINGS = ["Results and times", "References", "Errors found in the paper"]
PICTURE_BYTES = 60_000
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstring_examples(name):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert result.failed == 0


def test_public_functions_have_examples_and_name_related_functions_that_exist():
    finder = doctest.DocTestFinder(recurse=False)
    public = [name for name in MODULES if "._" not in name and name.count(".") == 1]
    seen = set()
    for module in map(importlib.import_module, ["ordinal", *public]):
        for name in dir(module):
            item = getattr(module, name)
            if not inspect.isfunction(item) or item in seen:
                continue
            seen.add(item)
            # what `load` reads is written by a model, whose pages show both
            examples = any(test.examples for test in finder.find(item, name))
            assert examples or name == "load", name
            doc = inspect.getdoc(item) or ""
            section = re.search(r"^See Also\n-{8}\n((?:.+(?:\n|$))+)", doc, re.M)
            assert section, f"{name} has no section See Also"
            related = re.findall(r"^([\w.]+) : ", section[1], re.MULTILINE)
            assert related, name
            assert name not in related
            assert len(related) == len(re.findall(r"^\S", section[1], re.MULTILINE))
            for full in related:
                owner, _, attribute = full.rpartition(".")
                where = importlib.import_module(owner) if owner else module
                assert attribute in dir(where), f"{name}: {full}"
                assert inspect.isfunction(getattr(where, attribute)), f"{name}: {full}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow("runs all examples of the page"))
        for page in PAGES
        if page.stem != "README"  # the test below
    ],
    ids=page_name,
)
def test_examples_in_pages_print_what_they_show(page, tmp_path, monkeypatch, capsys):
    """A text block right after an example shows all that the example prints."""
    monkeypatch.chdir(tmp_path)
    session: dict = {}  # blocks follow each other, as a reader would type them
    text, end = page.read_text(), 0
    for match in BLOCK.finditer(text):
        language, block = match.groups()
        printed = capsys.readouterr().out
        if language == "text" and printed and not text[end : match.start()].strip():
            check_output(printed, block)
        end = match.end()
        if language == "python":
            exec(compile(block, str(page), "exec"), session)
        elif language == "sh" and (page.stem == "command" or "tutorials" in page.parts):
            for line in block.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "ordinal"
                assert main(arguments) == 0
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.slow("compares methods as the page does")
def test_the_readme_prints_what_it_shows(capsys):
    """All but seconds and the rounding of calibrated probabilities."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    (code,) = (block for language, block in BLOCK.findall(text) if language == "python")
    (shown,) = (block for language, block in BLOCK.findall(text) if language == "text")
    exec(compile(code, "README.md", "exec"), {})
    check_output(capsys.readouterr().out, shown)


@pytest.mark.parametrize("page", ["README.md", "docs/installation.md"])
def test_commands_that_install_end_outside_of_the_checkout(page):
    """Python that is started in it finds the sources, which are not compiled."""
    blocks = BLOCK.findall((ROOT / page).read_text())
    block = next(block for language, block in blocks if language == "sh")
    *before, last = re.split(r" && |\n", block.strip())
    assert before[-1] == "cd ~"
    assert last == "ordinal-env/bin/ordinal compare"
    assert all("/.venv" not in line and " .venv" not in line for line in before)


def check_output(printed: str, shown: str) -> None:
    """Compare lines by `numbers_apart`; a last line "..." stands for all others."""
    lines, wanted_lines = printed.splitlines(), shown.splitlines()
    if wanted_lines[-1] == "...":
        wanted_lines.pop()
        lines = lines[: len(wanted_lines)]
    for line, expected in zip(lines, wanted_lines, strict=True):
        found, wanted = numbers_apart(line), numbers_apart(expected)
        assert found[0] == wanted[0]
        assert found[1] == pytest.approx(wanted[1], rel=1e-3, abs=0.0051)


def numbers_apart(line: str) -> tuple[list[str], list[float]]:
    """Words and numbers of a line without the last number of a comparison, seconds,
    and without violations, which are rounding errors."""
    line = re.sub(r"\d\.\d\de-\d+|(?<=  )\d+\.\d{3}$", "", line)
    pieces = re.split(r"(?<!\w)(\d+(?:\.\d*)?)(?!\w)", line)
    return " ".join(pieces[::2]).split(), list(map(float, pieces[1::2]))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_in_pages_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            assert anchor in map(anchor_of, titles), target


def test_tests_that_the_table_of_features_names_exist():
    page = (ROOT / "docs" / "features.md").read_text()
    named = re.findall(r"\[`(test_\w+)`\]\(\.\./(\S+?)\)", page)
    assert len(named) > 30
    for name, file in named:
        assert f"def {name}(" in (ROOT / file).read_text(), (name, file)


@pytest.mark.parametrize("page", METHOD_PAGES, ids=page_name)
def test_headings_and_picture_of_a_method_page(page):
    """The same headings in the same order, with what is particular between them; a
    small picture drawn by the block before it (tools/pictures.py), and described.
    """
    text = BLOCK.sub("", page.read_text())
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[:5] == FIRST_HEADINGS
    assert titles[-3:] == LAST_HEADINGS
    assert not set(titles[5:-3]) & {*FIRST_HEADINGS, *LAST_HEADINGS}
    introduction = re.split(r"^#+ .*$", text, flags=re.MULTILINE)[1].strip()
    assert 60 < len(introduction)
    assert "\n\n" not in introduction  # one paragraph
    bodies = re.split(r"^## .*$", page.read_text(), flags=re.MULTILINE)[1:]
    assert all(len(body.strip()) > 20 for body in bodies)
    section = page.read_text().split("## A picture\n")[1].split("\n## ")[0]
    *_, last = BLOCK.finditer(section)
    found = re.fullmatch(r"\s*!\[(.+)\]\((.+)\)\s*", section[last.end() :])
    assert last[1] == "python"
    assert found
    assert (page.parent / found[2]).stat().st_size <= PICTURE_BYTES


def test_every_method_has_a_page_and_a_row_to_start_from():
    pages = " ".join(page.read_text() for page in METHOD_PAGES)
    rows = (ROOT / "docs/start_here.md").read_text()
    for name in FITS:
        assert f"`{name}`" in pages, name
        full = name if name in dir(ordinal) else f"companions.{name}"
        assert f"[`{full}`](methods/" in rows, name


def test_the_summary_of_all_methods_follows_from_its_tables():
    """Mean errors, and what a fit of the largest set takes, by tools/reproduce."""
    text = (ROOT / "docs/results.md").read_text()
    tables = {}
    for heading in (
        "MAE of all methods", "MZE of all methods", "Seconds of one fit",
        "Memory of one fit",
    ):  # fmt: skip
        section = re.split(rf"^### {heading}\n", text, flags=re.MULTILINE)[1]
        section = section.split("\n##")[0]
        head, _, *rows = (
            [cell.strip(" *") for cell in line.strip("|").split("|")]
            for line in section.splitlines()
            if line.startswith("|")
        )
        assert len(head) == 11
        tables[heading] = {
            name: dict(zip(head[1:], map(float, row), strict=True))
            for name, *row in rows
        }
    mae, mze, seconds, memory = tables.values()
    assert mae.keys() == mze.keys() == seconds.keys() == memory.keys()
    summary = re.findall(r"^\| \[`fit_(\w+)`\].*?\|.*?\|(.*)\|$", text, re.MULTILINE)
    # a path has the models of its method, random effects need groups of rows, ratio
    # models are not in the registry, and a pool consists of the others
    left_out = {"fit_npsvor_path", "fit_clmm", "fit_ratio", "fit_stacking"}
    assert sorted("fit_" + name for name, _ in summary) == sorted({*FITS} - left_out)
    for name, cells in summary:
        row = {"gpor": "gpor-ep"}.get(name, name.replace("_", "-"))
        shown = [float(cell) for cell in cells.split("|")]
        for table, mean in zip((mae, mze), shown[:2], strict=True):
            assert abs(sum(table[row].values()) / 10 - mean) < 0.00051
        assert shown[4] == seconds[row]["car"]
        assert abs(shown[5] - memory[row]["car"]) <= 0.5


def test_files_in_the_architecture_exist_and_every_package_is_named():
    text = (ROOT / "docs/architecture.md").read_text()
    files = re.findall(r"`([\w/]+(?:\.\w+|/))`", text)
    assert len(files) > 30
    for file in files:
        assert (ROOT / file).exists() or (ROOT / "ordinal" / file).exists(), file
    cells = "".join(re.findall(r"^\|[^|]*\|([^|]*)\|", text, re.M))
    folders = {path.parent.name for path in ROOT.glob("ordinal/*/__init__.py")}
    files = {path.stem for path in ROOT.glob("ordinal/[a-z]*.py")}
    assert set(re.findall(r"`(\w+)/?`", cells)) == folders | files


def test_every_page_is_in_a_table_of_contents():
    """The site must have each page, because a page in no toctree is found by nobody."""
    docs, listed = ROOT / "docs", {ROOT / "docs/index.md"}
    for page in docs.glob("**/*.md"):
        for entries in re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```", page.read_text()):
            names = [line for line in entries.split() if not line.startswith(":")]
            listed |= {page.parent / f"{name}.md" for name in names}
    assert set(docs.glob("**/*.md")) <= listed


def anchor_of(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.slow("imports every module in a process")
def test_shared_text_of_docstrings_is_current():
    tool = [sys.executable, str(ROOT / "tools/docstrings.py")]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
