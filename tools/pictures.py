"""The pictures of a page, such as docs/plots.md: what its code draws.

    python tools/pictures.py [--page PAGE]

Runs the blocks of Python in the page one after the other, and the lines of `ordinal`
between them, in a folder for temporary files. A picture that the page shows after a
block is the figure which that block has made. Needs matplotlib and pandas.

`use_style` and `save` are for all programs that draw pictures of the documentation. A
file has two pixels for each that the site shows (tools/site/figures.py), because
screens of high resolution have as many, and 128 colours, which takes two thirds off its
size without a visible difference.
"""

import argparse
import io
import os
import re
import shlex
import tempfile
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from cycler import cycler
from PIL import Image  # which matplotlib needs as well

from ordinal._command.main import main as command
from ordinal.plot.style import PALETTE

_PIECE = re.compile(
    r"^```python\n(?P<code>.*?)^```|^```sh\n(?P<lines>.*?)^```"
    r"|^!\[.*?\]\((?P<picture>.*?)\)",
    re.M | re.S,
)
_DPI, _COLOURS = 180, 128
# what `ordinal.plot` draws with, for the figures that pages draw themselves
_STYLE = {
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "image.cmap": "viridis",
}


def draw(page: Path) -> None:
    session: dict = {}
    for piece in _PIECE.finditer(page.read_text()):
        if piece["code"] is not None:
            plt.close("all")
            exec(compile(piece["code"], str(page), "exec"), session)
        elif piece["lines"] is not None:
            for line in piece["lines"].splitlines():
                program, *arguments = shlex.split(line)
                if program == "ordinal":
                    command(arguments)
        elif plt.get_fignums():
            file = page.parent / piece["picture"]
            save(plt.gcf(), file)
            print(file)


def use_style() -> None:
    """Draw to files, in the style of `ordinal.plot`."""
    matplotlib.use("Agg")
    matplotlib.rcParams.update(_STYLE)


def save(figure, file: Path) -> None:
    """Write a PNG file without metadata, so that it changes with its picture only."""
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=_DPI, format="png")
    Image.open(drawn).convert("RGB").quantize(_COLOURS).save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    page = Path(__file__).parent.parent / "docs/plots.md"
    parser.add_argument("--page", type=Path, default=page)
    use_style()
    page = parser.parse_args().page.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        draw(page)
        os.chdir(page.parent)  # as a folder in use cannot go everywhere


if __name__ == "__main__":
    main()
