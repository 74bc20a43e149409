"""Statement of a method of quadratic programs, and its two solvers.

`WholeKernel` solves the programs with the kernel matrix of all rows, and `OnBasis` with
the features of a basis. Both end in a `Solved`, of which the method makes its model.
"""

from __future__ import annotations  # numpy.random is slow to import

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._input.basis import BasisChoice
from .._input.checks import listed
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._input.types import AnyBasis
from .._model.basis import TRIAL_GAP, chosen, features_among
from .._model.folds import split_problem
from .._model.kernel_fit import (
    Family,
    KernelOptions,
    M,
    P,
    Solver,
    basis_choice,
    read_only_matrix,
    support_rows,
)
from .._rows.rows import map_rows
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Convergence
from ..kernels.features import Features
from ..kernels.functions import KernelFunction
from ..kernels.tiles import Evaluator, Products
from .driver import Pivoting, Solution, least_rows, objectives, records, solve
from .losses import Losses
from .on_basis import BasisFit, record
from .program import Gram, Program, extrapolated, nearest_feasible
from .proximal import ProximalSolution, Start, cold


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


class BasisSolution(Solved):
    """Solutions of the programs of one point on a basis."""

    def __init__(
        self,
        options: KernelOptions,
        features: Features,
        solutions: Sequence[ProximalSolution],
    ):
        self.options, self.solutions = options, solutions
        self.support = read_only_matrix(features.support)
        self._w = np.stack([s.w for s in solutions], axis=1)
        self.coef = features.coefficients(self._w)
        self.b = [s.b for s in solutions]

    def squared_norms(self) -> np.ndarray:
        """Return |w|^2 of every problem, (P,)."""
        return np.asarray((self._w * self._w).sum(axis=0))

    def records(self) -> list[Convergence]:
        """Return the record of every problem."""
        return [record(self.options.monitor, s) for s in self.solutions]

    def scores(self, problem: Problem) -> np.ndarray:
        """Return the scores of the only problem at the training rows, (n,)."""
        kernel, n_threads = self.options.kernel, self.options.n_threads
        call = partial(_scores, kernel, n_threads, self.support, self.coef)
        return np.asarray(map_rows(call, problem.X) - self.b[0][0])


def _scores(
    kernel: KernelFunction, n_threads: int, support: Any, coef: np.ndarray, rows: Any
) -> np.ndarray:
    """Return the scores of some rows, before a threshold is subtracted, (n,).

    It is a module function so that it can be sent to a worker.
    """
    values = Evaluator(kernel, rows, support, n_threads)
    return np.asarray(values.product(coef)[:, 0])


@dataclass(slots=True, eq=False)
class WholeSolution(Solved):
    """Solutions with the whole kernel matrix.

    Attributes
    ----------
    programs, solutions : sequences of Program and Solution
        One per number of thresholds.
    rows : (m,) array
        The support rows among the training rows. Rows whose multipliers sum to 0 are
        among them if the family keeps duals.
    """

    options: KernelOptions
    programs: Sequence[Program]
    solutions: Sequence[Solution]
    rows: np.ndarray
    support: Any
    coef: np.ndarray
    b: list[np.ndarray]

    def squared_norms(self) -> np.ndarray:
        """Return |w|^2 of every problem, (P,)."""
        return np.concatenate(
            [np.einsum("pn,pn->p", s.g.sum(axis=1), s.f) for s in self.solutions]
        )

    def records(self) -> list[Convergence]:
        """Return the record of every problem."""
        found: list[Convergence] = []
        for program, s in zip(self.programs, self.solutions, strict=True):
            found += records(
                self.options.monitor,
                s.status,
                s.reached,
                s.n_iter,
                s.violation,
                *objectives(program, s.g, s.f, s.b),
            )
        return found

    def scores(self, problem: Problem) -> np.ndarray:
        """Return the scores of the only problem at the training rows, (n,)."""
        (s,) = self.solutions
        return np.asarray(s.f[0] - s.b[0, 0])


class QuadraticFamily(Family[P, M]):
    """A method whose models are solutions of quadratic programs.

    The P problems of a point have scores of their own over the same rows, and T
    thresholds each; problems with equally many thresholds form one `Program`.
    """

    __slots__ = ()
    keeps_duals = False  # rows whose multipliers sum to 0 are support rows, too

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
        """Return how the basis is chosen; none by default for a start with duals."""
        has_duals = getattr(start, "dual", None) is not None
        return basis_choice(basis, kernel, problem, has_duals)

    def solver(
        self,
        options: KernelOptions,
        choice: BasisChoice | None,
        problem: Problem,
        point: P,
        start: Any,
        products: Products | None,
    ) -> Solver[P, M]:
        """Return the solver with the whole kernel matrix or on a basis."""
        if choice is None:
            return WholeKernel(self, options, problem, start, products)
        options, monitor = replace(options, seed=choice.seed), options.monitor
        tol = max(TRIAL_GAP, monitor.tol)
        coarse = replace(options, monitor=monitor.to_tol(tol))

        def trial(part: Problem, features: Features) -> M:
            with closing(OnBasis(self, coarse, features, part)) as solver:
                return solver.fit(point)[0]

        kernel, n_threads = options.kernel, options.n_threads
        features = chosen(choice, kernel, problem, n_threads, trial)
        return OnBasis(self, options, features, problem, start)


