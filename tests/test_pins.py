"""Whoever lints, lints with the same: the extra `lint` and the hooks of pre-commit."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pins(text):
    return set(re.findall(r"([a-z][a-z-]*)==([\w.]+)", text))


def test_hooks_have_the_versions_of_the_extra():
    with (ROOT / "pyproject.toml").open("rb") as file:
        extra = tomllib.load(file)["project"]["optional-dependencies"]["lint"]
    assert all("==" in requirement for requirement in extra)
    hooks = pins((ROOT / ".pre-commit-config.yaml").read_text())
    assert pins(" ".join(extra)) <= hooks
    names = [name for name, _ in hooks]
    assert len(names) == len(set(names)), "a tool at two versions"


def test_every_hook_is_pinned():
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    wanted = re.findall(r"additional_dependencies: \[(.+)\]", text)
    assert len(wanted) == text.count("- id: ")
    assert all("==" in tool for tools in wanted for tool in tools.split(","))


def test_oldest_versions_are_those_that_are_allowed():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    allowed = project["dependencies"] + project["optional-dependencies"]["test"]
    oldest = dict(pins((ROOT / "tools/oldest.txt").read_text()))
    for requirement in allowed:
        name, least = re.fullmatch(
            r"([a-z-]+)(?:\[.+\])?>=([\d.]+)", requirement
        ).groups()
        assert (oldest[name] + ".").startswith(least + "."), requirement
