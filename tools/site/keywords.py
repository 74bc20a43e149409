"""Index entries for common searches.

`searches.json` maps searches to pages. The search of the site finds an entry of the
index before words of a text, and `look.mjs` checks that each finds its page first.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

SEARCHES: dict[str, str] = json.loads(
    Path(__file__).with_name("searches.json").read_text()
)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(IndexOfSearches)
    return {"parallel_read_safe": True}


class IndexOfSearches(SphinxTransform):
    default_priority = 800  # before entries are collected

    def apply(self, **kwargs: Any) -> None:
        section = next(self.document.findall(nodes.section), None)
        found = [s for s, page in SEARCHES.items() if page == self.env.docname]
        if section is not None and found:
            place = section["ids"][0]
            entries = [("single", search, place, "main", None) for search in found]
            section.insert(1, addnodes.index(entries=entries))
