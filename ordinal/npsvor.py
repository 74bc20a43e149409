"""Nonparallel support vector ordinal regression (NPSVOR).

Every rank k has a hyperplane f_k(x) = <w_k, phi(x)> + b_k of its own, near the rows of
rank k and with the lower and higher ranks on its two sides. With s_i = -1 where
y_i < k and +1 where y_i > k, and rows i of weight v_i,

    min_{w,b}  1/2 |w|^2 + C1 sum_{y_i = k} v_i max(0, |f(x_i)| - epsilon)
                         + C2 sum_{y_i != k} v_i max(0, 1 - s_i f(x_i))           (P)

    min_g  1/2 g'Kg + sum_i phi_i(g_i)   s.t.  sum_i g_i = 0,  lo_i <= g_i <= hi_i  (D)

      y_i = k :  phi_i = epsilon |g_i|,   [lo_i, hi_i] = [-C1 v_i, C1 v_i]
      y_i < k :  phi_i = g_i,             [lo_i, hi_i] = [-C2 v_i, 0]
      y_i > k :  phi_i = -g_i,            [lo_i, hi_i] = [0, C2 v_i]

and f = K g + b. A row's rank is the k of the smallest |f_k(x)|. With a cost matrix the
C2 of row i in problem k is multiplied by cost[y_i, k].

The value of (P) plus that of (D) is the duality gap. Its terms are nonnegative, one a
row, so it is 0 just at the optimum, and                                         (GAP)

    gap <= violation / 2 * sum_i (hi_i - lo_i)

where violation is that of `_dual/program.py` (KKT) and b the middle of its interval.

H. Wang, Y. Shi, L. Niu, Y. Tian, "Nonparallel support vector ordinal regression", IEEE
Transactions on Cybernetics 47(10):3306-3317, 2017. (4), (8), (10), Algorithm 2. The
paper's (4a) prints |w|^2; its dual belongs to 1/2 |w|^2, and so do we.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias, Unpack, get_args

import numpy as np

from ._dual.admm import solve_admm
from ._dual.driver import least_rows, solve
from ._dual.factors import Factor, LowRankFactor, NoFactor, exact_factor
from ._dual.feasible import ahead, project, restore_sums
from ._dual.gram import gram_in_time
from ._dual.pivoting import Pivoting
from ._dual.program import Program
from ._input.basis import read_basis
from ._input.checks import (
    check_choice,
    check_count,
    check_factor,
    check_factor_or_zero,
    check_flag,
    check_positive,
    listed,
    shown,
)
from ._input.costs import check_cost
from ._input.problem import Problem
from ._input.sparse import frozen
from ._input.types import (
    ArrayLike,
    Basis,
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
from ._model.calibration import calibrate
from ._model.convergence import Convergence, Status
from ._model.entry import Callback, KernelCommon, enter_with_kernel
from ._model.fields import FINITE, POSITIVE, SHARED, Array, finite_or
from ._model.links import SoftmaxLink, require_link
from ._model.monitor import Monitor, OutOfTime
from ._model.registry import COSTS, GAMMAS, register
from ._model.rules import predicted
from ._model.support import (
    KernelModel,
    decision,
    decisions,
    finite_scores,
    support_rows,
)

__all__ = ["NpsvorModel", "fit_npsvor", "fit_npsvor_path"]


def __dir__() -> list[str]:
    return __all__


_Rule: TypeAlias = Literal["nearest", "mode", "median", "cost"]
_Solver: TypeAlias = Literal["smo", "admm"]
_ADMM_DEFAULTS = {"rho": 1.0, "e_abs": 1e-2, "e_rel": 1e-2, "polish": False}
_POINT = ("C1", "C2", "epsilon")  # what may differ between the points of a path
_MAX_ITER = {"smo": 10_000_000, "admm": 1000}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NpsvorModel(KernelModel):
    """One hyperplane a rank: f_k(x) = sum_i coef[i, k] k(support_i, x) + intercept[k].

    Attributes
    ----------
    support : (m, n_features) array or CSR
        The training rows that some hyperplane uses. For a precomputed kernel the
        (m,) numbers of those rows; for a fit with a basis its rows.
    coef : (m, r) array
    intercept : (r,) array
        +inf for a rank of `classes` without training rows, which is never predicted.
    norms : (r,) array
        |w_k|, by which `normalize` divides.
    normalize : bool
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    cost : (r, r) array, or None
        The caller's, if there was one.
    link : SoftmaxLink or None
        Probabilities from distances; None unless fitted with `probability`.
    convergence : Convergence
        Its `parts` are those of the ranks of `classes`.
    """

    coef: Annotated[np.ndarray, Array("f8", "m r"), FINITE]
    intercept: Annotated[np.ndarray, Array("f8", "r"), finite_or(np.inf)]
    norms: Annotated[np.ndarray, Array("f8", "r"), FINITE, POSITIVE]
    normalize: bool
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None
    link: Annotated[SoftmaxLink, SHARED] | None
    link_type = SoftmaxLink

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distances f_k(x) to the r hyperplanes.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n, r) array
            In units of the margin: the hyperplane's own rows lie within epsilon of
            0, lower ranks below -1 and higher ones above 1, up to slack. Divided by
            |w_k|, so in units of feature space, if the model has `normalize`.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    def _columns(self) -> np.ndarray:
        """The coefficients of the ranks that had training rows. A matrix product may
        round otherwise if it has more columns, and absent ranks are to change no bit.
        """
        return np.ascontiguousarray(self.coef[:, np.isfinite(self.intercept)])

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """The distances from sums over the support rows, a column a present rank."""
        f = np.full((len(sums), self.intercept.size), np.inf)
        present = np.isfinite(self.intercept)
        with np.errstate(over="ignore"):  # seen by the check
            known = sums + self.intercept[present]
            if self.normalize:
                known /= self.norms[present]
        f[:, present] = finite_scores(known)
        return f

    def link_input(self, X: Any, like: NpsvorModel) -> np.ndarray:
        """What a link takes, for that of any model."""
        return np.asarray(np.abs(self.decision_function(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the ranks, a softmax link of the distances |f_k(x)|.

        Two ranks with equal offsets in the `link` are more probable the nearer their
        hyperplane; the offsets are what calibration on rows that the hyperplanes were
        not fitted to adds to that.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, which says what else is raised.

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        ValueError
            If the model was fitted without `probability`.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """`predict_proba` of rows at the distances f."""
        return np.asarray(require_link(self.link)(np.abs(f)))

    def predict(
        self, X: Any, *, rule: _Rule = "nearest", cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Labels by a rule.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"nearest", "mode", "median", "cost"}, default "nearest"
            "nearest" takes the nearest hyperplane, of the lowest rank where two tie.
            The others use `predict_proba`: its most probable rank, its median, or the
            rank of least expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default the `cost` of the
            model, or |j - k| if it has none.

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError
            If a rule on probabilities is asked of a model without them, or `cost` is
            not as in `fit_npsvor`.
        """
        return predicted(self, X, rule, "nearest", cost)

    def _labels(self, f: np.ndarray) -> np.ndarray:
        """`predict` of rows at the distances f, by the nearest hyperplane."""
        return np.asarray(self.classes[np.abs(f).argmin(axis=1)])

    def _check_values(self) -> None:
        if self.cost is not None:
            check_cost(self.cost, self.classes.size)
        present = np.isfinite(self.intercept)
        if self.link and not np.array_equal(np.isfinite(self.link.offsets), present):
            raise ValueError("the link must know the ranks that have hyperplanes")


