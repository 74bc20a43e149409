"""The ordinal probit likelihood, and Laplace's posterior of latent values.

The formulas of the likelihood l are in the docstring of `_solvers/_ordinal_probit.pyx`.
Its hyperparameters are ln sigma, b_1 and ln Delta_2 .. ln Delta_{r-1}, where r counts
the ranks that have rows. By Laplace's method,

    S(f) = sum_i w_i l(y_i, f_i) + 1/2 f'Sigma^-1 f                                  (9)

is convex. With f = Sigma a, its minimum has a_i = -w_i dl/df_i =: w_i g_i. Newton's
direction is d = (I + W Sigma)^-1 (w g - a), W_i = w_i d2l/df_i2. A factorisation is
used again as long as every step reduces the residual w g - a tenfold: near the minimum
W hardly changes, and a step then costs n^2 instead of n^3.

    -ln P(D) = S(f) + 1/2 ln |I + Sigma W|                                          (21)

Its gradient, Appendix A, has two parts: that of (21) at a fixed f, and that through
the mode f. For the second, let s = d(21)/df = 1/2 A_ii dW_ii/df_i with
A = (Sigma^-1 + W)^-1, and u = -(I + W Sigma)^-1 s. A change dSigma moves f by
(I + Sigma W)^-1 dSigma a, and (21) by -u'dSigma a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._numerics.descent import halved
from .._numerics.rows import strips
from .._solvers import _ordinal_probit
from .._watch.cancellation import OutOfTime, never
from .covariance import Covariance

ROWS = 8192  # rows of a part, whose derivatives are computed at a time


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """Likelihood P(y | f) of rows with ranks, weights and a noise variance per row.

    Attributes
    ----------
    rank : (n,) int32, 0..r-1
    weight : (n,) array > 0
        A row of weight w stands for w rows with the same latent value.
    noise : float
        sigma.
    first : float
        b_1.
    width : (r,) array
        Width Delta of the interval of every rank; inf for the outer two.
    extra_variance : (n,) array
        Noise variance of each row in addition to sigma^2 (`LowRank`).
    n_threads : int
    lower : (n,) int32, or None
        First possible rank of each row, where `rank` is the last one; None if all ranks
        are known.
    """

    rank: np.ndarray
    weight: np.ndarray
    noise: float
    first: float
    width: np.ndarray
    extra_variance: np.ndarray
    n_threads: int
    lower: np.ndarray | None = None

    @property
    def b(self) -> np.ndarray:
        """Return the (r - 1,) thresholds."""
        return self.first + np.append(0.0, np.cumsum(self.width[1:-1]))

    @property
    def v(self) -> np.ndarray:
        """Return the (n,) noise variances."""
        return self.noise**2 + self.extra_variance

    def parts(self) -> Iterator[tuple[slice, Self]]:
        """Yield slices of rows and their likelihoods, which bounds temporary memory."""
        for rows in strips(self.rank.size, ROWS):
            rank, weight = self.rank[rows], self.weight[rows]
            extra = self.extra_variance[rows]
            lower = None if self.lower is None else self.lower[rows]
            yield (
                rows,
                replace(
                    self, rank=rank, weight=weight, extra_variance=extra, lower=lower
                ),
            )

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a rank per row, thresholds and widths, as the kernels take them.

        Every distinct interval of ranks is a rank of its own, with two thresholds.
        """
        b, r = self.b, self.width.size
        if self.lower is None:
            return self.rank, b, self.width
        pairs, place = np.unique(
            self.lower * np.int64(r) + self.rank, return_inverse=True
        )
        low, high = np.divmod(pairs, r)
        ends = np.concatenate([[-np.inf], b, [np.inf]])
        thresholds = np.append(np.column_stack([ends[low], ends[high + 1]]), 0.0)
        own = self.width[high]
        inner = (low > 0) & (high < r - 1) & (low < high)
        own[inner] = (ends[high + 1] - ends[low])[inner]
        own[(low == 0) | (high == r - 1)] = np.inf
        widths = np.full(thresholds.size + 1, np.inf)
        widths[1:-1:2] = own
        return (2 * place + 1).astype(np.int32), thresholds, widths

    def loss(self, f: np.ndarray) -> np.ndarray:
        """Return log P and its first and minus its second derivative by f, (3, n)."""
        return self._call(_ordinal_probit.loss, f, np.empty((3, f.size)))

    def derivatives(self, f: np.ndarray) -> np.ndarray:
        """Return the derivatives listed at `_ordinal_probit.derivatives`, (7, n)."""
        return self._call(_ordinal_probit.derivatives, f, np.empty((7, f.size)))

    def _call(
        self, kernel: Callable[..., None], f: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        kernel(f, self.v, *self.places, out, self.n_threads)
        return out

    def slopes(self, by_row: np.ndarray) -> np.ndarray:
        """Return the derivatives by (ln sigma, b_1, ln Delta_2 ..) of a sum over rows.

        `by_row` (3, n) holds the derivatives of each summand by a shift of all
        thresholds, by the upper threshold of its rank, and by its noise variance.
        """
        r = self.width.size
        first = self.rank if self.lower is None else self.lower
        shift = np.bincount(first, by_row[0], minlength=r)
        upper = np.bincount(self.rank, by_row[1], minlength=r)
        if self.lower is not None:
            # The width of every rank of an interval moves its upper threshold.
            begun = np.bincount(first, by_row[1], minlength=r)
            upper = np.cumsum(begun) - np.append(0.0, np.cumsum(upper)[:-1])
        above = np.cumsum(shift[::-1])[::-1]  # sums over the ranks from k on
        by_noise = 2 * self.noise**2 * by_row[2].sum()
        by_width = self.width[1:-1] * (above[2:] + upper[1:-1])
        return np.concatenate([[by_noise, above[0]], by_width])


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Gaussian approximation of the posterior of f, with the parts of its gradient.

    Attributes
    ----------
    objective : float
        Log evidence, or the variational bound.
    a : (n,) array
        Sigma^-1 times the posterior mean.
    u : (n,) array
        A change dSigma of the covariance changes the objective by 1/2 a'dSigma a -
        1/2 tr(R dSigma) + u'dSigma a.
    by_row : (3, n) array
        Derivatives of the objective that `Likelihood.slopes` takes.
    state : array
        State from which the next inference may start.
    violation : float
        Residual of the optimality or fixed-point condition.
    tol : float
        Largest violation of a posterior that counts as converged.
    n_iter : int
    """

    objective: float
    a: np.ndarray
    u: np.ndarray
    by_row: np.ndarray
    state: np.ndarray
    violation: float
    tol: float
    n_iter: int

    @property
    def converged(self) -> bool:
        return self.violation <= self.tol


_TOL = 1e-12  # residual at which the search ends, in units of its largest term or 1
_USABLE = 1e-6  # residual up to which the mode counts as found, in the same units
_MAX_ITER = 500
_KEEP = 0.1  # share of the residual that a step with an old factor may leave


def laplace(
    cov: Covariance,
    like: Likelihood,
    state: np.ndarray | None,
    *,
    late: Callable[[], bool] = never,
) -> Posterior:
    """Return Laplace's posterior and the derivatives of its evidence.

    Parameters
    ----------
    cov : Dense or LowRank
    like : Likelihood
    state : (n,) array, optional
        `a` at which the search for the mode starts. Default: zeros.
    late : callable
        The search ends when it returns True.
    """
    start = np.zeros(like.weight.size) if state is None else state
    mode, n_iter = _find_mode(cov, like, start, late)
    # A state of another theta may be so far off that f is all rounding. From zeros the
    # search always succeeds.
    if mode.violation > _USABLE and state is not None and not late():
        return laplace(cov, like, None, late=late)
    return _posterior(cov, like, mode, n_iter)


@dataclass(frozen=True, slots=True, eq=False)
class _Iterate:
    """Point f = Sigma a of the search for the mode, and (9) there.

    Attributes
    ----------
    value : float
        S(f).
    residual : (n,) array
        w g - a, which is 0 at the mode.
    W : (n,) array
        Minus the second derivatives of the weighted log likelihoods.
    violation : float
        The largest entry of the residual, in units of the largest of w g or 1.
    """

    a: np.ndarray
    f: np.ndarray
    value: float
    residual: np.ndarray
    W: np.ndarray
    violation: float

    @classmethod
    def at(cls, like: Likelihood, a: np.ndarray, f: np.ndarray) -> Self:
        log_p, slope, W = like.loss(f)
        value = 0.5 * float(a @ f) - float(like.weight @ log_p)
        slope *= like.weight
        W *= like.weight
        # Slopes of steep likelihoods are large, and so is their rounding.
        unit = max(1.0, np.abs(slope).max())
        slope -= a
        return cls(a, f, value, slope, W, float(np.abs(slope).max() / unit))

    @property
    def rounding(self) -> float:
        """Return the rounding error of the objective."""
        return 1e-13 * (1 + abs(self.value))


def _find_mode(
    cov: Covariance, like: Likelihood, a: np.ndarray, late: Callable[[], bool]
) -> tuple[_Iterate, int]:
    """Return the minimum of (9), and the number of Newton steps.

    Newton steps update f along with a, so rounding errors add up in f. When the steps
    end, f is recomputed from a, and they continue from there until the residual after
    recomputing is within tolerance, or has not halved since the last time.
    """
    f, left, n_iter = cov.matvec(a), np.inf, 0
    while True:
        there, steps, settled = _newton(cov, like, a, f, _MAX_ITER - n_iter, late)
        n_iter += steps
        if steps:
            try:
                a, f = there.a, cov.matvec(there.a)
            except OutOfTime:
                return there, n_iter
            there = _Iterate.at(like, a, f)
        # This residual is the true one, which cannot fall below rounding.
        if not settled or there.violation <= _TOL or there.violation > left / 2:
            return there, n_iter
        left = there.violation


def _newton(
    cov: Covariance,
    like: Likelihood,
    a: np.ndarray,
    f: np.ndarray,
    max_steps: int,
    late: Callable[[], bool],
) -> tuple[_Iterate, int, bool]:
    """Return the last iterate, the number of steps, and whether no step can gain more.

    That is the case if the residual is within tolerance, or if a step with a new factor
    promised to lower S by less than its rounding error, and did not halve the residual.
    """
    here = _Iterate.at(like, a, f)
    last, promised, fresh = 0.0, np.inf, True
    for steps in range(max_steps):
        if not np.isfinite(here.violation):
            return here, steps, False
        hidden = fresh and promised < here.rounding and here.violation > last / 2
        if here.violation <= _TOL or hidden:
            return here, steps, True
        if late():
            return here, steps, False
        # A factor costs n^3 / 3, a solution n^2. The old factor is used as long as the
        # last step reduced the residual tenfold.
        fresh = here.violation > _KEEP * last
        try:
            d, Sigma_d = cov.solve(here.residual, here.W if fresh else None)
        except OutOfTime:
            return here, steps, False
        last = here.violation
        # Twice the decrease of S that Newton's quadratic model predicts.
        promised = float(here.residual @ Sigma_d)
        there = _line_search(like, here, d, Sigma_d, promised)
        if there is None:
            return here, steps + 1, False
        here = there
    return here, max_steps, False


def _line_search(
    like: Likelihood, here: _Iterate, d: np.ndarray, Sigma_d: np.ndarray, slope: float
) -> _Iterate | None:
    """Return the first of the steps 1, 1/2, 1/4 .. along d by Armijo's rule.

    -slope is the slope of S along d. Where it is below rounding, a step is also taken
    if S does not rise by more than rounding. None if no step qualifies.
    """

    def along(size: float) -> _Iterate:
        return _Iterate.at(like, here.a + size * d, here.f + size * Sigma_d)

    def settles(there: _Iterate, rise: float) -> bool:
        return bool(slope < here.rounding and rise <= here.rounding)

    # S is convex: a short enough step along a descent direction always falls.
    found = halved(along, here.value, -slope, settles=settles)
    return None if found is None else found[0]


def _posterior(
    cov: Covariance, like: Likelihood, mode: _Iterate, n_iter: int
) -> Posterior:
    """Return the posterior at the mode, with the derivatives of (21)."""
    n, violation = mode.a.size, np.inf
    u, by_row = np.zeros(n), np.zeros((3, n))
    try:
        half = -0.5 * like.weight * cov.variances(mode.W)
        for rows, part in like.parts():
            u[rows] = half[rows] * part.derivatives(mode.f[rows])[4]
        u, Sigma_u = cov.solve(u)
    except OutOfTime:  # only the mean is known
        u[:] = 0
    else:
        violation = mode.violation
        for rows, part in like.parts():
            f, w, h = mode.f[rows], part.weight, half[rows]
            d, (_, g, curvature) = part.derivatives(f), part.loss(f)
            by_g = w * Sigma_u[rows]
            by_row[0, rows] = h * -d[4] + by_g * curvature - w * g
            by_row[1, rows] = h * d[5] + by_g * d[2] + w * d[0]
            by_row[2, rows] = h * d[6] + by_g * d[3] + w * d[1]
    return Posterior(
        objective=-mode.value - 0.5 * cov.log_det,
        a=mode.a,
        u=u,
        by_row=by_row,
        state=mode.a,
        violation=violation,
        tol=_USABLE,
        n_iter=n_iter,
    )
