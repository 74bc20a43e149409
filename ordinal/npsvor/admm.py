"""Programs of NPSVOR, one per rank over the same rows, and the solver by ADMM.

The alternating direction method of multipliers solves all duals at once:

    min_{g,z}  1/2 g'Kg + sum_i phi_i(z_i)   s.t.  g = z,  sum_i g_i = 0,  lo <= z <= hi

for several (lo, hi, phi) over one K. With the scaled dual variable u and penalty rho,

    q = z - u,  a = M q,  g = a - (sum a / sum m) m,  M = rho (K + rho I)^-1,  m = M 1
    z = clip(soft(g + u + shift, width), lo, hi)
    u = u + g - z

phi_i(v) = pp_i v above 0 and pn_i v below it, so that shift = -(pp + pn) / (2 rho) and
width = (pp - pn) / (2 rho). The multiplier of sum g = 0, the intercept b, is
rho sum a / sum m.

Wang et al. (see `npsvor`), Algorithm 2; (12) and (13) there lack their rho / 2. The
penalty method is Boyd et al., Foundations and Trends in ML 3(1):1-122, 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np

from .._input.basis import BasisChoice, read_basis
from .._input.checks import check_finite, shown
from .._input.labels import optional_cost
from .._input.problem import Problem
from .._input.types import AnyBasis, Matrix
from .._model.column_names import named
from .._model.folds import Shares
from .._model.kernel_fit import KernelOptions, Solver, support_rows
from .._numerics.cholesky import Cholesky, Tile, lower_inverse, pivoted_cholesky
from .._numerics.rows import inner, matmul, strips
from .._quadratic.driver import objectives, records
from .._quadratic.family import (
    QuadraticFamily,
    Solved,
    WholeKernel,
    check_start_model,
    matched_rows,
)
from .._quadratic.losses import Losses, losses_by_rank
from .._quadratic.program import Program, nearest_feasible, project
from .._quadratic.proximal import Start
from .._solvers import _admm_updates
from .._watch.cancellation import OutOfTime, check_cancelled
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..kernels.features import Features
from ..kernels.functions import KernelFunction
from ..kernels.tiles import Products, diagonal_of, on_itself
from .model import NpsvorModel, model_of

_TINY = 1e-100  # products with entries near 1e-308 are many times slower
_THIN = 128  # rows from which it pays to look for a low rank
_STRIP = 8192  # rows of a tall factor in one product: a few hundredths of a second


class _Exact:
    """Products with the kernel matrix itself: all rows are support rows."""

    def __init__(
        self,
        kernel: KernelFunction,
        X: Matrix,
        n_threads: int,
        products: Products | None,
    ):
        self._values = on_itself(kernel, X, n_threads, products)
        self.support = np.arange(len(X))

    def product(self, z: np.ndarray) -> np.ndarray:
        """Return K z for every row of z, from the kernel itself."""
        return np.ascontiguousarray(self._values.product(np.ascontiguousarray(z.T)).T)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients of the support rows, one column per row of g."""
        return g.T


