"""The gaps that only the publisher can close, and how they are closed.

    python tools/release/gaps.py                    list open gaps; exit code 1 if any
    python tools/release/gaps.py --fill             put what is known into the files
    python tools/release/gaps.py --fill --sdist F   and the checksum of the archive F
    python tools/release/gaps.py --version          the version alone

`publisher.toml`, beside this file, is the one place for addresses and names. Files that
need them have a line with "GAP name", a comment in the language of the file, and --fill
puts what is known into the place of that line. README.md has links between files of the
repository, which lead nowhere on the package index; --fill makes them links to the
repository, at the tag of this version. A release is made from files that were filled,
and committed where it is made; the repository keeps the lines.
"""

import argparse
import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PUBLISHER = "tools/release/publisher.toml"
FILES = "pyproject.toml", "CITATION.cff", "SECURITY.md", "recipe/recipe.yaml"
_LINE = re.compile(r"^( *).*(?:#|<!--) GAP (\w+)(?: -->)?\n", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")

Known = dict[str, Any]


def version_of(root: Path) -> str:
    """Return the version of meson.build, which is the one place for it."""
    found = re.search(
        r"^project\([^\n]*\bversion: '([^']+)'", _text(root, "meson.build")
    )
    if found is None:
        raise SystemExit("meson.build has no version in its first line")
    return found[1]


def known_to(root: Path, sdist: Path | None) -> Known:
    """Return what is known, by the name of the gap."""
    known: Known = tomllib.loads(_text(root, PUBLISHER))
    known["urls"] = known["repository"] and known["documentation"]
    known["sha256"] = sdist and hashlib.sha256(sdist.read_bytes()).hexdigest()
    known["version"] = version_of(root)
    return known


def open_gaps(root: Path, known: Known) -> dict[str, list[str]]:
    """Return, for each open gap, the lines that wait for it."""
    found: dict[str, list[str]] = {}
    for file in FILES:
        text = _text(root, file)
        for match in _LINE.finditer(text):
            if match[2] != "sha256" and not known[match[2]]:
                line = text.count("\n", 0, match.start()) + 1
                found.setdefault(match[2], []).append(f"{file}:{line}")
    if not known["repository"] and _LINK.search(_text(root, "README.md")):
        found.setdefault("repository", []).append("README.md: links between files")
    return found


# By file and name, what takes the place of the line; a list has a line for each entry
_FILLED = {
    "pyproject.toml authors": "authors = {toml_authors}",
    "pyproject.toml maintainers": "maintainers = {toml_maintainers}",
    "pyproject.toml urls": """
[project.urls]
Documentation = {documentation}
Source = {repository}
Issues = "{base}/issues"
Changelog = "{base}/blob/main/CHANGELOG.md\"""",
    "CITATION.cff authors": "{cff_authors}",
    "CITATION.cff repository": "repository-code: {repository}",
    "CITATION.cff documentation": "url: {documentation}",
    "SECURITY.md security": "Write to {address}.",
    "recipe/recipe.yaml sha256": "sha256: {sha256}",
    "recipe/recipe.yaml repository": "repository: {repository}",
    "recipe/recipe.yaml documentation": """homepage: {documentation}
documentation: {documentation}""",
    "recipe/recipe.yaml conda_maintainers": "{yaml_maintainers}",
}


def _texts(known: Known) -> dict[str, str]:
    """Return what is known as the files write it."""

    def quoted(text: str | None) -> str:
        return json.dumps(text, ensure_ascii=False)

    texts = {name: quoted(value) for name, value in known.items()}
    texts |= {"base": known["repository"], "address": known["security"]}
    for name in ("authors", "maintainers"):
        each = [
            "{ " + ", ".join(f"{k} = {quoted(v)}" for k, v in one.items()) + " }"
            for one in known[name]
        ]
        texts[f"toml_{name}"] = f"[{', '.join(each)}]"
    named = [f"- name: {quoted(one['name'])}" for one in known["authors"]]
    by_conda = [f"- {quoted(name)}" for name in known["conda_maintainers"]]
    return texts | {
        "cff_authors": "\n".join(named), "yaml_maintainers": "\n".join(by_conda)
    }  # fmt: skip


def filled(file: str, text: str, known: Known) -> str:
    """The text of a file with what is known in the place of its lines."""

    def line(match: re.Match[str]) -> str:
        if not known[match[2]]:
            return match[0]
        text = _FILLED[f"{file} {match[2]}"].format(**_texts(known))
        return "".join(f"{match[1]}{line}".rstrip() + "\n" for line in text.split("\n"))

    return _LINE.sub(line, text)


def with_absolute_links(text: str, known: Known) -> str:
    """Links between files made links to the repository, at the tag of the version."""
    at = f"{known['repository']}/blob/v{known['version']}"
    return _LINK.sub(rf"]({at}/\1)", text)


def _text(root: Path, file: str) -> str:
    return (root / file).read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Gaps only the publisher can close.")
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--sdist", type=Path)
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args()
    root = options.root
    if options.version:
        print(version_of(root))
        return
    known = known_to(root, options.sdist)
    if options.fill:
        for file in FILES:
            text = filled(file, _text(root, file), known)
            (root / file).write_text(text, encoding="utf-8")
        if known["repository"]:
            text = with_absolute_links(_text(root, "README.md"), known)
            (root / "README.md").write_text(text, encoding="utf-8")
    gaps = open_gaps(root, known)
    for name, places in sorted(gaps.items()):
        print(f"open: {name} of {PUBLISHER}, for {', '.join(places)}")
    sys.exit(1 if gaps else 0)


if __name__ == "__main__":
    main()
