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
    "guides/labels": "cards/labels.svg",
    "guides/intervals": "cards/intervals.svg",
    "guides/save": "cards/save.svg",
    "guides/threads": "cards/threads.svg",
    "guides/weights_and_costs": "plots/confusion_matrix.png",
    "guides/probabilities": "plots/reliability.png",
    "guides/missing_values": "plots/partial_dependence_words.png",
    "guides/explain": "tutorials/table_importance.png",
    "tutorials/sklearn": "plots/relevance.png",
    "tutorials/mixed": "methods/clmm.png",
    "input": "plots/partial_dependence_bars.png",
    "big_data": "plots/learning_curve.png",
    "coming_from": "methods/pom.png",
    "features": "plots/coefficients.png",
    "model_selection": "plots/search.png",
    "prediction_sets": "tutorials/table_sets.png",
    "inference": "odds_ratios.png",
    "benchmarks": "search_seconds.png",
    "decisions": "tlssvor.png",
    "command": "cards/command.svg",
    "data_sets": "cards/data_sets.svg",
    "embedding": "cards/embedding.svg",
    "glossary": "cards/glossary.svg",
    "platforms": "cards/platforms.svg",
    "reliability": "cards/reliability.svg",
    "sklearn": "cards/sklearn.svg",
    "stability": "cards/stability.svg",
}


def _first_sentence(page: nodes.document) -> str:
    """Return the first sentence that says more than for whom the page is."""
    for paragraph in page.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        sentences = re.split(r"(?<=[.?])\s+", text)
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
        named = [f"pictures/{_PICTURES[page]}"] if page in _PICTURES else []
        for uri in (own + named)[:1]:  # no text, because it only decorates
            self.env.images.add_file(here, uri)  # it may stand on no page
            card.insert(0, nodes.image(uri=uri, candidates={"*": uri}, alt=""))
        return card


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(Cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
