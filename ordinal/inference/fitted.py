"""Fitted linear models as functions of inference see them.

`Fitted` is the protocol that the models of `fit_pom`, `fit_ratio` and `fit_clmm`
implement: estimates, their covariance, the likelihood, and how rows become linear
predictors. `remembered` returns the training rows, by which a model is fitted again.

A model refers to its training rows, for profiles and refits. The reference is a slot
that is no field of the dataclass, so files, pickles and copies do not contain the rows,
and comparisons of models ignore them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, Protocol, TypeVar, cast

import numpy as np

from .._cumulative.design import (
    Design,
    Threshold,
    by_threshold,
    check_offset_columns,
    mean_offset,
    read_offset,
    structure_of,
)
from .._cumulative.fitting import Loss, Minimum, likelihood_of, newton
from .._cumulative.likelihood import Likelihood, Link, Point
from .._cumulative.pooling import RankOrder, pooled
from .._cumulative.recession import Limit
from .._formula.coding import Coding
from .._input.checks import enumerated, listed, shown
from .._input.columns import index_of
from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, Array, Length
from .._input.frame import Frame
from .._input.immutable import read_only
from .._input.problem import around_ranks
from .._input.sparse import CSR
from .._input.types import ArrayLike, RowsLike
from .._input.warning import warn
from .._model.column_names import rows_for
from .._model.model import Model, read_for
from .._model.storage import Storable
from .._model.support import finite_scores
from .._model.training_rows import RowsUsed
from .._numerics.rows import matvec, strips, take
from .._watch.convergence import (
    Convergence,
    Status,
    warn_of_disorder,
    warn_of_divergence,
    warn_of_separation,
)
from .._watch.monitor import Monitor
from ..exceptions import ConvergenceWarning, NoEstimatesError
from ..preprocessing.model import PreprocessedModel
from .covariance import StructuredCovariance
from .sandwich import CovarianceType

TOL = 1e-6  # of refits, in standard errors: 1e-12 of twice the log likelihood
_MAX_ITER = 200
_ENTRIES = 1 << 20  # of the predictors of some rows
_NEAR_SUPREMUM = 1e-3  # length of the last step, in standard errors
_FARTHEST = 700.0  # log spread up to which exp of it and of its negative are finite
_M = TypeVar("_M")
_SAME_LOSS = 1e-8  # relative change of the loss by which changed rows are noticed


@dataclass(frozen=True, slots=True, eq=False)
class LinearPredictor(Storable):
    """Map from the columns of rows to the linear predictors of a model.

    Attributes
    ----------
    family : {"cumulative", "stopping", "backward", "adjacent"}
        How the predictors become probabilities.
    is_mixed : bool
        Whether random effects are part of the predictors.
    threshold : {"flexible", "symmetric", "equidistant"}
    coding : Coding or None
        Conversion of the columns of a table or of the terms of a formula to numeric
        columns; None if all features are numeric.
    column_names : tuple of str
        Names of the numeric columns.
    location, nominal, scale : int arrays
        Positions of the columns that have `coef`, `nominal_coef` and `scale_coef`.
    observed : (r,) bool array
        Whether each rank has training rows of positive weight.
    shifted : bool
        Whether the fit had offsets by threshold.
    binary : (d,) bool array
        Whether a numeric feature has only the values 0 and 1 in the training rows.
    spread : (d,) array
        Standard deviations of numeric features in the training rows.
    """

    family: Literal["cumulative", "stopping", "backward", "adjacent"]
    is_mixed: bool
    threshold: Threshold
    coding: Coding | None
    column_names: Annotated[tuple[str, ...], Length("c")]
    location: Annotated[np.ndarray, Array("i8", "l")]
    nominal: Annotated[np.ndarray, Array("i8", "m")]
    scale: Annotated[np.ndarray, Array("i8", "k")]
    observed: Annotated[np.ndarray, Array("b1", "r")]
    shifted: bool
    binary: Annotated[np.ndarray, Array("b1", "d")]
    spread: Annotated[np.ndarray, Array("f8", "d"), FINITE, POSITIVE]

    @property
    def coef_names(self) -> tuple[str, ...]:
        """Return the names of the columns of `coef`."""
        return tuple(self.column_names[j] for j in self.location)

    def by_column(self, coef: np.ndarray) -> np.ndarray:
        """Return `coef` at the places of its columns among all, (c,), else 0."""
        values = np.zeros(len(self.column_names))
        values[self.location] = coef
        return values

    @property
    def features(self) -> dict[str, np.ndarray]:
        """Return the columns of the location by the name of their term."""
        if self.coding is None:
            return {self.column_names[j]: np.array([j]) for j in self.location.tolist()}
        terms = self.coding.columns_of_terms.items()
        own = {term: np.intersect1d(of, self.location) for term, of in terms}
        return {term: columns for term, columns in own.items() if columns.size}

    @property
    def categories(self) -> tuple[np.ndarray | None, ...] | None:
        """Levels of each categorical column, and None for each numeric one.

        None if all columns are numeric.
        """
        return None if self.coding is None else self.coding.categories

    @property
    def may_cross(self) -> bool:
        """Return whether nominal effects or offsets may make thresholds cross."""
        return self.nominal.size > 0 or self.shifted

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of columns without a coefficient, which others determine."""
        used = {*self.location.tolist(), *self.nominal.tolist(), *self.scale.tolist()}
        used |= {*self._at_bound()}
        return tuple(c for j, c in enumerate(self.column_names) if j not in used)

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Increments of monotone effects that are 0 because of their constraint.

        If there are any, the estimates are not normally distributed, and the model has
        no standard errors.
        """
        return tuple(self.column_names[j] for j in self._at_bound())

    def _at_bound(self) -> list[int]:
        """Return the numbers of the columns `at_bound`."""
        monotone = {} if self.coding is None else self.coding.monotone
        every = [j for _, columns in monotone.values() for j in columns]
        return [j for j in every if j not in {*self.location.tolist()}]


@dataclass(frozen=True, slots=True, eq=False)
class FitStatistics(Storable):
    """Results of a fit beside its estimates and their covariance.

    Attributes
    ----------
    null_loglik : float
        Log-likelihood of the model without features.
    n_obs : float
        Sum of the weights.
    n_missing : int
        Number of rows that were left out because of missing values.
    uncertainty : (p, p) array, StructuredCovariance, or None
        Covariance of (alpha, nominal_coef, coef, scale_coef). With more than 100
        flexible thresholds it is held without its entries, in memory and files that
        grow linearly with the ranks. None for a fit with a penalty, whose estimates are
        biased, or with more than 2000 features, for which Newton's method is not used.
    covariance_type : {"observed", "robust", "cluster"}
        Type of the covariance: the inverse of the observed information, or a sandwich
        formula.
    l1, l2 : float
        Penalties.
    separated : int array
        Positions of the columns that separate the ranks, or whose scale effects
        diverge. Their coefficients have no finite optimum; those of the model are where
        the fit ended. Empty otherwise.
    limits : (p,) array or None
        Limits of the parameters of a separated fit: infinite, or nan, where they have
        no estimate. None if the fit has no limit.
    crossings : (r - 1,) int array
        Number of training rows at which each threshold lies above the next one.
    touching : (r - 1,) int array
        Number of rows of `in_order` at which each threshold meets the next one. If it
        is positive for any, the estimates have no normal distribution, and the model
        has no standard errors.
    """

    null_loglik: Annotated[float, FINITE]
    n_obs: Annotated[float, FINITE, POSITIVE]
    n_missing: Annotated[int, NONNEGATIVE]
    uncertainty: (
        Annotated[np.ndarray, Array("f8", "p p"), FINITE] | StructuredCovariance | None
    )
    covariance_type: CovarianceType
    l1: Annotated[float, FINITE, NONNEGATIVE]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    separated: Annotated[np.ndarray, Array("i8", "_")]
    limits: Annotated[np.ndarray, Array("f8", "p")] | None
    crossings: Annotated[np.ndarray, Array("i8", "r-1"), NONNEGATIVE]
    touching: Annotated[np.ndarray, Array("i8", "r-1"), NONNEGATIVE]


_RECORDS: dict[str, type[Any]] = {
    "predictor": LinearPredictor,
    "statistics": FitStatistics,
}


def with_records(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a model, with its records made of values by name."""
    rest, made = dict(values), {}
    for name, kind in _RECORDS.items():
        own = {f.name: rest.pop(f.name) for f in fields(kind)}
        made[name] = kind(**own)
    return rest | made


