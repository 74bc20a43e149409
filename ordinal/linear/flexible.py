"""Fits of cumulative models with a link whose shape is estimated, and their model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from .._cumulative.design import Threshold
from .._cumulative.fitting import likelihood_of, minimize
from .._cumulative.likelihood import Link, for_all_ranks, rank_probabilities
from .._cumulative.newton import Minimum
from .._cumulative.newton import minimize as newton
from .._cumulative.separation import check_separation
from .._input.checks import check_count
from .._input.fields import FINITE
from .._input.sparse import read_only
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike
from .._model.preparation import Callback, shared_arguments
from .._watch.convergence import Status, warn_of_disorder, warn_of_separation
from .estimates import null_loglik, refit
from .inference import ByPredictors
from .log_gamma import EstimatedShape, FixedShape, tails
from .prepared import PomArguments, PreparedPom, prepare_pom
from .sandwich import inverse
from .training import Missing

# lambda of the links that are special cases of the log-gamma distribution
_CONTAINED: dict[Link, float] = {"probit": 0.0, "cloglog": 1.0, "loglog": -1.0}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FlexibleModel(ByPredictors):
    """Cumulative model with the log-gamma link, which `fit_flexible` returns.

    Attributes
    ----------
    shape : float
        lambda of the link: 0 is the probit, 1 cloglog and -1 loglog.
    coef, thresholds, nominal_coef, loglik, covariance, ...
        As in `PomModel`; the last row and column of `covariance` are those of lambda.
    link : "log-gamma"

    Examples
    --------
    >>> import ordinal
    >>> from ordinal.linear import fit_flexible
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = fit_flexible(X, y)
    >>> model.parameter_names[-1], round(model.shape, 2)
    ('lambda', -0.51)
    """

    shape: Annotated[float, FINITE]

    @property
    def parameters(self) -> np.ndarray:
        """Return all estimates, (p,), in the order of `covariance`, lambda last."""
        return read_only(np.append(super(FlexibleModel, self).parameters, self.shape))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the parameters, as of `PomModel`, and "lambda"."""
        return (*super(FlexibleModel, self).parameter_names, "lambda")

    def _kinds(self) -> np.ndarray:
        return np.append(super(FlexibleModel, self)._kinds(), "link")

    def _profile_ends(self, which: np.ndarray, z: float) -> np.ndarray:
        raise ValueError(
            'confint(method="profile") is for models of fit_pom and fit_ratio: '
            'pass method="wald"'
        )

    def _of_predictors(self, eta: np.ndarray) -> np.ndarray:
        if self.may_cross:
            eta.sort(axis=1)
        eta = for_all_ranks(self.observed, eta, -np.inf, np.inf)
        return rank_probabilities(*tails(self.shape, eta))


