"""Labels that a fitted model draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._input.checks import check_count, resolve_rng
from .._input.types import ArrayLike, MatrixLike
from .fitted import about_groups, fitted_rows, warn_unless_at_optimum


def simulate(
    model: Any,
    X: MatrixLike | None = None,
    *,
    n: int = 1,
    offset: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    rng: Any = None,
) -> np.ndarray:
    """Draw labels of rows from a fitted model, as R's `simulate` does.

    The model that is fitted to the draws is a parametric bootstrap. With random
    effects, each draw has new effects of all groups, which the rows of a group share.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (m, n_features) array or data frame, optional
        Default: the training rows that the fit has used.
    n : int, default 1
        Number of draws.
    offset : (m,) array-like, default 0
        Offset of the rows of `X`.
    groups : mapping of names to (m,) labels, optional
        Groups of the rows of `X`, of a model with random effects. Default: the columns
        of these names in the data frame X.
    rng : int, Generator or None
        Source of the random numbers.

    Returns
    -------
    (m, n) array of labels, of the type of `classes`

    Raises
    ------
    ValueError, TypeError
        As for `decision_function`; also if `X` is missing and the model no longer has
        its training rows.

    See Also
    --------
    residuals : Return one residual per row, which is positive for ranks above
        expectation.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> judges = {"judge": [i // 8 for i in range(72)]}
    >>> model = ordinal.fit_clmm(X[:, :2], y, groups=judges)
    >>> ordinal.inference.simulate(model, n=3, rng=0).shape
    (72, 3)
    """
    model, X = fitted_rows(model, X, "simulate")
    n = check_count("n", n)
    random = about_groups("simulate", model, groups=groups)
    warn_unless_at_optimum(model)
    labels, drawn = model.classes[model.predictor.observed], []
    generator = resolve_rng(rng)
    for P in model._simulated("simulate", X, offset, generator, n, **random):
        u = generator.random((len(P), 1))
        drawn.append(labels[(np.cumsum(P, axis=1)[:, :-1] < u).sum(axis=1)])
    return np.stack(drawn, axis=1)