def with_values(model: _M, **values: Any) -> _M:
    """Return a copy of a model with other values of its fields and of its records."""
    for name, kind in _RECORDS.items():
        own = {f.name: values.pop(f.name) for f in fields(kind) if f.name in values}
        if own:
            values[name] = replace(getattr(model, name), **own)
    return cast(_M, replace(cast(Any, model), **values))


def with_parameters(model: _M, x: np.ndarray) -> _M:
    """Return a copy of a model whose `parameters` are x."""
    own = cast(Any, model)
    q, m, d = own.alpha.size, own.predictor.nominal.size, own.coef.size
    alpha, nu, beta, zeta = np.split(x, np.cumsum([q, q * m, d]))
    present = np.flatnonzero(own.predictor.observed)
    inner = structure_of(own.predictor.threshold, present.size - 1) @ alpha
    return with_values(
        model,
        thresholds=around_ranks(inner, present, own.classes.size),
        alpha=alpha,
        nominal_coef=nu.reshape(q, m),
        coef=beta,
        scale_coef=zeta,
    )


class Fitted(Protocol):
    """Fitted linear model, which `PomModel` documents.

    The private methods say what differs between families of models.
    """

    @property
    def classes(self) -> np.ndarray: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    @property
    def n_features(self) -> int: ...
    @property
    def predictor(self) -> LinearPredictor: ...
    @property
    def link(self) -> Link: ...
    @property
    def alpha(self) -> np.ndarray: ...
    @property
    def thresholds(self) -> np.ndarray: ...
    @property
    def nominal_coef(self) -> np.ndarray: ...
    @property
    def coef(self) -> np.ndarray: ...
    @property
    def scale_coef(self) -> np.ndarray: ...
    @property
    def parameters(self) -> np.ndarray: ...
    @property
    def parameter_names(self) -> tuple[str, ...]: ...
    @property
    def threshold_names(self) -> tuple[str, ...]: ...
    @property
    def loglik(self) -> float: ...
    @property
    def statistics(self) -> FitStatistics: ...
    @property
    def convergence(self) -> Convergence: ...
    @property
    def disorder(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, eq=False)
