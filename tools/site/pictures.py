"""Pictures of the Markdown pages at half of their pixels.

Files have twice the pixels of the place that they get, so that they are sharp on
screens of high resolution (tools/pictures.py draws them so).
"""

import struct
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

_WIDTH = slice(16, 20)  # of the header of a PNG


class HalfSize(SphinxPostTransform):
    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for image in self.document.findall(nodes.image):
            path = Path(self.env.srcdir) / image["uri"]
            if path.suffix == ".png" and path.parts[-2:-1] != ("images",):
                (width,) = struct.unpack(">I", path.read_bytes()[_WIDTH])
                image["width"] = f"{width // 2}px"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(HalfSize)
    return {"parallel_read_safe": True}
