"""Fit the models of a method with a kernel: arguments, solver, probabilities, end.

A method states itself as a `Family`, whose `Solver` fits models to one problem. All of
them take their arguments, draw their folds, keep support rows and end in the same way.
"""

from __future__ import annotations  # numpy.random is slow to import

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, Unpack, cast

import numpy as np

from .._input.basis import BasisChoice, read_choice
from .._input.checks import check_count, check_factor, check_positive
from .._input.immutable import read_only
from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._input.types import AnyBasis, Blocks, Labels, Matrix, MatrixLike
from .._numerics.rows import take
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import Reading
from .._rows.rows import map_rows
from .._watch.convergence import Status, warn_of_disorder
from .._watch.monitor import Monitor
from ..kernels.functions import KernelFunction, on_basis
from ..kernels.tiles import Evaluator, Products
from .folds import Shares, calibrate, draw_few_folds, fold_shares
from .preparation import KernelCommon, prepare_with_kernel

# Columns of a linear kernel are the basis from _MANY rows on, up to _WIDEST columns and
# with _LEAST_PER_FEATURE rows per column: as measured by tools/bench/scale.py.
_MANY, _WIDEST, _LEAST_PER_FEATURE = 2000, 1000, 4

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
    monitor : Monitor
    seed : int
        Draws basis rows and samples of the rows.
    """

    kernel: KernelFunction
    n_threads: int
    cache_mb: float
    max_iter: int | None
    monitor: Monitor
    seed: int = 0


class Solver(ABC, Generic[P, M]):
    """Fits to one problem, each begun at the solution of the one before.

    Nothing that takes long is computed before the first fit.
    """

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
    def restricted_to(
        self, problem: Problem, rows: np.ndarray, start: M | None = None
    ) -> Solver[P, M]:
        """Return the solver of a problem of these training rows, as in a fold.

        Its first fit begins at the model `start`, if one is given.
        """

    def close(self) -> None:
        """Release the memory and processes that the fits share."""


class Family(ABC, Generic[P, M]):
    """A method with a kernel. Subclasses are frozen dataclasses of its own options."""

    __slots__ = ()
    reads_chunks = True  # a fit on a basis reads the rows of a source in chunks
    remote = True  # and those of dask collections
    folds_start = False  # folds for probabilities begin at the model of all rows

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the `fit_*` function, for messages."""

    @abstractmethod
    def solver(
        self,
        options: KernelOptions,
        choice: BasisChoice | None,
        problem: Problem,
        point: P,
        start: Any,
        products: Products | None,
    ) -> Solver[P, M]:
        """Return the solver of a problem.

        Parameters
        ----------
        choice : BasisChoice or None
            As `drawn` returned it. If the number of rows is still to be found, models
            of `point` determine it.
        start : model or None
            Where the first fit begins.
        products : Products or None
            Inner products of the rows, if they are known.
        """

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Check the options against the rows; raise ValueError or TypeError."""
        return self

    def basis(
        self,
        basis: AnyBasis | None,
        kernel: KernelFunction,
        problem: Problem,
        start: Any,
    ) -> BasisChoice | None:
        """Return how the basis is chosen; None for the whole kernel matrix."""
        return basis_choice(basis, kernel, problem)

    def drawn(
        self,
        choice: BasisChoice,
        options: KernelOptions,
        problem: Problem,
        point: P,
        rng: np.random.Generator,
    ) -> BasisChoice:
        """Return the choice with what is drawn for it, by default its seed."""
        return replace(choice, seed=int(rng.integers(2**31)))

    def check_start(
        self, start: Any, problem: Problem, kernel: KernelFunction, on_basis: bool
    ) -> None:
        """Raise TypeError or ValueError unless a fit can begin at this model."""

    def check_folds(self, shares: Shares) -> None:
        """Raise ValueError if a fold for probabilities cannot be fitted."""

    def warn(self, model: M) -> None:
        """Warn if a returned model has not converged, or of disordered thresholds."""
        if model.convergence.status is not Status.CONVERGED:
            model.convergence.warn_unless_converged(self.name)
        if not thresholds_in_order(model):
            warn_of_disorder(model.disorder, self.name)


def thresholds_in_order(model: object) -> bool:
    """Return whether no threshold of a model, if it has any, exceeds the next one."""
    b = getattr(model, "thresholds", np.empty(0))
    return not np.any(b[1:] < b[:-1])


def basis_choice(
    basis: Any, kernel: KernelFunction, problem: Problem, by_duals: bool = False
) -> BasisChoice | None:
    """Return how a fit chooses its basis, or None for the whole kernel matrix.

    With a linear kernel and few columns, the unit vectors are a basis on which the
    kernel is exact. Fits of many rows use it, unless they begin at dual variables
    (`by_duals`).
    """
    n, d = problem.n_samples, problem.n_features
    if basis is not None:
        return read_choice(basis, n, d)
    # With fewer rows, the kernel matrix is small, and dual variables are available.
    has_few_columns = n >= _MANY and d <= min(n // _LEAST_PER_FEATURE, _WIDEST)
    by_columns = has_few_columns and kernel.is_linear and not by_duals
    return BasisChoice("columns") if by_columns else None


def in_memory(problem: Problem, choice: BasisChoice | None) -> Problem:
    """Return a problem with its rows in memory if it has no basis.

    Raises ValueError for rows in chunks if they are so many that their kernel matrix
    would not be small.
    """
    if choice is not None or not isinstance(problem, ChunkedProblem):
        return problem
    n, d = problem.n_samples, problem.n_features
    if n >= _MANY:
        raise ValueError(
            f"X comes in chunks, {n} rows of {d} columns in all, and this fit would "
            "hold all of them in memory: pass the number of rows of a basis, such as "
            "basis=300"
        )
    return problem.part(np.arange(n))


def support_rows(kernel: KernelFunction, X: Matrix, rows: np.ndarray) -> Matrix:
    """Return the training rows that a kernel model keeps.

    For a precomputed kernel they are row numbers.
    """
    if kernel.by_number:
        return read_only(rows.astype(np.int64))
    return read_only_matrix(take(X, rows))


def read_only_matrix(support: Matrix) -> Matrix:
    """Return the rows as a read-only matrix."""
    return support if is_sparse(support) else read_only(cast(np.ndarray, support))


class Arguments(KernelCommon, total=False):
    """Arguments that the `fit_*` functions of all families share."""

    basis: AnyBasis | None
    cache_mb: float
    max_iter: int | None
    start: Any


_SHARED = Arguments.__required_keys__ | Arguments.__optional_keys__


def checked_cost(C: float) -> float:
    """Return C if it is valid: the point of a family whose points differ in C alone."""
    return check_factor("C", C)


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


def fit_path(
    family: Family[P, M],
    X: MatrixLike | Blocks,
    y: Labels | None,
    points: Sequence[P],
    products: Products | None = None,
    X_test: Matrix | None = None,
    *,
    basis: AnyBasis | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    start: Any = None,
    **common: Unpack[KernelCommon],
) -> tuple[list[M], Sequence[np.ndarray | None]]:
    """Return one model per point, each begun at the solution of the one before.

    Kernel values, from the inner products `products` of the rows if they are given, or
    features on a basis are computed once for all points. The second value is the
    decision function of each model at the rows of `X_test`, or None.
    """
    cache_mb = check_positive("cache_mb", cache_mb)
    if max_iter is not None:
        max_iter = check_count("max_iter", max_iter)
    chunks = on_basis(basis, common.get("kernel")) if family.reads_chunks else None
    reading = Reading(chunks, family.remote, in_place=basis is not None)
    prepared = prepare_with_kernel(family.name, X, y, reading, **common)
    kernel, monitor = prepared.kernel, prepared.monitor
    if prepared.problem.lower is not None and prepared.probability:
        raise ValueError(
            "probability must be False where y holds RankIntervals, because the link "
            "is calibrated by the rank of each row"
        )
    choice = family.basis(basis, kernel, prepared.problem, start)
    problem = in_memory(prepared.problem, choice)
    family = family.prepared(problem, basis)
    if start is not None:
        family.check_start(start, problem, kernel, choice is not None)
    options = KernelOptions(kernel, prepared.n_threads, cache_mb, max_iter, monitor)
    with monitor:
        shares, rng = None, prepared.rng
        if choice is not None:
            # Before the folds, so that `probability` does not change the model.
            choice = family.drawn(choice, options, problem, points[-1], rng)
        if prepared.probability:
            draw = fold_shares if choice is None else draw_few_folds
            shares = draw(problem, rng, kernel)
            family.check_folds(shares)
        solver = family.solver(options, choice, problem, points[-1], start, products)
        with closing(solver):
            models, used = map(list, zip(*solver.path(points), strict=True))
        scores = decisions(models, used, problem.X, X_test)

        def fit_fold(part: Problem, rows: np.ndarray) -> list[M]:
            if not family.folds_start:
                with closing(solver.restricted_to(part, rows)) as of_fold:
                    return [model for model, _ in of_fold.path(points)]
            found = []
            for point, model in zip(points, models, strict=True):
                with closing(solver.restricted_to(part, rows, model)) as of_fold:
                    found.append(of_fold.fit(point)[0])
            return found

        if shares is not None:
            models = calibrate(models, problem, shares, fit_fold, monitor)
        monitor.conclude(*models, warn=family.warn)
    return models, scores


def decisions(
    models: Sequence[Any],
    used: Sequence[np.ndarray | None],
    X: np.ndarray | CSR,
    X_test: Any,
) -> Sequence[np.ndarray | None]:
    """Return each model's `decision_function` of `X_test`, or None without `X_test`.

    The models have one kernel, so that kernel values are computed once for all of them.
    `used` are the numbers of their support rows in X, or None for models on a basis,
    which all have the same support.
    """
    if X_test is None or models[0].kernel.by_number:
        return [None] * len(models)
    columns = [model._columns() for model in models]
    ends = np.cumsum([c.shape[1] for c in columns])
    if used[0] is None:
        support, coef = models[0].support, np.hstack(columns)
    else:
        coef = np.zeros((len(X), ends[-1]))
        for rows, c, end in zip(used, columns, ends, strict=True):
            coef[rows, end - c.shape[1] : end] = c
        some = np.flatnonzero(coef.any(axis=1))
        support, coef = take(X, some), coef[some]

    def sums_of(rows: Any) -> np.ndarray:
        return Evaluator(models[0].kernel, rows, support).product(coef)

    sums = np.split(map_rows(sums_of, X_test), ends[:-1], axis=1)
    return [model._decided(part) for model, part in zip(models, sums, strict=True)]
