"""The ordinal probit likelihood of the training rows, and a posterior made with it.

The kernels' docstring (`_solvers/_ordinal_probit.pyx`) has the formulas.
Hyperparameters of the likelihood are ln sigma, b_1 and ln Delta_2 .. ln Delta_{r-1}; r
counts the ranks that have rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._numerics.rows import strips
from .._solvers import _ordinal_probit

ROWS = 8192  # of a part


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """log P(y | f) of rows with ranks, weights, and a noise variance each.

    Attributes
    ----------
    rank : (n,) int32, 0..r-1
    weight : (n,) array > 0
        Row i counts as so many rows with one latent value.
    noise : float
        sigma.
    first : float
        b_1.
    width : (r,) array
        Delta of every rank, inf for the outer two.
    rest : (n,) array
        Variance of a row besides sigma^2.
    n_threads : int
    """

    rank: np.ndarray
    weight: np.ndarray
    noise: float
    first: float
    width: np.ndarray
    rest: np.ndarray
    n_threads: int

    @property
    def b(self) -> np.ndarray:
        """Return the (r - 1,) thresholds."""
        return self.first + np.append(0.0, np.cumsum(self.width[1:-1]))

    @property
    def v(self) -> np.ndarray:
        """Return the (n,) noise variances."""
        return self.noise**2 + self.rest

    def parts(self) -> Iterator[tuple[slice, Self]]:
        """Yield the likelihood of some rows at a time, to save memory."""
        for rows in strips(self.rank.size, ROWS):
            rank, weight, rest = self.rank[rows], self.weight[rows], self.rest[rows]
            yield rows, replace(self, rank=rank, weight=weight, rest=rest)

    def loss(self, f: np.ndarray) -> np.ndarray:
        """Return (3, n): log P, its slope by f, and its curvature downwards."""
        return self._call(_ordinal_probit.loss, f, np.empty((3, f.size)))

    def derivatives(self, f: np.ndarray) -> np.ndarray:
        """Return (7, n): what `_ordinal_probit.derivatives` says."""
        return self._call(_ordinal_probit.derivatives, f, np.empty((7, f.size)))

    def _call(
        self, kernel: Callable[..., None], f: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        kernel(f, self.v, self.rank, self.b, self.width, out, self.n_threads)
        return out

    def slopes(self, by_row: np.ndarray) -> np.ndarray:
        """Slopes by (ln sigma, b_1, ln Delta_2 ..) of what changes by `by_row` (3, n):
        as all thresholds of a row move, as its upper one alone, as its variance.
        """
        r = self.width.size
        shift = np.bincount(self.rank, by_row[0], minlength=r)
        upper = np.bincount(self.rank, by_row[1], minlength=r)
        above = np.cumsum(shift[::-1])[::-1]  # of the ranks from here on
        by_noise = 2 * self.noise**2 * by_row[2].sum()
        by_width = self.width[1:-1] * (above[2:] + upper[1:-1])
        return np.concatenate([[by_noise, above[0]], by_width])


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """A Gaussian approximation of the posterior of f, and what its evidence rests on.

    Attributes
    ----------
    objective : float
        The log evidence, or the bound asked for.
    a : (n,) array
        Sigma^-1 times the posterior mean.
    u : (n,) array
        The objective changes by 1/2 a'dSigma a - 1/2 tr(R dSigma) + u'dSigma a.
    by_row : (3, n) array
        How it changes with the likelihood of each row, as `Likelihood.slopes` has it.
    state : array
        From which the next inference may start.
    violation : float
        What is left of the optimality or fixed-point condition.
    tol : float
        What may be left of it.
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
