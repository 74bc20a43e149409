"""Figures, on matplotlib: `pip install 'ordinal-regression[plot]'`.

    methods compared    critical_difference, boxplots_by_size
    XOFM explained      score_functions, interaction, contributions

Every function takes the Axes to draw on, by default those of a new figure of fitting
size, and returns them.
"""

from .comparison import boxplots_by_size, critical_difference
from .xofm import contributions, interaction, score_functions

__all__ = [
    "boxplots_by_size",
    "contributions",
    "critical_difference",
    "interaction",
    "score_functions",
]


def __dir__() -> list[str]:
    return __all__
