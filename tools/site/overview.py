"""The index of the API, with one line for each public name.

The pages of the modules list their names; the index repeats these tables, without pages
of their own, in the order of its tables of contents.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_INDEX = "api/index"
_TABLE = re.compile(
    r"^\.\. currentmodule:: \S+\n|^\.\. autosummary::\n(?:   .*\n|\n)+", re.MULTILINE
)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _add_tables)
    return {"parallel_read_safe": True}


def _add_tables(app: Sphinx, page: str, source: list[str]) -> None:
    if page == _INDEX:
        folder = Path(app.srcdir) / "api"
        names = re.findall(r"^   (\w+)$", source[0], re.MULTILINE)
        texts = [(folder / f"{name}.rst").read_text() for name in names]
        source[0] += "".join(map(_tables_of, texts))


def _tables_of(text: str) -> str:
    title = text.split("\n", 1)[0]
    tables = [
        table.replace("   :toctree: generated\n", "") for table in _TABLE.findall(text)
    ]
    return "\n".join(["", title, "-" * len(title), "", *tables])