class DenseFactor(_Exact):
    """Dense M = rho (K + rho I)^-1: n^2 doubles, and n^3 operations once.

    Raises ValueError if K + rho I is not positive definite.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        X: Matrix,
        rho: float,
        n_threads: int,
        products: Products | None = None,
    ):
        super().__init__(kernel, X, n_threads, products)
        n = len(X)
        A = np.empty((n, n))
        # The other triangle is never read by the factorisation.
        self._values.triangle(A, mirror=False)
        largest = float(A.diagonal().max())
        A[np.diag_indices(n)] += rho
        try:
            # The inverse is made once: every iteration then is one product, which
            # threads share, where two triangular solutions would be sequential.
            self._M = Cholesky(A.T, n_threads).inverse()
        except np.linalg.LinAlgError:
            raise ValueError(
                f"kernel must be positive semi-definite, but K + {rho:g} I is not "
                f"within rounding, where the largest entry of K is {largest:.3g}: "
                "scale the features of X or raise rho"
            ) from None
        for rows in strips(n):
            M = self._M[rows]
            M *= rho
            # Kernel values of far rows are tiny; denormal products are many times
            # slower.
            M[np.abs(M) < _TINY] = 0

    def apply(self, Q: np.ndarray) -> np.ndarray:
        """Return M q for every row q of Q."""
        out = np.empty_like(Q)
        # In strips, so that Ctrl-C is handled between products.
        for columns in strips(Q.shape[1], _STRIP):
            out[:, columns] = Q @ self._M[:, columns]
        return out


class _Thin:
    """M for K = L L': with rho I + L'L = C C' and B = L C'^-1, M q is q - B B'q.

    B takes the place of L.
    """

    def __init__(self, L: np.ndarray, rho: float):
        m = L.shape[1]
        # m x m instead of n x n: the Woodbury identity.
        squared = inner(L, L)
        squared[np.diag_indices(m)] += rho
        self._C = np.linalg.cholesky(squared)
        self._B = matmul(L, lower_inverse(self._C).T, out=L)

    def _down(self, Q: np.ndarray) -> np.ndarray:
        """Return B'q for every row q of Q, (p, m)."""
        out = np.zeros((Q.shape[0], self._B.shape[1]))
        for rows in strips(len(self._B), _STRIP):
            out += Q[:, rows] @ self._B[rows]
        return out

    def _up(self, T: np.ndarray) -> np.ndarray:
        """Return B t for every row t of T, (p, n)."""
        out = np.empty((T.shape[0], len(self._B)))
        for rows in strips(len(self._B), _STRIP):
            out[:, rows] = T @ self._B[rows].T
        return out

    def apply(self, Q: np.ndarray) -> np.ndarray:
        """Return M q for every row q of Q."""
        return np.asarray(Q - self._up(self._down(Q)))


class ThinFactor(_Thin, _Exact):
    """M from a factor L L' that equals K up to rounding; all other products use K."""

    def __init__(
        self,
        kernel: KernelFunction,
        X: Matrix,
        L: np.ndarray,
        rho: float,
        n_threads: int,
        products: Products | None = None,
    ):
        _Exact.__init__(self, kernel, X, n_threads, products)
        _Thin.__init__(self, L, rho)


