"""Formulas as MathML, which browsers set by themselves: no script and no font.

docutils translates the LaTeX of the pages; what it cannot translate is a warning, and
so ends the build. So is \\frac12, in which docutils reads 12 as the numerator.
"""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_UNBRACED = re.compile(r"\\[dt]?frac\s*[^{\s]")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_translated(node, False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    # a block that is wider than the window scrolls
    writer.body.append(f'<div class="math scrolls">{_translated(node, True)}</div>\n')
    raise nodes.SkipNode


def _translated(node: nodes.Element, block: bool) -> str:
    formula = node.astext()
    try:
        if found := _UNBRACED.search(formula):
            raise MathError(f"{found[0]!r} without braces")
        return tex2mathml(formula, as_block=block)
    except MathError as error:
        logging.getLogger(__name__).warning(
            "%s in the formula %r", error, formula, location=node
        )
        return ""