def fit_flexible(
    X: MatrixLike | str,
    y: Labels | None,
    *,
    threshold: Threshold = "flexible",
    nominal: Sequence[str | int] = (),
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    reference: Mapping[str, Any] | None = None,
    missing: Missing = "error",
    tol: float = 1e-6,
    max_iter: int = 100,
    max_time: float | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> FlexibleModel:
    """Fit a cumulative model whose link has an estimated shape (log-gamma).

    The link has a parameter lambda that is estimated with the others: 0 is the probit,
    1 cloglog and -1 loglog. The estimate and its standard error show whether the data
    distinguish between these links of `fit_pom`. The minimisation begins at the best of
    these three fits and may end in a local minimum. A step takes five passes over the
    rows, whose probabilities are integrals; a fit takes about a millisecond per row.

    Parameters
    ----------
    X, y : as for `fit_pom`
        Rows in memory.
    threshold, nominal, offset, sample_weight, class_weight : optional
        As for `fit_pom`.
    classes, reference, missing : optional
        As for `fit_pom`.
    tol : float > 0, default 1e-6
        Tolerance on the length of the next Newton step in standard errors.
    max_iter : int, default 100
    max_time, n_threads, callback, verbose : optional
        As for `fit_pom`.

    Returns
    -------
    FlexibleModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning, CollinearColumnsWarning, DisorderedThresholdsWarning
        As in `fit_pom`.

    See Also
    --------
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.
    fit_ratio : Fit a stopping ratio or an adjacent categories model by maximum
        likelihood.
    ordinal.lr_test : Compare two nested models of the same rows by a likelihood ratio
        test.

    Examples
    --------
    >>> import ordinal
    >>> from ordinal.linear import fit_flexible
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> fit_flexible(X, y).predict([[10.0, 10.0], [20.0, 10.0]])
    array([1, 3])
    """
    max_iter = check_count("max_iter", max_iter)
    given = shared_arguments(PomArguments, locals(), link="probit", scale=())
    prepared = prepare_pom("fit_flexible", X, y, is_penalised=False, **given)
    with prepared.monitor as monitor, closing(prepared.problem):
        model = _model(prepared, *_minimum(prepared, max_iter))
        monitor.conclude(model.convergence)
    if model.separated.size:
        names = [model.column_names[j] for j in model.separated]
        warn_of_separation(names, "fit_flexible", "leave them out")
    else:
        model.convergence.warn_unless_converged("fit_flexible", "raise max_iter")
    warn_of_disorder(model.disorder, "fit_flexible")
    return model


def _minimum(
    prepared: PreparedPom, max_iter: int
) -> tuple[EstimatedShape, Minimum, np.ndarray]:
    """Minimise the loss, starting at the best fit of the links that it contains.

    Returns the loss, its minimum, and the columns that separate the ranks.
    """
    design, monitor = prepared.design, prepared.monitor
    # The loss has local minima in lambda: start at the best of the contained links.
    found: list[tuple[Minimum, Link]] = []
    done = 0
    for link in _CONTAINED:
        start = likelihood_of(design, link, 0.0, prepared.n_threads)
        found.append((minimize(start, max_iter, monitor), link))
        done += found[-1][0].n_iter
    best, link = min(found, key=lambda each: each[0].point.value)
    x, step, status = best.point.x, best.step, best.status
    status, separated = check_separation(design, link, x, step, status, False, monitor)
    loss, x = EstimatedShape(design), np.append(x, _CONTAINED[link])
    # A fit that was stopped, or separated ranks, end the search at the start.
    if status is not Status.CONVERGED:
        return loss, replace(best, point=loss.at(x), status=status), separated
    return loss, newton(loss, x, max_iter + done, monitor, done), separated


def _model(
    prepared: PreparedPom, loss: EstimatedShape, found: Minimum, separated: np.ndarray
) -> FlexibleModel:
    """Return the model of a minimum, in the units of the features."""
    D, point = loss.design, found.point
    shape = float(point.x[-1])
    nothing = np.zeros(0, np.int64)
    if D.offset is None and D.is_flexible:
        null = null_loglik(likelihood_of(D, "probit", 0.0, prepared.n_threads))
    else:
        bare = FixedShape(replace(D, location=nothing, nominal=nothing), shape)
        null = -D.total * refit(bare, bare.start(), "fit_flexible").point.value
    covariance = None
    if point.hessian.size:
        covariance = inverse(point.hessian) / D.total
        for _ in range(2):  # `raw` is applied to the rows, and then to the columns
            covariance = np.vstack([D.raw(covariance[:-1]), covariance[-1:]]).T
        covariance = read_only(covariance)
    return FlexibleModel(
        **(prepared.fields(D, point.x[:-1]) | {"link": "log-gamma"}),
        covariance=covariance,
        covariance_type="observed",
        l1=0.0,
        l2=0.0,
        loglik=-D.total * point.value,
        null_loglik=null,
        separated=read_only(separated),
        convergence=prepared.monitor.record(
            found.status, found.n_iter, found.violation, point.value, None
        ),
        shape=shape,
    )
