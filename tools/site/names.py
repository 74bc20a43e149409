"""Names of ours become links: `fit_svorim` in a docstring, or as code in Markdown.

A word in single backticks is a link where it names something that has a page or an
anchor of its own, and code everywhere else (a parameter, a file, a value).
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

_NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("name", NameRole())
    app.add_post_transform(NamesInMarkdown)
    app.connect("missing-reference", _as_code)
    return {"parallel_read_safe": True}


def _link(text: str, module: str | None, owner: str | None, doc: str) -> nodes.Node:
    link = addnodes.pending_xref(
        "",
        nodes.literal(text, text),
        refdomain="py",
        reftype="obj",
        reftarget=text.removesuffix("()"),
        refdoc=doc,
        refwarn=False,
        perhaps=True,
    )
    link["py:module"], link["py:class"] = module, owner
    return link


class NameRole(SphinxRole):
    """The default role."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if not _NAME.fullmatch(self.text):
            return [nodes.literal(self.text, self.text)], []
        context = self.env.ref_context
        return [
            _link(
                self.text,
                context.get("py:module", "ordinal"),
                context.get("py:class"),
                self.env.docname,
            )
        ], []


class NamesInMarkdown(SphinxPostTransform):
    """Code in the text of a Markdown page that is one of our names."""

    default_priority = 5  # before links are resolved

    def run(self, **kwargs: Any) -> None:
        if not str(self.env.doc2path(self.env.docname)).endswith(".md"):
            return
        for code in list(self.document.findall(nodes.literal)):
            inside = code.parent
            while inside is not None and not isinstance(
                inside, nodes.reference | nodes.title | addnodes.pending_xref
            ):
                inside = inside.parent
            if inside is None and _NAME.fullmatch(code.astext()):
                link = _link(code.astext(), "ordinal", None, self.env.docname)
                code.replace_self(link)


def _as_code(app, env, link: addnodes.pending_xref, content: nodes.Node):
    """Return what a name that is none of `ordinal` itself becomes: code, but `Grid` and
    other classes, the companions
    and functions of inference are known without their module.

    Methods that are functions of inference name others of them in their docstrings."""
    name, known = link["reftarget"], env.domains["py"].objects
    perhaps = link.get("perhaps")
    modules = ("companions", "inference") if perhaps else ("inference",)
    full = [f"ordinal.{module}.{name}" for module in modules]
    if perhaps and name[0].isupper():
        full = [key for key in known if key.endswith(f".{name}")]
    full = [key for key in full if key in known and not known[key].aliased]
    if not perhaps and not full:
        return None
    if len(full) != 1:
        return content
    place = known[full[0]]
    return make_refnode(
        app.builder, link["refdoc"], place.docname, place.node_id, content, full[0]
    )