def fit_npsvor(
    X: MatrixLike,
    y: Labels,
    *,
    C1: float = 1.0,
    C2: float | None = None,
    epsilon: float = 0.2,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    solver: _Solver = "smo",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    normalize: bool = False,
    rho: float | None = None,
    e_abs: float | None = None,
    e_rel: float | None = None,
    polish: bool | None = None,
    basis: Basis | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> NpsvorModel:
    """Fit NPSVOR; the module's docstring states (P), (D) and (GAP).

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN, an entry not known, goes with `kernels.Pearson` only. `predict`
        finds the columns of a data frame by their names.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C1 : float > 0, default 1.0
        Weight of a row's distance from its own hyperplane, beyond `epsilon`.
    C2 : float > 0, default C1
        Weight of a margin violation on the other ranks' hyperplanes. One parameter
        is what the paper searches.
    epsilon : float >= 0, default 0.2
        Half width of the band around a hyperplane, in units of its margin. The paper
        finds 0.1 to 0.3 good and fixes 0.2.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X), 1 / d on
        standardised features; "auto" is 1 / d.
    solver : {"smo", "admm"}, default "smo"
        "smo" reaches the optimum to `tol`. "admm" is the paper's algorithm with the
        paper's tolerances: at large C it ends far from the optimum, which regularises
        and can predict better. The two are then two models; choose by validation.
    tol : float > 0, default 1e-3
        Of SMO: largest violation of (KKT), in units of f. The duality gap of a rank
        is then at most tol / 2 * sum (hi_i - lo_i).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows, whose products are limited alike.
    cost : (r, r) array-like, optional
        cost[j, k] of predicting k for a row of rank j: zero diagonal, not falling away
        from it. Scales C2; None is 1 everywhere off the diagonal.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks: they keep their column in
        `decision_function` (+inf) and are never predicted.
    normalize : bool, default False
        Compare |f_k| / |w_k| instead of |f_k|. Matters where the ranks' margins differ
        much, as with class weights or ranks of very unequal spread; the paper
        compares |f_k|, as the training problem does.
    rho : float > 0, default 1.0, ADMM only
        Penalty parameter. It changes the path, and so where the solver stops.
    e_abs, e_rel : float >= 0, default 1e-2, ADMM only
        The tolerances of (19) and (20).
    polish : bool, default False, ADMM only
        Continue with SMO from ADMM's point to `tol`.
    basis : int, float in (0, 1), or sequence of row numbers, optional, ADMM only
        Replace K by a matrix of low rank that is exact at the basis rows: so many,
        which a pivoted incomplete Cholesky factorisation chooses; or as many as leave
        this part of the trace of K; or these. Memory is then n doubles a basis row.
    probability : bool, default False
        Also fit the link that `predict_proba` needs, on the distances of five more
        fits, each of which leaves out a fifth of the rows.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths. Unused without `probability`.
    n_threads : int, optional
        Default: the processors this process may use, or ORDINAL_NUM_THREADS. No
        bit of the result depends on it; last bits do depend on the number of threads
        of numpy's BLAS, which is set apart (docs/reliability.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows.
    max_iter : int, optional
        Pair steps of a rank (SMO, default 10^7) or iterations (ADMM, default 1000).
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K or its
        factor: a fit that is late before it has these ends where it begins.
    callback : callable, optional
        Called with an `ordinal.State` several times a second; a true value stops.
    verbose : bool, default False
        Tell stderr how far the fit is: one line rewritten in place on a terminal, a bar
        in a notebook (of tqdm, if it is there), elsewhere a line every ten seconds.

    Returns
    -------
    NpsvorModel
        The `parts` of its `convergence` are one a rank. For SMO `violation` is that of
        (KKT). For ADMM without polish it is the larger residual of (19) and (20) over
        its allowance, so that `tol` is 1, while `gap` tells how far the optimum is.

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The fit ended short of the tolerance; the message says why and what helps.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_npsvor(X, y, C1=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.convergence.converged
    True
    """
    points = [{"C1": C1, "C2": C2, "epsilon": epsilon}]
    return _fit(
        "fit_npsvor", X, y, points, solver=solver, cost=cost, normalize=normalize,
        rho=rho, e_abs=e_abs, e_rel=e_rel, polish=polish, basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes,
        sample_weight=sample_weight, class_weight=class_weight, rng=rng,
        probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


def fit_npsvor_path(
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, float]],
    *,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    solver: _Solver = "smo",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    normalize: bool = False,
    rho: float | None = None,
    e_abs: float | None = None,
    e_rel: float | None = None,
    polish: bool | None = None,
    basis: Basis | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> list[NpsvorModel]:
    """Fit NPSVOR at several values of C1, C2 and epsilon, sharing what can be shared.

    ADMM factorises K + rho I once and carries every point and rank as one more column
    of the same product. SMO computes K once and starts each point from the last one.

    Parameters
    ----------
    X, y : as for `fit_npsvor`
    points : sequence of mappings
        Each with some of the keys "C1", "C2", "epsilon"; the defaults are those of
        `fit_npsvor`. Neighbours in the sequence should be near in value.
    kernel, and the others : as for `fit_npsvor`
        `max_time` and `callback` are for the whole path.

    Returns
    -------
    list of NpsvorModel, one a point

    Raises
    ------
    ValueError, TypeError
        As `fit_npsvor`, before anything is computed.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> path = [{"C1": C} for C in (0.1, 1.0, 10.0)]
    >>> models = ordinal.fit_npsvor_path(X, y, path, solver="admm")
    >>> [model.convergence.converged for model in models]
    [True, True, True]
    """
    return _fit(
        "fit_npsvor_path", X, y, points, solver=solver, cost=cost,
        normalize=normalize, rho=rho, e_abs=e_abs, e_rel=e_rel, polish=polish,
        basis=basis, cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma,
        tol=tol, classes=classes,
        sample_weight=sample_weight, class_weight=class_weight, rng=rng,
        probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )[0]  # fmt: skip


def _fit_path(
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, float]],
    products: Products | None = None,
    X_test: Matrix | None = None,
    **options: Any,
) -> tuple[list[NpsvorModel], Sequence[np.ndarray | None]]:
    """The same with the `Products` of X, if there are any, and the decision function of
    each model for the rows of `X_test`, or None."""
    every = {**(fit_npsvor_path.__kwdefaults__ or {}), **options}
    return _fit("fit_npsvor_path", X, y, points, products, X_test, **every)