class FitMemory:
    """Loss of a fit, with the training rows, and its minimum.

    Attributes
    ----------
    loss : Likelihood
    x : (p,) array
        The minimum, in the units of the loss.
    frame : Frame or None
        The training table, if a coding has made the columns from one.
    limit : Limit or None
        The limit of the fit, if the ranks are separated and it has one.
    again : callable or None
        Makes the loss, without penalties, of another design of the same rows, for a
        family of models other than the cumulative one.
    """

    loss: Likelihood
    x: np.ndarray
    frame: Frame | None
    limit: Limit | None = None
    again: Callable[[Design], Any] | None = None

    def loss_of(self, design: Design) -> Any:
        """Return the loss, without penalties, of another design of the same rows."""
        if self.again is not None:
            return self.again(design)
        return likelihood_of(design, self.loss.link, 0.0, self.loss.n_threads)


def remember(model: Any, fit: object, used: np.ndarray | RowsUsed) -> None:
    """Set the training rows of a new model: a mask of the caller's, or their places."""
    if isinstance(used, np.ndarray):
        used = RowsUsed(used.size, None if used.all() else np.flatnonzero(used))
    object.__setattr__(model, "_remembered", fit)
    object.__setattr__(model, "_rows_used", used)


def remembered(model: Any, asked: str) -> FitMemory:
    """Return the training rows of a model; messages name the function `asked`.

    Raises
    ------
    ValueError
        If the model comes from a file, a pickle or a copy, if its rows were read in
        chunks, or if they have been changed since the fit.
    """
    found: FitMemory | None = getattr(model, "_remembered", None)
    if found is None:
        raise ValueError(
            f"{asked} needs the training rows, which are kept only in the process "
            "that fitted the model and only where X was in memory, not after "
            "load, pickle or copy: call it before these, or fit again"
        )
    loss, stored = found.loss, model.convergence.primal
    if model.convergence.dual is not None:
        # The objective of an elastic net has penalties that its loss has not.
        stored = -model.loglik / loss.design.total
    check_unchanged(loss.at(found.x).value, stored, asked)
    return found


