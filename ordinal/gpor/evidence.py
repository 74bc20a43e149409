"""Evidence of a training set as a function of theta, and the search for its maximum."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self, TypeGuard

import numpy as np

from .._input.checks import check_choice, shown
from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._input.types import Kernel, Matrix
from .._model.preparation import column_moments, gamma_scale, make_kernel
from .._numerics.cholesky import pivoted_cholesky
from .._numerics.lbfgs import (
    Curvature,
    DenseCurvature,
    Minimum,
    NotFiniteError,
    minimize,
)
from .._numerics.memory import check_memory, in_gib
from .._numerics.rows import squared_norms, take
from .._rows.first_pass import ChunkedProblem
from .._rows.rows import Rows, map_rows
from .._watch.cancellation import OutOfTime, check_cancelled, ended_by, never
from .._watch.monitor import Monitor
from ..kernels.basis_rows import stratified
from ..kernels.functions import (
    LARGEST,
    KernelFunction,
    check_precomputed,
    kernel_class,
    kernel_names,
)
from ..kernels.tiles import diagonal_of, on_itself
from .covariance import BasisValues, Covariance, Dense, LowRank
from .ep import LOOSE, TOL, expectation_propagation
from .hyperparameters import Hyperparameters
from .laplace import Likelihood, Posterior, laplace

MAX_STEP = 3.0  # longest step of theta: the evidence is flat far from the data's scale
# Peak memory of an evaluation, by tracemalloc over the kernels: a little more than
# 3 n^2 doubles or, on a basis, this many bytes per row in addition to its features.
_DENSE, _PER_ROW = 3.2, 300
_NO_SIZE = 1e-300  # mean square up to which its inverse could overflow
_FEW = 100  # entries of theta up to which the Hessian is a matrix
_MANY = 10  # entries of theta above which a search ends by its expected gain
_LEAST = 250  # rows of the smallest sample
_PRECISE = 1e-6  # tolerance of EP per nat of the largest slope of the objective
_COARSE = 0.3  # tolerance of the searches on samples, in nats like `tol`
_DIFFERENCES = 4  # cost of a Hessian by differences, in evaluations on the next rows
_SHARED = 1000  # rows from which a loop over them is worth a second thread

Inference = Literal["ep", "laplace"]


class KernelFamily(NamedTuple):
    """Kernel as a function of the gammas that are learned.

    Attributes
    ----------
    make : callable
        Function of a (p,) array of gammas that returns the kernel.
    gamma : (p,) array
        Gammas of the default start; empty if none are learned.
    fixed : callable or None
        The kernel, if no gammas are learned.
    """

    make: Callable[[np.ndarray], KernelFunction]
    gamma: np.ndarray
    fixed: KernelFunction | None


class BasisRule(NamedTuple):
    """Rule that selects basis rows among the training rows of positive weight.

    Attributes
    ----------
    m : int
        Number of basis rows.
    select : callable
        Function of the kernel at the start, the rows, their ranks and their weights
        that returns the numbers of the basis rows.
    """

    m: int
    select: Callable[[KernelFunction, Any, np.ndarray, np.ndarray], np.ndarray]


# number or share of rows, chosen by pivoted Cholesky; row numbers; rows; or a rule
Basis = int | float | np.ndarray | CSR | BasisRule


class Inferred(NamedTuple):
    """Posterior at a theta, with the covariance, kernel and likelihood there."""

    posterior: Posterior
    cov: Covariance
    kernel: KernelFunction
    like: Likelihood


class ModelFields(NamedTuple):
    """Fields of the model at a theta.

    Attributes
    ----------
    rows : numbers of the support rows, or (m, d) rows that are not training rows
    value : float
        Minus the objective and the log density of the prior.
    violation : float
        Largest derivative of `value` by an entry of theta; inf if it is not known.
    """

    theta: np.ndarray
    posterior: Posterior
    kernel: KernelFunction
    like: Likelihood
    coef: np.ndarray
    root: np.ndarray
    rows: np.ndarray | CSR
    value: float
    violation: float = np.inf


@dataclass(frozen=True, slots=True)
class Settings:
    """Arguments of `fit_gpor` as an `Evidence` takes them.

    Attributes
    ----------
    kernel, inference, objective, prior, start : arguments of `fit_gpor`
    n_threads : int
    late : callable, optional
        Whether time is up, which ends an inference before its last sweep or step. With
        it, the best model so far is stored, which needs as much memory as its root.
    cache_mb : float, optional
        Memory for features of a basis, in 10^6 bytes; features that do not fit are
        computed again in every pass.
    """

    kernel: str | Kernel
    inference: Inference
    objective: str = "evidence"
    prior: Any = None
    start: Any = None
    n_threads: int = 1
    late: Callable[[], bool] | None = None
    cache_mb: float = np.inf


class Evidence:
    """Evidence ln P(D | theta), or EP's bound, of the rows of positive weight.

    Parameters
    ----------
    problem : Problem
        Training set. Rows in chunks need a basis of fewer rows.
    basis : Basis or None
        Basis of a covariance of low rank, or None for the whole covariance.
    settings : Settings

    Attributes
    ----------
    rows : numbers of the training rows of positive weight
    hyper : Hyperparameters
    basis : (m,) numbers among `rows`, (m, d) rows of the caller's own, or None for all
    basis_rows : the basis rows, or their numbers for a precomputed kernel
    state : array or None
        State of the last inference, from which the next one starts.
    best : ModelFields or None
        Model at the least value of `minus` so far or, if no inference has converged
        yet, at the first theta; None without `late`.
    of_sample : ModelFields or None
        Best model of the last sample of a search, which serves until all rows have one.
    """

    def __init__(self, problem: Problem, basis: Basis | None, settings: Settings):
        self.late = settings.late or never
        self._stores_best = settings.late is not None
        self._cache_mb = settings.cache_mb
        # A row of weight 0 would only take memory of order n.
        self.rows = np.flatnonzero(problem.weight > 0)
        n, m = self.rows.size, basis_size(basis, self.rows.size)
        # Before anything is allocated, because the system ends a process that takes too
        # much.
        _check_memory(n, m, self._stores_best, settings.cache_mb)
        self.weight = problem.weight[self.rows]
        if settings.inference == "ep" and self.weight.min() < 1:
            raise ValueError(
                "sample_weight must be 0, or 1 or more, with inference='ep', got "
                f"{self.weight.min()}"
            )
        self.inference: Inference = settings.inference
        self.objective = settings.objective
        self.n_threads = settings.n_threads if n >= _SHARED else 1
        X: Any = problem.X
        if n < problem.n_samples:
            X = X.subset(self.rows) if isinstance(X, Rows) else take(X, self.rows)
        self._family = _kernel_family(settings.kernel, problem, X)
        _, gamma, fixed = self._family
        self._by_number = fixed is not None and fixed.by_number
        if n < problem.n_samples and self._by_number:
            # Columns of a precomputed kernel are training rows, too.
            X = np.ascontiguousarray(X[:, self.rows])
        self.X = X
        c = 1.0 if fixed is None else _prior_scale(fixed, X, self.weight)
        present = np.flatnonzero(problem.present)
        self.rank, self.lower = problem.rank_among_present[self.rows], None
        if problem.lower is not None:
            self.lower = problem.among_present[problem.lower][self.rows]
        self.hyper = Hyperparameters.from_arguments(
            gamma, c, present, problem.n_classes, settings.prior, settings.start
        )
        self.state: np.ndarray | None = None
        self._numbers: np.ndarray | None = None  # rows of a sample in the next larger
        self.tol = TOL
        self.best: ModelFields | None = None
        self.of_sample: ModelFields | None = None
        self.basis = self._chosen(basis, m, settings.n_threads)
        self.basis_rows: Any = self.basis
        # As `ModelFields.rows`; a sample has the same.
        self._basis_support = self.basis
        if not (self.basis is None or _are_rows(self.basis)):
            self._basis_support = self.rows[np.asarray(self.basis)]
        if not (self.basis is None or _are_rows(self.basis) or self._by_number):
            self.basis_rows = take(X, np.asarray(self.basis))

    @property
    def n_basis(self) -> int:
        """Return the number of basis rows; 0 where all rows carry the covariance."""
        return 0 if self.basis_rows is None else len(self.basis_rows)

    def with_samples(self) -> list[Self]:
        """Return the evidences on which a search runs one after the other.

        They are those of samples of increasing size, each of which holds rows of the
        next one, and at last this one.
        """
        out = [self]
        # An evaluation costs n^3, or n on a basis.
        ratio, least = (4, 4 * self.n_basis) if self.n_basis else (2, _LEAST)
        while (size := out[-1].rows.size) >= ratio * max(least, _LEAST):
            out.append(out[-1].sample(size // ratio))
        return out[::-1]

    def affords_hessian(self, following: Evidence) -> bool:
        """Return whether a Hessian by differences here is worth its cost.

        It takes one gradient per entry of theta, which is little in comparison with the
        search on the rows of `following`.
        """
        one = (self.rows.size / following.rows.size) ** (1 if self.n_basis else 3)
        return self.hyper.begin.size * one <= _DIFFERENCES

    def sample(self, size: int) -> Self:
        """Return the evidence of about `size` rows, stratified by rank."""
        numbers = stratified(self.rank, size, np.random.default_rng(0))
        part = copy(self)
        part.rows, part.rank = self.rows[numbers], self.rank[numbers]
        part.lower = None if self.lower is None else self.lower[numbers]
        part.weight, part.X = self.weight[numbers], take(self.X, numbers)
        if self.basis is None and self._by_number:
            part.X = np.ascontiguousarray(part.X[:, numbers])
        part.n_threads = self.n_threads if numbers.size >= _SHARED else 1
        part.state = part.best = None
        part._numbers = numbers
        return part

    def state_for(self, following: Evidence) -> np.ndarray | None:
        """Return the state of this sample, scattered to the rows of `following`.

        It is 0 in the rows that are not in the sample.
        """
        if self.state is None:
            return None
        state = np.zeros((*self.state.shape[:-1], following.rows.size))
        state[..., self._numbers] = self.state
        return state

    def close(self) -> None:
        """End the current pass, if rows are read in chunks."""
        if isinstance(self.X, Rows):
            self.X.close()

    def _chosen(
        self, basis: Basis | None, m: int, n_threads: int
    ) -> np.ndarray | CSR | None:
        """Return the m basis rows that `basis` names or selects.

        The result is None if all rows are the basis, and an empty array if time is up
        before rows are selected.
        """
        if not isinstance(basis, BasisRule) and _are_rows(basis):
            return basis
        named = basis if isinstance(basis, np.ndarray) else self.rows[:0]
        if (absent := np.setdiff1d(named, self.rows)).size:
            raise ValueError(
                f"basis must name rows of positive weight, got row {absent[0]}, whose "
                "weight is 0"
            )
        # A basis of all rows is the whole kernel matrix, which costs less without it.
        if m == self.rows.size:
            return None
        if named.size:
            return np.searchsorted(self.rows, named)
        first = self._kernel(self.hyper.begin)
        try:
            with ended_by(self.late):
                if isinstance(basis, BasisRule):
                    return basis.select(first, self.X, self.rank, self.weight)
                tile = on_itself(first, self.X, n_threads).tile
                return pivoted_cholesky(diagonal_of(first, self.X), tile, m)[1]
        except OutOfTime:
            # The first inference then raises OutOfTime, too.
            return np.empty(0, np.intp)

    def minus(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective of a search and its gradient.

        The objective is minus the evidence and the log density of the prior; inf where
        it cannot be evaluated. Raises OutOfTime if time runs out.
        """
        try:
            # numbers may overflow at trial points
            with np.errstate(all="ignore"), ended_by(self.late):
                posterior, gradient = self.evaluate(theta)
        # The line search halves its step at inf; an error would end the search there.
        except ValueError:
            return np.inf, np.full_like(theta, np.nan)
        penalty, slopes = self.hyper.penalty(theta)
        slopes = slopes - gradient
        # The next inference would start badly from a state that has not converged.
        if posterior.converged:
            self.state = posterior.state
        if self.best is not None and self.best.posterior is posterior:
            violation = float(np.abs(slopes).max(initial=0.0))
            self.best = self.best._replace(violation=violation)
        return penalty - posterior.objective, slopes

    def evaluate(self, theta: np.ndarray) -> tuple[Posterior, np.ndarray]:
        """Return the posterior at theta and the gradient of its objective."""
        inferred = self.infer(theta)
        posterior, cov, kernel, like = inferred
        cut_short = not posterior.converged and self.late()
        if self._stores_best and self._is_best(theta, posterior):
            self.best = self._fields(theta, inferred)
        if cut_short:
            raise OutOfTime
        by_likelihood = like.slopes(posterior.by_row)
        # The first threshold of theta is in units of c.
        by_likelihood[1] *= self.hyper.c
        by_kernel = self._kernel_slopes(kernel, cov, posterior)
        return posterior, np.concatenate([by_kernel, by_likelihood])

    def _is_best(self, theta: np.ndarray, posterior: Posterior) -> bool:
        """Return whether a model of this posterior is better than the best so far."""
        if self.best is None:
            return True
        # Objectives of inferences that were cut short cannot be compared.
        if not posterior.converged or not self.best.posterior.converged:
            return posterior.converged
        return self._value(theta, posterior) < self.best.value

    def _fields(self, theta: np.ndarray, inferred: Inferred) -> ModelFields:
        """Return the fields of the model at theta."""
        posterior, cov, kernel, like = inferred
        coef, root = cov.predictor(posterior.a)
        rows = self.rows if self._basis_support is None else self._basis_support
        value = self._value(theta, posterior)
        return ModelFields(theta, posterior, kernel, like, coef, root, rows, value)

    def model_fields(self, theta: np.ndarray) -> tuple[ModelFields, bool]:
        """Return the model at theta, and whether time ran out before it was complete.

        In that case the model is the best one so far, that of a sample, or, without
        any, the prior at the start.
        """
        self.tol = TOL
        try:
            with ended_by(self.late):
                inferred = self.infer(theta)
                if not (inferred.posterior.converged or self.late()):
                    self.state = None  # it may be that of a distant theta
                    inferred = self.infer(theta)
                made = self._fields(theta, inferred)
        except OutOfTime:
            return self._so_far() or self._prior(), True
        late = not made.posterior.converged and self.late()
        return (self._so_far() if late else None) or made, late

    def _so_far(self) -> ModelFields | None:
        """Return the best model of all rows or, before there is one, of a sample."""
        best, of_sample = self.best, self.of_sample
        if of_sample is not None and not (best and best.posterior.converged):
            return of_sample
        return best

    def _prior(self) -> ModelFields:
        """Return a model of the prior, which no training row has changed."""
        theta, zeros = self.hyper.begin, np.zeros(self.rows.size)
        like = self.likelihood(theta, extra_variance=zeros)
        posterior = Posterior(
            objective=float(self.weight @ like.loss(zeros)[0]),
            a=zeros,
            u=zeros,
            by_row=np.zeros((3, zeros.size)),
            state=zeros,
            violation=np.inf,
            tol=0.0,
            n_iter=0,
        )
        return ModelFields(
            theta,
            posterior,
            self._kernel(theta),
            like,
            coef=np.zeros(0),
            root=np.zeros((0, 0)),
            rows=self.rows[:0],
            value=self._value(theta, posterior),
        )

    def infer(self, theta: np.ndarray) -> Inferred:
        """Return the posterior at theta; the inference starts at `state`.

        Raises ValueError if kernel values are not finite, or not those of a positive
        semi-definite kernel.
        """
        try:
            return self._infer(theta)
        # I + W^1/2 Sigma W^1/2 is positive definite for any kernel that is one.
        except np.linalg.LinAlgError:
            raise ValueError(
                "the evidence needs a positive semi-definite kernel, and X or the "
                "kernel's values and sample_weight near 1: the covariance of the "
                "training rows has no Cholesky factor"
            ) from None

    def _infer(self, theta: np.ndarray) -> Inferred:
        check_cancelled()
        kernel = self._kernel(theta)
        cov = self._covariance(kernel)
        like = self.likelihood(theta, cov.extra_variance)
        if self.inference == "laplace":
            posterior = laplace(cov, like, self.state, late=self.late)
        else:
            bound = self.objective == "bound"
            posterior = expectation_propagation(
                cov, like, self.state, bound=bound, tol=self.tol, late=self.late
            )
        return Inferred(posterior, cov, kernel, like)

    def _kernel(self, theta: np.ndarray) -> KernelFunction:
        return self._family.make(self.hyper.gammas(theta))

    def likelihood(self, theta: np.ndarray, extra_variance: np.ndarray) -> Likelihood:
        noise, first, width = self.hyper.of_likelihood(theta)
        return Likelihood(
            self.rank, self.weight, noise, first, width, extra_variance, self.n_threads,
            self.lower,
        )  # fmt: skip

    def _value(self, theta: np.ndarray, posterior: Posterior) -> float:
        """Return minus the objective and the log density of the prior."""
        return self.hyper.penalty(theta)[0] - posterior.objective

    def _covariance(self, kernel: KernelFunction) -> Covariance:
        if self.basis is not None:
            values = BasisValues(kernel, self.X, self.basis_rows)
            return LowRank(values, self._cache_mb, self.n_threads)
        K = self.X
        if not kernel.by_number:
            K = np.empty((len(K), len(K)))
            on_itself(kernel, self.X, self.n_threads).fill(K)
        return Dense(K, self.n_threads)

    def _kernel_slopes(
        self, kernel: KernelFunction, cov: Covariance, posterior: Posterior
    ) -> np.ndarray:
        """Return the derivatives of the objective by every ln gamma."""
        out = np.zeros(self.hyper.n_gammas)
        if not out.size:
            return out
        if isinstance(cov, LowRank):
            return cov.slopes(posterior.a, posterior.u, posterior.by_row[2])
        for rows, columns, G in cov.sensitivity(posterior.a, posterior.u):
            A, B = take(self.X, rows), take(self.X, columns)
            out += kernel.slopes(A, B, cov.Sigma[rows, columns], G)
        return out


