"""OPBE: projections of the rows for "before, here or after" each rank, fused.

For each rank k an SVORIM (ordinal/svor.py) of three classes, the ranks before k, k
itself and those after it, projects the rows onto a line f_k with thresholds b_k <= c_k;
that of the first and the last rank has two classes and one threshold. With s_ij = +1
where row i is beyond threshold j and -1 elsewhere, and a weight v_i of row i,

    min_{w,b}  1/2 |w|^2 + C sum_ij v_i max(0, 1 - s_ij (f_k(x_i) - b_j))           (P)

    max_a  sum_ij a_ij - 1/2 beta'K beta,   beta_i = sum_j s_ij a_ij                 (D)
    s.t.   0 <= a_ij <= C v_i  and, for each j,  sum_i s_ij a_ij = 0

The class of a row is taken from its projection by the logistic function,

    P_k(before) = 1 / (1 + exp(z - b)),   P_k(after) = 1 / (1 + exp(c - z)),
    P_k(here) = 1 - P_k(before) - P_k(after),

z being f_k(x). Where c_k - b_k < 4, z, b and c are first multiplied by 4 / (c_k - b_k),
so that "here" can be likely. What is before k belongs to each of the ranks there alike,
and so does what is after it, and the r opinions are multiplied:

    P(y = j | x)  in proportion to  prod_k P_k(class of j) / size of that class.   (F)

The value of (P) less that of (D) is the gap of each problem, bounded as in
ordinal/svor.py.

M. Perez-Ortiz, P. A. Gutierrez, C. Hervas-Martinez, "Projection-based ensemble learning
for ordinal regression", IEEE Transactions on Cybernetics 44(5):681-694, 2014: the best
of its forms, with products, SVORIM, the logistic function and equal shares. ORCA, its
program, divides (F) by the sum of the shares of rank j over k, which belongs to
combining by sums; it is left out here, as (F) is a product of probabilities without.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np

from ._basis.fitting import (
    BasisOptions,
    by_problem,
    chosen,
    enough_rows,
    on_basis,
    read,
    record,
    roughly,
)
from ._basis.losses import Losses
from ._basis.proximal import Solution as BasisSolution
from ._basis.proximal import cold
from ._dual.driver import Solution, least_rows, solve
from ._dual.feasible import snap_to_bounds
from ._dual.gram import Gram, gram_in_time
from ._dual.path import records
from ._dual.pivoting import Pivoting
from ._dual.program import Program
from ._input.basis import BasisChoice
from ._input.checks import check_count, check_factor, check_positive
from ._input.problem import Problem
from ._input.sparse import frozen
from ._input.types import (
    AnyBasis,
    ArrayLike,
    Blocks,
    ClassWeight,
    Gamma,
    Kernel,
    KernelName,
    Labels,
    Matrix,
    MatrixLike,
    Rng,
)
from ._kernel_matrix.tiles import Products
from ._model.convergence import Convergence, Status
from ._model.entry import Callback, KernelCommon, enter_with_kernel
from ._model.fields import FINITE, NOT_NAN, POSITIVE, Array
from ._model.monitor import Monitor
from ._model.registry import COSTS, GAMMAS, register
from ._model.rules import cost_of_rule, decide
from ._model.support import (
    KernelModel,
    decision,
    decisions,
    finite_scores,
    kept,
    support_rows,
)

__all__ = ["OpbeModel", "fit_opbe"]


def __dir__() -> list[str]:
    return __all__


_Rule: TypeAlias = Literal["mode", "median", "cost"]
_MAX_ITER, _NEWTON_STEPS = 10_000_000, 200
_WIDTH = 4.0  # between the two thresholds, at least, where probabilities are taken
_NARROW = 1e-6  # thresholds that are as good as one
_LARGEST = 1e100  # distance from a threshold that counts


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OpbeModel(KernelModel):
    """A projection a rank: f_k(x) = sum_i coef[i, k] k(support_i, x).

    Attributes
    ----------
    support : (m, n_features) array or CSR
        The training rows that some projection uses. For a precomputed kernel the (m,)
        numbers of those rows; for a fit with a basis its rows.
    coef : (m, r) array
    cuts : (r, 2) array
        Thresholds b and c of each rank, in the unit of the margin. -inf and +inf where
        no rank with training rows is before or after it; both +inf for a rank without
        training rows, which is never predicted.
    C : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Its `parts` are those of the ranks of `classes`.
    """

    coef: Annotated[np.ndarray, Array("f8", "m r"), FINITE]
    cuts: Annotated[np.ndarray, Array("f8", "r _"), NOT_NAN]
    C: Annotated[float, FINITE, POSITIVE]

    def decision_function(self, X: Any) -> np.ndarray:
        """Projections f_k(x) of rows, which increase with the rank.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n, r) array
            In units of the margin; 0 for a rank without training rows.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    @property
    def _present(self) -> np.ndarray:
        """Ranks with training rows."""
        return np.flatnonzero(np.isfinite(self.cuts).any(axis=1))

    def _columns(self) -> np.ndarray:
        """The coefficients of the ranks that had training rows. A matrix product may
        round otherwise if it has more columns, and absent ranks are to change no bit.
        """
        return np.ascontiguousarray(self.coef[:, self._present])

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """The projections from sums over the support rows, a column a present rank."""
        f = np.zeros((len(sums), self.classes.size))
        f[:, self._present] = finite_scores(sums)
        return f

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the ranks, fused from the projections as (F) of
        `ordinal.opbe` says. They are part of the method and not calibrated: the r
        opinions are taken for independent, so that they are too sure.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, which says what is raised.

        Returns
        -------
        (n, r) array
            Rows sum to 1.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """`predict_proba` of rows with the projections f."""
        present = self._present
        q = present.size
        log = np.zeros((len(f), q))
        for k, rank in enumerate(present):
            before, here, after = _log_classes(f[:, rank], *self.cuts[rank])
            log[:, :k] += (before - np.log(max(k, 1)))[:, None]
            log[:, k] += here
            log[:, k + 1 :] += (after - np.log(max(q - 1 - k, 1)))[:, None]
        log -= log.max(axis=1, keepdims=True)
        P = np.zeros((len(f), self.classes.size))
        P[:, present] = np.exp(log)
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def predict(
        self, X: Any, *, rule: _Rule = "mode", cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"mode", "median", "cost"}, default "mode"
            The most probable rank, as the paper has it; the median; or the rank of
            least expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError
            For an unknown rule, or for a cost that is not asked for, or not as in
            `fit_svorim`.
        """
        rules = "mode", "median", "cost"
        table = cost_of_rule(rule, rules, cost, None, self.classes.size)
        return np.asarray(self.classes[decide(self.predict_proba(X), rule, table)])

    def _labels(self, f: np.ndarray) -> np.ndarray:
        """`predict` of rows with the projections f."""
        return np.asarray(self.classes[decide(self._proba(f), "mode")])

    def _check_values(self) -> None:
        if self.cuts.shape[1] != 2 or self._present.size < 2:
            raise ValueError("cuts must be two a rank, finite for two ranks")
        known = self.cuts[self._present]
        ends = known[0, 0], -known[-1, 1]
        inner = known.ravel()[1:-1]
        absent = np.delete(self.cuts, self._present, axis=0)
        if ends != (-np.inf, -np.inf) or not (absent == np.inf).all():
            raise ValueError("cuts must be infinite where there are no ranks beyond")
        if not (np.abs(inner) <= _LARGEST).all():
            raise ValueError(f"cuts must be at most {_LARGEST:g}")


def _log_classes(
    z: np.ndarray, b: float, c: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logs of P(before), P(here) and P(after) of (F), each (n,)."""
    if b == -np.inf or c == np.inf:
        z = np.clip(z - (c if b == -np.inf else b), -_LARGEST, _LARGEST)
        below, above = -np.logaddexp(0, z), -np.logaddexp(0, -z)
        none = np.full(z.size, -np.inf)
        return (none, below, above) if b == -np.inf else (below, above, none)
    width = max(c - b, _NARROW)
    with np.errstate(over="ignore"):  # which the limits make good
        z = (z - 0.5 * (b + c)) * max(1.0, _WIDTH / width)
    z, half = np.clip(z, -_LARGEST, _LARGEST), 0.5 * max(width, _WIDTH)
    # 1 - P(before) - P(after) without a difference of numbers that are nearly 1
    here = np.log1p(-np.exp(-2 * half)) - np.logaddexp(0, z - half)
    here -= np.logaddexp(0, -z - half)
    return -np.logaddexp(0, z + half), here, -np.logaddexp(0, half - z)


