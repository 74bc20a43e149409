"""Preprocessing of a table before a fit.

tables      TablePreprocessor, TableCoding: missing values, categories and scale
numbers     Standardizer, impute_low_rank
targets     Binning
with a fit  PreprocessedModel, which takes raw tables

The modules of this package:

    coding       tables with missing values and categories
    contrasts    coding of tables and of the terms of formulas as numeric columns
    dates        numbers of a column of dates
    expressions  arithmetic in formulas
    splines      smooth terms of formulas
    scaling      numbers and targets: standardisation, imputation and binning
    transformer  TablePreprocessor for pipelines of scikit-learn

`_model.preprocessed` has what a fit and its model know of preprocessors.
"""

from .._model.preprocessed import PreprocessedModel
from .coding import TableCoding, TablePreprocessor
from .scaling import Binning, Standardizer, impute_low_rank

__all__ = [
    "Binning",
    "PreprocessedModel",
    "Standardizer",
    "TableCoding",
    "TablePreprocessor",
    "impute_low_rank",
]


def __dir__() -> list[str]:
    return __all__