def _are_rows(basis: Any) -> TypeGuard[np.ndarray | CSR]:
    """Return whether a basis holds rows, and not row numbers."""
    return isinstance(basis, Matrix) and len(basis.shape) == 2


def basis_size(basis: Basis | None, n: int) -> int:
    """Return the number of basis rows, or n without a basis."""
    if basis is None:
        return n
    if isinstance(basis, Matrix):
        return len(basis)
    if isinstance(basis, BasisRule):
        return min(n, basis.m)
    return min(n, basis if isinstance(basis, int) else max(1, round(basis * n)))


def _check_memory(n: int, m: int, stores_best: bool, cache_mb: float) -> None:
    """Raise MemoryError if n rows on a basis of m need more memory than there is.

    With `stores_best`, models of all rows and of half of them are stored in addition to
    the current one.
    """

    def on_basis(m: int) -> float:
        return min(8.0 * n * m, 1e6 * cache_mb) + _PER_ROW * n

    what = f"{n} rows on a basis of {m}" if m < n else f"{n} rows"
    check_memory(
        "fit_gpor",
        on_basis(m) if m < n else 8 * n * (_DENSE + 1.25 * stores_best) * n,
        what,
        ": pass basis=m to fit a low-rank model of m rows, which needs "
        f"{in_gib(on_basis(500))} for m = 500",
    )


