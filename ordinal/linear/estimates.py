"""Fields of a fitted cumulative model, its predictors, and its training rows.

A model refers to its training rows, for profiles and refits. The reference is a slot
that is no field of the dataclass, so files, pickles and copies do not contain the rows,
and comparisons of models ignore them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, Protocol

import numpy as np

from .._cumulative.design import (
    Design,
    Threshold,
    by_threshold,
    check_offset_columns,
    mean_offset,
    structure_of,
    threshold_parameter_names,
)
from .._cumulative.fitting import likelihood_of
from .._cumulative.likelihood import Likelihood, Link
from .._cumulative.newton import Loss, Minimum, minimize
from .._cumulative.recession import Limit
from .._formula.coding import Coding
from .._input.checks import enumerated, listed
from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    THRESHOLDS,
    Array,
    Length,
    Size,
)
from .._input.frame import Frame
from .._input.immutable import read_only
from .._input.problem import around_ranks
from .._input.sparse import CSR
from .._input.warning import warn
from .._model.model import Model
from .._model.support import finite_scores
from .._model.threshold_model import Thresholds, names_between
from .._numerics.rows import matvec
from .._watch.convergence import (
    Convergence,
    Status,
    warn_of_disorder,
    warn_of_divergence,
    warn_of_separation,
)
from .._watch.monitor import Monitor
from ..exceptions import ConvergenceWarning
from .sandwich import CovarianceType

TOL = 1e-6  # of refits, in standard errors: 1e-12 of twice the log likelihood
_MAX_ITER = 200
_NEAR_SUPREMUM = 1e-3  # length of the last step, in standard errors
_SAME_LOSS = 1e-8  # relative change of the loss by which changed rows are noticed


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
    """

    loss: Likelihood
    x: np.ndarray
    frame: Frame | None
    limit: Limit | None = None


class ModelWithRows(Model):
    """Model that refers to its training rows until it is saved or copied."""

    __slots__ = ("remembered",)


def remember(model: ModelWithRows, fit: object) -> None:
    """Set the training rows of a new model, which is read-only otherwise."""
    object.__setattr__(model, "remembered", fit)


def remembered(model: Any, asked: str) -> FitMemory:
    """Return the training rows of a model; messages name the method `asked`.

    Raises
    ------
    ValueError
        If the model comes from a file, a pickle or a copy, if its rows were read in
        chunks, or if they have been changed since the fit.
    """
    found: FitMemory | None = getattr(model, "remembered", None)
    if hasattr(model, "random"):  # its loss is of another kind
        fit = "fit_pom" if model.family == "cumulative" else "fit_ratio"
        raise ValueError(
            f"{asked} is not available for models with random effects: fit by {fit}"
        )
    if found is None:
        raise ValueError(
            f"{asked} needs the training rows, which are kept only in the process "
            "that fitted the model and only where X was in memory, not after "
            "load, pickle or copy: call it before these, or fit again"
        )
    value = found.loss.at(found.x).value
    stored = model.convergence.primal
    if not abs(value - stored) <= _SAME_LOSS * max(1.0, abs(stored)):
        raise ValueError(
            f"{asked} needs unchanged training rows, but their mean loss is "
            f"{value:.8g} now and was {stored:.8g}: the arrays passed to the fit "
            "have been changed since; fit again"
        )
    return found


class StartedLoss(Loss, Protocol):
    """Loss that can be started without effects."""

    def start(self) -> np.ndarray: ...


def refit(loss: Loss, x: np.ndarray, asked: str) -> Minimum:
    """Minimise a loss from a point near the minimum, for the method `asked`."""
    return minimize(loss, x, _MAX_ITER, Monitor(asked, TOL))


def refit_design(fit: FitMemory, design: Design, x: np.ndarray, asked: str) -> Minimum:
    """Fit another design of the same rows, with the link of a fit, from x."""
    loss = likelihood_of(design, fit.loss.link, 0.0, fit.loss.n_threads)
    return refit(loss, x, asked)


def warn_unless_optimal(found: Minimum, asked: str, which: str) -> None:
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
        crossings[present[1:-1] - 1] = design.crossings(alpha, nu)
        # With nominal effects or offsets by threshold, the order differs by row.
        if not (design.nominal.size or design.is_shifted):
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
    if D.offset is None and D.J.shape[1] == D.T:
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
    return -D.total * refit(without, without.start(), "null_loglik").point.value


_ROUNDING = 1e-9  # differences between processors in thresholds computed from alpha


