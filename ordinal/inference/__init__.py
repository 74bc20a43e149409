"""Inference about linear models that have been fitted: tests of nested models.

The modules of this package:

    nested  likelihood ratio tests of nested models
"""

from .nested import LikelihoodRatio, anova, lr_test

__all__ = ["LikelihoodRatio", "anova", "lr_test"]


def __dir__() -> list[str]:
    return __all__
