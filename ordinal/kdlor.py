"""KDLOR: kernel discriminant learning, with the means of the ranks in order.

With shares p_i of the weights, which sum to 1, features phi_i and means m_k of the
present ranks, the scatter within the ranks and a ridge,

    S = sum_i p_i (phi_i - m_(y_i)) (phi_i - m_(y_i))' + u t I,

    min_{w,rho}  w'S w - C rho   s.t.  w'(m_(k+1) - m_k) >= rho for all k            (P)

    max_a  -1/4 a'Q a   s.t.  a >= 0,  sum_k a_k = C,   Q = D'S^-1 D                 (D)

where D has the columns m_(k+1) - m_k, and w = S^-1 D a / 2. The score is f(x) = <w,
phi(x)>, and a threshold lies in the middle between the mean scores mu_k and mu_(k+1) of
two neighbouring ranks; as these are rho >= 0 or more apart, thresholds are in order. w,
rho and the thresholds are in proportion to C, so that no prediction depends on it. With
class weights c_k thresholds are where the largest of the c_k N(f; mu_k, w'S w) changes,
N being the density of a normal distribution: between two neighbours alone, they move by
-w'S w log(c_(k+1) / c_k) / (mu_(k+1) - mu_k).

t is the trace of the scatter around the mean of all rows. Predictions thus change
neither if the kernel is multiplied by a number nor if a number is added to it, nor if
all weights are multiplied by one. A row of weight 2 is two rows.

With K the kernel matrix, s_i = sqrt(p_i), and K_c that with the mean of its rank taken
from every phi_i,

    S^-1 = (I - Psi'(u t I + G)^-1 Psi) / (u t),   G = diag(s) K_c diag(s) = Psi Psi',

needs one Cholesky factorisation of order n, whose smallest eigenvalue is u t. On a
basis S is a matrix of order m itself, that of the features z(x) of `_basis/features.py`
in place of phi. (D) is a problem of r - 1 unknowns, which an active set solves exactly.

The gap is one of raw data: scores and means are computed afresh from the kernel, which
gives (P) at w. For any w and feasible a, with the residual e = 2 S w - D a,

    max (D) >= -1/4 a'Q a >= w'S w - w'D a - |e|^2 / (4 u t).                      (GAP)

B.-Y. Sun, J. Li, D. D. Wu, X.-M. Zhang, W.-B. Li, "Kernel discriminant learning for
ordinal regression", IEEE Transactions on Knowledge and Data Engineering 22(6):906-910,
2010. The ridge there keeps S from being singular and is not part of the method; ORCA
adds u |beta|^2 for the coefficients beta of w, which counts a row that is written twice
otherwise than one of weight 2.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Protocol, Unpack

import numpy as np

from ._basis.features import Features
from ._basis.fitting import chosen, enough_rows, features_among, on_basis, read
from ._input.basis import BasisChoice
from ._input.checks import check_count, check_factor
from ._input.problem import Problem, around_ranks
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
from ._kernel_matrix.choice import check_values
from ._kernel_matrix.tiles import Products, on_itself
from ._model.calibration import calibrate
from ._model.convergence import Convergence, Status
from ._model.entry import Callback, KernelCommon, enter_with_kernel
from ._model.fields import FINITE, NONNEGATIVE, POSITIVE, Array
from ._model.monitor import Monitor, OutOfTime
from ._model.registry import GAMMAS, register
from ._model.support import decision, decisions, kept, support_rows
from ._model.threshold_model import Scored, ScoreModel
from ._numerics.cholesky import Cholesky
from ._numerics.passes import Chunk, summed
from ._numerics.pool import Pool
from ._numerics.rows import strips, times
from ._numerics.tree import Parts

__all__ = ["KdlorModel", "fit_kdlor"]


def __dir__() -> list[str]:
    return __all__


_RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Of C^2 k / (4 u t), k being the mean of k(x, x): objectives below that are what
# rounding makes of 0, where the means of ranks are the same
_NO_ANSWER = 1e-8
_ONE_POINT = 1e-14  # of k: no scatter but what rounding leaves of rows that are alike
_SETTLED = 1e-13  # slopes by entries that rounding may leave of 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KdlorModel(ScoreModel):
    """A score f(x) = sum_i coef[i] k(support_i, x) and the thresholds that cut it.

    Attributes
    ----------
    support : (m, n_features) array or CSR
        The training rows of positive weight, the rows of the basis, or unit vectors;
        for a precomputed kernel the (m,) numbers of rows.
    coef : (m,) array
    dual : (r - 1,) array
        a of (D): how much each pair of neighbouring ranks decides the direction. Of
        ranks without rows between the two of a pair, it is in the first of its places.
    thresholds : (r - 1,) array
        In the middle between the mean scores of neighbouring ranks, but for class
        weights. -inf and +inf where no training rows lie beyond, and equal on both
        sides of a rank between that has none: it is never predicted.
    rho : float
        How far the mean scores of neighbouring ranks are apart, at least.
    C, u : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
        Its steps are those of the active set.
    """

    dual: Annotated[np.ndarray, Array("f8", "r-1"), FINITE, NONNEGATIVE]
    rho: Annotated[float, FINITE]
    C: Annotated[float, FINITE, POSITIVE]
    u: Annotated[float, FINITE, POSITIVE]

    def decision_function(self, X: Any) -> np.ndarray:
        """The score f(x), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n,) array
            In proportion to C; mean scores of neighbouring ranks are `rho` apart, or
            more.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    def link_input(self, X: Any, like: Scored) -> np.ndarray:
        """Scores for the link of another model: in its unit, in which neighbouring
        means are as far apart, and moved by what its thresholds lie higher."""
        ratio = 1.0
        if isinstance(like, KdlorModel) and min(self.rho, like.rho) > 0:
            ratio = like.rho / self.rho
        own = replace(
            self, coef=ratio * self.coef, thresholds=ratio * self.thresholds
        )  # in the unit of the other
        return ScoreModel.link_input(own, X, like)


