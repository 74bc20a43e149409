"""Splits of the rows, searches for arguments, and the choice among them by validation.

    splits      stratified_kfold, stratified_holdout, learning_splits
    searches    Grid, CoarseToFine, UniformDesign; gamma_range
    the choice  select, which refits, and nested, which tests it on held-out rows
    designs     uniform_design, centred_discrepancy

What a choice costs is kept low by sharing: features are standardised once a fold and
their inner products serve every gamma; a kernel matrix serves every C of a fold, whose
fits are warm-started from the least C up (ADMM of NPSVOR: more columns of one product).
Matrices are not shared across folds, as standardisation by training rows makes other
distances in each.

The modules of this package:

    splits              splits of the rows, and of whole groups
    spaces              points that a search tries, uniform designs among them
    selection, nesting  `select` and `nested`
    search, scheduler   a search as tasks, their order, and their way to workers
    work                tasks, and the caller's table as a search keeps it
    scoring             metrics
"""

from .nesting import Nested, nested
from .selection import Failure, Selection, select
from .spaces import (
    CoarseToFine,
    Grid,
    UniformDesign,
    centred_discrepancy,
    gamma_range,
    uniform_design,
)
from .splits import learning_splits, stratified_holdout, stratified_kfold

__all__ = [
    "CoarseToFine",
    "Failure",
    "Grid",
    "Nested",
    "Selection",
    "UniformDesign",
    "centred_discrepancy",
    "gamma_range",
    "learning_splits",
    "nested",
    "select",
    "stratified_holdout",
    "stratified_kfold",
    "uniform_design",
]


def __dir__() -> list[str]:
    return __all__
