"""Splits of the rows, hyperparameter searches, and model selection by validation.

    splits      stratified_kfold, stratified_holdout, learning_splits
    searches    Grid, CoarseToFine, UniformDesign; gamma_range
    the choice  select, which refits, and nested, which tests it on held-out rows
    designs     uniform_design, centred_discrepancy

Searches share computations: features are standardised once per fold, and their inner
products are used for every gamma; a kernel matrix is used for every C of a fold, whose
fits are warm-started in increasing order of C (ADMM of NPSVOR fits them together).
Matrices are not shared across folds, because standardisation by the training rows gives
each fold different distances.

The modules of this package:

    splits              splits of the rows, and of whole groups
    spaces              points that a search tries, uniform designs among them
    selection, nesting  `select` and `nested`
    search              a search, which yields tasks and receives their outcomes
    scheduler           order of the tasks of several searches, and stored results
    workers             threads and processes that run tasks
    work                tasks, which are fits of points and their scores
    data                the rows that all tasks share, and those of one fit
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
