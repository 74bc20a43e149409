"""Fits of stopping ratio and adjacent categories models, and their model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from .._cumulative.elastic_net import PathSolver
from .._cumulative.fitting import Minimum, newton
from .._cumulative.likelihood import NONE, Link, cumulative, exceeding
from .._cumulative.separation import certificate_of, check_separation_by, involved
from .._input.checks import (
    check_choice,
    check_count,
    check_factor_or_zero,
    check_flag,
    shown,
    with_suggestions,
)
from .._input.immutable import read_only
from .._input.labels import (
    classes_in_rank_order,
    declared_categories,
    ranks_of,
    read_labels,
)
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._rows.columns import row_strips
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..inference.fitted import (
    FitMemory,
    null_loglik,
    remember,
    warn_of_shortfalls,
    with_records,
)
from ..inference.margins import DesignRows, Means
from ..inference.sandwich import CovarianceChoice, covariance_of
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed_in_columns
from .estimates import LinearModel
from .monotone import constrained
from .prepared import Missing, PomArguments, PreparedPom, prepare_pom
from .ratio_loss import (
    Family,
    RatioLikelihood,
    RatioMeans,
    log_probabilities,
    residuals_at,
    sides_of,
)

_FLAT = 1e-12  # of F or 1 - F: few rows of a minimum are as far from a threshold
_MOVES = 1e-3  # of a predictor by the last step, which is far shorter at a minimum


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RatioModel(LinearModel):
    """Stopping ratio or adjacent categories model, which `fit_ratio` returns.

    Attributes
    ----------
    family : {"stopping", "backward", "adjacent"}
    coef, thresholds, nominal_coef, link, loglik, covariance, ...
        As in `PomModel`. Thresholds are the predictors of a row whose features are 0;
        they need not increase.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_ratio(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> model.predict_proba([[0, 4], [1, 4]]).sum(axis=1)
    array([1., 1.])
    """

    @property
    def family(self) -> Family:
        """Return the family of the model."""
        return cast(Family, self.predictor.family)

    def _of_predictors(self, eta: np.ndarray) -> np.ndarray:
        P = np.zeros((len(eta), self.classes.size))
        log_p = log_probabilities(self.family, self.link, eta)
        P[:, self.predictor.observed] = np.exp(log_p)
        return P

    def _sides(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return sides_of(self, eta)

    def _means(self, n_more: int = 0) -> Means:
        return RatioMeans(self, self.family, n_more)

    def _residuals(
        self, at: DesignRows, ends: tuple[np.ndarray, np.ndarray], kind: Any, rng: Any
    ) -> np.ndarray:
        return residuals_at(self, at, ends, kind)

    def _end(
        self, loss: Any, found: Minimum, monitor: Monitor
    ) -> tuple[Status, np.ndarray, None]:
        find = partial(separated_columns, loss, found)
        return *check_separation_by(find, found.status, monitor), None


class Stages(NamedTuple):
    """Binary outcomes of a stopping ratio model, which `stages` returns.

    Attributes
    ----------
    row : (m,) int array
        Row of each outcome.
    stage : (m,) int array
        Threshold of each outcome, from 0 to the number of observed ranks minus 2.
    beyond : (m,) bool array
        Whether the rank is above the threshold.
    """

    row: np.ndarray
    stage: np.ndarray
    beyond: np.ndarray


@with_suggestions
def stages(
    y: Labels, *, backward: bool = False, classes: Sequence[Any] | None = None
) -> Stages:
    """Expand ranks into the binary outcomes of a stopping ratio model.

    The model is a binary regression of `beyond` on the features of `row` and on a
    constant per `stage`, so methods for binary outcomes fit stopping models.

    Parameters
    ----------
    y : (n,) array-like
        Ranks, as for `fit_pom`.
    backward : bool, default False
        Whether to begin at the highest rank, as family="backward" of `fit_ratio` does.
    classes : sequence of labels in rank order, optional

    Returns
    -------
    Stages

    Raises
    ------
    ValueError, TypeError
        If y is not a vector of labels, or has no order.

    See Also
    --------
    ordinal.fit_ratio : Fit a stopping ratio or an adjacent categories model by
        maximum likelihood.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as the
        proportional odds model.

    Examples
    --------
    >>> from ordinal.linear import stages
    >>> found = stages([1, 3, 2])
    >>> found.row.tolist(), found.stage.tolist(), found.beyond.tolist()
    ([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], [False, True, True, True, False])
    """
    check_flag("backward", backward)
    if classes is None:
        classes = declared_categories(y)
    labels = read_labels(y, "y")
    every = ranks_of(labels, classes_in_rank_order(labels, classes))
    rank = np.unique(every, return_inverse=True)[1][:, None]
    stage = np.arange(max(int(rank.max(initial=0)), 0))
    takes_part = stage >= rank - 1 if backward else stage <= rank
    row, at = np.nonzero(takes_part)
    return Stages(row, at, rank[row, 0] > at)


@preprocessed_in_columns
def fit_ratio(
    X: MatrixLike | str,
    y: Labels | None,
    *,
    family: Family = "stopping",
    link: Link = "logit",
    nominal: Sequence[str | int] = (),
    l1: float = 0.0,
    l2: float = 0.0,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    robust: bool = False,
    cluster: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    reference: Mapping[str, Any] | None = None,
    missing: Missing = "error",
    tol: float = 1e-6,
    max_iter: int = 100,
    max_time: float | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> RatioModel:
    """Fit a stopping ratio or an adjacent categories model by maximum likelihood.

    These models are alternatives to `fit_pom` if ranks are stages that are passed one
    after the other (stopping ratios), or if neighbouring ranks are to be compared
    (adjacent categories). Unlike there, nominal effects cannot give negative
    probabilities.

    Parameters
    ----------
    X, y : as for `fit_pom`
        Rows in memory.
    family : {"stopping", "backward", "adjacent"}, default "stopping"
        "stopping" has P(y = j | y >= j) = F(theta_j - x'beta), also called continuation
        ratio; "backward" begins at the highest rank, P(y <= j | y <= j + 1); "adjacent"
        has P(y = j | y is j or j + 1).
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default "logit"
        Name of the distribution function F. The likelihood of family="adjacent" is
        concave only for "logit".
    nominal : names or numbers of columns, default none
        Features with one coefficient per threshold.
    l1, l2 : float >= 0, default 0
        Penalties of the coefficients, as for `fit_pom`; nominal effects have none. With
        0, the default, the fit is by maximum likelihood. l1 > 0 needs a convex loss:
        any link but "cauchit", and "logit" for family="adjacent". `fit_pom_path` fits
        many penalties at once.
    offset, sample_weight, class_weight, robust, cluster : optional
        As for `fit_pom`.
    classes, missing_labels, preprocess, reference, missing : optional
        As for `fit_pom`.
    tol : float > 0, default 1e-6
        Length of the next Newton step, in standard errors. With l1 > 0, the duality gap
        relative to the loss without features.
    max_iter : int, default 100
    max_time, n_threads, callback, verbose : optional
        As for `fit_pom`.

    Returns
    -------
    RatioModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        If the fit stopped before it reached the tolerance, or if columns separate the
        ranks, so that there are no finite estimates: the message names them, and the
        status is `Status.SEPARATED`.
    CollinearColumnsWarning
        As in `fit_pom`.

    See Also
    --------
    fit_pom : Fit a cumulative link model by maximum likelihood, such as proportional
        odds.
    fit_clmm : Fit a cumulative link mixed model, with random effects of groups.
    fit_pom_path : Fit cumulative link models for a path of penalties: the lasso and
        elastic net.
    ordinal.inference.anova : Compare nested models of the same rows by likelihood ratio
        tests.
    ordinal.inference.lr_test : Compare two nested models of the same rows by a
        likelihood ratio test.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.fit_ratio(X, y, family="adjacent").predict([[10.0, 10.0], [20.0, 10.0]])
    array([1, 3])
    """
    check_choice("family", family, get_args(Family))
    check_choice("link", link, get_args(Link))
    robust = check_flag("robust", robust)
    l1, l2 = check_factor_or_zero("l1", l1), check_factor_or_zero("l2", l2)
    max_iter = check_count("max_iter", max_iter)
    given = shared_arguments(PomArguments, locals(), threshold="flexible", scale=())
    prepared = prepare_pom(
        "fit_ratio", X, y, l1 > 0 or l2 > 0, monotone=l1 == 0, shifted=True, **given
    )
    if prepared.training.monotone:
        prepared = constrained(
            prepared, "fit_ratio", lambda D: RatioLikelihood(D, family, link, l2)
        )
    # the path solver has the penalties itself
    loss = RatioLikelihood(prepared.design, family, link, 0.0 if l1 > 0 else l2)
    if l1 > 0 and not loss.is_convex:
        raise ValueError(
            f"l1 must be 0 with family={shown(family)} and link={shown(link)}, whose "
            f"loss is not convex, got {shown(l1)}"
        )
    groups, n = prepared.training.cluster, prepared.design.n_samples
    without = "with a penalty" if l1 or l2 else ""
    choice = CovarianceChoice.from_arguments(robust, groups, n, without)
    with prepared.monitor as monitor:
        objectives = None
        if l1 > 0:
            solver = PathSolver(loss, max_iter, monitor)
            net = solver.reach(l1, l2)
            found, objectives = solver.minimum(net), (net.primal, net.dual)
        else:
            found = newton(loss, loss.start(), max_iter, monitor)
        model = ratio_model(prepared, loss, found, (l1, l2), choice, objectives)
        monitor.conclude(model, warn=_warn)
    return model


def _warn(model: RatioModel) -> None:
    """Warn of problems of a fit."""
    # Nominal effects have no penalty.
    by_nominal = np.isin(model.statistics.separated, model.predictor.nominal).any()
    remedy = "leave them out" if by_nominal else "l2 > 0 gives finite ones"
    warn_of_shortfalls(model, "fit_ratio", remedy)


def separated_columns(loss: RatioLikelihood, found: Minimum) -> np.ndarray:
    """Return columns that separate the ranks, with the certificate of `separation`.

    It is looked for where the next Newton step would still move a predictor, or where F
    is flat at one. At a finite minimum such steps are short; where ranks are separated
    the loss flattens, and each moves predictors by about 1, until rounding hides it.
    """
    D, step = loss.design, found.step
    none = np.zeros(0, np.int64)
    if not (np.isfinite(step).all() and found.point.hessian is not NONE):
        return none
    flat = False
    for rows in row_strips(D.X, 1 << 12):
        eta = loss.predictors(found.point.x, rows)[D.weight[rows] > 0]
        ends = exceeding(loss.link, eta), cumulative(loss.link, eta)
        flat = flat or bool(min(end.min(initial=1.0) for end in ends) < _FLAT)
    if loss.penalties.any():
        # Penalised slopes stay finite; those of nominal effects may not.
        if not D.nominal.size:
            return none
        D, step = replace(D, location=none), step[: sum(D.sizes[:2])]
        loss = RatioLikelihood(D, loss.family, loss.link)
    moved = 0.0
    for rows in row_strips(D.X, 1 << 12):
        by = np.abs(loss.predictors(step, rows, known=False))[D.weight[rows] > 0]
        moved = max(moved, float(by.max(initial=0.0)))
    if moved <= _MOVES and not flat:
        return none
    direction = certificate_of(loss.separation(), step)
    return none if direction is None else involved(D, direction)


def ratio_model(
    prepared: PreparedPom,
    loss: RatioLikelihood,
    found: Minimum,
    penalties: tuple[float, float],
    choice: CovarianceChoice,
    objectives: tuple[float, float] | None,
    null: float | None = None,
) -> RatioModel:
    """Return the model of a minimum, in the units of the features.

    `objectives` are primal and dual, where there is a dual, and `null` the
    log-likelihood without features, if it is known.
    """
    D, point, (l1, l2) = loss.design, found.point, penalties
    find = partial(separated_columns, loss, found)
    status, separated = check_separation_by(find, found.status, prepared.monitor)
    if null is None:
        null = null_loglik(D, loss.of_design)
    fields = prepared.fields(D, point.x, in_order=False) | {
        "family": loss.family,
        "uncertainty": None if l1 or l2 else covariance_of(loss, point, choice),
        "covariance_type": choice.kind,
        "l1": l1,
        "l2": l2,
        "loglik": -D.total * (point.value - 0.5 * float(loss.penalties @ point.x**2)),
        "null_loglik": null,
        "separated": read_only(separated),
        "convergence": prepared.monitor.record(
            status, found.n_iter, found.violation, *(objectives or (point.value, None))
        ),
    }
    model = RatioModel(**with_records(fields))
    frame = prepared.training.frame
    own = cast(Any, loss)
    memory = FitMemory(own, point.x, frame, again=loss.of_design)
    remember(model, memory, prepared.training.used)
    return model