def fit_kdlor(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    u: float = 3e-3,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    basis: AnyBasis | None = None,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 10_000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> KdlorModel:
    """Fit KDLOR: a direction along which ranks are narrow and their means in order.

    The module's docstring states (P), (D) and (GAP). O(n^3 / 3) multiplications and n^2
    doubles; with `basis` O(n m^2) in one pass over the rows, and m^2 doubles.

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
    u : float > 0, default 3e-3
        Ridge, as a part of the trace of the scatter of all rows. Larger ones give
        smoother scores: search 1e-5 to 1e-1.
    C : float > 0, default 1.0
        Of (P): the unit of the score, which changes no prediction.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X), 1 / d on
        standardised features; "auto" is 1 / d.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        The rows that w is a sum of, for very many: a number of rows, drawn at random,
        of each rank its share, or chosen in a way that is named with it: ("kmeans++",
        300) or ("cholesky", 300). A share is the part of the trace of the kernel matrix
        of a sample that may be left out. "auto" is 100 rows, doubled until the error of
        rows held out falls no more. Or the (m, d) rows themselves. The default is every
        row; of a linear kernel, for 2000 rows or more and d <= min(n / 4, 1000), the
        unit vectors, which leave nothing out.
    tol : float > 0, default 1e-6
        Largest duality gap, relative to the objective. The method is exact: what is
        left is rounding, which is in proportion to 1 / u.
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice; with a basis that is drawn
        only if the same rows are. The sum must lie between 1e-50 and 1e50, and positive
        weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        How much the scatter of a rank counts, and errors in it: thresholds move away
        from the mean of a rank that weighs more. Without them every rank counts alike
        for the thresholds, however few its rows are. Products with the weights of the
        rows are limited as these are.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    probability : bool, default False
        Also fit the link that `predict_proba` needs, on the scores of five more fits,
        each of which leaves out a fifth of the rows; on a basis of one, or as many as
        it takes to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths, and the rows of a basis. Unused without both.
    n_threads : int, optional
        Of the kernel values, the factorisation and the passes over rows; matrix
        products use the threads of numpy's BLAS. Default: the processors this process
        may use, or ORDINAL_NUM_THREADS. No bit of the result depends on it; last bits
        do depend on the number of threads of numpy's BLAS, which is set apart
        (docs/reliability.md).
    max_iter : int, default 10 000
        Steps of the active set for (D); it takes about as many as there are ranks.
    max_time : float > 0, optional
        Seconds, looked at between blocks of every matrix; a fit that is late before it
        has its factorisation has a score of 0.
    callback : callable, optional
        Called with an `ordinal.State` before the factorisation and between the steps of
        the active set; a true value stops.
    verbose : bool, default False
        Tell stderr how far the fit is: one line rewritten in place on a terminal, a bar
        in a notebook (of tqdm, if it is there), elsewhere a line every ten seconds.

    Returns
    -------
    KdlorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then. Or the
        kernel is not positive semi-definite.

    Warns
    -----
    ConvergenceWarning
        The fit, or one of those for `probability`, ended short of the tolerance; the
        message says why and what helps.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_kdlor(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.threshold_names
    ('1|2', '2|3')
    >>> ordinal.fit_kdlor(X, y, basis=10).support.shape
    (10, 2)
    """
    return _fit(
        X, y, [u], C=C, basis=basis, max_iter=max_iter, kernel=kernel, gamma=gamma,
        tol=tol, classes=classes, sample_weight=sample_weight,
        class_weight=class_weight, rng=rng, probability=probability,
        n_threads=n_threads, max_time=max_time, callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


def _fit_path(
    X: MatrixLike | Blocks,
    y: Labels | None,
    points: Sequence[Mapping[str, float]],
    products: Products | None = None,
    X_test: Matrix | None = None,
    **options: Any,
) -> tuple[list[KdlorModel], Sequence[np.ndarray | None]]:
    """A model for the u of every point, from one centred kernel matrix, and the
    decision function of each for the rows of `X_test`, or None."""
    every = {**(fit_kdlor.__kwdefaults__ or {}), **options}
    own = every.pop("u")
    ridges = [point.get("u", own) for point in points]
    return _fit(X, y, ridges, products, X_test, **every)


def _fit(
    X: MatrixLike | Blocks,
    y: Labels | None,
    ridges: Sequence[float],
    products: Products | None = None,
    X_test: Matrix | None = None,
    *,
    C: float,
    basis: AnyBasis | None,
    max_iter: int,
    **common: Unpack[KernelCommon],
) -> tuple[list[KdlorModel], Sequence[np.ndarray | None]]:
    """A model for every u, as `_fit_path` says."""
    ridges = [check_factor("u", u) for u in ridges]
    C, max_iter = check_factor("C", C), check_count("max_iter", max_iter)
    entry = enter_with_kernel(
        "fit_kdlor", X, y, in_blocks=on_basis(basis, common.get("kernel")),
        at_workers=False, in_place=basis is not None, **common,
    )  # fmt: skip
    problem, kernel = entry.problem, entry.kernel
    choice = read(basis, kernel, problem)
    # before the folds are drawn, which change nothing of a model
    seed = 0 if choice is None else int(entry.rng.integers(2**31))
    share = entry.folds(few=choice is not None)
    with entry.monitor as monitor, closing(problem):
        job = _Job(kernel, C, max_iter, entry.n_threads, monitor)
        features = (
            None if choice is None else job.features(choice, problem, ridges, seed)
        )
        models = job.fit(problem, ridges, features, products)
        used = None if features is not None else [_weighty(problem)] * len(models)
        f = decisions(models, used, problem.X, X_test)

        def of_fold(part: Problem, rows: np.ndarray) -> list[KdlorModel]:
            here = features
            if features is not None:
                here = features_among(
                    features, kernel, part.X, rows, entry.n_threads
                )  # fmt: skip
            return job.fit(part, ridges, here)

        models = calibrate(models, problem, share, of_fold, monitor)
        monitor.conclude(models[-1].convergence)
    for model in models:
        model.convergence.warn_unless_converged("fit_kdlor", "take a basis")
    return models, f


def _weighty(problem: Problem) -> np.ndarray:
    """The rows that a fit to the whole kernel matrix keeps."""
    return np.flatnonzero(problem.weight > 0)


def _support(kernel: Kernel, problem: Problem, features: Features | None) -> Any:
    """The support rows of a model."""
    if features is None:
        return support_rows(kernel, problem.X, _weighty(problem))
    return kept(features.support)


def _thresholds(means: np.ndarray, variance: float, factor: np.ndarray) -> np.ndarray:
    """Where the most likely rank changes, (q - 1,), if the scores of rank k are normal
    and rank k weighs factor[k]: rising, and equal where a rank is never the one."""
    means = np.maximum.accumulate(means)  # unless it ended early, they rise
    apart = means - means[:, None]
    odds = np.subtract.outer(np.log(factor), np.log(factor))  # of row over column
    shift = variance * odds / np.where(apart > 0, apart, np.inf)
    even = 0.5 * (means + means[:, None]) + shift  # row k and column l are as likely
    return np.array(
        [even[: j + 1, j + 1 :].min(axis=1).max() for j in range(means.size - 1)]
    )


def _relative_gap(primal: float, dual: float, least: float) -> float:
    return (primal - dual) / max(abs(primal), abs(dual), least)


class _Judged(NamedTuple):
    """A direction, and what raw data say of it."""

    coef: np.ndarray  # of the support rows
    means: np.ndarray  # (q,) mean scores of the ranks that are present
    norm: float  # w'S w
    lost: float  # |e|^2 / (4 u t) of (GAP)


class _Solved(Protocol):
    """(D) of one u: its matrix, and the direction of a point."""

    Q: np.ndarray

    def direction(self, a: np.ndarray) -> _Judged: ...


class _Scatter(Protocol):
    """What the rows are to (P), whatever u is."""

    shares: _Shares
    support: Any
    t: float  # the trace that u is a part of
    size: float  # the mean of k(x, x)

    def with_ridge(self, ridge: float, last: bool) -> _Solved: ...


@dataclass(frozen=True, slots=True)
class _Job:
    """Checked options, the same for the fit of all rows and those of the folds."""

    kernel: Kernel
    C: float
    max_iter: int
    n_threads: int
    monitor: Monitor

    def features(
        self, choice: BasisChoice, problem: Problem, ridges: Sequence[float], seed: int
    ) -> Features:
        """Those of the basis that is meant; its size, if that is to be found, by models
        of the last ridge."""
        if choice.way == "auto":

            def fit(part: Problem, tried: BasisChoice) -> KdlorModel:
                features = self.features(tried, part, ridges, seed)
                return self.fit(part, ridges[-1:], features)[0]

            choice = enough_rows(problem, self.kernel, fit, seed)
        return chosen(choice, self.kernel, problem, seed, self.n_threads)

    def fit(
        self,
        problem: Problem,
        ridges: Sequence[float],
        features: Features | None,
        products: Products | None = None,
    ) -> list[KdlorModel]:
        """A model a ridge, on a basis or on every row."""
        shares, models = _Shares.of(problem), list[KdlorModel]()
        scatter: _Scatter | None = None
        for i, u in enumerate(ridges):
            with self.monitor.numbered("point", i, len(ridges)):
                try:
                    if scatter is None:
                        scatter = self._scatter(problem, shares, features, products)
                    last = i + 1 == len(ridges)
                    model = self._solve(problem, scatter, u, last)
                except OutOfTime:
                    support = _support(self.kernel, problem, features)
                    model = self._nothing(problem, support, u, Status.MAX_TIME)
            models.append(model)
        return models

    def _scatter(
        self,
        problem: Problem,
        shares: _Shares,
        features: Features | None,
        products: Products | None,
    ) -> _Scatter:
        with self.monitor.stage("scatter"), self.monitor.limited():
            if features is None:
                return _OfRows(self.kernel, problem, shares, self.n_threads, products)
            return _OnBasis(features, problem, shares, self.n_threads)

    def _solve(
        self, problem: Problem, scatter: _Scatter, u: float, last: bool
    ) -> KdlorModel:
        """The model of one u; `last` if the scatter is not needed after it."""
        if abs(scatter.t) <= _ONE_POINT * abs(scatter.size):
            return self._nothing(problem, scatter.support, u, Status.CONVERGED)
        if (stopped := self.monitor.stop(0, np.inf)) is not None:
            return self._nothing(problem, scatter.support, u, stopped)
        ridge = u * scatter.t
        try:
            if not scatter.t > 0:
                raise np.linalg.LinAlgError
            with self.monitor.stage("factorisation"), self.monitor.limited():
                solved = scatter.with_ridge(ridge, last)
        except np.linalg.LinAlgError:
            raise ValueError(
                "u must be larger, or the kernel is not positive semi-definite: the "
                f"scatter with a ridge of u = {u:g} is not"
            ) from None
        least = _NO_ANSWER * self.C**2 * scatter.size / (4 * ridge)
        a, n_iter, status = _nearest(
            solved.Q, self.C, least, self.max_iter, self.monitor
        )
        found = solved.direction(a)
        steps = np.diff(found.means)
        rho = float(steps.min())
        primal = found.norm - self.C * rho
        dual = found.norm - float(steps @ a) - found.lost
        violation = _relative_gap(primal, dual, least)
        if status is Status.CONVERGED and not violation <= self.monitor.tol:
            status = Status.STALLED
        made = self.monitor.record(status, n_iter, violation, primal, dual)
        between = _thresholds(found.means, found.norm, scatter.shares.factor)
        return self._model(
            problem, scatter.support, u, found.coef, between, a, rho, made
        )

    def _nothing(
        self, problem: Problem, support: Any, u: float, status: Status
    ) -> KdlorModel:
        """A score of 0: of rows that are all one point, or where a fit ended early."""
        pairs = np.count_nonzero(problem.present) - 1
        if status is Status.CONVERGED:
            made = self.monitor.record(status, 1, 0.0, 0.0, 0.0)
        else:
            made = self.monitor.record(status, 0, np.inf, 0.0)
        none, a = np.zeros(len(support)), np.full(pairs, self.C / pairs)
        return self._model(problem, support, u, none, np.zeros(pairs), a, 0.0, made)

    def _model(
        self,
        problem: Problem,
        support: Any,
        u: float,
        coef: np.ndarray,
        between: np.ndarray,
        a: np.ndarray,
        rho: float,
        made: Convergence,
    ) -> KdlorModel:
        present, r = np.flatnonzero(problem.present), problem.n_classes
        dual = np.zeros(r - 1)
        dual[present[:-1]] = a
        return KdlorModel(
            support=support,
            coef=frozen(coef),
            dual=frozen(dual),
            thresholds=frozen(around_ranks(between, present, r)),
            rho=rho,
            C=self.C,
            u=u,
            classes=frozen(problem.classes),
            kernel=self.kernel,
            n_features=problem.n_features,
            feature_names=problem.feature_names,
            link=None,
            convergence=made,
        )


class _Shares(NamedTuple):
    """What the rows weigh."""

    rank: np.ndarray  # (n,) among the q ranks that are present
    p: np.ndarray  # (n,) of sum 1
    of_rank: np.ndarray  # (q,) their sums
    factor: np.ndarray  # (q,) class weights

    @classmethod
    def of(cls, problem: Problem) -> _Shares:
        p, rank = problem.weight / problem.weight.sum(), problem.rank_among_present
        of_rank, rows = np.bincount(rank, p), _weighty(problem)
        factor = np.ones(of_rank.size)
        factor[rank[rows]] = problem.weight[rows] / problem.sample_weight[rows]
        return cls(rank, p, of_rank, factor)

    def means(self, values: np.ndarray) -> np.ndarray:
        """(q,) means of (n,) values over the ranks."""
        return np.asarray(np.bincount(self.rank, self.p * values) / self.of_rank)


class _OfRows:
    """The scatter of all rows by their kernel matrix. O(n^2) doubles."""

    def __init__(
        self,
        kernel: Kernel,
        problem: Problem,
        shares: _Shares,
        n_threads: int,
        products: Products | None,
    ):
        self.shares, self._n_threads = shares, n_threads
        self.support, self.rows = _support(kernel, problem, None), _weighty(problem)
        self.kernel = on_itself(kernel, problem.X, n_threads, products)
        n, (rank, p, of_rank, _) = len(problem.X), shares
        K = np.empty((n, n))
        self.kernel.triangle(K, mirror=True)
        own = np.zeros((n, of_rank.size))  # the means of ranks, as sums of rows
        own[np.arange(n), rank] = p / of_rank[rank]
        R = times(K, own)  # of every row with the means
        N = own.T @ R  # of the means with each other
        self.N = 0.5 * (N + N.T)
        self.steps = np.diff(own, axis=1)
        self.size = float(p @ np.diagonal(K))
        self.t = self.size - float(of_rank @ self.N @ of_rank)
        self.s = np.sqrt(p)
        self.B = self.s[:, None] * (np.diff(R, axis=1) - np.diff(self.N, axis=1)[rank])
        self.G = K
        self._centre(R - 0.5 * self.N[rank])

    def _centre(self, half: np.ndarray) -> None:
        """G in the place of the lower triangle of K."""
        G, rank, s = self.G, self.shares.rank, self.s

        def strip(rows: slice) -> None:
            for columns in strips(rows.stop):
                tile = G[rows, columns]
                tile -= half[rows][:, rank[columns]]
                tile -= half[columns][:, rank[rows]].T
                tile *= s[rows, None]
                tile *= s[columns]

        with Pool(self._n_threads) as pool:
            pool.run(strip, strips(len(G)))

    def with_ridge(self, ridge: float, last: bool) -> _SolvedRows:
        A = self.G if last else self.G.copy()
        A[np.diag_indices_from(A)] += ridge
        return _SolvedRows(self, ridge, Cholesky(A, self._n_threads))

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """(n,) from the kernel itself."""
        return self.kernel.product(coef[:, None])[:, 0]


class _SolvedRows:
    """(D) of one u, by the kernel matrix."""

    def __init__(self, of: _OfRows, ridge: float, factor: Cholesky):
        self._of, self._ridge, self._factor = of, ridge, factor
        self._F = factor.forward(of.B.copy())
        within = np.diff(np.diff(of.N, axis=0), axis=1)  # D'D
        self.Q = (within - self._F.T @ self._F) / ridge

    def direction(self, a: np.ndarray) -> _Judged:
        of, ridge, shares = self._of, self._ridge, self._of.shares
        rank, p, of_rank, _ = shares
        centred = self._factor.backward(self._F @ a[:, None])[:, 0]
        between = of.steps @ a
        back = of.s * centred  # Psi' of it, as a sum of rows
        back -= p * (np.bincount(rank, back) / of_rank)[rank]
        beta = (between - back) / (2 * ridge)
        f = of.scores(beta)
        means = shares.means(f)
        away = p * (f - means[rank])
        norm = float(away @ f) + ridge * float(beta @ f)
        e = 2 * (away + ridge * beta) - between
        lost = max(float(e @ of.scores(e)), 0.0) / (4 * ridge)
        return _Judged(beta[of.rows], means, norm, lost)


class _OnBasis:
    """The scatter of the features of all rows on a basis. O(m^2) doubles."""

    def __init__(
        self, features: Features, problem: Problem, shares: _Shares, n_threads: int
    ):
        rank, p, of_rank, _ = shares
        self.features, self.support = features, kept(features.support)
        q = of_rank.size

        def of_chunk(chunk: Chunk) -> Parts:
            rows, X = chunk
            V = features.values(X)
            check_values(V)
            own = np.zeros((len(V), q))
            own[np.arange(len(V)), rank[rows]] = p[rows]
            sums = own.T @ V
            V = np.sqrt(p[rows])[:, None] * V  # it may have been X itself
            return sums, V.T @ V

        sums, squares = summed(problem.X, of_chunk, n_threads)
        mixing = features.mixing
        self.means = times(sums, mixing) / of_rank[:, None]
        squares = times(times(squares, mixing).T.copy(), mixing)
        self.size = float(np.trace(squares))
        centre = of_rank @ self.means
        self.t = self.size - float(centre @ centre)
        weighted = np.sqrt(of_rank)[:, None] * self.means
        S = squares - weighted.T @ weighted
        self.S = 0.5 * (S + S.T)
        self.shares, self.n_threads = shares, n_threads

    def with_ridge(self, ridge: float, last: bool) -> _SolvedOnBasis:
        A = self.S + ridge * np.eye(len(self.S))
        return _SolvedOnBasis(self, ridge, Cholesky(A, self.n_threads))


class _SolvedOnBasis:
    """(D) of one u, by features on a basis."""

    def __init__(self, of: _OnBasis, ridge: float, factor: Cholesky):
        self._of, self._ridge, self._factor = of, ridge, factor
        self._F = factor.forward(np.diff(of.means, axis=0).T.copy())
        self.Q = self._F.T @ self._F

    def direction(self, a: np.ndarray) -> _Judged:
        of, ridge = self._of, self._ridge
        w = 0.5 * self._factor.backward(self._F @ a[:, None])[:, 0]
        Sw = of.S @ w + ridge * w
        e = 2 * Sw - a @ np.diff(of.means, axis=0)
        coef = of.features.coefficients(w)
        return _Judged(coef, of.means @ w, float(w @ Sw), float(e @ e) / (4 * ridge))


def _nearest(
    Q: np.ndarray, C: float, least: float, max_iter: int, monitor: Monitor
) -> tuple[np.ndarray, int, Status]:
    """a that minimises a'Q a among a >= 0 with sum C, steps, and how they ended.

    It is in proportion to the x >= 0 that minimises x'Q x + (1 - sum_k x_k)^2, up to a
    factor of Q: a least squares problem, which the active set of Lawson and Hanson
    ("Solving least squares problems", 1974, chapter 23) solves. A step brings one more
    entry in, and every entry that would fall below 0 on the way out.
    """
    largest = float(np.diagonal(Q).max())
    H = Q / (largest if largest > 0 else 1.0) + 1.0
    H[np.diag_indices_from(H)] += 0.1 * _SETTLED  # pairs may be alike
    x, free = np.zeros(len(Q)), np.zeros(len(Q), bool)
    entering, value, n_iter = int(np.diagonal(Q).argmin()), 0.0, 0
    while True:
        new, inside = _with_entry(H, x, free, entering)
        n_iter += 1
        new_value = 0.5 * float(new @ H @ new) - float(new.sum())
        if not new_value < value:  # rounding is all that is left
            return C * x / x.sum(), n_iter, Status.CONVERGED
        x, free, value = new, inside, new_value
        a = C * x / x.sum()
        slope = np.where(free, 0.0, 1 - H @ x)
        entering = int(slope.argmax())
        if not slope[entering] > _SETTLED:
            return a, n_iter, Status.CONVERGED
        if n_iter == max_iter:
            return a, n_iter, Status.MAX_ITER
        Qa = Q @ a
        norm = 0.25 * float(a @ Qa)
        gap = _relative_gap(norm - 0.5 * C * float(Qa.min()), -norm, least)
        if (stopped := monitor.stop(n_iter, gap)) is not None:
            return a, n_iter, stopped


def _with_entry(
    H: np.ndarray, x: np.ndarray, free: np.ndarray, entering: int
) -> tuple[np.ndarray, np.ndarray]:
    """The minimum of x'H x / 2 - sum_k x_k over the free entries and the entering one,
    without those that fall below 0 on the way there, and which are free then."""
    x, free = x.copy(), free.copy()
    free[entering] = True
    while True:
        inside = np.flatnonzero(free)
        end = np.linalg.solve(H[np.ix_(inside, inside)], np.ones(inside.size))
        now = x[inside]
        falls = end <= 0
        if not falls.any():
            x[inside] = end
            return x, free
        part = np.full(inside.size, np.inf)
        part[falls] = now[falls] / (now[falls] - end[falls])
        x[inside] = now + part.min() * (end - now)
        out = inside[part == part.min()]
        x[out], free[out] = 0.0, False


register(
    fit_kdlor,
    name="kdlor",
    estimator="KDLOR",
    accepts={"sparse"},
    grid={"u": _RIDGES, "gamma": GAMMAS},
    varying=("u",),
    fit_path=_fit_path,
)