def check_unchanged(value: float, stored: float, asked: str) -> None:
    """Raise ValueError unless the loss at the estimates is that of the fit."""
    if not abs(value - stored) <= _SAME_LOSS * max(1.0, abs(stored)):
        raise ValueError(
            f"{asked} needs unchanged training rows, but their loss is "
            f"{value:.8g} now and was {stored:.8g}: the arrays passed to the fit "
            "have been changed since; fit again"
        )


def fitted_model(
    model: Any, asked: str, remedies: Mapping[str, str] | None = None
) -> Any:
    """Return the linear model behind preprocessing, a search or an estimator.

    Parameters
    ----------
    model : Any
        What the caller of the function `asked` has passed.
    asked : str
    remedies : mapping of kinds of models, optional
        Kinds for which `asked` is not defined, "ratio" or "mixed", and what to use
        instead.

    Raises
    ------
    TypeError
        If there is no linear model, or one for which `asked` is not defined.
    """
    return fitted_rows(model, None, asked, remedies)[0]


def fitted_rows(
    model: Any, X: Any, asked: str, remedies: Mapping[str, str] | None = None
) -> tuple[Any, Any]:
    """Return the model as `fitted_model` does, and rows as its features."""
    given = model
    while not isinstance(getattr(model, "statistics", None), FitStatistics):
        if isinstance(model, PreprocessedModel) and X is not None:
            X = model._features(X)
        # estimators of scikit-learn have `model_`, and results of searches `model`
        inner = getattr(model, "model_", None) or getattr(model, "model", None)
        if not isinstance(inner, Model):
            raise TypeError(
                f"{asked} needs a model of fit_pom, fit_ratio or fit_clmm, got "
                f"{shown(given)}"
            )
        model = inner
    own = model.predictor
    kinds = {"mixed": own.is_mixed, "ratio": own.family != "cumulative"}
    for kind, applies in kinds.items():
        if applies and remedies and kind in remedies:
            raise TypeError(
                f"{asked} is not defined for a {type(model).__name__}: {remedies[kind]}"
            )
    return model, None if X is None else rows_for(model, X)


def rows_of(model: Any, X: Any, n: int) -> tuple[np.ndarray, Any]:
    """Return the positions of n rows of results, and their index in a data frame.

    They are those of X, as the caller passed it, or of the training rows.
    """
    if X is not None:
        return np.arange(n), index_of(X)
    return model.rows_used, model._rows_used.index