def _fit(
    name: str,
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, Any]],
    products: Products | None = None,
    X_test: Matrix | None = None,
    *,
    solver: _Solver,
    cost: ArrayLike | None,
    normalize: bool,
    rho: float | None,
    e_abs: float | None,
    e_rel: float | None,
    polish: bool | None,
    basis: Basis | None,
    cache_mb: float,
    max_iter: int | None,
    **common: Unpack[KernelCommon],
) -> tuple[list[NpsvorModel], Sequence[np.ndarray | None]]:
    """A model for every point, as `_fit_path` says."""
    check_choice("solver", solver, get_args(_Solver))
    cache_mb = check_positive("cache_mb", cache_mb)
    normalize = check_flag("normalize", normalize)
    admm = _admm_options(solver, rho, e_abs, e_rel, polish, basis)
    if max_iter is not None:
        max_iter = check_count("max_iter", max_iter)
    if not isinstance(points, Iterable):
        raise TypeError(f"points must be a sequence of mappings, got {shown(points)}")
    checked = [_point(p) for p in points]
    if not checked:
        raise ValueError("points must hold at least one mapping")
    entry = enter_with_kernel(name, X, y, **common)
    problem, r = entry.problem, entry.problem.n_classes
    if basis is not None:
        admm["basis"] = _read_basis(basis, problem.n_samples)
    monitor = entry.monitor.to_tol(1.0) if solver == "admm" else entry.monitor
    job = _Job(
        entry.kernel, checked, None if cost is None else check_cost(cost, r),
        normalize, solver, admm, max_iter or _MAX_ITER[solver],
        entry.monitor.tol, entry.n_threads, cache_mb, monitor,
    )  # fmt: skip
    share = entry.folds()
    named = admm.get("basis")
    if share is not None and isinstance(named, np.ndarray):
        if (share[named] == 1).all(axis=0).any():
            raise ValueError(
                "basis must have rows in two folds of probability=True: those named "
                "are left out together, so name more"
            )
    with monitor:
        models, used = job.fit(problem, products)
        f = decisions(models, used, problem.X, X_test)

        def of_fold(part: Problem, rows: np.ndarray) -> list[NpsvorModel]:
            return job.among(rows).fit(part)[0]

        models = calibrate(models, problem, share, of_fold, monitor)
        monitor.conclude(models[-1].convergence)
    for model in models:
        model.convergence.warn_unless_converged(name)
    return models, f


