"""Docstrings, which are plain text, as reStructuredText.

`help()` shows a docstring as it is written, so that formulas stand in it unescaped:
|w|, b_, 2 * x. Here they are escaped, and what is set by hand above the first section,
lines that are indented by four or more, becomes a literal block. It runs before
numpydoc.

What scikit-learn adds to our estimators is left to its own documentation.
"""

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"(``.+?``|`[^`]+`)")
# a word that ends in _ would be a link, a | the begin of a substitution
_SPECIAL = re.compile(r"(?<!\\)(\||\*|(?<=\w)_(?!\w))")
_LITERAL = 4  # columns by which lines set by hand are indented


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}


def _process(app, what, name, item, options, lines: list[str]) -> None:
    lines[:] = as_markup(lines)


def _skip(app, what, name, item, skip: bool, options) -> bool | None:
    foreign = str(getattr(item, "__module__", "")).startswith("sklearn")
    # a request of metadata is made by a descriptor, which says it is ours
    foreign = foreign or (name.startswith("set_") and name.endswith("_request"))
    return True if foreign or (inspect.isclass(item) and what == "class") else None


def as_markup(lines: list[str]) -> list[str]:
    """The lines escaped, with literal blocks above the first section."""
    head = next(
        (i - 1 for i, line in enumerate(lines) if re.fullmatch("-{4,}", line)),
        len(lines),
    )
    return _with_blocks(lines[:head]) + _escaped(lines[head:])


def _escaped(lines: list[str]) -> list[str]:
    out, example = [], False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        mark = re.match(r"( *\* )?", line)[0]  # of a list, whose star stays
        out.append(line if example else mark + _escape(line.removeprefix(mark)))
    return out


def _escape(line: str) -> str:
    pieces = _CODE.split(line)
    pieces[::2] = [_SPECIAL.sub(r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def _with_blocks(lines: list[str]) -> list[str]:
    out: list[str] = []
    base, literal = 0, False  # columns of the text about, which a list indents
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            out.append("")
            continue
        after_text = bool(out) and bool(out[-1])
        if literal or not after_text:  # else it belongs to the paragraph above
            begins = not literal and indent >= base + _LITERAL
            literal = indent >= base + _LITERAL
            if begins:
                out += [" " * base + ".. code-block:: text", ""]
            elif not literal and after_text:
                out.append("")
        if literal:
            out.append(line)
        elif item := re.match(r" *([*-] |(?=\[\d+\] ))", line):
            mark = item[0] or "* "  # [1] at the begin of a line is a reference
            base = len(mark)
            out.append(mark + _escape(line[item.end() :]))
        else:
            base = base if after_text else min(base, indent)
            out.append(" " * base + _escape(line.lstrip()))
    return out