def maximize(
    evidence: Evidence,
    n_restarts: int,
    rng: np.random.Generator,
    tol: float,
    max_iter: int,
    monitor: Monitor,
) -> tuple[Minimum, int]:
    """Return the best minimum of the searches, and the number of evaluations.

    One search begins at the start, and `n_restarts` more at random points.
    """
    best: Minimum | None = None
    n_eval = 0
    for i, theta in enumerate(evidence.hyper.starts(n_restarts, rng)):
        if best is not None and monitor.stop(n_eval, best.violation):
            break
        try:
            with monitor.numbered("search", i, 1 + n_restarts):
                found = _search(evidence, theta, tol, max_iter, monitor)
        except NotFiniteError:
            with np.errstate(all="ignore"):
                evidence.infer(theta)  # which raises the error that is the reason
            raise ValueError(
                "the evidence is beyond the range of double where the search begins: "
                "bring X (or its kernel values) and sample_weight nearer to 1"
            ) from None
        n_eval += found.n_eval
        # The first of equal minima.
        if best is None or found.value < best.value:
            best = found
    assert best is not None
    return best, n_eval


def _search(
    evidence: Evidence, theta: np.ndarray, tol: float, max_iter: int, monitor: Monitor
) -> Minimum:
    """Return the minimum that one search finds, by way of samples of the rows.

    The optimum of a sample is about one of its standard errors away from that of all
    rows, and the Hessian is proportional to the number of rows. So most steps, and
    those that learn the curvature, are taken where an evaluation costs little.

    Slopes grow with the number of rows, which may be large on a basis: a slope of `tol`
    nats then asks for more digits of theta than change the evidence. So does the
    largest of many slopes, those of an ARD kernel. In both cases, searches that know
    the curvature of a sample therefore end by their expected gain. On all rows, without
    a basis, the curvature of the sample predicts too small a gain (25 times with EP on
    car); there they take a step per entry of theta before.
    """

    def minus(theta: np.ndarray, of: Evidence) -> tuple[float, np.ndarray]:
        value, slopes = of.minus(theta)
        # Precise sweeps are in vain where the next step changes far more than they do.
        steepest = float(np.abs(slopes).max(initial=0.0))
        of.tol = min(LOOSE, max(TOL, _PRECISE * steepest))  # TOL for NaN
        return value, slopes

    curvature: Curvature | DenseCurvature = Curvature(theta.size)
    if theta.size <= _FEW:
        curvature = DenseCurvature(theta.size)

    def search(of: Evidence, theta: np.ndarray, tol: float, steps: int) -> Minimum:
        by_gain = None
        if curvature.count and evidence.n_basis:
            by_gain = 0
        elif curvature.count and of is evidence and theta.size > _MANY:
            by_gain = theta.size
        return minimize(
            partial(minus, of=of), theta, tol=tol, max_iter=max_iter,
            monitor=monitor.after(steps), max_step=MAX_STEP, curvature=curvature,
            by_gain=by_gain,
        )  # fmt: skip

    steps = 0
    # So that the result of a search does not depend on the searches before it.
    evidence.state = None
    for part, following in pairwise(evidence.with_samples()):
        part.tol = following.tol = LOOSE  # the start is far from the optimum
        with monitor.stage(f"{part.rows.size} rows"):
            found = search(part, theta, max(tol, _COARSE), steps)
        theta, steps = found.x, steps + found.n_iter
        following.state = part.state_for(following)
        if part.best is not None and part.best.posterior.converged:
            evidence.of_sample = part.best._replace(violation=np.inf)
            part.best = None  # frees the one of the sample before
        if isinstance(curvature, DenseCurvature) and part.affords_hessian(following):
            with suppress(OutOfTime):
                curvature.measure(partial(minus, of=part), theta, found.gradient)
        curvature.scale(part.rows.size / following.rows.size)
    return search(evidence, theta, tol, steps)


