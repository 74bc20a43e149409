"""The evidence of one training set as a function of theta, and its maximum."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self, TypeGuard

import numpy as np

from .. import kernels
from .._input.checks import check_choice, shown
from .._input.problem import Problem
from .._input.sparse import CSR
from .._input.types import Kernel
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
from .._watch.monitor import Monitor, OutOfTime, check_cancelled, ended_by, never
from ..kernels.basis_rows import stratified
from ..kernels.functions import LARGEST, check_precomputed
from ..kernels.tiles import diagonal_of, gamma_slopes, on_itself
from .covariance import BasisValues, Covariance, Dense, LowRank
from .ep import LOOSE, TOL, expectation_propagation
from .hyperparameters import Hyperparameters
from .laplace import laplace
from .likelihood import Likelihood, Posterior

MAX_STEP = 3.0  # longest step of theta: evidences are flat far from the data's scale
# at the peak of an evaluation, by tracemalloc over the kernels: a little more than
# 4 n^2 doubles, and on a basis so many bytes a row beside its features
_DENSE, _PER_ROW = 4, 300
_NO_SIZE = 1e-300  # of squares, whose inverse could overflow
_FEW = 100  # entries of theta for which the Hessian is a matrix
_LEAST = 250  # rows of a sample on which a search begins
_PRECISE = 1e-6  # precision of EP per nat that the objective still slopes
_COARSE = 0.3  # tolerance of the searches on samples, in nats as that of the last one
_DIFFERENCES = 4  # evaluations that a Hessian by differences may cost
_SHARED = 1000  # rows from which a loop over them is worth a second thread

Inference = Literal["ep", "laplace"]


class KernelFamily(NamedTuple):
    """The kernels that a fit chooses from.

    Attributes
    ----------
    make : callable
        The kernel of a (p,) array of gammas.
    gamma : (p,) array
        To begin with; empty where the kernel has none to be learned.
    fixed : callable or None
        The kernel, if it has none.
    """

    make: Callable[[np.ndarray], Kernel]
    gamma: np.ndarray
    fixed: Kernel | None


class Choice(NamedTuple):
    """Choice of basis rows among the training rows of positive weight.

    Attributes
    ----------
    m : int
        How many.
    numbers : callable
        Theirs, from the kernel at the start and these rows, ranks and weights.
    """

    m: int
    numbers: Callable[[Kernel, Any, np.ndarray, np.ndarray], np.ndarray]


# so many rows or a share of them, by pivoted Cholesky; numbers of rows; rows themselves
Basis = int | float | np.ndarray | CSR | Choice


class Inferred(NamedTuple):
    """The posterior at a theta, and what it was made of."""

    posterior: Posterior
    cov: Covariance
    kernel: Kernel
    like: Likelihood


class ModelFields(NamedTuple):
    """Fields of a model at a theta.

    Attributes
    ----------
    rows : numbers of its support rows, or (m, d) rows that are not training rows
    value : float
        Minus the objective and the log density of the prior.
    violation : float
        The largest slope of that, where it is known; inf where it is not.
    """

    theta: np.ndarray
    posterior: Posterior
    kernel: Kernel
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
        Whether time is up, which ends an inference before its last sweep or step. The
        best model so far is then kept, which costs as much memory as its root.
    cache_mb : float, optional
        Memory for features of a basis, in 10^6 bytes; what has no room is made anew at
        every pass.
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
    """ln P(D | theta), or EP's bound, of the rows of positive weight.

    Parameters
    ----------
    problem : Problem
        Rows in chunks go with a basis of fewer of them.
    basis : Basis or None
        The rows that carry a covariance of low rank.
    settings : Settings

    Attributes
    ----------
    rows : numbers of the training rows of positive weight
    hyper : Hyperparameters
    basis : (m,) numbers among `rows`, (m, d) rows of the caller's own, or None for all
    basis_rows : they as `BasisValues` has them
    state : array or None
        What the last inference leaves to the next.
    kept : Made or None
        The model of the least value of `minus` so far, or what the first inference came
        to; None without `late`.
    """

    def __init__(self, problem: Problem, basis: Basis | None, settings: Settings):
        self.late, self._keeps = settings.late or never, settings.late is not None
        self._cache_mb = settings.cache_mb
        # Weight 0 is the row left out: it would take memory of order n, and change
        # nothing.
        self.rows = np.flatnonzero(problem.weight > 0)
        n, m = self.rows.size, basis_size(basis, self.rows.size)
        # Before anything is allocated, as the system ends a process that takes too
        # much.
        _check_memory(n, m, self._keeps, settings.cache_mb)
        self.weight = problem.weight[self.rows]
        if settings.inference == "ep" and self.weight.min() < 1:
            raise ValueError(
                "sample_weight must be 0, or 1 or more, with inference='ep', got "
                f"{self.weight.min()}"
            )
        self.inference: Inference = settings.inference
        self.objective = settings.objective
        # To share the work costs more than the work of few rows.
        self.n_threads = settings.n_threads if n >= _SHARED else 1
        left_out = n < problem.n_samples
        X: Any = problem.X
        if left_out and isinstance(X, Rows):
            X = X.subset(self.rows)
        elif left_out:
            X = take(X, self.rows)
        self.X = X
        self._family = _kernel_family(settings.kernel, problem, X, self.weight)
        _, gamma, fixed = self._family
        if isinstance(fixed, kernels.Precomputed) and left_out:
            # Columns of a precomputed kernel are training rows too.
            self.X = X = np.ascontiguousarray(X[:, self.rows])
        c = 1.0 if fixed is None else _prior_scale(fixed, X, self.weight)
        present = np.flatnonzero(problem.present)
        self.rank = problem.rank_among_present[self.rows]
        self.hyper = Hyperparameters.from_arguments(
            gamma, c, present, problem.n_classes, settings.prior, settings.start
        )
        self.state: np.ndarray | None = None
        self._numbers: np.ndarray | None = None  # of a sample: its rows in the next
        self.tol = TOL
        self.kept: ModelFields | None = None
        self.basis = self._chosen(basis, m, settings.n_threads)
        self.basis_rows = self._rows_of_basis(fixed)

    @property
    def n_basis(self) -> int:
        """Return the number of basis rows; 0 where all rows carry the covariance."""
        return 0 if self.basis_rows is None else len(self.basis_rows)

    def levels(self) -> list[Self]:
        """Return the samples on which a search begins, each of the rows of the next,
        and self at the end.

        An evaluation costs n^3, or n on a basis.
        """
        out = [self]
        ratio, least = (4, 4 * self.n_basis) if self.n_basis else (2, _LEAST)
        while (size := out[-1].rows.size) >= ratio * max(least, _LEAST):
            out.append(out[-1].sample(size // ratio))
        return out[::-1]

    def measures_for(self, following: Evidence) -> bool:
        """Return whether one gradient here by each entry of theta costs little beside
        the search on all rows of the following level.
        """
        one = (self.rows.size / following.rows.size) ** (1 if self.n_basis else 3)
        return self.hyper.begin.size * one <= _DIFFERENCES

    def sample(self, size: int) -> Self:
        """Return the evidence of about `size` rows, of each rank its share."""
        numbers = stratified(self.rank, size, np.random.default_rng(0))
        part = copy(self)
        part.rows, part.rank = self.rows[numbers], self.rank[numbers]
        part.weight, part.X = self.weight[numbers], take(self.X, numbers)
        if self.basis is None and isinstance(self._family.fixed, kernels.Precomputed):
            part.X = np.ascontiguousarray(part.X[:, numbers])
        part.n_threads = self.n_threads if numbers.size >= _SHARED else 1
        part.state = part.kept = None
        part._keeps, part._numbers = False, numbers
        return part

    def state_for(self, following: Evidence) -> np.ndarray | None:
        """Return the state of a sample where the following level has its rows; what
        the other rows tell is not known as yet.
        """
        if self.state is None:
            return None
        state = np.zeros((*self.state.shape[:-1], following.rows.size))
        state[..., self._numbers] = self.state
        return state

    def close(self) -> None:
        """End the present pass, if rows are read in chunks."""
        if isinstance(self.X, Rows):
            self.X.close()

    def _chosen(
        self, basis: Basis | None, m: int, n_threads: int
    ) -> np.ndarray | CSR | None:
        """Return the m basis rows that are named, or that matter most for the kernel at
        the start;

        None for all rows, and none where there is no time to choose them.
        """
        if not isinstance(basis, Choice) and _are_rows(basis):
            return basis
        named = basis if isinstance(basis, np.ndarray) else self.rows[:0]
        if (absent := np.setdiff1d(named, self.rows)).size:
            raise ValueError(
                f"basis must name rows of positive weight, got row {absent[0]}, whose "
                "weight is 0"
            )
        # A basis of all rows is the whole kernel matrix, which is cheaper without one.
        if m == self.rows.size:
            return None
        if named.size:
            return np.searchsorted(self.rows, named)
        first = self._family.make(self.hyper.gammas(self.hyper.begin))
        try:
            with ended_by(self.late):
                if isinstance(basis, Choice):
                    return basis.numbers(first, self.X, self.rank, self.weight)
                tile = on_itself(first, self.X, n_threads).tile
                return pivoted_cholesky(diagonal_of(first, self.X), tile, m)[1]
        except OutOfTime:
            # No row: the caller sees that time is up, and returns the prior.
            return np.empty(0, np.intp)

    def minus(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective of a search and its gradient.

        The objective is minus the evidence and the log density of the prior, and inf
        where it cannot be evaluated; OutOfTime is raised if time runs out.
        """
        try:
            # a trial point may lie anywhere
            with np.errstate(all="ignore"), ended_by(self.late):
                posterior, gradient = self.evaluate(theta)
        # The line search halves its step at inf; an error would end the search there.
        except (np.linalg.LinAlgError, ValueError):
            return np.inf, np.full_like(theta, np.nan)
        penalty, slopes = self.hyper.penalty(theta)
        slopes = slopes - gradient
        # A state that has not converged is a bad place to begin the next inference.
        if posterior.converged:
            self.state = posterior.state
        if self.kept is not None and self.kept.posterior is posterior:
            violation = float(np.abs(slopes).max(initial=0.0))
            self.kept = self.kept._replace(violation=violation)
        return penalty - posterior.objective, slopes

    def evaluate(self, theta: np.ndarray) -> tuple[Posterior, np.ndarray]:
        """Return the posterior at theta and the gradient of its objective."""
        inferred = self.infer(theta)
        posterior, cov, kernel, like = inferred
        cut_short = not posterior.converged and self.late()
        if self._keeps and self._is_best(theta, posterior):
            self.kept = self._made(theta, inferred)
        if cut_short:
            raise OutOfTime
        by_likelihood = like.slopes(posterior.by_row)
        # The first threshold of theta is in units of c.
        by_likelihood[1] *= self.hyper.c
        by_kernel = np.empty(0)
        if self.hyper.n_gammas:
            by_kernel = self._kernel_slopes(kernel, cov, posterior)
        return posterior, np.concatenate([by_kernel, by_likelihood])

    def _is_best(self, theta: np.ndarray, posterior: Posterior) -> bool:
        """Return whether a model of this posterior is better than the best so far."""
        if self.kept is None:
            return True
        # The objective of an inference that was cut short compares with nothing.
        if not posterior.converged or not self.kept.posterior.converged:
            return posterior.converged
        value = self.hyper.penalty(theta)[0] - posterior.objective
        return value < self.kept.value

    def _made(self, theta: np.ndarray, inferred: Inferred) -> ModelFields:
        posterior, cov, kernel, like = inferred
        coef, root = cov.predictor(posterior.a)
        rows: np.ndarray | CSR = self.rows
        if self.basis is not None:
            own = _are_rows(self.basis)
            rows = self.basis if own else self.rows[np.asarray(self.basis)]
        value = self.hyper.penalty(theta)[0] - posterior.objective
        return ModelFields(theta, posterior, kernel, like, coef, root, rows, value)

    def make(self, theta: np.ndarray) -> tuple[ModelFields, bool]:
        """Return a model, and whether there was no time for that of theta.

        There is then the one that was kept or, if that is none, the prior at the start.
        """
        self.tol = TOL
        try:
            with ended_by(self.late):
                inferred = self.infer(theta)
                if not (inferred.posterior.converged or self.late()):
                    self.state = None  # which may be that of a theta far away
                    inferred = self.infer(theta)
                made = self._made(theta, inferred)
        except OutOfTime:
            return self.kept or self._prior(), True
        late = not made.posterior.converged and self.late()
        return (self.kept if late and self.kept is not None else made), late

    def _prior(self) -> ModelFields:
        """Return a model of the prior, before any row is seen."""
        theta, n = self.hyper.begin, self.rows.size
        noise, first, width = self.hyper.of_likelihood(theta)
        like = Likelihood(
            self.rank, self.weight, noise, first, width, np.zeros(n), self.n_threads
        )
        objective = float(self.weight @ like.loss(np.zeros(n))[0])
        none = np.zeros(n)
        posterior = Posterior(
            objective, none, none, np.zeros((3, n)), none, np.inf, 0.0, 0
        )
        return ModelFields(
            theta,
            posterior,
            self._family.make(self.hyper.gammas(theta)),
            like,
            none[:0],
            np.zeros((0, 0)),
            self.rows[:0],
            self.hyper.penalty(theta)[0] - objective,
        )

    def infer(self, theta: np.ndarray) -> Inferred:
        """Return the posterior at theta, from `state`."""
        check_cancelled()
        kernel = self._family.make(self.hyper.gammas(theta))
        cov = self._covariance(kernel)
        like = self.likelihood(theta, cov)
        if self.inference == "laplace":
            posterior = laplace(cov, like, self.state, late=self.late)
        else:
            bound = self.objective == "bound"
            posterior = expectation_propagation(
                cov, like, self.state, bound=bound, tol=self.tol, late=self.late
            )
        return Inferred(posterior, cov, kernel, like)

    def likelihood(self, theta: np.ndarray, cov: Covariance) -> Likelihood:
        noise, first, width = self.hyper.of_likelihood(theta)
        return Likelihood(
            self.rank, self.weight, noise, first, width, cov.rest, self.n_threads
        )

    def _covariance(self, kernel: Kernel) -> Covariance:
        if self.basis is not None:
            values = BasisValues(kernel, self.X, self.basis_rows)
            return LowRank(values, self._cache_mb, self.n_threads)
        K = self.X
        if not isinstance(kernel, kernels.Precomputed):
            K = np.empty((len(K), len(K)))
            on_itself(kernel, self.X, self.n_threads).fill(K)
        return Dense(K, self.n_threads)

    def _rows_of_basis(self, fixed: Kernel | None) -> Any:
        """Return the basis rows as `BasisValues` takes them."""
        if self.basis is None or _are_rows(self.basis):
            return self.basis
        if isinstance(fixed, kernels.Precomputed):
            return self.basis
        return take(self.X, np.asarray(self.basis))

    def _kernel_slopes(
        self, kernel: Kernel, cov: Covariance, posterior: Posterior
    ) -> np.ndarray:
        a, u, by_variance = posterior.a, posterior.u, posterior.by_row[2]
        if isinstance(cov, Dense):
            M = cov.sensitivity(a, u, by_variance)
            return gamma_slopes(kernel, self.X, self.X, cov.Sigma, M)
        return cov.slopes(a, u, by_variance)