def _factor_at(
    diagonal: np.ndarray, tile: Tile, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Factorise as `pivoted_cholesky`, with pivots among these rows.

    Rows on which K depends on the others are left out.
    """
    K_PP = np.empty((rows.size, rows.size))
    for strip in strips(rows.size):
        check_cancelled()
        tile(rows[strip], rows, K_PP[strip])

    def within(some: np.ndarray | slice, columns: np.ndarray, out: np.ndarray) -> None:
        out[:] = K_PP[some][:, columns]

    top, order, _ = pivoted_cholesky(diagonal[rows], within, rows.size)
    pivots, top = rows[order], np.tril(top[order])
    L = np.empty((diagonal.size, pivots.size))
    for strip in strips(len(L)):
        check_cancelled()
        tile(strip, pivots, L[strip])
    matmul(L, lower_inverse(top).T, out=L)
    L[pivots] = top
    # Rounding may leave a negative rest where K depends on the pivots.
    left = np.maximum(diagonal - np.einsum("ij,ij->i", L, L), 0)
    return L, pivots, float(left.sum() / diagonal.sum())


class LowRankFactor(_Thin):
    """K replaced by L L', a pivoted incomplete Cholesky factor: n x m, never n x n.

    The rows of K at the pivots are kept exactly, and the approximation is
    k~(x, x') = k(x, P) K_PP^-1 k(P, x'): a model has the pivot rows P for its support.

    Attributes
    ----------
    support : (m,) numbers of the pivot rows
    residual : float
        Share of the trace of K that L L' does not explain.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        X: Matrix,
        rho: float,
        basis: int | float | np.ndarray,
        n_threads: int,
    ):
        tile, diagonal = on_itself(kernel, X, n_threads).tile, diagonal_of(kernel, X)
        if isinstance(basis, np.ndarray):
            found = _factor_at(diagonal, tile, basis)
        else:
            found = pivoted_cholesky(diagonal, tile, basis)
        L, self.support, self.residual = found
        self._top = np.tril(L[self.support])  # its square is K_PP
        super().__init__(L, rho)

    def product(self, z: np.ndarray) -> np.ndarray:
        """Return L L'z = B C'C B'z for every row of z."""
        return self._up(self._down(z) @ self._C.T @ self._C)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients of the support rows, one column c per row g.

        sum_i g_i k~(x_i, x) = c'k(P, x).
        """
        # L'g = C (B'g), and c solves top'c = L'g, where `top` is L at the pivots.
        return np.linalg.solve(self._top.T, self._C @ self._down(g).T)


def exact_factor(
    kernel: KernelFunction,
    X: Matrix,
    rho: float,
    allowed: float,
    n_threads: int,
    products: Products | None = None,
) -> DenseFactor | ThinFactor:
    """Return an operator that multiplies by M, with n x m matrices where they suffice.

    The matrix of a smooth kernel, or of repeated rows, is nearly of low rank. `allowed`
    is the trace of K that may be left out of M. It also bounds the error of M q / |q|,
    in units of rho.
    """
    n = len(X)
    # These kernels are positive semi-definite: the diagonal bounds the remainder of K.
    if n >= _THIN and kernel.is_nearly_low_rank:
        diagonal = diagonal_of(kernel, X)
        trace = float(diagonal.sum())
        if 0 < allowed < trace:
            most = n // 3  # a rank of n / 2 would cost as much as the dense M
            tile = on_itself(kernel, X, n_threads).tile
            L, _, left = pivoted_cholesky(diagonal, tile, allowed / trace, most)
            if left * trace <= allowed:
                return ThinFactor(kernel, X, L, rho, n_threads, products)
            # The dense factor needs the memory.
            del L
    return DenseFactor(kernel, X, rho, n_threads, products)


class NoFactor:
    """Stand-in for a factor that there was no time for; its models have no support."""

    support = np.empty(0, np.intp)

    def product(self, z: np.ndarray) -> np.ndarray:
        """Return K z = 0 for z = 0."""
        return np.zeros_like(z)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Return an empty array: there are no support rows."""
        return np.zeros((0, len(g)))


Factor = DenseFactor | ThinFactor | LowRankFactor


@dataclass(frozen=True, slots=True, eq=False)
class AdmmResult:
    """Result of `solve_admm`; arrays have one entry per problem."""

    g: np.ndarray  # (p, n), its sum 0, not yet in its box
    z: np.ndarray  # (p, n), in its box, its sum not yet 0
    b: np.ndarray
    ratio: np.ndarray  # the larger residual over its allowance; <= 1 ends a problem
    n_iter: np.ndarray
    status: Status