def _prior_scale(kernel: KernelFunction, X: Any, weight: np.ndarray) -> float:
    """Return c, the root of the weighted mean of k(x, x)."""
    diagonal = map_rows(partial(diagonal_of, kernel), X)
    mean = float(np.average(diagonal, weights=weight))
    if not mean > 0:
        raise ValueError(f"k(x, x) must be positive on average, got {mean:.3g}")
    if mean < 1 / LARGEST:
        raise ValueError(
            f"k(x, x) must be {1 / LARGEST:g} or more on average, got {mean:.3g}: "
            "scale the features of X"
        )
    return float(np.sqrt(mean))


def _kernel_family(kernel: str | Kernel, problem: Problem, X: Any) -> KernelFamily:
    known = kernel_class(kernel)
    learned = isinstance(kernel, str) and (known.is_radial or known.per_feature)
    if learned and isinstance(problem, ChunkedProblem) and problem.moments is None:
        raise TypeError(
            f"X must be dense with kernel={shown(kernel)} where it is read in "
            "chunks: yield dense blocks, or pass another kernel"
        )
    if isinstance(kernel, str) and known.is_radial:
        first = known.gamma_of_scale(0.5 * gamma_scale(problem))
        make = partial(_radial, known, kernel)
        return KernelFamily(make, np.array([first]), None)
    if isinstance(kernel, str) and known.per_feature:
        if is_sparse(X):
            raise TypeError(
                f"X must be dense with kernel={shown(kernel)}, got a sparse matrix"
            )
        map_rows(squared_norms, X)  # bounds the averages
        mean, variance = column_moments(problem)
        size = known.sizes(mean, variance)
        # A constant feature has no scale, and does not change the kernel.
        size = np.where(size > np.maximum(1e-12 * mean**2, _NO_SIZE), size, 1.0)
        gammas = 1 / (X.shape[1] * size)
        return KernelFamily(partial(known.from_argument, kernel), gammas, None)
    if isinstance(kernel, str):  # the gamma of "polynomial" would not be learned
        names = [k for k in kernel_names(per_feature=True) if k != "polynomial"]
        check_choice("kernel", kernel, names)
    made = make_kernel(kernel, "scale", problem)
    if made.by_number:
        check_precomputed(problem.X)
    return KernelFamily(lambda gamma: made, np.empty(0), made)


def _radial(
    known: type[KernelFunction], name: str, gamma: np.ndarray
) -> KernelFunction:
    """Return the kernel of one learned gamma, (1,)."""
    return known.from_argument(name, float(gamma[0]))