def _are_rows(basis: Any) -> TypeGuard[np.ndarray | CSR]:
    """Return whether a basis holds rows, and not row numbers."""
    return isinstance(basis, CSR) or (isinstance(basis, np.ndarray) and basis.ndim == 2)


def basis_size(basis: Basis | None, n: int) -> int:
    """Return the number of basis rows, or n without a basis."""
    if basis is None:
        return n
    if isinstance(basis, np.ndarray | CSR):
        return len(basis)
    if isinstance(basis, Choice):
        return min(n, basis.m)
    return min(n, basis if isinstance(basis, int) else max(1, round(basis * n)))


def _check_memory(n: int, m: int, keeps: bool, cache_mb: float) -> None:
    """Raise MemoryError if n rows on a basis of m need more than there is.

    One model is kept beside the next if it `keeps` it.
    """

    def on_basis(m: int) -> float:
        return min(8.0 * n * m, 1e6 * cache_mb) + _PER_ROW * n

    what = f"{n} rows on a basis of {m}" if m < n else f"{n} rows"
    check_memory(
        "fit_gpor",
        on_basis(m) if m < n else 8 * n * (_DENSE + keeps) * n,
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
    """Return the best end of the searches, and the number of evaluations.

    Searches begin at the start and at `n_restarts` random points.
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
            raise ValueError(
                "the evidence is beyond the range of double where the search begins: "
                "bring X (or its kernel values) and sample_weight nearer to 1"
            ) from None
        n_eval += found.n_eval
        # The first of equal ends, which does not depend on rounding of the later ones.
        if best is None or found.value < best.value:
            best = found
    assert best is not None
    return best, n_eval


def _search(
    evidence: Evidence, theta: np.ndarray, tol: float, max_iter: int, monitor: Monitor
) -> Minimum:
    """Return the end of one search, which searches on samples of the rows precede.

    The optimum of a sample is about a standard error of its own from that of all rows,
    and the Hessian grows with the rows. So most of the steps, and those that find out
    the curvature, are taken where an evaluation costs little.

    Slopes grow with the rows, of which there may be very many on a basis: a slope of
    `tol` nats then asks for more digits of theta than change the evidence. Searches
    that know the curvature of a sample therefore end by what a step is to gain.
    """

    def minus(theta: np.ndarray, of: Evidence) -> tuple[float, np.ndarray]:
        value, slopes = of.minus(theta)
        # Sweeps are in vain where the next step changes far more than they do.
        steepest = float(np.abs(slopes).max(initial=0.0))
        of.tol = min(LOOSE, max(TOL, _PRECISE * steepest))  # of NaN, TOL
        return value, slopes

    curvature: Curvature | DenseCurvature = Curvature(theta.size)
    if theta.size <= _FEW:
        curvature = DenseCurvature(theta.size)

    def search(of: Evidence, theta: np.ndarray, tol: float, steps: int) -> Minimum:
        return minimize(
            partial(minus, of=of), theta, tol=tol, max_iter=max_iter,
            monitor=monitor.after(steps), max_step=MAX_STEP, curvature=curvature,
            by_gain=bool(evidence.n_basis and curvature.count),
        )  # fmt: skip

    steps = 0
    # Each search on its own, so that its end does not depend on the searches before it.
    evidence.state = None
    for part, following in pairwise(evidence.levels()):
        part.tol = following.tol = LOOSE  # a start is no optimum of these rows
        with monitor.stage(f"{part.rows.size} rows"):
            found = search(part, theta, max(tol, _COARSE), steps)
        theta, steps = found.x, steps + found.n_iter
        following.state = part.state_for(following)
        if isinstance(curvature, DenseCurvature) and part.measures_for(following):
            with suppress(OutOfTime):
                curvature.measure(partial(minus, of=part), theta, found.gradient)
        curvature.scale(part.rows.size / following.rows.size)
    return search(evidence, theta, tol, steps)


def _prior_scale(kernel: Kernel, X: Any, weight: np.ndarray) -> float:
    """Return c, the root of the mean of k(x, x)."""
    diagonal = map_rows(partial(diagonal_of, kernel), X)
    # A row of weight w counts as w rows, here as everywhere.
    mean = float(np.average(diagonal, weights=weight))
    if not mean > 0:
        raise ValueError(f"k(x, x) must be positive on average, got {mean:.3g}")
    if mean < 1 / LARGEST:
        raise ValueError(
            f"k(x, x) must be {1 / LARGEST:g} or more on average, got {mean:.3g}: "
            "scale the features of X"
        )
    return float(np.sqrt(mean))


def _kernel_family(
    kernel: str | Kernel, problem: Problem, X: Any, weight: np.ndarray
) -> KernelFamily:
    learned = isinstance(kernel, str) and kernel in ("rbf", "ard", "ard_linear")
    if learned and isinstance(problem, ChunkedProblem) and problem.moments is None:
        raise TypeError(
            f"X must be dense with kernel={shown(kernel)} where it is read in "
            "chunks: yield dense blocks, or pass another kernel"
        )
    if kernel == "rbf":
        gamma = np.array([0.5 * gamma_scale(problem)])
        return KernelFamily(lambda gamma: kernels.RBF(float(gamma[0])), gamma, None)
    if isinstance(kernel, str) and kernel in ("ard", "ard_linear"):
        if isinstance(X, CSR):
            raise TypeError(
                f"X must be dense with kernel={shown(kernel)}, got a sparse matrix"
            )
        map_rows(squared_norms, X)  # bounds the averages
        mean, variance = column_moments(problem)
        size = 2 * variance if kernel == "ard" else variance + mean**2
        # a constant feature, or one of zeros, has no scale and does no harm
        size = np.where(size > np.maximum(1e-12 * mean**2, _NO_SIZE), size, 1.0)
        make = kernels.ARD if kernel == "ard" else kernels.LinearARD
        return KernelFamily(make, 1 / (X.shape[1] * size), None)
    names = ("rbf", "ard", "linear", "ard_linear", "precomputed")
    if isinstance(kernel, str):
        check_choice("kernel", kernel, names)
    made = make_kernel(kernel, "scale", problem)
    if isinstance(made, kernels.Precomputed):
        check_precomputed(problem.X)
    return KernelFamily(lambda gamma: made, np.empty(0), made)