# This module does not import `annotations` from `__future__`: they would be strings,
# whose names would be looked up in the modules of the subclasses.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimates(Thresholds, ModelWithRows):
    """Fields of a `PomModel`, which documents them, and their names."""

    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    coding: Coding | None
    column_names: Annotated[tuple[str, ...], Length("c")]
    link: Link
    threshold: Threshold
    location: Annotated[np.ndarray, Array("i8", "l")]
    nominal: Annotated[np.ndarray, Array("i8", "m")]
    scale: Annotated[np.ndarray, Array("i8", "k")]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS]
    alpha: Annotated[np.ndarray, Array("f8", "q"), FINITE]
    nominal_coef: Annotated[np.ndarray, Array("f8", "q m"), FINITE]
    coef: Annotated[np.ndarray, Array("f8", "l"), FINITE]
    scale_coef: Annotated[np.ndarray, Array("f8", "k"), FINITE]
    crossings: Annotated[np.ndarray, Array("i8", "r-1"), NONNEGATIVE]
    observed: Annotated[np.ndarray, Array("b1", "r")]
    covariance: Annotated[np.ndarray, Array("f8", "p p"), FINITE] | None
    covariance_type: CovarianceType
    l1: Annotated[float, FINITE, NONNEGATIVE]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    loglik: Annotated[float, FINITE]
    null_loglik: Annotated[float, FINITE]
    n_obs: Annotated[float, FINITE, POSITIVE]
    n_missing: Annotated[int, NONNEGATIVE]
    separated: Annotated[np.ndarray, Array("i8", "_")]
    convergence: Convergence
    # Whether the fit had offsets by threshold.
    shifted: bool = field(default=False, kw_only=True)
    # Limits of the parameters of a separated fit: infinite, or nan, where they have no
    # estimate. None if the fit has no limit.
    limits: Annotated[np.ndarray, Array("f8", "p")] | None = field(
        default=None, kw_only=True
    )

    def _check(self) -> None:
        if self.coding is not None and self.coding.n_features != self.n_features:
            raise ValueError("coding must read the n_features columns of the model")
        made = self.feature_names if self.coding is None else self.coding.column_names
        c = self.n_features if made is None else len(made)
        if len(self.column_names) != c:
            raise ValueError(f"column_names must name the {c} columns of the features")
        for name in ("location", "nominal", "scale", "separated"):
            columns = getattr(self, name)
            if not ((columns >= 0) & (columns < c)).all():
                raise ValueError(f"{name} must number columns, 0 to {c - 1}")
            if np.unique(columns).size < columns.size:
                raise ValueError(f"{name} must number a column once")
        T = int(np.count_nonzero(self.observed)) - 1
        if T < 1 or structure_of(self.threshold, T).shape[1] != self.alpha.size:
            raise ValueError("alpha must have a parameter for each free threshold")
        self._check_thresholds(structure_of(self.threshold, T) @ self.alpha)
        p = self.alpha.size * (1 + self.nominal.size) + self.coef.size
        p += self.scale_coef.size + hasattr(self, "shape")
        if self.covariance is not None and len(self.covariance) != p:
            raise ValueError(f"covariance must have {p} rows, one per parameter")
        if self.limits is not None and len(self.limits) != p:
            raise ValueError(f"limits must have {p} entries, one per parameter")

    def _check_thresholds(self, inner: np.ndarray) -> None:
        """Raise ValueError unless the thresholds are J alpha, `inner`, at all ranks."""
        theta = self.thresholds
        if not self.may_cross:
            inner = np.maximum.accumulate(inner)
            if (theta[1:] < theta[:-1]).any():
                raise ValueError("thresholds must not fall without nominal effects")
        made = around_ranks(inner, np.flatnonzero(self.observed), self.classes.size)
        atol = _ROUNDING * np.abs(self.alpha).max()
        if not np.allclose(theta, made, rtol=_ROUNDING, atol=atol):
            raise ValueError("thresholds must be those that alpha and observed make")

    def _summary(self) -> dict[str, str]:
        lines: dict[str, str] = {"link": self.link}
        if self.l1 or self.l2:
            lines["penalties"] = _penalties_of(self)
        lines["coef"] = _few(self.coef_names, self.coef)
        lines["thresholds"] = _few(self.threshold_names, self.thresholds)
        # dataclass(slots=True) makes a second class, which super() does not know.
        return lines | super(Estimates, self)._summary()

    @property
    def categories(self) -> tuple[np.ndarray | None, ...] | None:
        """Levels of each categorical column, and None for each numeric one.

        None if all columns are numeric.
        """
        return None if self.coding is None else self.coding.categories

    @property
    def disorder(self) -> tuple[str, ...]:
        """Describe thresholds that cross at training rows, one line per pair.

        Only nominal effects can make them cross, and only at rows whose rank is not the
        one between them. The model fits these rows badly; because `cumulative_proba`
        sorts their probabilities, these do not give `loglik`. `negative_rows` returns
        the numbers of the rows.
        """
        return tuple(
            f"{lower} is above {higher} at {count} training row{'s' * (count > 1)}"
            for (lower, higher), count in zip(
                pairwise(self.threshold_names), self.crossings.tolist(), strict=False
            )
            if count
        )

    @property
    def may_cross(self) -> bool:
        """Return whether nominal effects or offsets may make thresholds cross."""
        return self.nominal.size > 0 or self.shifted

    @property
    def coef_names(self) -> tuple[str, ...]:
        """Return the names of the columns of `coef`."""
        return tuple(self.column_names[j] for j in self.location)

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

    @property
    def parameters(self) -> np.ndarray:
        """Return all estimates, (p,), in the order of `covariance`.

        The order is `alpha`, `nominal_coef` by rows, `coef`, `scale_coef`.
        """
        parts = self.alpha, self.nominal_coef.ravel(), self.coef, self.scale_coef
        return read_only(np.concatenate(parts))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the parameters.

        They are "1|2" for a threshold, "1|2.x" for a nominal coefficient of x at it,
        "x" for a coefficient and "scale.x" for a scale coefficient.
        """
        columns = self.column_names
        between = names_between(self.classes[self.observed])
        alpha = threshold_parameter_names(self.threshold, between)
        nominal = [f"{a}.{columns[j]}" for a in alpha for j in self.nominal]
        location = [columns[j] for j in self.location]
        scale = [f"scale.{columns[j]}" for j in self.scale]
        return (*alpha, *nominal, *location, *scale)


def _few(names: tuple[str, ...], values: np.ndarray, at_most: int = 5) -> str:
    """Return the first few values with their names, as text."""
    shown = [f"{name} {v:.4g}" for name, v in zip(names, values.tolist(), strict=True)]
    more = f", ... ({len(shown)})" if len(shown) > at_most else ""
    return ", ".join(shown[:at_most]) + more if shown else "none"


def _penalties_of(model: Estimates) -> str:
    """Return the penalties of a fit as text, such as "l1=0.1"."""
    penalties = {"l1": model.l1, "l2": model.l2}
    return ", ".join(f"{name}={v:g}" for name, v in penalties.items() if v)


def bias_of(model: Estimates) -> str:
    """Return why the estimates do not maximise the likelihood, or "" if they do."""
    if model.l1 or model.l2:
        return (
            f"this model was fitted with {_penalties_of(model)}, which biases them; "
            "fit without penalties"
        )
    if model.at_bound:
        return (
            f"increments of monotone effects are at their bound 0: "
            f"{listed(model.at_bound)}; join these levels with those before"
        )
    if (touching := getattr(model, "touching", np.zeros(0, np.int64))).any():
        pairs = list(pairwise(model.threshold_names))
        met = [" and ".join(pairs[j]) for j in np.flatnonzero(touching)]
        return (
            f"`in_order` holds thresholds where they meet: {listed(met)}; fit_ratio "
            "has nominal effects without this bound"
        )
    return ""


class NoEstimatesError(ValueError, AttributeError):
    """Error of a statistic that a fit does not have.

    It is an AttributeError, so that `hasattr` returns False for such a property.
    """


def check_likelihood(model: Estimates, asked: str) -> None:
    """Raise NoEstimatesError unless `loglik` is the supremum of the likelihood."""
    if bias := bias_of(model):
        raise NoEstimatesError(
            f"{asked} needs estimates of maximum likelihood, and {bias}"
        )
    if not model.separated.size:
        warn_unless_at_optimum(model)
        return
    if model.limits is not None:
        return
    # Where columns separate ranks, loglik is closer to the supremum than 1e-6 if the
    # last step was as short as this; scale effects have no such bound.
    is_scale = np.isin(model.separated, model.scale).all()
    if is_scale or model.convergence.violation > _NEAR_SUPREMUM:
        raise NoEstimatesError(
            f"{asked} needs estimates of maximum likelihood, and there are none, "
            f"because the likelihood grows for ever with effects of {_diverging(model)}"
            ": leave these columns out"
        )


def warn_unless_at_optimum(model: Estimates) -> None:
    """Warn that a fit has ended early, of which a call returns statistics."""
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


def _diverging(model: Estimates) -> str:
    """Return the names of the columns without estimates."""
    return enumerated([model.column_names[j] for j in model.separated])


def covariance_for(model: Estimates, asked: str, *, limit: bool = False) -> np.ndarray:
    """Return the covariance of the estimates.

    Raises NoEstimatesError if there is none, or if it does not describe their errors.
    `limit` says that `asked` accepts the covariance of the limit of a separated fit,
    which is 0 for parameters without estimates.
    """
    check_likelihood(model, asked)
    if model.separated.size and not (limit and model.limits is not None):
        raise NoEstimatesError(
            f"{asked} needs estimates, and there are none, because the likelihood "
            f"grows for ever with effects of {_diverging(model)}: leave these columns "
            "out"
        )
    V = model.covariance
    if model.separated.size and V is not None and not V.any():
        raise NoEstimatesError(
            f"{asked} needs estimates, and nothing can be estimated: "
            f"{_diverging(model)} separate all rows completely; leave these columns "
            'out. Profile likelihood intervals exist: confint(method="profile")'
        )
    early = not (model.convergence.converged or model.separated.size)
    if model.covariance is None and early:
        raise NoEstimatesError(
            f"{asked} needs the covariance, which a fit that ended as "
            f"{model.convergence.status.value} does not have: "
            f"{model.convergence.remedy}"
        )
    if model.covariance is None:
        raise NoEstimatesError(
            f"{asked} needs the covariance, which is not computed for a model with "
            "so many features, or in units of a column in which variances leave the "
            "range of double: fit again with fewer, or with columns in other units"
        )
    return model.covariance


def estimates_of(model: Estimates) -> np.ndarray:
    """Return the parameters, infinite or nan where they have no estimate, (p,)."""
    return model.parameters if model.limits is None else model.limits


def warn_of_shortfalls(
    model: Estimates, fit: str, remedy: str, easier: str = "raise max_iter"
) -> None:
    """Warn of separated ranks, or that a fit has not converged, and of disorder.

    `remedy` is that for separated ranks, and `easier` as for `warn_unless_converged`.
    """
    if model.separated.size:
        names = [model.column_names[j] for j in model.separated]
        if np.isin(model.separated, model.scale).all():
            cause = f"the likelihood grows for ever with effects of {enumerated(names)}"
            remedy = (
                "leave them out of scale=, and of the model if they separate ranks "
                "without error"
            )
            warn_of_divergence(cause, fit, remedy)
        else:
            warn_of_separation(names, fit, remedy)
    else:
        model.convergence.warn_unless_converged(fit, easier)
    if model.crossings.any():
        warn_of_disorder(model.disorder, fit)


_FARTHEST = 700.0  # log spread up to which exp of it and of its negative are finite


def score(
    model: Estimates, Z: np.ndarray | CSR, offset: np.ndarray | None
) -> np.ndarray:
    """Return x'beta plus the offset, (n,), for the design columns Z of some rows.

    Of an offset by threshold the mean is added. Raises ValueError for infinite scores.
    """
    f = _matvec(Z, model.location, model.coef)
    return finite_scores(f if offset is None else f + mean_offset(offset))


def predictors(
    model: Estimates, Z: np.ndarray | CSR, offset: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return eta_ij of (1) in `design`, (n, T), and 1 / s_i, (n, 1).

    The T thresholds are those between ranks that have training rows.
    """
    theta, f = thresholds_at(model, Z), _matvec(Z, model.location, model.coef)[:, None]
    if offset is not None:
        known = by_threshold(offset)
        if known.shape[1] > 1:
            check_offset_columns(known, theta.shape[1])
        f = f + known
    finite_scores(f)
    log_spread = _matvec(Z, model.scale, model.scale_coef)
    unit = np.exp(-np.clip(log_spread, -_FARTHEST, _FARTHEST))[:, None]
    with np.errstate(over="ignore"):  # infinite predictors have the right limits
        return (theta - f) * unit, unit


def thresholds_at(model: Estimates, Z: np.ndarray | CSR) -> np.ndarray:
    """Return theta_j - n_i'nu_j of rows, (n, T), or (1, T) without nominal effects."""
    theta = model.thresholds[np.flatnonzero(model.observed)[:-1]]
    if not model.nominal.size:
        return theta[None]
    nu = structure_of(model.threshold, theta.size) @ model.nominal_coef
    shift = [_matvec(Z, model.nominal, slopes) for slopes in nu]
    return np.asarray(theta - np.column_stack(shift))


def _matvec(Z: np.ndarray | CSR, columns: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return Z[:, columns] @ slopes; raise ValueError unless it is finite."""
    if not columns.size:
        return np.zeros(len(Z))
    every = np.zeros(Z.shape[1])
    every[columns] = slopes
    with np.errstate(over="ignore", invalid="ignore"):  # `finite_scores` reports it
        return finite_scores(matvec(Z, every))
