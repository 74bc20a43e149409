"""The house rules that no linter knows; the import rules stand in pyproject.toml."""

import ast
import dataclasses
import functools
import importlib
import importlib.metadata
import inspect
import io
import pkgutil
import re
import subprocess
import sys
import tokenize
import typing
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from internals import methods

import ordinal

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "ordinal").rglob("*.py"))
FOLDERS = {path.parent.name for path in SOURCES if path.name == "__init__.py"}
PUBLIC = [
    module.name
    for module in pkgutil.iter_modules(ordinal.__path__, "ordinal.")
    if not module.name.rpartition(".")[2].startswith("_")
]

OTHER_FITS = {
    ordinal.fit_npsvor_path, ordinal.fit_pom_path,
    ordinal.fit_ratio,
}  # fmt: skip
# arguments that a fit replaces before it passes them on, or takes fewer values of
OWN = {
    "fit_xofm": {"tol"}, "fit_clmm": {"cluster"}, "fit_pom_path": {"link"},
    "fit_kdlor": {"max_iter"}, "fit_tlssvor": {"max_iter"},
}  # fmt: skip

NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a module, parsed once per process."""
    return ast.parse(path.read_text())


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_names_of_others(path: Path) -> Iterator[str]:
    """Yield what a module uses of the private names of others."""
    ours, attributes = set(), []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module.startswith((".", "ordinal")):
                ours |= {alias.asname or alias.name for alias in node.names}
                if not module.endswith("_solvers"):  # whose kernels all are private
                    names = {a.name for a in node.names} - FOLDERS
                    yield from filter(is_private, names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if is_private(node.attr):
                attributes.append((node.value.id, node.attr))
    yield from (f"{name}.{attr}" for name, attr in attributes if name in ours)


@pytest.mark.slow("parses every module")
def test_no_module_uses_a_private_name_of_another():
    """Private folders may be named in an import, private names in them may not."""
    found = {path: list(private_names_of_others(path)) for path in SOURCES}
    assert not {path: bad for path, bad in found.items() if bad}


def test_no_kernel_shares_its_name_and_the_build_names_every_declaration():
    """A change of a declaration that it does not name would translate nothing."""
    kernels = {path.stem.lstrip("_") for path in ROOT.glob("ordinal/_solvers/*.p[yx]*")}
    kernels -= {"init__"}  # of the folder itself
    assert not kernels & {path.stem.lstrip("_") for path in SOURCES}
    build = (ROOT / "ordinal" / "_solvers" / "meson.build").read_text()
    named = set(re.findall(r"'(\w+\.pxd)'", build))
    assert named == {path.name for path in ROOT.glob("ordinal/_solvers/*.pxd")}


@functools.cache
def code_lines(path: Path) -> set[int]:
    """Numbers of the lines with code: no blank ones, comments or docstrings."""
    lines = {
        number
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type not in NO_CODE
        for number in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(parsed(path)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


@pytest.mark.slow("reads the tokens of every module")
def test_functions_fit_a_screen_and_files_a_chapter():
    for path in SOURCES:
        assert len(path.read_text().splitlines()) <= 800, path
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # a signature with one parameter per line is long and still plain
                body = range(node.body[0].lineno, node.end_lineno + 1)
                if len(body) > 60:
                    size = len(code_lines(path).intersection(body))
                    assert size <= 60, f"{path}: {node.name} has {size} lines of code"


def test_kernel_files_are_chapters_too():
    for path in ROOT.glob("ordinal/_solvers/*.*"):
        assert len(path.read_text().splitlines()) <= 800, path.name


def test_values_in_messages_are_shown_in_one_way():
    """Messages cut values by `shown`: `!r` is for what `__repr__` returns."""
    for path in (path for path in SOURCES if "!r" in path.read_text()):
        tree = parsed(path)
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        own = {i for node in nodes if node.name == "__repr__" for i in ast.walk(node)}
        for node in set(ast.walk(tree)) - own:
            if isinstance(node, ast.FormattedValue):
                assert node.conversion != ord("r"), f"{path}, line {node.lineno}"


def test_a_slow_test_says_why():
    for path in Path(__file__).parent.glob("*.py"):
        bare = re.findall(r'mark\.slow\b(?!\(\s*["\w])', path.read_text())
        assert not bare, f'{path}: write pytest.mark.slow("why it takes seconds")'


@pytest.mark.parametrize("name", ["ordinal", *PUBLIC])
def test_public_modules_leak_nothing(name):
    module = importlib.import_module(name)
    assert len(dir(module)) == len(set(dir(module)))
    assert all(hasattr(module, name) for name in dir(module))
    shown = {n for n in dir(module) if not n.startswith("_")}
    assert shown == set(dir(module)) - {"__version__"}
    # what a module defines under a name without underscore is meant for its users
    for node in parsed(Path(module.__file__)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            assert node.name.startswith("_") or node.name in dir(module)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for leaf in ast.walk(target):
                    if isinstance(leaf, ast.Name):
                        assert leaf.id.startswith("_") or leaf.id in dir(module)


@pytest.mark.parametrize("name", ["ordinal", *PUBLIC])
def test_public_records_are_immutable_and_type_hints_resolve(name):
    module = importlib.import_module(name)
    for item in (getattr(module, name) for name in dir(module)):
        if dataclasses.is_dataclass(item):
            made = object.__new__(item)
            for attribute in ("other", *(f.name for f in dataclasses.fields(item))):
                for change, value in ((setattr, [1]), (delattr, [])):
                    with pytest.raises(AttributeError, match="objects are immutable; "):
                        change(made, attribute, *value)
        if inspect.isfunction(item) or inspect.isclass(item):
            typing.get_type_hints(item)
            own = dict(vars(item))
            if dataclasses.is_dataclass(item):
                own.pop("__init__", None)  # generated from the hints of the class
            for method in filter(inspect.isfunction, own.values()):
                typing.get_type_hints(method)


def test_fits_annotate_shared_arguments_as_the_preparation_does():
    """`shared_arguments` passes local variables on, which mypy cannot compare."""
    call, compared = re.compile(r"shared_arguments\((\w+), locals\(\)"), 0
    for item in {method.fit for method in methods(every=True)} | OTHER_FITS:
        fit = inspect.unwrap(item)
        for kind in call.findall(inspect.getsource(fit)):
            expected = typing.get_type_hints(fit.__globals__[kind])
            given = typing.get_type_hints(fit)
            for name in (expected.keys() & given.keys()) - OWN.get(fit.__name__, set()):
                assert expected[name] in (given[name], Any), f"{fit.__name__}: {name}"
            compared += 1
    assert compared > 20


def test_stubs_of_kernels_are_current():
    command = [sys.executable, "-P", str(ROOT / "tools" / "stubs.py")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def tracked(*patterns: str) -> list[str]:
    """Files that git tracks; skips the test where there is no git checkout."""
    try:
        run = subprocess.run(
            ["git", "ls-files", "-z", "--", *patterns],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git checkout")
    return run.stdout.split("\0")[:-1]


def test_the_wheel_holds_every_tracked_file():
    files = importlib.metadata.files("ordinal-regression") or []
    installed = {file.as_posix() for file in files}
    if "ordinal/__init__.py" not in installed:
        pytest.skip("an editable build")
    for name in map(PurePosixPath, tracked("ordinal")):
        if name.suffix in {".py", ".pyi"} or name.name == "py.typed":
            assert name.as_posix() in installed
        elif name.suffix == ".pyx":
            stem = name.with_suffix("").as_posix()
            assert any(file.startswith(stem + ".") for file in installed), name


PACKAGES = sorted(ROOT.glob("ordinal/*/__init__.py"))


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_the_docstring_of_a_package_lists_its_modules(path):
    modules = {module.stem for module in path.parent.glob("*.py")} - {"__init__"}
    modules |= {module.stem for module in path.parent.glob("*.pyx")}
    listed = re.findall(r"^ *((?:\w+, )*\w+)  ", ast.get_docstring(parsed(path)), re.M)
    assert modules <= {name for names in listed for name in names.split(", ")}
