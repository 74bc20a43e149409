"""Fit the models of a family: check and read the arguments, solve, calibrate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Unpack

import numpy as np

from .._input.basis import BasisChoice
from .._input.checks import check_count, check_factor, check_positive
from .._input.problem import Problem
from .._input.types import AnyBasis, Blocks, Labels, Matrix, MatrixLike
from .._model.basis import TRIAL_GAP, chosen, enough_rows, features_among, in_memory
from .._model.folds import Shares, calibrate, split_problem
from .._model.preparation import KernelCommon, prepare_with_kernel
from .._model.support import decisions, read_only_matrix, support_rows
from .._rows.reading import Reading
from .._rows.rows import map_rows
from .._watch.convergence import Convergence
from .._watch.monitor import Monitor
from ..kernels.features import Features
from ..kernels.functions import KernelFunction, on_basis
from ..kernels.tiles import Evaluator, Products
from .driver import Follower, Solution, least_rows, records, values
from .family import Family, Fits, KernelOptions, M, P, Solved, Solver
from .on_basis import BasisFit, record
from .program import Program, gram_in_time
from .proximal import ProximalSolution


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


class _FitsOnBasis(Fits[P, M]):
    """Fits on the features of a basis, which are computed once."""

    def __init__(self, solver: OnBasis[P, M], problem: Problem, start: Any):
        options = solver.options
        super().__init__(options.monitor)
        self._solver, self._problem, self._start = solver, problem, start
        self._fits = BasisFit(
            solver.features,
            problem.X,
            solver.family.rank(problem),
            problem.weight,
            options,
        )

    def fit(self, point: P) -> tuple[M, None]:
        """Return the model of a point."""
        family, options = self._solver.family, self._solver.options
        problem, features, start = self._problem, self._solver.features, self._start
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
            self._fits.check(self._solver.family.losses(point, self._problem))
        return super().path(points)

    def close(self) -> None:
        """Release the features that the workers or this process hold for the fits."""
        self._fits.close()


@dataclass(frozen=True, slots=True)
class OnBasis(Solver[P, M]):
    """Solver of a family on the features of a basis."""

    family: Family[P, M]
    options: KernelOptions
    features: Features

    @classmethod
    def choose(
        cls,
        family: Family[P, M],
        options: KernelOptions,
        choice: BasisChoice,
        problem: Problem,
        point: P,
    ) -> OnBasis[P, M]:
        """Choose the basis rows, and return the solver on them.

        If their number is not given, it is found by fitting models of this point to
        parts of the problem.
        """
        kernel = options.kernel
        if choice.way == "auto":
            monitor = options.monitor
            coarse = replace(
                options, monitor=monitor.to_tol(max(TRIAL_GAP, monitor.tol))
            )

            def fit(part: Problem, tried: BasisChoice) -> M:
                here = cls.choose(family, coarse, tried, part, point)
                return here.fit(part, point)

            choice = enough_rows(problem, kernel, fit, options.seed)
        features = chosen(choice, kernel, problem, options.seed, options.n_threads)
        return cls(family, options, features)

    def restricted_to(self, problem: Problem, rows: np.ndarray) -> OnBasis[P, M]:
        """Return the solver for a problem of these training rows, as in a fold."""
        options = self.options
        features = features_among(
            self.features, options.kernel, problem.X, rows, options.n_threads
        )
        return replace(self, features=features)

    def begin(
        self, problem: Problem, start: Any = None, products: Products | None = None
    ) -> Fits[P, M]:
        """Return the fits to a problem; all have the basis rows as support."""
        return _FitsOnBasis(self, problem, start)


MAX_ITER = 10_000_000  # pair steps: some 100 per row at 100 000 rows


class WholeSolution(Solved):
    """Solutions with the whole kernel matrix.

    Attributes
    ----------
    programs, solutions : sequences of Program and Solution
        One per number of thresholds.
    rows : (m,) array
        The support rows among the training rows.
    """

    def __init__(
        self,
        options: KernelOptions,
        problem: Problem,
        programs: Sequence[Program],
        solutions: Sequence[Solution],
        keeps_duals: bool,
        order: np.ndarray | None,
    ):
        self.options, self.programs, self.solutions = options, programs, solutions
        self._beta = [s.g.sum(axis=1) for s in solutions]
        used = (
            [s.g.any(axis=(0, 1)) for s in solutions]
            if keeps_duals
            else [beta.any(axis=0) for beta in self._beta]
        )
        rows = np.flatnonzero(np.any(used, axis=0))
        self.coef = np.concatenate([beta[:, rows] for beta in self._beta]).T
        self.rows = rows if order is None else order[rows]
        self.support = support_rows(options.kernel, problem.X, self.rows)
        self.b = [b for s in solutions for b in s.b]

    def squared_norms(self) -> np.ndarray:
        """Return |w|^2 of every problem, (P,)."""
        pairs = zip(self._beta, self.solutions, strict=True)
        return np.concatenate([np.einsum("pn,pn->p", beta, s.f) for beta, s in pairs])

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
                *values(program, s.g, s.f, s.b),
            )
        return found

    def scores(self, problem: Problem) -> np.ndarray:
        """Return the scores of the only problem at the training rows, (n,)."""
        (s,) = self.solutions
        return np.asarray(s.f[0] - s.b[0, 0])


class _FitsToKernel(Fits[P, M]):
    """Fits with the whole kernel matrix, which they share."""

    def __init__(
        self,
        family: Family[P, M],
        options: KernelOptions,
        problem: Problem,
        start: Any,
        products: Products | None,
    ):
        super().__init__(options.monitor)
        self._family, self._options, self._start = family, options, start
        self._problem = self._inner = problem
        self._order = order = family.order(problem)
        if order is not None:
            self._inner, _ = split_problem(problem, options.kernel, order, order[:0])
            products = None if products is None else products.in_order(order)
        self._products = products
        self._followers: list[Follower] = []  # one per program of a point

    def fit(
        self, point: P, multipliers: np.ndarray | None = None
    ) -> tuple[M, np.ndarray]:
        """Return the model of a point, and the numbers of its support rows.

        The first program begins at `multipliers`, (P, T, n), if they are given.
        """
        family, options = self._family, self._options
        programs = family.programs(point, self._inner)
        begin = multipliers
        if not self._followers:
            if begin is None and self._start is not None:
                begin = family.begin(self._start, programs[0], point, self._inner)
            self._followers = self._followers_of(programs)
        solutions = []
        for follower, program in zip(self._followers, programs, strict=True):
            given = multipliers is not None
            found = follower.solve(program, self._monitor, begin, from_start=given)
            self._monitor = self._monitor.after(int(found.n_iter.sum()))
            solutions.append(found)
        solved = WholeSolution(
            options, self._problem, programs, solutions, family.keeps_duals, self._order
        )
        return family.model(point, self._problem, solved), solved.rows

    def close(self) -> None:
        """Release the kernel matrix."""
        self._followers.clear()

    def _followers_of(self, programs: Sequence[Program]) -> list[Follower]:
        """Compute the kernel matrix, and return a solver per program over it."""
        options, monitor = self._options, self._monitor
        gram = gram_in_time(
            monitor,
            options.kernel,
            self._inner.X,
            options.cache_mb,
            options.n_threads,
            least_rows(max(program.lo.shape[1] for program in programs)),
            self._products,
        )
        max_iter = options.max_iter or MAX_ITER
        return [
            Follower(gram, monitor.tol, max_iter, options.n_threads) for _ in programs
        ]


@dataclass(frozen=True, slots=True)
class WholeKernel(Solver[P, M]):
    """Solver of a family with the whole kernel matrix."""

    family: Family[P, M]
    options: KernelOptions

    def begin(
        self, problem: Problem, start: Any = None, products: Products | None = None
    ) -> _FitsToKernel[P, M]:
        """Return the fits to a problem."""
        return _FitsToKernel(self.family, self.options, problem, start, products)


class Arguments(KernelCommon, total=False):
    """Arguments that the `fit_*` functions of all families share."""

    basis: AnyBasis | None
    cache_mb: float
    max_iter: int | None
    start: Any


def fit(
    family: Family[P, M],
    X: MatrixLike | Blocks,
    y: Labels | None,
    point: P,
    **arguments: Unpack[Arguments],
) -> M:
    """Return the model of one point."""
    (model,), _ = fit_path(family, X, y, [point], **arguments)
    return model


def checked_cost(C: float) -> float:
    """Return the point of a method whose only varying parameter is C."""
    return check_factor("C", C)


_SHARED = Arguments.__required_keys__ | Arguments.__optional_keys__


def path_function(
    family: Callable[..., Family[P, M]], point: Callable[..., P]
) -> Callable[..., tuple[list[M], Sequence[np.ndarray | None]]]:
    """Return the `fit_path` that a method registers.

    Parameters
    ----------
    family : callable
        Constructs the family from the parameters of `fit_*` that are not shared.
    point : callable
        Constructs a point from the values of the varying parameters.
    """

    def fit_points(
        X: MatrixLike | Blocks,
        y: Labels | None,
        points: Sequence[Mapping[str, Any]],
        products: Products | None,
        X_test: Matrix | None,
        **options: Any,
    ) -> tuple[list[M], Sequence[np.ndarray | None]]:
        checked = [point(**values) for values in points]
        own = {name: options.pop(name) for name in options.keys() - _SHARED}
        return fit_path(family(**own), X, y, checked, products, X_test, **options)

    return fit_points


def fit_path(
    family: Family[P, M],
    X: MatrixLike | Blocks,
    y: Labels | None,
    points: Sequence[P],
    products: Products | None = None,
    X_test: Matrix | None = None,
    **arguments: Unpack[Arguments],
) -> tuple[list[M], Sequence[np.ndarray | None]]:
    """Return one model per point, each begun at the solution of the one before.

    Kernel values, from the inner products `products` of the rows if they are given, or
    features on a basis are computed once for all points. The second value is the
    decision function of each model at the rows of `X_test`, or None.
    """
    start = arguments.get("start")
    task = _prepared(family, X, y, **arguments)
    family, problem = task.family, task.problem
    with task.monitor, closing(problem):
        solver = task.solver(points[-1])
        with closing(solver.begin(problem, start, products)) as fits:
            models, used = map(list, zip(*fits.path(points), strict=True))
        scores = decisions(models, used, problem.X, X_test)

        def fit_fold(part: Problem, rows: np.ndarray) -> list[M]:
            here = solver.restricted_to(part, rows)
            if not family.folds_start:
                return here.fit_path(part, points)
            pairs = zip(points, models, strict=True)
            return [here.fit(part, point, model) for point, model in pairs]

        models = calibrate(models, problem, task.shares, fit_fold, task.monitor)
        task.monitor.conclude(models[-1].convergence)
    for model in models:
        family.warn(model)
    return models, scores


@dataclass(frozen=True, slots=True)
class _Task(Generic[P, M]):
    """Checked arguments of a fit."""

    family: Family[P, M]
    options: KernelOptions
    choice: BasisChoice | None
    problem: Problem
    shares: Shares | None

    @property
    def monitor(self) -> Monitor:
        return self.options.monitor

    def solver(self, point: P) -> Solver[P, M]:
        """Return the solver, on a basis that is chosen by models of this point."""
        family, options = self.family, self.options
        if self.choice is None:
            return family.own_solver(options) or WholeKernel(family, options)
        return OnBasis.choose(family, options, self.choice, self.problem, point)


def _prepared(
    family: Family[P, M],
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    basis: AnyBasis | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    start: Any = None,
    **common: Unpack[KernelCommon],
) -> _Task[P, M]:
    """Check and read the arguments of a fit."""
    cache_mb = check_positive("cache_mb", cache_mb)
    if max_iter is not None:
        max_iter = check_count("max_iter", max_iter)
    chunks = on_basis(basis, common.get("kernel")) if family.reads_chunks else None
    reading = Reading(chunks, in_place=basis is not None)
    prepared = prepare_with_kernel(family.name, X, y, reading, **common)
    kernel = prepared.kernel
    choice = family.basis(basis, kernel, prepared.problem, start)
    prepared = in_memory(choice, prepared)
    problem = prepared.problem
    family = family.prepared(problem, basis)
    if start is not None:
        family.check_start(start, problem, kernel, choice is not None)
    # Drawn before the folds, so that `probability` does not change the model.
    seed = 0 if choice is None else int(prepared.rng.integers(2**31))
    shares = prepared.folds(few=choice is not None)
    family.check_folds(shares)
    options = KernelOptions(
        kernel, prepared.n_threads, cache_mb, max_iter, seed, prepared.monitor
    )
    return _Task(family, options, choice, problem, shares)