class OnBasis(Solver[P, M]):
    """Solver on the features of a basis, which are computed once for all fits."""

    def __init__(
        self,
        family: QuadraticFamily[P, M],
        options: KernelOptions,
        features: Features,
        problem: Problem,
        start: Any = None,
    ):
        super().__init__(options.monitor)
        self._family, self._options = family, options
        self._features, self._problem, self._start = features, problem, start
        rank = family.rank(problem)
        self._fits = BasisFit(features, problem.X, rank, problem.weight, options)

    def restricted_to(
        self, problem: Problem, rows: np.ndarray, start: M | None = None
    ) -> OnBasis[P, M]:
        """Return the solver of a problem of these training rows."""
        options, features = self._options, self._features
        kernel, n_threads = options.kernel, options.n_threads
        features = features_among(features, kernel, problem.X, rows, n_threads)
        return OnBasis(self._family, options, features, problem, start)

    def fit(self, point: P) -> tuple[M, None]:
        """Return the model of a point."""
        family, options, features = self._family, self._options, self._features
        problem, start = self._problem, self._start
        losses = family.losses(point, problem)
        starts = self._fits.following(losses)
        # The rows of a precomputed kernel may have other numbers in a fold, so that
        # only the thresholds of a start are of use.
        warm = start is not None and not options.kernel.by_number
        found = self._fits.fit(
            losses,
            starts or family.begin_on_basis(start, losses, problem, features),
            warm=warm or starts is not None,
        )
        solved = BasisSolution(options, features, found)
        return family.model(point, problem, solved), None

    def path(self, points: Sequence[P]) -> list[tuple[M, np.ndarray | None]]:
        """Return the model and support rows of every point, all checked first."""
        for point in points:
            self._fits.check(self._family.losses(point, self._problem))
        return super().path(points)

    def close(self) -> None:
        """Release the features that the workers or this process hold for the fits."""
        self._fits.close()


MAX_ITER = 10_000_000  # pair steps: some 100 per row at 100 000 rows


class WholeKernel(Solver[P, M]):
    """Solver with the whole kernel matrix, which is computed once for all fits."""

    def __init__(
        self,
        family: QuadraticFamily[P, M],
        options: KernelOptions,
        problem: Problem,
        start: Any = None,
        products: Products | None = None,
    ):
        super().__init__(options.monitor)
        self._family, self._options, self._start = family, options, start
        self._problem = self._inner = problem
        self._order = order = family.order(problem)
        if order is not None:
            self._inner, _ = split_problem(problem, options.kernel, order, order[:0])
            products = None if products is None else products.in_order(order)
        self._products = products
        self._gram: Gram | None = None
        self._pivoting: list[list[Pivoting]] = []  # per program of a point
        self._last: list[tuple[Program, Solution]] = []  # of the last point

    def restricted_to(
        self, problem: Problem, rows: np.ndarray, start: M | None = None
    ) -> WholeKernel[P, M]:
        """Return the solver of a problem of these training rows."""
        return WholeKernel(self._family, self._options, problem, start)

    def fit(
        self, point: P, multipliers: np.ndarray | None = None
    ) -> tuple[M, np.ndarray]:
        """Return the model of a point, and the numbers of its support rows.

        The first program begins at `multipliers`, (P, T, n), if they are given.
        """
        family, inner, begin = self._family, self._inner, multipliers
        programs = family.programs(point, inner)
        if self._gram is None:
            if begin is None and self._start is not None:
                begin = family.begin(self._start, programs[0], point, inner)
            groups = max(program.lo.shape[1] for program in programs)
            self._gram = gram_of(self._options, inner.X, groups, self._products)
            self._pivoting = [
                [Pivoting(self._gram, q.curvature, len(q.lo)) for _ in q.lo]
                for q in programs
            ]
        begins = [begin] * len(programs)
        if begin is None and self._last:
            # each from the solution of the last point
            begins = [
                nearest_feasible(extrapolated(s.g, s.f, last, q), q)
                for q, (last, s) in zip(programs, self._last, strict=True)
            ]
        solutions = []
        for program, g, pivoting in zip(programs, begins, self._pivoting, strict=True):
            found = solve(
                self._gram,
                program,
                np.zeros_like(program.lo) if g is None else g,
                tol=self._monitor.tol,
                max_iter=self._options.max_iter or MAX_ITER,
                n_threads=self._options.n_threads,
                monitor=self._monitor,
                pivoting=pivoting,
                from_start=multipliers is not None,
            )
            self._monitor = self._monitor.after(int(found.n_iter.sum()))
            solutions.append(found)
        self._last = list(zip(programs, solutions, strict=True))
        solved = self._solved(programs, solutions)
        return family.model(point, self._problem, solved), solved.rows

    def _solved(
        self, programs: list[Program], solutions: list[Solution]
    ) -> WholeSolution:
        """Return the solutions of a point with their support rows and thresholds."""
        beta = [s.g.sum(axis=1) for s in solutions]
        used = (
            [s.g.any(axis=(0, 1)) for s in solutions]
            if self._family.keeps_duals
            else [part.any(axis=0) for part in beta]
        )
        rows = np.flatnonzero(np.any(used, axis=0))
        original = rows if self._order is None else self._order[rows]
        return WholeSolution(
            options=self._options,
            programs=programs,
            solutions=solutions,
            rows=original,
            support=support_rows(self._options.kernel, self._problem.X, original),
            coef=np.concatenate([part[:, rows] for part in beta]).T,
            # The middle of the thresholds that are optimal within the violation.
            b=[b for s in solutions for b in 0.5 * (s.low + s.up)],
        )

    def close(self) -> None:
        """Release the kernel matrix."""
        self._gram = None
        self._pivoting, self._last = [], []


