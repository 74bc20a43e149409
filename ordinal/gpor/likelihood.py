"""Ordinal probit likelihood of the training rows, and approximate posteriors.

The formulas are in the docstring of `_solvers/_ordinal_probit.pyx`. The hyperparameters
of the likelihood are ln sigma, b_1 and ln Delta_2 .. ln Delta_{r-1}, where r counts the
ranks that have rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._numerics.rows import strips
from .._solvers import _ordinal_probit

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
    """

    rank: np.ndarray
    weight: np.ndarray
    noise: float
    first: float
    width: np.ndarray
    extra_variance: np.ndarray
    n_threads: int

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
            yield rows, replace(self, rank=rank, weight=weight, extra_variance=extra)

    def loss(self, f: np.ndarray) -> np.ndarray:
        """Return log P and its first and minus its second derivative by f, (3, n)."""
        return self._call(_ordinal_probit.loss, f, np.empty((3, f.size)))

    def derivatives(self, f: np.ndarray) -> np.ndarray:
        """Return the derivatives listed at `_ordinal_probit.derivatives`, (7, n)."""
        return self._call(_ordinal_probit.derivatives, f, np.empty((7, f.size)))

    def _call(
        self, kernel: Callable[..., None], f: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        kernel(f, self.v, self.rank, self.b, self.width, out, self.n_threads)
        return out

    def slopes(self, by_row: np.ndarray) -> np.ndarray:
        """Return the derivatives by (ln sigma, b_1, ln Delta_2 ..) of a sum over rows.

        `by_row` (3, n) holds the derivatives of each summand by a shift of all
        thresholds, by the upper threshold of its rank, and by its noise variance.
        """
        r = self.width.size
        shift = np.bincount(self.rank, by_row[0], minlength=r)
        upper = np.bincount(self.rank, by_row[1], minlength=r)
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
