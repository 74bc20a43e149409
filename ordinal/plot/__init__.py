"""Figures, on matplotlib: `pip install 'ordinal-regression[plot]'`.

    methods compared    critical_difference, boxplots_by_size, errors_by_method
    predictions         scores, confusion_matrix, reliability, prediction_sets
    features            partial_dependence, relevance, coefficients,
                        random_effects
    diagnostics         residuals, simulated_residuals
    searches            search, learning_curve
    XOFM explained      score_functions, interaction, contributions

Every function accepts the Axes on which to draw, by default those of a new figure, and
returns them.

The modules of this package:

    comparison                methods compared
    predictions               predictions and prediction sets; properties of models
    dependence, coefficients  features; residuals of cumulative models
    searches                  searches
    xofm                      XOFM explained
    style                     axes, colours and ticks
"""

from .coefficients import (
    coefficients,
    importance,
    random_effects,
    residuals,
    simulated_residuals,
)
from .comparison import boxplots_by_size, critical_difference, errors_by_method
from .dependence import partial_dependence, relevance
from .predictions import confusion_matrix, prediction_sets, reliability, scores
from .searches import learning_curve, search
from .xofm import contributions, interaction, score_functions

__all__ = [
    "boxplots_by_size",
    "coefficients",
    "confusion_matrix",
    "contributions",
    "critical_difference",
    "errors_by_method",
    "importance",
    "interaction",
    "learning_curve",
    "partial_dependence",
    "prediction_sets",
    "random_effects",
    "relevance",
    "reliability",
    "residuals",
    "score_functions",
    "scores",
    "search",
    "simulated_residuals",
]


def __dir__() -> list[str]:
    return __all__
