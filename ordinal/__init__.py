"""Ordinal regression: predict ranks (ratings, grades, stages) from features.

Which method?         ordinal.compare(X, y)             errors in folds, the best first
The most accurate:    ordinal.fit_stacking(X, y)        several methods, weighted
One method, tuned:    ordinal.select("npsvor", X, y)    and fitted to all rows
One method, untuned:  ordinal.fit_boosting(X, y)        or another fit_* function
Use the model:        model.predict(X), .predict_proba(X), .explain(X)
                      model.report(X, y, "page.html"), model.save("model.npz")
                      ordinal.load("model.npz")

X is an array, a data frame or a sparse matrix; y holds ranks, an ordered categorical,
or strings with `classes=` in rank order. `preprocess=TablePreprocessor()` of
`ordinal.preprocessing` takes categories and missing values to any method.
`help(ordinal.select)` documents a function.

>>> import ordinal
>>> X, y = ordinal.datasets.load_election()
>>> found = ordinal.select("pom", X, y)
>>> found.predict(X[:3])
array([6, 1, 0])

Methods
-------
fit_stacking                  a weighted pool of several methods, the most accurate
fit_boosting, fit_xofm        boosted trees; main effects and pairs of features
fit_pom, fit_pom_path         linear cumulative models with standard errors
fit_ratio, fit_clmm           stopping ratios; random effects of groups
fit_npsvor, fit_npsvor_path   support vectors with a hyperplane for each rank
fit_svorim, fit_svorex        support vectors with parallel hyperplanes
fit_tlssvor, fit_gpor         truncated losses, for wrong labels; Gaussian process

Modules
-------
companions          further methods of the literature, for comparison
model_selection     grids, splits, nested cross-validation
comparison          tests over several data sets
inference           tests, intervals and diagnostics of linear models
metrics             errors and agreement of ranks
prediction_sets     sets that contain the label at a given rate
preprocessing       tables with categories and missing values, binning
plot                figures, with matplotlib
sklearn             every method as an estimator of scikit-learn
models, exceptions  classes of models and of warnings
kernels, data, datasets
"""

import sys

try:
    from ._solvers import _build_info
except ImportError as error:
    from pathlib import Path

    if not any(Path(__file__).parent.glob("_solvers/*.pyx")):
        raise  # an installation that is broken in another way
    _advice = (
        "this is the source tree, which holds no compiled modules; run from another "
        "folder or use the `ordinal` command"
    )
    if sys.argv[:1] == ["-m"]:  # `python -m ordinal`: __main__ never gets to speak
        print(f"ordinal: {_advice}", file=sys.stderr)
        raise SystemExit(2) from None
    raise ImportError(_advice) from error

from ._model.public import find_public, public_names, warn_of_namesake
from ._model.views import register


def __getattr__(name):  # type checkers read __init__.pyi
    """Import what a name stands for when it is first used (see `_model.public`)."""
    globals()[name] = found = find_public(name)
    return found


def _load_views():
    from . import _views

    return _views


register(_load_views)
__version__ = _build_info.VERSION  #: Version of the package, a string.
warn_of_namesake(__path__[0])


def __dir__() -> list[str]:
    # There is no `__all__`, because pydoc would print every docstring of the package
    # below the one above, 10 000 lines in all.
    return ["__version__", *public_names()]
