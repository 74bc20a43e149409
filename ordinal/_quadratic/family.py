"""Statement of a method of quadratic programs, and the options common to all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np

from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._input.types import AnyBasis
from .._model.basis import read
from .._model.folds import Shares
from .._watch.convergence import Convergence
from .._watch.monitor import Monitor
from ..kernels.features import Features
from ..kernels.functions import KernelFunction
from ..kernels.tiles import Products
from .losses import Losses
from .program import Program
from .proximal import Start, cold

P = TypeVar("P")  # a point of a path: the parameters that may differ between its fits
M = TypeVar("M", bound=Any)  # the model


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """Checked options of a fit, the same for all points of a path and for the folds.

    Attributes
    ----------
    kernel : callable
    n_threads : int
    cache_mb : float
        Memory for rows of the kernel matrix, or for features, in 10^6 bytes.
    max_iter : int or None
        Steps of the solver; its own default if None.
    seed : int
        Draws basis rows and samples of the rows.
    monitor : Monitor
    """

    kernel: KernelFunction
    n_threads: int
    cache_mb: float
    max_iter: int | None
    seed: int
    monitor: Monitor


class Solved(ABC):
    """Solutions of the programs of one point, by either driver.

    Attributes
    ----------
    options : KernelOptions
    support : (m, d) matrix
        The support rows as the model keeps them.
    coef : (m, P) array
        Coefficients of the scores of the P problems.
    b : list of P (T,) arrays
        The thresholds of every problem.
    """

    options: KernelOptions
    support: Any
    coef: np.ndarray
    b: list[np.ndarray]

    @abstractmethod
    def squared_norms(self) -> np.ndarray:
        """Return |w|^2 of every problem, (P,)."""

    @abstractmethod
    def records(self) -> list[Convergence]:
        """Return the record of every problem."""

    @abstractmethod
    def scores(self, problem: Problem) -> np.ndarray:
        """Return <w, phi(x)> - b of the training rows, (n,), for the only problem."""


class Fits(ABC, Generic[P, M]):
    """Fits to one problem, each begun at the solution of the one before."""

    def __init__(self, monitor: Monitor):
        self._monitor = monitor

    @abstractmethod
    def fit(self, point: P) -> tuple[M, np.ndarray | None]:
        """Return the model of a point, and the numbers of its support rows; None if
        these are the basis rows.
        """

    def path(self, points: Sequence[P]) -> list[tuple[M, np.ndarray | None]]:
        """Return the model and support rows of every point, as `fit` does."""
        found = []
        for i, point in enumerate(points):
            with self._monitor.numbered("point", i, len(points)):
                found.append(self.fit(point))
        return found

    @abstractmethod
    def close(self) -> None:
        """Release the memory and processes that the fits share."""


class Solver(ABC, Generic[P, M]):
    """Way to fit the models of a family: with the whole kernel matrix or on a basis."""

    @abstractmethod
    def begin(
        self, problem: Problem, start: Any = None, products: Products | None = None
    ) -> Fits[P, M]:
        """Return the fits to a problem, the first of which begins at the model `start`.

        `products` are the inner products of the rows, if they are known.
        """

    def restricted_to(self, problem: Problem, rows: np.ndarray) -> Solver[P, M]:
        """Return the solver for a problem of these training rows, as in a fold."""
        return self

    def fit(self, problem: Problem, point: P, start: Any = None) -> M:
        """Return the model of one point."""
        with closing(self.begin(problem, start)) as fits:
            return fits.fit(point)[0]

    def fit_path(self, problem: Problem, points: Sequence[P]) -> list[M]:
        """Return the models of several points."""
        with closing(self.begin(problem)) as fits:
            return [model for model, _ in fits.path(points)]


class Family(ABC, Generic[P, M]):
    """A method whose models are solutions of quadratic programs.

    Subclasses are frozen dataclasses of the method's own options. The P problems of a
    point have scores of their own over the same rows, and T thresholds each; problems
    with equally many thresholds form one `Program`.
    """

    __slots__ = ()
    reads_chunks = True  # a fit on a basis reads the rows of a source in chunks
    folds_start = False  # folds for probabilities begin at the model of all rows
    keeps_duals = False  # rows whose multipliers sum to 0 are support rows, too

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the `fit_*` function, for messages."""

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Check the options against the rows; raise ValueError or TypeError."""
        return self

    @abstractmethod
    def programs(self, point: P, problem: Problem) -> list[Program]:
        """Return (D) over the rows: one program per number of thresholds."""

    @abstractmethod
    def losses(self, point: P, problem: Problem) -> list[Losses]:
        """Return the losses by rank for a fit on a basis, one per problem in the order
        of `programs`.
        """

    @abstractmethod
    def model(self, point: P, problem: Problem, solved: Solved) -> M:
        """Return the model of one point."""

    def order(self, problem: Problem) -> np.ndarray | None:
        """Return an order of the rows in which the programs are solved faster."""
        return None

    def rank(self, problem: Problem) -> np.ndarray:
        """Return the entry of the losses that applies to each row."""
        return problem.rank_among_present

    def begin(
        self, start: Any, program: Program, point: P, problem: Problem
    ) -> np.ndarray:
        """Return multipliers to begin at, from another model."""
        raise NotImplementedError

    def begin_on_basis(
        self, start: Any, losses: list[Losses], problem: Problem, features: Features
    ) -> list[Start]:
        """Return the starts of the problems of a first point on a basis."""
        return [cold(features.m, q, np.zeros(q.T)) for q in losses]

    def basis(
        self,
        basis: AnyBasis | None,
        kernel: KernelFunction,
        problem: Problem,
        start: Any,
    ) -> BasisChoice | None:
        """Return how the basis is chosen; None for the whole kernel matrix."""
        return read(basis, kernel, problem, getattr(start, "dual", None) is not None)

    def check_start(
        self, start: Any, problem: Problem, kernel: KernelFunction, on_basis: bool
    ) -> None:
        """Raise TypeError or ValueError unless a fit can begin at this model."""

    def check_folds(self, shares: Shares | None) -> None:
        """Raise ValueError if a fold for probabilities cannot be fitted."""

    def own_solver(self, options: KernelOptions) -> Solver[P, M] | None:
        """Return a solver that takes the place of SMO on the whole kernel matrix."""
        return None

    def warn(self, model: M) -> None:
        """Warn if a returned model has not converged."""
        model.convergence.warn_unless_converged(self.name)