def solve_admm(
    factor: Factor | NoFactor,
    programs: Sequence[Program],
    family: NpsvorAdmm,
    z: np.ndarray,
    *,
    max_iter: int,
    n_threads: int,
    monitor: Monitor,
) -> AdmmResult:
    """Iterate all problems of the programs until each of them meets (19) and (20).

    These are the bounds on the primal and the dual residual in the paper. Every problem
    has one group. `z`, (p, n), is the point to begin at, and is overwritten. The
    results are in the order of the programs, and zero if there was no time for a
    factor.
    """
    lo, hi, pn, pp = (
        np.concatenate([getattr(program, name)[:, 0] for program in programs])
        for name in ("lo", "hi", "pn", "pp")
    )
    rho, (p, n) = family.rho, lo.shape
    g_end, z_end, b = np.zeros((p, n)), np.zeros((p, n)), np.zeros(p)
    ratio, n_iter = np.full(p, np.inf), np.zeros(p, np.int64)
    if isinstance(factor, NoFactor):
        return AdmmResult(g_end, z_end, b, ratio, n_iter, Status.MAX_TIME)
    # The product M 1 serves the constraint sum g = 0 of all problems and iterations.
    m = factor.apply(np.ones((1, n)))[0]

    live = np.arange(p)  # problems that still iterate, to which the arrays below belong
    u = np.zeros((p, n))
    shift, width = -(pp + pn) / (2 * rho), (pp - pn) / (2 * rho)
    status = Status.N_STEPS if max_iter == family.n_steps else Status.MAX_ITER
    for iteration in range(1, max_iter + 1):
        # All problems share one product, so that the matrix is read from memory once
        # per iteration.
        a = factor.apply(z - u)
        multiple = a.sum(axis=1) / m.sum()
        g = a - multiple[:, None] * m
        sums = np.empty((live.size, 5))
        _admm_updates.clip(g, z, u, shift, width, lo, hi, sums, n_threads)
        ratio[live] = _residual_ratio(sums, n, family)
        n_iter[live], b[live] = iteration, rho * multiple
        g_end[live], z_end[live] = g, z
        stopped = monitor.stop(iteration, ratio[live].max())
        going = ratio[live] > 1
        if stopped is not None or not going.any():
            status = stopped or Status.CONVERGED
            break
        # Finished problems leave the arrays, so that the rest costs no more than it
        # must.
        if not going.all():
            live = live[going]
            # The kernel takes contiguous rows.
            z, u, shift, width, lo, hi = (
                np.ascontiguousarray(x[going]) for x in (z, u, shift, width, lo, hi)
            )
    return AdmmResult(g_end, z_end, b, ratio, n_iter, status)


def _residual_ratio(sums: np.ndarray, n: int, family: NpsvorAdmm) -> np.ndarray:
    """Return the larger residual of each problem over its allowance, (19) or (20)."""
    primal, dual, g_norm, z_norm, u_norm = np.sqrt(sums).T
    rho, e_rel, base = family.rho, family.e_rel, np.sqrt(n) * family.e_abs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.fmax(
                primal / (base + e_rel * np.maximum(g_norm, z_norm)),
                rho * dual / (base + e_rel * rho * u_norm),
            )
        )


def average_intercepts(
    program: Program, z: np.ndarray, f: np.ndarray, otherwise: np.ndarray
) -> np.ndarray:
    """Return the average b of the rows strictly within their bounds, where any are.

    Complementarity: f_i + b + phi_i'(z_i) = 0 for these rows, f = K g without b. The
    arrays have a row per problem.
    """
    lo, hi, pn, pp = (getattr(program, name)[:, 0] for name in ("lo", "hi", "pn", "pp"))
    free = (lo < z) & (z < hi) & ((z != 0) | (pn == pp))
    b = np.where(free, -f - np.where(z > 0, pp, pn), 0.0).sum(axis=1)
    n_free = free.sum(axis=1)
    return np.where(n_free > 0, b / np.maximum(n_free, 1), otherwise)


class Parameters(NamedTuple):
    """Parameters that may differ between the points of a path."""

    C1: float
    C2: float
    epsilon: float


def _multipliers(start: NpsvorModel, program: Program, problem: Problem) -> np.ndarray:
    """Return the multipliers of a model at its rows among those of a problem, (p, n);
    0 elsewhere.
    """
    coef, X = start.coef[:, problem.present], problem.X
    return matched_rows(start.support, coef, X, program.lo[:, 0], program.hi[:, 0])