def about_groups(asked: str, model: Fitted, **arguments: Any) -> dict[str, Any]:
    """Return the arguments about random effects that the caller has passed."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if given and not model.predictor.is_mixed:
        names = " and ".join(given)
        raise TypeError(
            f"{asked} takes {names} for models with random effects, which a "
            f"{type(model).__name__} has not: leave {names} out"
        )
    return given


class StartedLoss(Loss, Protocol):
    """Loss that can be started without effects."""

    def start(self) -> np.ndarray: ...


def refit(loss: Loss, x: np.ndarray, asked: str) -> Minimum:
    """Minimise a loss from a point near the minimum, for the method `asked`."""
    found = newton(loss, x, _MAX_ITER, Monitor(asked, TOL))
    if (design := loss.design).lower is not None:
        theta = design.J @ design.split(found.point.x)[0]
        if (theta[1:] <= theta[:-1]).any():
            raise ValueError(
                f"{asked} makes a fit in which a rank that only intervals hold has no "
                "weight, unlike in the model: join it to the next rank first"
            )
    return found


def warn_unless_optimal(found: Any, asked: str, which: str) -> None:
    """Warn if a fit that a method makes has stopped before its optimum."""
    if found.status is not Status.CONVERGED:
        warn(
            f"{asked}: {which} ended with status {found.status.value}, "
            f"{found.violation:.1e} standard errors from its optimum",
            ConvergenceWarning,
        )


def fields_of_design(
    design: Design, observed: np.ndarray, x: np.ndarray, *, in_order: bool = True
) -> dict[str, Any]:
    """Return the fields of a model that its design and parameters determine.

    Parameters
    ----------
    design : Design
    observed : (r,) bool array
        Whether each rank has training rows.
    x : (p,) array
        Parameters in the units of the design.
    in_order : bool
        Whether thresholds must not cross, as in cumulative models.
    """
    alpha, nu, beta, zeta = design.split(design.raw(x))
    present = np.flatnonzero(observed)
    inner = design.J @ alpha
    crossings = np.zeros(observed.size - 1, dtype=np.int64)
    if in_order:
        # With nominal effects or offsets by threshold, the order differs by row.
        if design.nominal.size or design.is_shifted:
            crossings[present[1:-1] - 1] = design.crossings(alpha, nu)
        else:
            # Structured thresholds may differ from their order by rounding.
            inner = np.maximum.accumulate(inner)
    return {
        "location": read_only(design.location),
        "nominal": read_only(design.nominal),
        "scale": read_only(design.scale),
        "thresholds": read_only(around_ranks(inner, present, observed.size)),
        "alpha": read_only(alpha),
        "nominal_coef": read_only(nu),
        "coef": read_only(beta),
        "scale_coef": read_only(zeta),
        "crossings": read_only(crossings),
        "shifted": design.is_shifted,
    }


def null_loglik(D: Design, loss_of: Callable[[Design], StartedLoss]) -> float:
    """Return the log-likelihood of a fit without features.

    Thresholds and offset are the same, and `loss_of` makes the loss of a design. Free
    thresholds without an offset give the ranks their shares as probabilities, which
    takes no fit.
    """
    if D.offset is None and D.J.q == D.T and D.lower is None:
        mass = D.mass()
        mass = mass[mass > 0]
        return float(mass @ np.log(mass / D.total))
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    bare = replace(
        D,
        X=np.empty((D.n_samples, 0)),
        centre=nothing,
        spread=nothing,
        location=none,
        nominal=none,
        scale=none,
    )
    without = loss_of(bare)
    if D.lower is not None:
        return -D.total * _in_order(cast(Any, without), loss_of).value
    return -D.total * refit(without, without.start(), "null_loglik").point.value


def _in_order(loss: Any, loss_of: Callable[[Design], Any]) -> Point:
    """Return the minimum of a loss of intervals over thresholds in order."""
    order, least = RankOrder(loss), loss
    while True:
        found = newton(least, least.start(), _MAX_ITER, Monitor("null_loglik", TOL))
        if not order.revise(found.point.x):
            return found.point
        least = loss_of(pooled(loss.design, order.group))


def penalties_of(model: Fitted) -> str:
    """Return the penalties of a fit as text, such as "l1=0.1"."""
    penalties = {"l1": model.statistics.l1, "l2": model.statistics.l2}
    return ", ".join(f"{name}={v:g}" for name, v in penalties.items() if v)


def bias_of(model: Fitted) -> str:
    """Return why the estimates do not maximise the likelihood, or "" if they do."""
    if model.statistics.l1 or model.statistics.l2:
        return (
            f"this model was fitted with {penalties_of(model)}, which biases them; "
            "fit without penalties"
        )
    if model.predictor.at_bound:
        return (
            f"increments of monotone effects are at their bound 0: "
            f"{listed(model.predictor.at_bound)}; join these levels with those before"
        )
    if (touching := model.statistics.touching).any():
        pairs = list(pairwise(model.threshold_names))
        met = [" and ".join(pairs[j]) for j in np.flatnonzero(touching)]
        return (
            f"`in_order` holds thresholds where they meet: {listed(met)}; fit_ratio "
            "has nominal effects without this bound"
        )
    return ""


def check_likelihood(model: Fitted, asked: str) -> None:
    """Raise NoEstimatesError unless `loglik` is the supremum of the likelihood."""
    if bias := bias_of(model):
        raise NoEstimatesError(
            f"{asked} needs estimates of maximum likelihood, and {bias}"
        )
    if not model.statistics.separated.size:
        warn_of_early_end(model)
        return
    if model.statistics.limits is not None:
        return
    # Where columns separate ranks, loglik is closer to the supremum than 1e-6 if the
    # last step was as short as this; scale effects have no such bound.
    is_scale = np.isin(model.statistics.separated, model.predictor.scale).all()
    if is_scale or model.convergence.violation > _NEAR_SUPREMUM:
        raise NoEstimatesError(
            f"{asked} needs estimates of maximum likelihood, and there are none, "
            f"because the likelihood grows for ever with effects of {_diverging(model)}"
            ": leave these columns out"
        )


def warn_of_early_end(model: Fitted) -> None:
    """Warn of statistics of a model whose fit ended before the optimum."""
    end = model.convergence
    # Rounding may end a fit within the tolerance.
    stalled = end.status is Status.STALLED and end.violation <= end.tol
    if not (end.converged or stalled):
        # The text is the same for all statistics, so that one call shows it once.
        warn(
            f"the fit ended as {end.status.value}, so that its likelihood, standard "
            f"errors and tests are not those of an optimum: {end.remedy}",
            ConvergenceWarning,
        )


def _diverging(model: Fitted) -> str:
    """Return the names of the columns without estimates."""
    return enumerated(
        [model.predictor.column_names[j] for j in model.statistics.separated]
    )


def covariance_for(
    model: Fitted, asked: str, *, limit: bool = False
) -> np.ndarray | StructuredCovariance:
    """Return the covariance of the estimates.

    Both kinds have `diagonal()`, and products with arrays on either side.

    Raises NoEstimatesError if there is none, or if it does not describe their errors.
    `limit` says that `asked` accepts the covariance of the limit of a separated fit,
    which is 0 for parameters without estimates.
    """
    check_likelihood(model, asked)
    if model.statistics.separated.size and not (
        limit and model.statistics.limits is not None
    ):
        raise NoEstimatesError(
            f"{asked} needs estimates, and there are none, because the likelihood "
            f"grows for ever with effects of {_diverging(model)}: leave these columns "
            "out"
        )
    V = model.statistics.uncertainty
    # That of a limit is a matrix.
    if model.statistics.separated.size and isinstance(V, np.ndarray) and not V.any():
        raise NoEstimatesError(
            f"{asked} needs estimates, and nothing can be estimated: "
            f"{_diverging(model)} separate all rows completely; leave these columns "
            'out. Profile likelihood intervals exist: confint(method="profile")'
        )
    early = not (model.convergence.converged or model.statistics.separated.size)
    if V is None and early:
        raise NoEstimatesError(
            f"{asked} needs the covariance, which a fit that ended as "
            f"{model.convergence.status.value} does not have: "
            f"{model.convergence.remedy}"
        )
    if V is None:
        raise NoEstimatesError(
            f"{asked} needs the covariance, which is not computed for a model with "
            "so many features, or in units of a column in which variances leave the "
            "range of double: fit again with fewer, or with columns in other units"
        )
    return V


def estimates_of(model: Fitted) -> np.ndarray:
    """Return the parameters, infinite or nan where they have no estimate, (p,)."""
    return (
        model.parameters if model.statistics.limits is None else model.statistics.limits
    )


def warn_of_shortfalls(
    model: Fitted, fit: str, remedy: str, easier: str = "raise max_iter"
) -> None:
    """Warn of separated ranks, or that a fit has not converged, and of disorder.

    `remedy` is that for separated ranks, and `easier` as for `warn_unless_converged`.
    """
    if model.statistics.separated.size:
        names = [model.predictor.column_names[j] for j in model.statistics.separated]
        if np.isin(model.statistics.separated, model.predictor.scale).all():
            cause = f"the likelihood grows for ever with effects of {enumerated(names)}"
            remedy = (
                "leave them out of scale=, and of the model if they separate ranks "
                "without error"
            )
            warn_of_divergence(cause, fit, remedy)
        else:
            warn_of_separation(names, fit, remedy)
    elif model.convergence.status is not Status.CONVERGED:
        model.convergence.warn_unless_converged(fit, easier)
    if model.statistics.crossings.any():
        warn_of_disorder(model.disorder, fit)


def score(model: Fitted, Z: np.ndarray | CSR, offset: np.ndarray | None) -> np.ndarray:
    """Return x'beta plus the offset, (n,), for the design columns Z of some rows.

    Of an offset by threshold the mean is added. Raises ValueError for infinite scores.
    """
    f = _matvec(Z, model.predictor.location, model.coef)
    return finite_scores(f if offset is None else f + mean_offset(offset))


def predictors(
    model: Fitted, Z: np.ndarray | CSR, offset: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return eta_ij of (1) in `design`, (n, T), and 1 / s_i, (n, 1).

    The T thresholds are those between ranks that have training rows.
    """
    f, unit = scaled_scores(model, Z, offset)
    with np.errstate(over="ignore"):  # infinite predictors have the right limits
        return (thresholds_at(model, Z) - f) * unit, unit


