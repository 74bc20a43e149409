"""Pictures of the Markdown pages at the size of their figures.

A figure gets 90 pixels per inch of the page. Files of tools/pictures.py have twice as
many, so that they are sharp on screens of high resolution, and do not say so; the
others state how many they have.
"""

import struct
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

_WIDTH = slice(16, 20)  # of the header of a PNG
_SHOWN, _DRAWN = 90, 180  # pixels per inch of a page, and of tools/pictures.py
_INCH = 0.0254  # metres


def shown_width(png: bytes) -> int:
    """Return the pixels of a page that a picture is wide."""
    (width,) = struct.unpack(">I", png[_WIDTH])
    density = float(_DRAWN)
    if (at := png.find(b"pHYs")) >= 0:  # pixels per metre
        density = struct.unpack(">I", png[at + 4 : at + 8])[0] * _INCH
    return round(width * _SHOWN / density)


class FigureSize(SphinxPostTransform):
    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for image in self.document.findall(nodes.image):
            path = Path(self.env.srcdir) / image["uri"]
            # the gallery has its own styles for its figures and thumbnails
            if path.suffix == ".png" and "images" not in path.parts:
                image["width"] = f"{shown_width(path.read_bytes())}px"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(FigureSize)
    return {"parallel_read_safe": True}