def gram_of(
    options: KernelOptions, X: Any, groups: int, products: Products | None
) -> Gram:
    """Return the kernel matrix, without cached rows if there is no time for them.

    Without rows it suffices to judge the starting point of a fit. `groups` is the
    largest number of groups of a program.
    """
    kernel, n_threads, monitor = options.kernel, options.n_threads, options.monitor
    least = least_rows(groups)
    try:
        with monitor.stage("kernel matrix"), monitor.limited():
            return Gram(kernel, X, options.cache_mb, n_threads, least, products)
    except OutOfTime:
        return Gram(kernel, X, 0.0, n_threads, least)


def check_start_model(
    start: Any, kind: type[Any], problem: Problem, kernel: KernelFunction
) -> None:
    """Raise TypeError or ValueError unless a fit can begin at a model of this kind."""
    if not isinstance(start, kind):
        name = kind.__name__
        raise TypeError(f"start must be a {name}, got {type(start).__name__}")
    if not np.array_equal(start.classes, problem.classes):
        raise ValueError(
            f"start must have the classes of the data, {listed(problem.classes)}, "
            f"got {listed(start.classes)}"
        )
    by_number = kernel.by_number
    if start.kernel.by_number != by_number:
        raise ValueError(
            "start and the fit must both have a precomputed kernel, or neither"
        )
    if is_sparse(start.support) != is_sparse(problem.X) and not by_number:
        raise ValueError("start and X must both be dense or both be CSR")
    names = {start.feature_names, problem.feature_names}
    if None not in names and len(names) > 1:
        raise ValueError("start and X must have the same columns in the same order")
    if not by_number and start.n_features != problem.n_features:
        raise ValueError(
            f"start has {start.n_features} features, X has {problem.n_features}"
        )


def matched_rows(
    support: Any, values: np.ndarray, X: Any, lo: np.ndarray, hi: np.ndarray
) -> np.ndarray:
    """Return the values of support rows, (m, k), at the same rows of X, (k, n); else 0.

    Rows are found by their bytes in O(n), in whatever order they are in X. Of equal
    rows, a value goes to one whose bounds allow its sign.
    """
    where: dict[bytes | int, list[int]] = {}
    for i, key in enumerate(_keys(X, support)):
        where.setdefault(key, []).append(i)
    g = np.zeros_like(lo)
    for row, key in zip(values, _keys(support, support), strict=True):
        for i in where.get(key, ()):
            if not ((row < 0) & (lo[:, i] == 0) | (row > 0) & (hi[:, i] == 0)).any():
                g[:, i] = row
                where[key].remove(i)
                break
    return g


def _keys(X: Any, support: Any) -> list[Any]:
    """Return a key per row: its number for a precomputed kernel, or its bytes."""
    if len(support.shape) == 1:
        return support.tolist() if X is support else list(range(len(X)))
    if is_sparse(X):
        spans = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [
            X.indices[a:b].tobytes() + (X.data[a:b] + 0.0).tobytes() for a, b in spans
        ]
    return [row.tobytes() for row in X + 0.0]  # -0.0 is 0.0
