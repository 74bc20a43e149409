"""The site's lists are complete: every public name, every page, nothing but ours."""

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

import ordinal

ROOT = Path(__file__).parent.parent
API = sorted((ROOT / "docs/api").glob("*.rst"))
PUBLIC = [
    module.name
    for module in pkgutil.iter_modules(ordinal.__path__, "ordinal.")
    if not module.name.rpartition(".")[2].startswith("_")
]


def listed(page: Path) -> list[str]:
    module, names = "", []
    for line in page.read_text().splitlines():
        if at := re.match(r"\.\. currentmodule:: ([\w.]+)$", line):
            module = at[1]
        elif module and (name := re.match(r"   (\w+)$", line)):
            names.append(f"{module}.{name[1]}")
    return names


NAMES = [name for page in API for name in listed(page)]


def item_of(name: str):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def test_no_name_has_two_pages():
    assert len(NAMES) > 100
    assert len(NAMES) == len(set(NAMES))
    # `ordinal.fit_svorim`, not `ordinal.svor.fit_svorim`, which is longer to write;
    # `ordinal.models.SvorModel`, not `ordinal.svor.SvorModel`
    for home in (ordinal, ordinal.companions, ordinal.models):
        for name in NAMES:
            module, _, own = name.rpartition(".")
            if module != home.__name__ and own in dir(home):
                assert item_of(name) is not getattr(home, own), name


@pytest.mark.parametrize("module", ["ordinal", *PUBLIC])
def test_every_public_name_is_in_the_api(module):
    pages = {id(item_of(name)) for name in NAMES}
    text = "".join(page.read_text() for page in API)
    for name in dir(importlib.import_module(module)):
        if f"ordinal.{name}" in PUBLIC:
            assert f".. automodule:: ordinal.{name}\n" in text
        else:
            assert id(getattr(importlib.import_module(module), name)) in pages, name


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_module_has_its_page(module):
    page = ROOT / "docs/api" / f"{module.rpartition('.')[2]}.rst"
    assert f".. automodule:: {module}\n" in page.read_text()
    assert page.stem in (ROOT / "docs/api/index.rst").read_text().split()


def test_the_page_of_the_companions_links_each_of_them():
    text = (ROOT / "docs/api/companions.rst").read_text()
    assert set(re.findall(r"companions\.(\w+)`", text)) == {*dir(ordinal.companions)}


def test_searches_name_pages_that_exist():
    """`tools/site/look.mjs` makes these searches on the site that was built."""
    searches = json.loads((ROOT / "tools/site/searches.json").read_text())
    assert len(searches) >= 20
    for page in searches.values():
        assert (ROOT / "docs" / f"{page}.md").exists(), page