@dataclass(frozen=True, slots=True)
class Npsvor(QuadraticFamily[Parameters, NpsvorModel]):
    """NPSVOR for the fit named `function`, solved by SMO or on a basis."""

    function: str
    cost: Any
    normalize: bool

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return self.function

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Return the method with its cost checked; raise if it is unusable."""
        return replace(self, cost=optional_cost(self.cost, problem.n_classes))

    def check_start(
        self,
        start: Any,  # noqa: ANN401  (checked here)
        problem: Problem,
        kernel: KernelFunction,
        on_basis: bool,
    ) -> None:
        """Raise TypeError or ValueError unless a fit can begin at this model."""
        check_start_model(start, NpsvorModel, problem, kernel)

    def begin(
        self, start: NpsvorModel, program: Program, point: Parameters, problem: Problem
    ) -> np.ndarray:
        """Return feasible multipliers near those of a model, (p, 1, n)."""
        g = _multipliers(start, program, problem)
        return nearest_feasible(g[:, None], program)

    def begin_on_basis(
        self,
        start: NpsvorModel | None,
        losses: list[Losses],
        problem: Problem,
        features: Features,
    ) -> list[Start]:
        """Return starts with the scores of a model, if there is one."""
        begin = super(Npsvor, self).begin_on_basis(start, losses, problem, features)
        if start is None or start.kernel.by_number:  # its rows may have other numbers
            return begin
        rows = named(features.support, start.feature_names)
        f = replace(start, normalize=False).decision_function(rows)
        # A rank that the old data lacked is infinitely far away: it begins at 0.
        known = np.isfinite(start.intercept)
        b = np.where(known, start.intercept, 0.0)
        f = np.where(known, f, 0.0) - b
        return [
            replace(of, w=features.interpolating(f[:, k]), b=-b[k : k + 1])
            for of, k in zip(begin, np.flatnonzero(problem.present), strict=True)
        ]

    def programs(self, point: Parameters, problem: Problem) -> list[Program]:
        """Return (D) of every rank that has training rows."""
        return [self._program(point, problem, problem.rank, problem.weight)]

    def losses(self, point: Parameters, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, in every problem."""
        rank = np.arange(problem.n_classes)
        q = self._program(point, problem, rank, np.ones(rank.size))
        return losses_by_rank(q)

    def rank(self, problem: Problem) -> np.ndarray:
        """Return the ranks, of which every one has an entry in the losses."""
        return problem.rank

    def model(self, point: Parameters, problem: Problem, solved: Solved) -> NpsvorModel:
        """Return the model of one point."""
        return model_of(
            problem,
            solved.options.kernel,
            solved.support,
            solved.coef,
            np.array([-b[0] for b in solved.b]),
            solved.squared_norms(),
            solved.records(),
            normalize=self.normalize,
            cost=self.cost,
        )

    def _program(
        self, point: Parameters, problem: Problem, rank: np.ndarray, weight: np.ndarray
    ) -> Program:
        """Return (D) of every rank k over rows of these ranks and weights."""
        cost = 1 - np.eye(problem.n_classes) if self.cost is None else self.cost
        k = np.flatnonzero(problem.present)[:, None, None]
        own, above = rank == k, rank > k
        C = np.where(own, point.C1 * weight, point.C2 * weight * cost[rank, k])
        outer = np.where(above, -1.0, 1.0)  # slope of phi where y_i != k
        return Program(
            lo=np.where(above, 0.0, -C),
            hi=np.where(own | above, C, 0.0),
            pn=np.where(own, -point.epsilon, outer),
            pp=np.where(own, point.epsilon, outer),
        )


MAX_ITER = 1000


