"""Docstrings, which are plain text, as reStructuredText.

`help()` shows a docstring as it is written, so that formulas stand in it unescaped:
|w|, b_, 2 * x. Here they are escaped, and indented lines of a module's docstring, which
are formulas set by hand, become literal blocks. It runs before numpydoc.
"""

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"(``.+?``|`[^`]+`)")
# a word that ends in _ would be a link, a | the begin of a substitution
_SPECIAL = re.compile(r"(?<!\\)(\||\*|(?<=\w)_(?!\w))")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}


def _process(app, what, name, item, options, lines: list[str]) -> None:
    lines[:] = module_text(lines) if what == "module" else escaped(lines)


def _skip(app, what, name, item, skip: bool, options) -> bool | None:
    foreign = str(getattr(item, "__module__", "")).startswith("sklearn")
    # a request of metadata is made by a descriptor, which says it is ours
    foreign = foreign or (name.startswith("set_") and name.endswith("_request"))
    return True if foreign or (inspect.isclass(item) and what == "class") else None


def escaped(lines: list[str]) -> list[str]:
    """Lines with what is markup to docutils escaped, but for code and examples."""
    out, example = [], False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        out.append(line if example else _escape(line))
    return out


def _escape(line: str) -> str:
    pieces = _CODE.split(line)
    pieces[::2] = [_SPECIAL.sub(r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def module_text(lines: list[str]) -> list[str]:
    """Paragraphs, and every indented stretch of lines as a literal block."""
    out: list[str] = []
    literal = False
    for line in lines:
        if not line.strip():
            out.append("")
            continue
        indented = line.startswith("  ")
        if indented and not literal:
            if out and out[-1]:
                out.append("")
            out += [".. code-block:: text", ""]
        elif literal and not indented and out[-1]:
            out.append("")
        literal = indented
        out.append(line if indented else _escape(line))
    return out
