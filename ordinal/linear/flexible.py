"""Cumulative models with the log-gamma distribution as link, and an estimated shape.

With q = 1 / lambda^2 and u(v) = (exp(v) - 1 - v) / v^2, the density is

    f(t) = |lambda| q^q / Gamma(q) exp(q (lambda t - exp(lambda t)))
         = exp(c(lambda) - t^2 u(lambda t))                                         (1)

which is analytic at lambda = 0, where it is the normal density. lambda = 1 is the link
cloglog and -1 is loglog. For lambda > 0, F(t) = P(q, q exp(lambda t)) is the incomplete
gamma function; for lambda < 0, it is 1 - F(-t) of -lambda. Tails are integrals of (1)
from t outwards, relative to f(t), by the double exponential rule. Their error is about
1e-13 of the tail for all lambda, whereas series of the incomplete gamma function need
thousands of terms near lambda = 0.

V. T. Farewell, R. L. Prentice, "A study of distributional shape in life testing",
Technometrics 19:69-75, 1977. V. T. Farewell, "A note on regression analysis of ordinal
data with variability of classification", Biometrika 69:533-538, 1982. M. Mori,
M. Sugihara, "The double-exponential transformation in numerical analysis", Journal of
Computational and Applied Mathematics 127:287-296, 2001.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np

from .._cumulative.bordered import NONE, Bordered
from .._cumulative.design import Design, Threshold
from .._cumulative.fitting import likelihood_of, minimize
from .._cumulative.likelihood import (
    Link,
    Point,
)
from .._cumulative.newton import Minimum
from .._cumulative.newton import minimize as newton
from .._cumulative.rowwise import RowwiseLikelihood
from .._cumulative.separation import check_separation
from .._input.checks import check_count
from .._input.fields import FINITE
from .._input.sparse import read_only
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike
from .._model.preparation import Callback, shared_arguments
from .._numerics.rows import strips
from .._watch.convergence import Status
from .estimates import null_loglik, warn_of_shortfalls
from .inference import Predictions
from .prepared import PomArguments, PreparedPom, prepare_pom
from .sandwich import inverse
from .training import Missing

_STEP = 0.06  # of the double exponential rule
_U = np.arange(-4.0, 6.5, _STEP)
_NODES = np.exp(_U - np.exp(-_U))  # of integrals from 0 to infinity
_WEIGHTS = _STEP * _NODES * (1 + np.exp(-_U))
_ROWS = 2048  # rows whose integrands are in memory at a time
_SERIES = [1 / math.factorial(k) for k in range(17, 1, -1)]  # of u near 0
_H = 5e-3  # step of differences by lambda, which are of order 4
_FARTHEST, _HALVINGS = 1e3, 50  # of the bisection for a quantile


def _u(v: np.ndarray) -> np.ndarray:
    """Return u of (1), by its series where the formula would cancel."""
    near = np.abs(v) < 0.5
    far = np.where(near, 1.0, v)
    series = np.polyval(_SERIES, np.where(near, v, 0.0))
    return np.asarray(np.where(near, series, (np.expm1(far) - far) / far**2))


def _log_norm(shape: float) -> float:
    """Return c of (1), the logarithm of the normalising constant."""
    s = shape * shape
    if s < 0.0625:  # Stirling's series, where the terms below would cancel
        series = -s / 12 + s**3 / 360 - s**5 / 1260 + s**7 / 1680
        return series - 0.5 * math.log(2 * math.pi)
    q = 1 / s
    return 0.5 * math.log(s) + q * math.log(q) - q - math.lgamma(q)


def density(shape: float, t: np.ndarray) -> np.ndarray:
    """Return f of (1), 0 at infinite t."""
    finite = np.where(np.isfinite(t), t, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        f = np.exp(_log_norm(shape) - finite**2 * _u(shape * finite))
    return np.asarray(np.where(np.isfinite(t), f, 0.0))


def slope(shape: float, t: np.ndarray) -> np.ndarray:
    """Return the derivative f' of the density by t."""
    f = density(shape, t)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.where(f > 0, -f * _rate(shape, t), 0.0))


def _rate(shape: float, t: np.ndarray) -> np.ndarray:
    """Return -f'/f = (exp(lambda t) - 1) / lambda."""
    return np.asarray(t + shape * t * t * _u(shape * t))