@dataclass(frozen=True, slots=True)
class NpsvorAdmm(Npsvor):
    """NPSVOR by ADMM with its own options, which `fit_npsvor` explains."""

    rho: float = 1.0
    e_abs: float = 1e-2
    e_rel: float = 1e-2
    polish: bool = False
    n_steps: int | None = None
    intercept: str = "multiplier"
    low_rank: int | float | np.ndarray | None = None  # `basis` of a factor of low rank
    reads_chunks = False

    def basis(
        self,
        basis: AnyBasis | None,
        kernel: KernelFunction,
        problem: Problem,
        start: Any,  # noqa: ANN401  (no start is taken)
    ) -> BasisChoice | None:
        """Return None: a basis applies to the factor, and the programs use all rows."""
        return None

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Check the cost and the basis; a float is a part of the trace of K."""
        # With slots, dataclass makes a second class, which super() does not know.
        checked = super(NpsvorAdmm, self).prepared(problem, basis)
        if self.polish and self.n_steps is not None:
            raise ValueError(
                "polish=True ends at the optimum wherever it begins, so that n_steps "
                "must be left out"
            )
        if basis is None:
            return checked
        if self.polish:
            raise ValueError(
                "polish=True needs the whole kernel and cannot be combined with "
                "basis=: leave one of them out"
            )
        low_rank = read_basis(basis, problem.n_samples)
        if isinstance(low_rank, float) and low_rank == 1:
            raise ValueError("basis as a part of the trace must be in (0, 1), got 1.0")
        return replace(checked, low_rank=low_rank)

    def check_start(
        self,
        start: Any,  # noqa: ANN401  (checked here)
        problem: Problem,
        kernel: KernelFunction,
        on_basis: bool,
    ) -> None:
        """Raise TypeError or ValueError unless ADMM can begin here."""
        if isinstance(start, NpsvorModel):
            check_start_model(start, NpsvorModel, problem, kernel)
        elif isinstance(start, bool) or not isinstance(start, Real):
            raise TypeError(
                f"start must be an NpsvorModel or a number, got {shown(start)}"
            )
        else:
            check_finite("start", start)

    def check_folds(self, shares: Shares) -> None:
        """Raise ValueError if a fold of a link has none of the basis rows."""
        basis = self.low_rank
        if (
            isinstance(shares, np.ndarray)
            and isinstance(basis, np.ndarray)
            and (shares[basis] == 1).all(axis=0).any()
        ):
            raise ValueError(
                "basis must have rows in two folds of probability=True, but all "
                "rows of it are left out together: name more rows"
            )

    def solver(
        self,
        options: KernelOptions,
        choice: BasisChoice | None,
        problem: Problem,
        point: Parameters,
        start: NpsvorModel | float | None,
        products: Products | None,
    ) -> Admm:
        """Return the solver by ADMM."""
        return Admm(self, options, problem, start, products)


class Admm(Solver[Parameters, NpsvorModel]):
    """ADMM, which iterates the problems of all ranks and points at once."""

    def __init__(
        self,
        family: NpsvorAdmm,
        options: KernelOptions,
        problem: Problem,
        start: NpsvorModel | float | None = None,
        products: Products | None = None,
    ):
        super().__init__(options.monitor)
        self.family, self.options, self._start = family, options, start
        self._problem, self._products = problem, products

    def restricted_to(
        self, problem: Problem, rows: np.ndarray, start: NpsvorModel | None = None
    ) -> Admm:
        """Return the solver for these training rows, with the basis rows among them."""
        family, basis = self.family, self.family.low_rank
        if isinstance(basis, np.ndarray):
            here = np.flatnonzero(np.isin(rows, basis))
            family = replace(family, low_rank=here)
        return Admm(family, self.options, problem, self._start)

    def fit(self, point: Parameters) -> tuple[NpsvorModel, np.ndarray | None]:
        """Return the model of a point, and the numbers of its support rows."""
        return self.path([point])[0]

    def path(
        self, points: Sequence[Parameters]
    ) -> list[tuple[NpsvorModel, np.ndarray | None]]:
        """Return the results of `fit` for all points, which share every product."""
        problem = self._problem
        family, options = self.family, self.options
        # The violation of ADMM is the ratio of a residual to its allowance.
        monitor = options.monitor.to_tol(1.0)
        programs = [family.programs(point, problem)[0] for point in points]
        factor = self._factor()
        limit = options.max_iter or max(MAX_ITER, family.n_steps or 0)
        out = solve_admm(
            factor,
            programs,
            family,
            np.concatenate([self._begin(program) for program in programs]),
            max_iter=min(limit, family.n_steps or limit),
            n_threads=options.n_threads,
            monitor=monitor,
        )
        n_ranks = len(programs[0].lo)
        own = [slice(i, i + n_ranks) for i in range(0, len(out.g), n_ranks)]
        # The coefficients are ADMM's g, whose sum is 0 but which may leave the box. The
        # dual objective is that of the nearest feasible point.
        inside = [
            project(out.g[point, None], program.lo, program.hi)
            for program, point in zip(programs, own, strict=True)
        ]
        if family.polish and not monitor.late():
            if monitor.max_time is None:
                # Without a time limit the polish succeeds, and the factor is not needed
                # any more. Free its memory, as large as that of the rows of K.
                factor = NoFactor()
            try:
                with monitor.stage("polish"):
                    return self._polished(points, inside)
            except OutOfTime:  # before SMO could begin
                pass
        G = factor.product(out.g)
        G_inside = factor.product(np.concatenate(inside)[:, 0])
        rows, coef = factor.support, factor.coefficients(out.g)
        support = support_rows(options.kernel, problem.X, rows)
        models = []
        for program, point, nearest in zip(programs, own, inside, strict=True):
            g, f, b = out.g[point, None], G[point], out.b[point]
            if family.intercept == "average":
                b = average_intercepts(program, out.z[point], f, b)
            ratio = out.ratio[point]
            status = Status.CONVERGED if not (ratio > 1).any() else out.status
            primal, _ = objectives(program, g, f, -b[:, None])
            dual = objectives(program, nearest, G_inside[point], -b[:, None])[1]
            parts = records(
                monitor, status, ratio <= 1, out.n_iter[point], ratio, primal, dual
            )
            models.append(
                model_of(
                    problem,
                    options.kernel,
                    support,
                    coef[:, point],
                    b,
                    np.einsum("pn,pn->p", g[:, 0], f),
                    parts,
                    normalize=family.normalize,
                    cost=family.cost,
                )
            )
        return [(model, rows) for model in models]

    def _begin(self, program: Program) -> np.ndarray:
        """Return the z of a program to begin at, (p, n)."""
        start = self._start
        if not isinstance(start, NpsvorModel):
            return np.full(program.lo[:, 0].shape, float(start or 0.0))
        return _multipliers(start, program, self._problem)

    def _factor(self) -> Factor | NoFactor:
        """Return a factor of K + rho I, or `NoFactor` if time is up."""
        family, options = self.family, self.options
        # Errors of the factor far below the allowances of the residuals.
        tolerances = filter(None, (family.e_abs, family.e_rel))
        allowed = 1e-4 * family.rho * min(tolerances, default=0.0)
        try:
            with options.monitor.stage("factor of K"), options.monitor.limited():
                if family.low_rank is None:
                    return exact_factor(
                        options.kernel,
                        self._problem.X,
                        family.rho,
                        allowed,
                        options.n_threads,
                        self._products,
                    )
                return LowRankFactor(
                    options.kernel,
                    self._problem.X,
                    family.rho,
                    family.low_rank,
                    options.n_threads,
                )
        except OutOfTime:
            return NoFactor()

    def _polished(
        self, points: Sequence[Parameters], inside: list[np.ndarray]
    ) -> list[tuple[NpsvorModel, np.ndarray | None]]:
        """Return the models of SMO begun at the solutions of ADMM."""
        options = replace(self.options, max_iter=None)
        found: list[tuple[NpsvorModel, np.ndarray | None]] = []
        smo = WholeKernel(self.family, options, self._problem, None, self._products)
        with closing(smo):
            for i, (point, g) in enumerate(zip(points, inside, strict=True)):
                with self._monitor.numbered("point", i, len(points)):
                    found.append(smo.fit(point, g))
        return found
