"""Whoever lints, lints with the same: the extra `lint` and the hooks of pre-commit."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
with (ROOT / "pyproject.toml").open("rb") as file:
    PROJECT = tomllib.load(file)["project"]
EXTRAS = PROJECT["optional-dependencies"]
# the tool that a repository of hooks has, where the names differ, or None
TOOLS = {"ruff-pre-commit": "ruff", "mirrors-mypy": "mypy", "cookie": "sp-repo-review"}
TOOLS |= {"zizmor-pre-commit": "zizmor", "pre-commit-hooks": None}
OF_WHEELS = {"twine", "check-wheel-contents", "abi3audit"}


def pins(text):
    return dict(re.findall(r"([a-z][a-z0-9-]*)(?:\[\w+\])?==([\w.]+)", text))


def test_hooks_have_the_versions_of_the_extra():
    extra = pins(" ".join(EXTRAS["lint"]))
    assert len(extra) == len(EXTRAS["lint"]), "a tool without a version"
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    found = {}
    for hook in hooks:
        name = hook["repo"].rpartition("/")[2]
        numbers = hook["rev"].removeprefix("v").split(".")
        found[TOOLS.get(name, name)] = ".".join(str(int(part)) for part in numbers)
    found.pop(None)
    assert found == {name: extra[name] for name in extra.keys() - OF_WHEELS}


def test_oldest_versions_are_those_that_are_allowed():
    oldest = pins((ROOT / "tools/oldest.txt").read_text())
    for requirement in PROJECT["dependencies"] + EXTRAS["test"]:
        name, least = re.fullmatch(
            r"([a-z-]+)(?:\[.+\])?>=([\d.]+)", requirement
        ).groups()
        assert (oldest[name] + ".").startswith(least + "."), requirement
