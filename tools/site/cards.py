"""Tables of contents as cards: title, first sentence and first picture of each page.

In the repository these pages are lists of names; the sentences stand on the pages that
they lead to, so that nothing is written twice.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

# pictures of pages that have none of their own, by their names
_PICTURES = {
    "guides/labels": "tutorials/ranks",
    "guides/weights_and_costs": "plots/confusion_matrix",
    "guides/probabilities": "plots/reliability",
    "guides/missing_values": "plots/partial_dependence_words",
    "guides/explain": "tutorials/table_importance",
    "tutorials/sklearn": "plots/relevance",
    "tutorials/mixed": "methods/clmm",
    "input": "plots/partial_dependence_bars",
    "big_data": "plots/learning_curve",
    "coming_from": "methods/pom",
    "features": "plots/coefficients",
    "model_selection": "plots/search",
    "prediction_sets": "tutorials/table_sets",
    "inference": "odds_ratios",
    "benchmarks": "search_seconds",
    "decisions": "tlssvor",
}


def _first_sentence(page: nodes.document) -> str:
    """Return the first sentence that says more than for whom the page is."""
    for paragraph in page.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        sentences = re.split(r"(?<=[.?])\s+(?=\W?[A-Z])", text)
        said = [part for part in sentences if not part.startswith("This page is for")]
        return (said or sentences)[0].rstrip(":")
    return ""


class Cards(SphinxPostTransform):
    default_priority = 4  # before the pictures get their sizes

    def run(self, **kwargs: Any) -> None:
        for table in list(self.document.findall(toctree)):
            if table.get("hidden") or table.get("maxdepth") != 1:
                continue
            table["hidden"] = True  # on this page; the side bars have it
            listed = [self._card(title, page) for title, page in table["entries"]]
            cards = nodes.bullet_list("", *listed)
            found: list[nodes.Node] = [nodes.container("", cards, classes=["cards"])]
            if caption := table.get("caption"):
                found.insert(0, nodes.rubric("", caption))
            at = table.parent.index(table)
            table.parent[at + 1 : at + 1] = found

    def _card(self, title: str | None, page: str) -> nodes.list_item:
        here, content = self.env.current_document.docname, self.env.get_doctree(page)
        link = nodes.reference(
            "",
            title or self.env.titles[page].astext(),
            refuri=self.app.builder.get_relative_uri(here, page),
            internal=True,
        )
        text = nodes.paragraph("", "", nodes.strong("", "", link))
        card = nodes.list_item("", text, nodes.paragraph(text=_first_sentence(content)))
        own = [
            i["uri"]
            for i in content.findall(nodes.image)
            if "*" in i.get("candidates", {})
        ]
        named = [f"pictures/{_PICTURES[page]}.png"] if page in _PICTURES else []
        for uri in (own + named)[:1]:  # no text, because it only decorates
            card.insert(0, nodes.image(uri=uri, candidates={"*": uri}, alt=""))
        return card


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(Cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