def tails(shape: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return F and 1 - F in the shape of t, each with all digits where it is small."""
    flat, found = t.ravel(), np.empty((2, t.size))
    for rows in strips(t.size, _ROWS):
        found[:, rows] = _tails(shape, flat[rows])
    lower, upper = found.reshape(2, *t.shape)
    return lower, upper


def _tails(shape: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `tails` of a few entries, (n,)."""
    side = np.where(t > 0, 1.0, -1.0)
    finite = np.where(np.isfinite(t), t, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        rate = np.maximum(side * _rate(shape, finite), 0.0)
        # Scale of w, over which f decreases by a factor of about e. The tail with the
        # sign of lambda is lighter than an exponential one, and the other is heavier.
        spread = (1.0 + abs(shape)) ** np.where(side * shape > 0, 1, -1)
        length = 1 / (rate + spread)
        w = length[:, None] * _NODES
        v = side[:, None] * shape * w
        bend = w * w * _u(v)
        # log f(t) - log f(t + side w). It is nan far outside, as infinity times 0.
        drop = rate[:, None] * w * (1 + v * _u(v)) + bend
        drop = np.where(np.isnan(drop), np.inf, drop)
        tail = density(shape, t) * length * (np.exp(-drop) @ _WEIGHTS)
    return np.where(t > 0, 1 - tail, tail), np.where(t > 0, tail, 1 - tail)


def _quantiles(shape: float, p: np.ndarray) -> np.ndarray:
    """Return the quantiles of probabilities between 0 and 1, by bisection, (n,)."""
    # Quantiles of large shapes are about lambda log p or lambda log(1 - p).
    high = np.full(p.size, _FARTHEST * (1 + abs(shape)))
    low = -high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_below = tails(shape, middle)[0] < p
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2)


class FixedShape(RowwiseLikelihood):
    """Mean loss of a design at one lambda, without scale effects.

    The losses of other rows or columns, which `of_design` and `of_columns` make, have
    the probit link.
    """

    def __init__(self, design: Design, shape: float):
        super().__init__(design, "probit", 0.0, 1)
        self.shape = shape

    @property
    def is_convex(self) -> bool:
        return False

    def start(self) -> np.ndarray:
        """Return parameters without effects, at which the loss is finite."""
        x = super().start()
        # Beyond a shape of about 10, normal quantiles lie where one tail is 0.
        if not math.isfinite(self.value_and_gradient(x)[0]):
            x = self.design.start(_quantiles(self.shape, self.design.shares()))
        return x

    def _compute(
        self, a: np.ndarray, b: np.ndarray, delta: np.ndarray, out: np.ndarray
    ) -> None:
        """Compute log P of rows and its derivatives; P is 0 where tails underflow."""
        (low_a, up_a), (low_b, up_b) = tails(self.shape, a), tails(self.shape, b)
        with np.errstate(all="ignore"):  # the loss is infinite where P is 0
            P = np.where(b > 0, up_b - up_a, low_a - low_b)
            by_a, by_b = density(self.shape, a) / P, -density(self.shape, b) / P
            cross = -by_a * by_b
            out[:3] = np.log(P), by_a + by_b, by_a
            out[3] = slope(self.shape, a) / P - by_a**2 + cross
            out[4] = -slope(self.shape, b) / P - by_b**2 + cross
            out[5] = cross


class EstimatedShape:
    """Loss as a function of the parameters of a design and, as the last one, lambda."""

    is_convex = False

    def __init__(self, design: Design):
        self.design = design

    def at(self, x: np.ndarray) -> Point:
        """Return value, gradient and Hessian; derivatives by lambda are differences."""
        base, shape = x[:-1], float(x[-1])
        here = FixedShape(self.design, shape).at(base)
        losses = [FixedShape(self.design, shape + k * _H) for k in (-2, -1, 1, 2)]
        near = [loss.value_and_gradient(base) for loss in losses]
        values = np.array([value for value, _ in near])
        if not (math.isfinite(here.value) and np.isfinite(values).all()):
            return Point(x, math.inf, np.full(x.size, np.nan), NONE)
        # central differences of order 4 for the first and the second derivative
        first = np.array([1.0, -8.0, 8.0, -1.0]) / (12 * _H)
        second = np.array([-1.0, 16.0, 16.0, -1.0]) / (12 * _H**2)
        H = np.empty((x.size, x.size))
        H[:-1, :-1] = here.hessian.dense()
        H[-1, :-1] = H[:-1, -1] = first @ np.array([gradient for _, gradient in near])
        H[-1, -1] = second @ values - 30 * here.value / (12 * _H**2)
        gradient = np.append(here.gradient, first @ values)
        return Point(x, here.value, gradient, Bordered.from_dense(H))


# lambda of the links that are special cases of the log-gamma distribution
_CONTAINED: dict[Link, float] = {"probit": 0.0, "cloglog": 1.0, "loglog": -1.0}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FlexibleModel(Predictions):
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

    def _sides(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return tails(self.shape, self._at_all_thresholds(eta))


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
    warn_of_shortfalls(model, "fit_flexible", "leave them out")
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
        null_loglik=null_loglik(D, partial(FixedShape, shape=shape)),
        separated=read_only(separated),
        convergence=prepared.monitor.record(
            found.status, found.n_iter, found.violation, point.value, None
        ),
        shape=shape,
    )
