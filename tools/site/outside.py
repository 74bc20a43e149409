"""Links of Markdown pages to files of the repository that are no pages of the site.

They lead somewhere in the repository, and to the same thing in the site:
CONTRIBUTING.md and CHANGELOG.md are pages by an `include`, a public module has its page
of the API, and a program of the gallery the page that is made of it. Of all other files
the site has the name only.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "docs/gallery": "examples/index.rst",
}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)#\s]+)(#[^)\s]+)?\)")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _process)
    app.connect("include-read", _process_included)
    return {"parallel_read_safe": True}


def _process(app: Sphinx, name: str, source: list[str]) -> None:
    if app.env.doc2path(name).suffix == ".md":
        source[0] = leading_inside(source[0], Path(app.srcdir), Path(name).parent)


def _process_included(app: Sphinx, path: Path, name: str, source: list[str]) -> None:
    _process(app, name, source)


def leading_inside(text: str, docs: Path, folder: Path) -> str:
    """The text of a page in a folder of docs/, with links that lead to pages."""
    up = "../" * len(folder.parts)

    def inside(link: re.Match) -> str:
        words, anchor = link[1], link[3] or ""
        path = (docs / folder / link[2]).resolve()
        page = _page_of(path, docs)
        if page is not None:
            return f"[{words}]({up}{page}{anchor})"
        return link[0] if path.is_relative_to(docs) else words

    return _LINK.sub(inside, text)


def _page_of(path: Path, docs: Path) -> str | None:
    """The page that stands for a file, if it is not the file itself."""
    if not path.is_relative_to(docs.parent):
        return None
    name = path.relative_to(docs.parent)
    if name.as_posix() in _PAGES:
        return _PAGES[name.as_posix()]
    if name.parent.as_posix() == "docs/gallery":
        return f"examples/{name.stem}.rst"
    module = docs / "api" / f"{name.stem}.rst"
    if name.parts[0] == "ordinal" and len(name.parts) == 2 and module.exists():
        return f"api/{module.name}"
    return None
