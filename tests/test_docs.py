"""Every example in the docstrings and the README runs and prints what it says."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import ordinal

MODULES = [
    module.name
    for module in pkgutil.walk_packages(ordinal.__path__, "ordinal.")
    if module.name != "ordinal.__main__" and "._solvers" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(
        importlib.import_module(name),
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert result.failed == 0


def test_public_functions_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    for name in ordinal.__all__:
        item = getattr(ordinal, name)
        if name.startswith("fit_") or name == "show_config":
            assert any(test.examples for test in finder.find(item, name)), name


def test_readme_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = Path(__file__).parent.parent / "README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert blocks
    session: dict = {}  # blocks follow each other, as a reader would type them
    for block in blocks:
        exec(compile(block, "README.md", "exec"), session)
