"""Preprocessing of a table before a fit.

tables      TablePreprocessor, TableCoding: missing values, categories and scale
numbers     Standardizer, impute_low_rank
targets     Binning
with a fit  PreprocessedModel, which takes raw tables

The modules of this package:

    base         base classes of preprocessors
    model        PreprocessedModel, and the argument `preprocess=` of all fits
    tables       tables with missing values and categories
    scaling      numbers and targets: standardisation, imputation and binning
    transformer  TablePreprocessor for pipelines of scikit-learn

`_formula.coding` has the coding of tables, which linear models use too.
"""

from .model import PreprocessedModel
from .scaling import Binning, Standardizer, impute_low_rank
from .tables import TableCoding, TablePreprocessor

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