def scaled_scores(
    model: Fitted, Z: np.ndarray | CSR, offset: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return x'beta + o of rows, (n, 1), or (n, T) for an offset by threshold, and
    1 / s_i, (n, 1).
    """
    f = _matvec(Z, model.predictor.location, model.coef)[:, None]
    if offset is not None:
        known = by_threshold(offset)
        if known.shape[1] > 1:
            T = int(np.count_nonzero(model.predictor.observed)) - 1
            check_offset_columns(known, T)
        f = f + known
    finite_scores(f)
    log_spread = _matvec(Z, model.predictor.scale, model.scale_coef)
    return f, np.exp(-np.clip(log_spread, -_FARTHEST, _FARTHEST))[:, None]


def predictors_in_strips(
    model: Fitted, Z: np.ndarray | CSR, offset: np.ndarray | None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of rows, and their eta_ij as `predictors` does, (rows, T).

    There may be a rank per row, so that the predictors of all rows are too many.
    """
    f, unit = scaled_scores(model, Z, offset)
    for rows in strips(len(Z), max(1, _ENTRIES // model.classes.size)):
        with np.errstate(over="ignore"):  # infinite predictors have the right limits
            yield rows, (thresholds_at(model, take(Z, rows)) - f[rows]) * unit[rows]


def thresholds_at(model: Fitted, Z: np.ndarray | CSR) -> np.ndarray:
    """Return theta_j - n_i'nu_j of rows, (n, T), or (1, T) without nominal effects."""
    theta = model.thresholds[np.flatnonzero(model.predictor.observed)[:-1]]
    if not model.predictor.nominal.size:
        return theta[None]
    nu = structure_of(model.predictor.threshold, theta.size) @ model.nominal_coef
    shift = [_matvec(Z, model.predictor.nominal, slopes) for slopes in nu]
    return np.asarray(theta - np.column_stack(shift))


def _matvec(Z: np.ndarray | CSR, columns: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return Z[:, columns] @ slopes; raise ValueError unless it is finite."""
    if not columns.size:
        return np.zeros(len(Z))
    every = np.zeros(Z.shape[1])
    every[columns] = slopes
    with np.errstate(over="ignore", invalid="ignore"):  # `finite_scores` reports it
        return finite_scores(matvec(Z, every))


def read_design(
    model: Fitted, X: RowsLike, offset: ArrayLike | None
) -> tuple[np.ndarray | CSR, np.ndarray | None]:
    """Return the design columns of rows, (n, D), and their offset or None."""
    coding = model.predictor.coding
    if coding is None:
        Z = read_for(model, X)
        return Z, None if offset is None else read_offset(offset, len(Z))
    frame = coding.read(X)
    return coding.transform(frame), coding.offset(frame, offset)


def standard_errors(model: Fitted) -> np.ndarray:
    """Return the standard errors of the parameters, (p,); nan without an estimate.

    Raises NoEstimatesError as `covariance_for`.
    """
    V = covariance_for(model, "standard_errors", limit=True)
    errors = np.sqrt(np.maximum(V.diagonal(), 0.0))
    return read_only(np.where(np.isfinite(estimates_of(model)), errors, np.nan))


def has_errors(model: Fitted) -> bool:
    """Return whether there are standard errors, and intervals and tests by them.

    A penalised fit has none, nor has one with separated ranks or with more features
    than a covariance is computed for.
    """
    none = model.statistics.uncertainty is None or model.statistics.separated.size
    return not none and not bias_of(model)
