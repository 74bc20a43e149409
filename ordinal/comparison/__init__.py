"""Comparison of methods: errors on one data set, and tests over several.

The modules of this package:

    methods       compare, and its result, a Comparison
    estimators    classifiers of scikit-learn as methods
    learner       a method as it is compared: parameters, preprocessing, search
    significance  tests of Wilcoxon and Friedman, counts of wins and losses
"""

from .estimators import EstimatorModel
from .methods import Comparison, compare
from .significance import (
    Friedman,
    RankSum,
    SignedRank,
    WinDrawLoss,
    friedman,
    rank_sum,
    wilcoxon,
    win_draw_loss,
)

__all__ = [
    "Comparison",
    "EstimatorModel",
    "Friedman",
    "RankSum",
    "SignedRank",
    "WinDrawLoss",
    "compare",
    "friedman",
    "rank_sum",
    "wilcoxon",
    "win_draw_loss",
]


def __dir__() -> list[str]:
    return __all__
