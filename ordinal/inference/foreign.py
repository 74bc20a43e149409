"""Adapters of linear models for inference by other packages.

V. Arel-Bundock, N. Greifer, A. Heiss, "How to interpret statistical models using
marginaleffects for R and Python", Journal of Statistical Software 111(9), 2024.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._input.columns import read_frame
from .._input.types import ArrayLike
from .calls import on_one_thread
from .fitted import covariance_for, fitted_model, with_parameters
from .margins import rows_to_average
from .outcomes import Kind, outcome_of


@on_one_thread
def for_marginaleffects(
    model: Any,
    table: Any,
    *,
    kind: Kind = "probability",
    at: ArrayLike | None = None,
    values: ArrayLike | None = None,
) -> Any:
    """Return a model that Python's package marginaleffects accepts.

    Its functions `predictions`, `comparisons`, `slopes` and `hypotheses`, and their
    averages, then take the model, with the errors of its covariance.

    Parameters
    ----------
    model : PomModel or RatioModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    table : data frame
        Rows of the features, over which marginaleffects averages, such as the training
        rows. Strings must be of a categorical type.
    kind, at, values : optional
        What its functions predict, as for `predictions`. The column "group" of their
        results names the rank, the threshold or the probability of the quantile.

    Returns
    -------
    marginaleffects.classes.ModelAbstract

    Raises
    ------
    ImportError
        If marginaleffects is not installed.
    ValueError, TypeError
        As for `predictions`; also for a model with random effects.

    See Also
    --------
    predictions : Return probabilities, means and quantiles of the outcome, with
        standard errors and intervals.
    marginal_effects : Return average marginal effects of the features on the outcome.

    Examples
    --------
    >>> import ordinal
    >>> import pandas as pd
    >>> from marginaleffects import avg_slopes  # doctest: +SKIP
    >>> table = pd.DataFrame({"x": [1.0, 2, 3, 4, 5, 6], "y": [1, 2, 1, 3, 2, 3]})
    >>> model = ordinal.fit_pom("y ~ x", table)
    >>> own = ordinal.inference.for_marginaleffects(
    ...     model, table, kind="mean"
    ... )  # doctest: +SKIP
    >>> avg_slopes(own)  # doctest: +SKIP
    """
    remedy = "take predictions(), which has the effects of groups"
    model = fitted_model(model, "for_marginaleffects", {"mixed": remedy})
    covariance = covariance_for(model, "for_marginaleffects")
    try:
        from marginaleffects.classes import ModelAbstract, ModelVault
        from marginaleffects.utils import ingest
    except ImportError as error:
        raise ImportError(
            "for_marginaleffects needs marginaleffects: "
            "pip install marginaleffects 'polars<2'"
        ) from error

    outcome = outcome_of(model, kind, at, values)
    names: Any = next(iter(outcome.names.values()), None)
    columns = list(model.feature_names or read_frame(table).shown_names)

    class OrdinalModel(ModelAbstract):  # type: ignore[misc]
        """Adapter of a linear model of ordinal."""

        def get_vcov(self, vcov: Any = True) -> np.ndarray | None:
            return self.vault.vcov if vcov is True else None

        def get_exog(self, newdata: Any) -> Any:
            return newdata

        def get_predict(self, params: np.ndarray, newdata: Any) -> Any:
            there = with_parameters(model, params)
            source = rows_to_average(
                there, "for_marginaleffects", newdata.select(columns), None, None
            )
            value = outcome.values(there._means(), source)
            n, k = value.shape
            frame = {"rowid": np.tile(np.arange(n, dtype=np.int32), k)}
            if names is not None:
                frame["group"] = np.repeat(np.array(names, str), n)
            return type(newdata)({**frame, "estimate": value.T.ravel()})

    vault = ModelVault(
        coef=np.array(model.parameters),
        coefnames=np.array(model.parameter_names),
        formula=lambda data: (None, data),
        modeldata=ingest(table),
        package="ordinal",
        vcov=covariance @ np.eye(len(covariance)),
        variable_names=["", *columns],
    )
    return OrdinalModel(model, vault)