def _point(point: Any) -> tuple[float, float, float]:
    """(C1, C2, epsilon) of one point of a path, checked."""
    if not isinstance(point, Mapping):
        raise TypeError(f"points must hold mappings, got {shown(point)}")
    unknown = set(point) - set(_POINT)
    if unknown:
        raise ValueError(f"points know C1, C2 and epsilon, got {listed(list(unknown))}")
    C1 = check_factor("C1", point.get("C1", 1.0))
    C2 = C1 if point.get("C2") is None else check_factor("C2", point["C2"])
    return C1, C2, check_factor_or_zero("epsilon", point.get("epsilon", 0.2))


def _admm_options(
    solver: str, rho: Any, e_abs: Any, e_rel: Any, polish: Any, basis: Any
) -> dict[str, Any]:
    given = {
        "rho": rho, "e_abs": e_abs, "e_rel": e_rel, "polish": polish, "basis": basis
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    if solver == "smo":
        if given:
            raise ValueError(
                f"{', '.join(given)}: for solver='admm' only, got solver='smo'"
            )
        return {}
    options = {**_ADMM_DEFAULTS, "basis": None, **given}
    options["rho"] = check_factor("rho", options["rho"])
    for tolerance in ("e_abs", "e_rel"):
        options[tolerance] = check_factor_or_zero(tolerance, options[tolerance])
    options["polish"] = check_flag("polish", options["polish"])
    if basis is not None and options["polish"]:
        raise ValueError("polish=True needs the whole kernel; it excludes basis=")
    return options


def _read_basis(basis: Basis, n: int) -> int | float | np.ndarray:
    """As `read_basis`; a float is the part of the trace of K that may be left out."""
    given = read_basis(basis, n)
    if isinstance(given, float) and given == 1:
        raise ValueError("basis as a part of the trace must be in (0, 1), got 1.0")
    return given


def _program(
    problem: Problem, point: tuple[float, float, float], cost: np.ndarray
) -> Program:
    """(D) of every rank that has training rows, a problem each."""
    C1, C2, epsilon = point
    ranks = np.flatnonzero(problem.present)[:, None, None]
    own, above = problem.rank == ranks, problem.rank > ranks
    other = C2 * problem.weight * cost[problem.rank, ranks]
    C = np.where(own, C1 * problem.weight, other)
    outer = np.where(above, -1.0, 1.0)  # slope of phi where y_i != k
    return Program(
        lo=np.where(above, 0.0, -C),
        hi=np.where(own | above, C, 0.0),
        pn=np.where(own, -epsilon, outer),
        pp=np.where(own, epsilon, outer),
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """Checked options: the same for every point of a path, and for the folds."""

    kernel: Kernel
    points: list[tuple[float, float, float]]
    cost: np.ndarray | None
    normalize: bool
    solver: str
    admm: dict[str, Any]
    max_iter: int
    tol: float
    n_threads: int
    cache_mb: float
    monitor: Monitor

    def among(self, rows: np.ndarray) -> _Job:
        """The same for a problem of these rows, with the basis rows that are among
        them."""
        basis = self.admm.get("basis")
        if not isinstance(basis, np.ndarray):
            return self
        here = np.flatnonzero(np.isin(rows, basis))
        return replace(self, admm={**self.admm, "basis": here})

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[NpsvorModel], list[np.ndarray]]:
        """A model a point, and the numbers of its support rows."""
        cost = 1 - np.eye(problem.n_classes) if self.cost is None else self.cost
        programs = [_program(problem, point, cost) for point in self.points]
        if self.solver == "smo":
            return self._smo(problem, programs, self.max_iter, None, products)
        return self._admm(problem, programs, products, **self.admm)

    def _smo(
        self,
        problem: Problem,
        programs: list[Program],
        max_iter: int,
        starts: list[np.ndarray] | None,
        products: Products | None,
    ) -> tuple[list[NpsvorModel], list[np.ndarray]]:
        threads, least = self.n_threads, least_rows(1)
        gram = gram_in_time(
            self.monitor, self.kernel, problem.X, self.cache_mb, threads, least,
            products,
        )  # fmt: skip
        g, s = np.zeros_like(programs[0].lo), None
        pivoting = [Pivoting(gram, programs[0].curvature, share=len(g)) for _ in g]
        models: list[NpsvorModel] = []
        used: list[np.ndarray] = []
        for i, program in enumerate(programs):
            if starts is not None:
                g = starts[i]
            elif s is not None:
                g = ahead(s.g, s.f, programs[i - 1], program)
                g = restore_sums(g, program.lo, program.hi)
            with self.monitor.numbered("point", i, len(programs)):
                s = solve(
                    gram, program, g, tol=self.tol, max_iter=max_iter,
                    n_threads=self.n_threads, monitor=self.monitor, pivoting=pivoting,
                    from_start=starts is not None,
                )  # fmt: skip
            rows = np.flatnonzero(s.g.any(axis=(0, 1)))
            used.append(rows)
            models.append(
                self._model(
                    problem, program, s.g, s.f, -s.b[:, 0], rows, s.g[:, 0, rows].T,
                    status=s.status, n_iter=s.n_iter, violation=s.violation,
                    reached=s.reached, dual=_dual(program, s.g, s.f),
                )
            )  # fmt: skip
        return models, used

    def _admm(
        self, problem: Problem, programs: list[Program], products: Products | None,
        rho: float, e_abs: float, e_rel: float, polish: bool, basis: Any,
    ) -> tuple[list[NpsvorModel], list[np.ndarray]]:  # fmt: skip
        X, n_ranks = problem.X, len(programs[0].lo)
        factor: Factor | NoFactor
        # far from what the residuals can see
        allowed = 1e-4 * rho * min(filter(None, (e_abs, e_rel)), default=0.0)
        threads = self.n_threads
        try:
            with self.monitor.stage("factor of K"), self.monitor.limited():
                if basis is None:
                    factor = exact_factor(
                        self.kernel, X, rho, allowed, threads, products
                    )
                else:
                    factor = LowRankFactor(self.kernel, X, rho, basis, threads)
        except OutOfTime:
            factor = NoFactor()
        out = solve_admm(
            factor, programs, rho=rho, e_abs=e_abs, e_rel=e_rel,
            max_iter=self.max_iter, n_threads=self.n_threads, monitor=self.monitor,
        )  # fmt: skip
        points = [slice(i, i + n_ranks) for i in range(0, len(out.g), n_ranks)]
        # the model is ADMM's g, whose sum is 0; the certificate's lower end is at the
        # nearest point that also keeps to the box
        inside = [
            project(out.g[point, None], program.lo, program.hi)
            for program, point in zip(programs, points, strict=True)
        ]
        if polish and not self.monitor.late():
            if self.monitor.max_time is None:  # it will not be asked again
                factor = NoFactor()  # its memory is as large as that of the rows of K
            job = replace(self, monitor=self.monitor.to_tol(self.tol))
            try:
                with job.monitor.stage("polish"):
                    return job._smo(
                        problem, programs, _MAX_ITER["smo"], inside, products
                    )
            except OutOfTime:  # before SMO could begin
                pass
        G = factor.product(out.g)
        G_inside = factor.product(np.concatenate(inside)[:, 0])
        rows, coef = factor.support, factor.coefficients(out.g)
        models = []
        for program, point, nearest in zip(programs, points, inside, strict=True):
            ratio = out.ratio[point]
            status = Status.CONVERGED if not (ratio > 1).any() else out.status
            models.append(
                self._model(
                    problem, program, out.g[point, None], G[point], out.b[point],
                    rows, coef[:, point], status=status, n_iter=out.n_iter[point],
                    violation=ratio, reached=ratio <= 1,
                    dual=_dual(program, nearest, G_inside[point]),
                )
            )  # fmt: skip
        return models, [rows] * len(models)

    def _model(
        self, problem: Problem, program: Program, g: np.ndarray, f: np.ndarray,
        b: np.ndarray, rows: np.ndarray, coef: np.ndarray, *, status: Status,
        n_iter: np.ndarray, violation: np.ndarray, reached: np.ndarray,
        dual: np.ndarray,
    ) -> NpsvorModel:  # fmt: skip
        """A model of the given support rows, every array with a column a class."""
        present = problem.present

        def by_class(values: np.ndarray, absent: float) -> np.ndarray:
            out = np.full((*values.shape[:-1], problem.n_classes), absent)
            out[..., present] = values
            return frozen(out)

        squared = np.einsum("pn,pn->p", g[:, 0], f)
        primal = 0.5 * squared + program.loss(f, -b[:, None])
        norms = np.sqrt(np.maximum(squared, 0))
        nothing = self.monitor.record(Status.CONVERGED, 0, 0.0, 0.0, 0.0)
        parts = [nothing] * problem.n_classes
        for p, k in enumerate(np.flatnonzero(present)):
            done = reached[p] and status is not Status.INDEFINITE
            parts[k] = self.monitor.record(
                Status.CONVERGED if done else status,
                n_iter[p], violation[p], primal[p], dual[p],
            )  # fmt: skip
        return NpsvorModel(
            support=support_rows(self.kernel, problem.X, rows),
            coef=by_class(coef, 0.0),
            intercept=by_class(b, np.inf),
            norms=by_class(np.where(norms > 0, norms, 1.0), 1.0),
            normalize=self.normalize,
            classes=frozen(problem.classes),
            kernel=self.kernel,
            n_features=problem.n_features,
            feature_names=problem.feature_names,
            cost=self.cost,
            link=None,
            convergence=Convergence.of_parts(parts),
        )


def _dual(program: Program, g: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Values of -(D) at a feasible g; primal less this is the gap of (GAP)."""
    return np.asarray(-0.5 * np.einsum("pn,pn->p", g[:, 0], f) - program.phi(g))


register(
    fit_npsvor,
    name="npsvor",
    estimator="NPSVOR",
    accepts={"sparse"},
    variants={"npsvor": {}, "npsvor-admm": {"solver": "admm"}},
    grid={"C1": COSTS, "gamma": GAMMAS},
    varying=_POINT,
    fit_path=_fit_path,
)