def fit_opbe(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    basis: AnyBasis | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> OpbeModel:
    """Fit OPBE: for each rank an SVORIM of "before, here, after", and fuse them.

    The module's docstring states (P), (D) and (F). The r fits share one kernel matrix
    and run side by side. Probabilities are part of the method.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN, an entry not known, goes with `kernels.Pearson` only. `predict`
        finds the columns of a data frame by their names. With `basis` or a linear
        kernel also a source of blocks (`ordinal.data`) or a numpy.memmap, whose rows
        need not fit in memory.
    y : (n,) array-like, or None where X is a source of blocks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks; search 1e-3 to 1e3.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X), 1 / d on
        standardised features; "auto" is 1 / d.
    tol : float > 0, default 1e-3
        Largest violation of the optimality conditions of a problem, in units of f. On a
        basis the largest duality gap, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows, whose products are limited alike.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: every f_k is a sum over basis rows only, as in `fit_svorim`.
        The default is the whole kernel; of a linear one, for 2000 rows or more and
        d <= min(n / 4, 1000), the unit vectors, which leave nothing out.
    rng : int or numpy.random.Generator, default 0
        Draws the rows of a basis, and samples for a fit on it. Unused without.
    n_threads : int, optional
        Default: the processors this process may use, or ORDINAL_NUM_THREADS. No
        bit of the result depends on it; last bits do depend on the number of threads
        of numpy's BLAS, which is set apart (docs/reliability.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows. On a
        basis for float32 features: those of rows beyond it are made at every step.
    max_iter : int, default 10^7
        Pair steps of one problem; on a basis Newton steps, default 200.
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K.
    callback : callable, optional
        Called with an `ordinal.State` several times a second; a true value stops.
    verbose : bool, default False
        Tell stderr how far the fit is: one line rewritten in place on a terminal, a bar
        in a notebook (of tqdm, if it is there), elsewhere a line every ten seconds.

    Returns
    -------
    OpbeModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        A problem ended short of the tolerance; the message says why and what helps.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_opbe(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    >>> len(model.convergence.parts)
    3
    """
    return _fit(
        X, y, [C], basis=basis, cache_mb=cache_mb, max_iter=max_iter, kernel=kernel,
        gamma=gamma, tol=tol, classes=classes, sample_weight=sample_weight,
        class_weight=class_weight, rng=rng, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


def _fit_path(
    X: MatrixLike | Blocks,
    y: Labels | None,
    points: Sequence[Mapping[str, float]],
    products: Products | None = None,
    X_test: Matrix | None = None,
    **options: Any,
) -> tuple[list[OpbeModel], Sequence[np.ndarray | None]]:
    """A model for the C of every point, each but the first started from the one before,
    and the projections of each for the rows of `X_test`, or None."""
    every = {**(fit_opbe.__kwdefaults__ or {}), **options}
    own = every.pop("C")
    costs = [point.get("C", own) for point in points]
    return _fit(X, y, costs, products, X_test, **every)


def _fit(
    X: MatrixLike | Blocks,
    y: Labels | None,
    costs: Sequence[float],
    products: Products | None = None,
    X_test: Matrix | None = None,
    *,
    basis: AnyBasis | None,
    cache_mb: float,
    max_iter: int | None,
    **common: Unpack[KernelCommon],
) -> tuple[list[OpbeModel], Sequence[np.ndarray | None]]:
    """A model for every C, as `_fit_path` says."""
    costs = [check_factor("C", C) for C in costs]
    cache_mb = check_positive("cache_mb", cache_mb)
    if max_iter is not None:
        max_iter = check_count("max_iter", max_iter)
    entry = enter_with_kernel(
        "fit_opbe", X, y, in_blocks=on_basis(basis, common.get("kernel")),
        in_place=basis is not None, **common,
    )  # fmt: skip
    problem, kernel = entry.problem, entry.kernel
    choice = read(basis, kernel, problem)
    models: list[OpbeModel]
    used: list[np.ndarray] | None = None
    with entry.monitor as monitor, closing(problem):
        if choice is None:
            job = _Job(
                kernel, entry.n_threads, cache_mb, max_iter or _MAX_ITER, monitor
            )
            models, used = job.fit(problem, costs, products)
        else:
            models = _job_on(
                choice, problem, costs, kernel=kernel, cost=None,
                n_threads=entry.n_threads, cache_mb=cache_mb,
                max_iter=max_iter or _NEWTON_STEPS,
                seed=int(entry.rng.integers(2**31)), monitor=monitor,
            ).fit(problem, costs)  # fmt: skip
        f = decisions(models, used, problem.X, X_test)
        monitor.conclude(models[-1].convergence)
    for model in models:
        model.convergence.warn_unless_converged("fit_opbe")
    return models, f


class _Three(NamedTuple):
    """Problems that have as many thresholds: ranks (places among those present), and
    for each of a program's groups, whether a row of each rank is above it."""

    ranks: np.ndarray  # (P,)
    above: np.ndarray  # (P, T, q)

    def program(self, rank: np.ndarray, width: np.ndarray) -> Program:
        """(D) for rows of these ranks, whose boxes are so wide."""
        above = self.above[:, :, rank]
        slope = np.where(above, -1.0, 1.0)
        return Program(
            lo=np.where(above, 0.0, -width),
            hi=np.where(above, width, 0.0),
            pn=slope,
            pp=slope,
        )

    def both(self, b: np.ndarray, q: int) -> np.ndarray:
        """(P, 2) the thresholds before and after each rank, from (P, T)."""
        first, last = self.ranks == 0, self.ranks == q - 1
        return np.stack(
            [np.where(first, -np.inf, b[:, 0]), np.where(last, np.inf, b[:, -1])],
            axis=1,
        )


def _threes(q: int) -> list[_Three]:
    """The problems of q ranks: those of the two at the ends, and the others."""
    rank, inner = np.arange(q), np.arange(1, q - 1)
    cut = np.array([0, q - 2])  # the last rank below the threshold
    ends = _Three(np.array([0, q - 1]), (rank > cut[:, None])[:, None])
    if not inner.size:
        return [ends]
    cuts = np.stack([inner - 1, inner], axis=1)
    return [ends, _Three(inner, rank > cuts[:, :, None])]


def _model(
    problem: Problem,
    kernel: Kernel,
    support: Any,
    C: float,
    coef: np.ndarray,
    thresholds: np.ndarray,
    parts: Sequence[Convergence],
) -> OpbeModel:
    """A model of the projections of the ranks that have training rows: (m, q) and
    (q, 2). A rank without rows has converged, to nothing."""
    present, r = np.flatnonzero(problem.present), problem.n_classes
    nothing = replace(
        parts[0], status=Status.CONVERGED, n_iter=0, violation=0.0, primal=0.0, dual=0.0
    )
    every, all_coef = [nothing] * r, np.zeros((len(coef), r))
    all_coef[:, present] = coef
    both = np.full((r, 2), np.inf)
    both[present] = thresholds
    for k, part in zip(present, parts, strict=True):
        every[k] = part
    return OpbeModel(
        support=support,
        coef=frozen(all_coef),
        cuts=frozen(both),
        C=C,
        classes=frozen(problem.classes),
        kernel=kernel,
        n_features=problem.n_features,
        feature_names=problem.feature_names,
        convergence=Convergence.of_parts(every),
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """Checked options of a fit on the whole kernel matrix."""

    kernel: Kernel
    n_threads: int
    cache_mb: float
    max_iter: int
    monitor: Monitor

    def fit(
        self, problem: Problem, costs: Sequence[float], products: Products | None
    ) -> tuple[list[OpbeModel], list[np.ndarray]]:
        """A model a C, and the numbers of its support rows."""
        gram = gram_in_time(
            self.monitor, self.kernel, problem.X, self.cache_mb, self.n_threads,
            least_rows(2), products,
        )  # fmt: skip
        threes = _threes(int(problem.present.sum()))
        paths, watch = [], self.monitor
        for three in threes:
            paths.append(self._path(three, problem, costs, gram, watch))
            watch = watch.after(sum(int(s.n_iter.sum()) for _, s in paths[-1]))
        models, used = [], []
        for i, C in enumerate(costs):
            made = self._made(threes, [path[i] for path in paths], problem, C)
            models.append(made[0])
            used.append(made[1])
        return models, used

    def _path(
        self,
        three: _Three,
        problem: Problem,
        costs: Sequence[float],
        gram: Gram,
        watch: Monitor,
    ) -> list[tuple[Program, Solution]]:
        """Programs of some of the problems for every C, and their solutions."""
        unit = three.program(problem.rank_among_present, problem.weight)
        pivoting = [Pivoting(gram, unit.curvature, len(unit.lo)) for _ in unit.lo]
        found: list[tuple[Program, Solution]] = []
        for i, C in enumerate(costs):
            program = replace(unit, lo=C * unit.lo, hi=C * unit.hi)
            g = np.zeros_like(unit.lo)
            if found:
                s = found[-1][1]
                # (D) along the ray through the last solution is a parabola: to its top,
                # or as far as the boxes grew
                curve = np.einsum("ptn,pn->p", s.g, s.f)
                top = -program.phi(s.g) / np.where(curve > 0, curve, np.inf)
                ratio = C / costs[i - 1]
                length = np.clip(top, min(1.0, ratio), ratio)[:, None, None]
                g = snap_to_bounds(length * s.g, program.lo, program.hi)
            with self.monitor.numbered("point", i, len(costs)):
                s = solve(
                    gram, program, g, tol=self.monitor.tol, max_iter=self.max_iter,
                    n_threads=self.n_threads, monitor=watch, pivoting=pivoting,
                )  # fmt: skip
            watch = watch.after(int(s.n_iter.sum()))
            found.append((program, s))
        return found

    def _made(
        self,
        threes: list[_Three],
        found: list[tuple[Program, Solution]],
        problem: Problem,
        C: float,
    ) -> tuple[OpbeModel, np.ndarray]:
        q = int(problem.present.sum())
        beta = np.zeros((q, problem.n_samples))
        thresholds = np.zeros((q, 2))
        parts: list[Any] = [None] * q
        for three, (program, s) in zip(threes, found, strict=True):
            own = s.g.sum(axis=1)
            beta[three.ranks] = own
            thresholds[three.ranks] = three.both(s.b, q)
            half = 0.5 * np.einsum("pn,pn->p", own, s.f)
            made = records(
                self.monitor, s.status, s.reached, s.n_iter, s.violation,
                half + program.loss(s.f, s.b), -half - program.phi(s.g),
            )  # fmt: skip
            for k, part in zip(three.ranks, made, strict=True):
                parts[k] = part
        rows = np.flatnonzero(beta.any(axis=0))
        support = support_rows(self.kernel, problem.X, rows)
        coef = beta[:, rows].T
        return _model(
            problem, self.kernel, support, C, coef, thresholds, parts
        ), rows  # fmt: skip


def _job_on(
    choice: BasisChoice, problem: Problem, costs: Sequence[float], **options: Any
) -> _BasisJob:
    """A job on the basis that a choice means for a problem; its size, if that is to be
    found, by models of the last C."""
    kernel, seed = options["kernel"], options["seed"]
    if choice.way == "auto":
        here = {**options, "monitor": roughly(options["monitor"])}

        def fit(part: Problem, tried: BasisChoice) -> OpbeModel:
            last = costs[-1:]
            return _job_on(tried, part, last, **here).fit(part, last)[0]

        choice = enough_rows(problem, kernel, fit, seed)
    features = chosen(choice, kernel, problem, seed, options["n_threads"])
    return _BasisJob(features=features, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BasisJob(BasisOptions):
    """Options of a fit on a basis."""

    def fit(self, problem: Problem, costs: Sequence[float]) -> list[OpbeModel]:
        """A model a C; they have their support rows in common."""
        q = int(problem.present.sum())
        threes = _threes(q)
        ranks = np.concatenate([three.ranks for three in threes])
        points = [self._losses(threes, q, C) for C in costs]
        starts = [cold(self.features.m, of, np.zeros(of.T)) for of in points[0]]
        fits = self.fits(problem, problem.rank_among_present)
        with closing(fits):
            found = fits.path(
                points, starts, warm=False, tol=self.monitor.tol, max_iter=self.max_iter
            )
        return [
            self._model(problem, C, threes, ranks, of)
            for C, of in zip(costs, found, strict=True)
        ]

    def _losses(self, threes: list[_Three], q: int, C: float) -> list[Losses]:
        programs = [three.program(np.arange(q), np.full(q, C)) for three in threes]
        return [of for p in programs for of in by_problem(p.lo, p.hi, p.pn, p.pp)]

    def _model(
        self,
        problem: Problem,
        C: float,
        threes: list[_Three],
        ranks: np.ndarray,
        found: Sequence[BasisSolution],
    ) -> OpbeModel:
        order = np.argsort(ranks)
        q, rest = ranks.size, list(found)
        both = []
        for three in threes:
            some = [rest.pop(0).b for _ in three.ranks]
            both.append(three.both(np.stack(some), q))
        w = np.stack([found[i].w for i in order], axis=1)
        return _model(
            problem, self.kernel, kept(self.features.support), C,
            self.features.coefficients(w), np.concatenate(both)[order],
            [record(self.monitor, found[i]) for i in order],
        )  # fmt: skip


register(
    fit_opbe,
    name="opbe",
    estimator="OPBE",
    accepts={"sparse"},
    probabilities=True,
    grid={"C": COSTS, "gamma": GAMMAS},
    varying=("C",),
    fit_path=_fit_path,
)
