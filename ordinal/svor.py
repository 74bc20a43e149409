"""Support vector ordinal regression: one direction, a threshold between any two ranks.

With s_ij = +1 where y_i > j and -1 elsewhere, f_i = <w, phi(x_i)>, and a weight C_ij of
row i at threshold j,

    min_{w,b}  1/2 |w|^2 + sum_ij C_ij max(0, 1 - s_ij (f_i - b_j))                  (P)

    max_a  sum_ij a_ij - 1/2 beta'K beta,   beta_i = sum_j s_ij a_ij                 (D)
    s.t.   0 <= a_ij <= C_ij  and, for each j,  sum_i s_ij a_ij = 0

The weights come from a cost matrix, C_ij = C v_i |cost[y_i, j+1] - cost[y_i, j]| for a
row of weight v_i:

    SVORIM          |k - j|, so that every row has a margin at every threshold
    Shashua-Levin   1 off the diagonal: at the two thresholds next to the row's rank
    SVOREX          the same, with b_1 <= ... <= b_{r-1} as constraints of (P); the sums
                    of (D) are then mu_j - mu_{j+1} with mu >= 0
    REDSVM          |k - j|, with 1/2 sum_j b_j^2 added to (P); in (D) the sums are
                    then free at a price of 1/2 sum_j (sum_i s_ij a_ij)^2. With a cost
                    of one's own it is SVM-EBC

Where the rows of the cost are convex, as those of |k - j| are, the thresholds come out
in order without being told to; with others, as with Shashua-Levin's, they may not. The
thresholds of a model minimise (P) for its f exactly, so that this holds to the last
bit (SVOREX: they are the middle of (17)). The value of (P) less that of (D) is the
duality gap, and with the violation v of `_dual/program.py` (KKT)

    gap <= v / 2 * sum_ij C_ij  [+ (r - 1) v^2 / 8 for REDSVM]                     (GAP)

A rank without rows has its two thresholds in one, with both their weights and prices.

W. Chu, S. S. Keerthi, "Support vector ordinal regression", Neural Computation
19(3):792-815, 2007: (11)-(12), (17)-(19), (24)-(25), Lemma 1, Appendix A. A. Shashua,
A. Levin, NIPS 15, 2003. L. Li, H.-T. Lin, "Ordinal regression by extended binary
classification", NIPS 19, 2007. Lemma 1 is said to hold for any costs; its proof needs
the weight of a threshold not to fall with the distance from the rank: convex rows.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, Unpack

import numpy as np

from ._dual.driver import Solution, least_rows, solve
from ._dual.feasible import restore_sums, snap_to_bounds
from ._dual.gram import gram_in_time
from ._dual.pivoting import Pivoting
from ._dual.program import Program
from ._input.checks import check_count, check_factor, check_positive, listed
from ._input.costs import absolute_cost, check_cost
from ._input.problem import Problem, around_ranks
from ._input.sparse import CSR, frozen
from ._input.types import (
    ArrayLike,
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
from ._model.entry import Callback, KernelCommon, enter_with_kernel
from ._model.fields import FINITE, POSITIVE, Array
from ._model.monitor import Monitor
from ._model.registry import COSTS, GAMMAS, register
from ._model.support import decisions, support_rows
from ._model.threshold_model import ScoreModel, warn_of
from .kernels import Precomputed

__all__ = ["SvorModel", "fit_redsvm", "fit_shashua_levin", "fit_svorex", "fit_svorim"]


def __dir__() -> list[str]:
    return __all__


_Method: TypeAlias = Literal["svorim", "svorex", "shashua_levin", "redsvm"]
_MAX_ITER = 10_000_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SvorModel(ScoreModel):
    """A score f(x) = sum_i coef[i] k(support_i, x) and the thresholds that cut it.

    Attributes
    ----------
    method : str
        "svorim", "svorex", "shashua_levin" or "redsvm".
    support : (m, n_features) array or CSR
        The training rows with a dual other than 0; for a precomputed kernel the (m,)
        numbers of those rows.
    coef : (m,) array
    dual : (m, r - 1) array
        s_ij a_ij of (D), whose sum over the thresholds is `coef`. The thresholds around
        ranks without training rows are one, whose duals are in the first column.
    thresholds : (r - 1,) array
        In the unit of the margin. -inf and +inf where no training rows lie beyond, and
        equal on both sides of a rank between that has none: it is never predicted.
    C : float
    cost : (r, r) array, or None
        The caller's, if there was one, from which the weights of (P) then came.
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
    """

    method: _Method
    dual: Annotated[np.ndarray, Array("f8", "m r-1"), FINITE]
    C: Annotated[float, FINITE, POSITIVE]
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None

    def _check_values(self) -> None:
        if self.cost is not None:
            check_cost(self.cost, self.classes.size)


def fit_svorim(
    X: MatrixLike,
    y: Labels,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    start: SvorModel | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvorModel:
    """Fit SVORIM: every row has a margin at every threshold.

    The module's docstring states (P), (D) and (GAP).

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN, an entry not known, goes with `kernels.Pearson` only. `predict`
        finds the columns of a data frame by their names.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks. The paper searches 1e-3 to 1e3.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Of the RBF and polynomial kernels; half of the paper's kappa. "scale" is 1 / (d
        * variance of X), 1 / d on standardised features; "auto" is 1 / d.
    tol : float > 0, default 1e-3
        Largest violation of (KKT), in units of f; the paper's tau, and its value.
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows, whose products are limited alike.
    cost : (r, r) array-like, optional
        cost[j, k] of predicting k for a row of rank j: zero diagonal, not falling away
        from it. Default |j - k|. The thresholds come out in order if its rows are
        convex; if not, and they do not, a `DisorderedThresholdsWarning` says so.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    start : SvorModel, optional
        Begin at the duals of this model: of another C (they are scaled by the ratio),
        or of fewer rows (a row is known by its features, by its number if the kernel is
        precomputed). Changes the time a fit takes, and the result within `tol`.
    probability : bool, default False
        Also fit the link that `predict_proba` needs, on the scores of five more fits,
        each of which leaves out a fifth of the rows.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths. Unused without `probability`.
    n_threads : int, optional
        Default: the processors this process may use, or ORDINAL_NUM_THREADS. No
        bit of the result depends on it; last bits do depend on the number of threads
        of numpy's BLAS, which is set apart (docs/reliability.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows.
    max_iter : int, default 10^7
        Pair steps.
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K: a fit
        that is late before it has these ends where it begins.
    callback : callable, optional
        Called with an `ordinal.State` several times a second; a true value stops.
    verbose : bool, default False
        Tell stderr how far the fit is: one line rewritten in place on a terminal, a bar
        in a notebook (of tqdm, if it is there), elsewhere a line every ten seconds.

    Returns
    -------
    SvorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The fit, or one of those for `probability`, ended short of the tolerance; the
        message says why and what helps.
    DisorderedThresholdsWarning
        The thresholds are out of order: `disorder` of the model lists them.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorim(X, y, C=10.0, probability=True)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.threshold_names
    ('1|2', '2|3')
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    return _fit(
        "svorim", X, y, [C], cost=cost, start=start, cache_mb=cache_mb,
        max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol, classes=classes,
        sample_weight=sample_weight, class_weight=class_weight, rng=rng,
        probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


def fit_svorex(
    X: MatrixLike,
    y: Labels,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    start: SvorModel | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvorModel:
    """Fit SVOREX: margins at the neighbouring thresholds, whose order is imposed.

    Twice as many margins as rows whatever the number of ranks, where SVORIM has r - 1
    times as many. Where a constraint on the order is active, two thresholds are equal
    and the rank between them is never predicted by them.

    Parameters
    ----------
    cost : (r, r) array-like, optional
        As in `fit_svorim`; default 1 off the diagonal. The order holds for any.
    X, y, and the others : as for `fit_svorim`

    Returns
    -------
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svorim`.

    Warns
    -----
    ConvergenceWarning
        As `fit_svorim`.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorex(X, y, C=10.0)
    >>> model.disorder
    ()
    """
    return _fit(
        "svorex", X, y, [C], cost=cost, start=start, cache_mb=cache_mb,
        max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol, classes=classes,
        sample_weight=sample_weight, class_weight=class_weight, rng=rng,
        probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


def fit_shashua_levin(
    X: MatrixLike,
    y: Labels,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    start: SvorModel | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvorModel:
    """Fit the sum-of-margins formulation of Shashua and Levin.

    SVOREX without the constraints: the thresholds may come out in disorder, which the
    model's `disorder` and a warning report. `predict` then still counts the thresholds
    that a score reaches. `fit_svorim` with the cost 1 off the diagonal is the same.

    Parameters
    ----------
    cost : (r, r) array-like, optional
        As in `fit_svorim`; default 1 off the diagonal.
    X, y, and the others : as for `fit_svorim`

    Returns
    -------
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svorim`.

    Warns
    -----
    ConvergenceWarning, DisorderedThresholdsWarning
        As `fit_svorim`.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.fit_shashua_levin(X, y, C=10.0).disorder
    ()
    """
    return _fit(
        "shashua_levin", X, y, [C], cost=cost, start=start, cache_mb=cache_mb,
        max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol, classes=classes,
        sample_weight=sample_weight, class_weight=class_weight, rng=rng,
        probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


def fit_redsvm(
    X: MatrixLike,
    y: Labels,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    start: SvorModel | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvorModel:
    """Fit REDSVM: SVORIM with the thresholds regularised as well.

    The reduction of Li and Lin to one SVM on pairs (row, threshold), whose kernel is
    k(x, x') + [j = j']. With a cost of one's own it is SVM-EBC. The thresholds are
    unique, and in order where the rows of the cost are convex.

    Parameters
    ----------
    cost : (r, r) array-like, optional
        As in `fit_svorim`; default |j - k|.
    X, y, and the others : as for `fit_svorim`

    Returns
    -------
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svorim`.

    Warns
    -----
    ConvergenceWarning, DisorderedThresholdsWarning
        As `fit_svorim`.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.fit_redsvm(X, y, C=10.0).convergence.converged
    True
    """
    return _fit(
        "redsvm", X, y, [C], cost=cost, start=start, cache_mb=cache_mb,
        max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol, classes=classes,
        sample_weight=sample_weight, class_weight=class_weight, rng=rng,
        probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


_FITS: dict[_Method, Callable[..., SvorModel]] = {
    "svorim": fit_svorim,
    "svorex": fit_svorex,
    "shashua_levin": fit_shashua_levin,
    "redsvm": fit_redsvm,
}


def _fit_path(
    method: _Method,
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, float]],
    products: Products | None = None,
    X_test: Matrix | None = None,
    **options: Any,
) -> tuple[list[SvorModel], Sequence[np.ndarray | None]]:
    """A model of "svorim", ... for the C of every point, each but the first started
    from the one before, and the decision function of each for the rows of `X_test`, or
    None.

    K is computed once, from the `Products` of X if they are given. `options` are those
    of the `fit_*` function but C.
    """
    every = {**(_FITS[method].__kwdefaults__ or {}), **options}
    own = every.pop("C")
    costs = [point.get("C", own) for point in points]
    return _fit(method, X, y, costs, products, X_test, **every)


def _fit(
    method: _Method,
    X: MatrixLike,
    y: Labels,
    costs: Sequence[float],
    products: Products | None = None,
    X_test: Matrix | None = None,
    *,
    cost: ArrayLike | None,
    start: SvorModel | None,
    cache_mb: float,
    max_iter: int | None,
    **common: Unpack[KernelCommon],
) -> tuple[list[SvorModel], Sequence[np.ndarray | None]]:
    """A model for every C, as `_fit_path` says."""
    costs = [check_factor("C", C) for C in costs]
    cache_mb = check_positive("cache_mb", cache_mb)
    if max_iter is not None:
        max_iter = check_count("max_iter", max_iter)
    entry = enter_with_kernel(f"fit_{method}", X, y, **common)
    problem = entry.problem
    if start is not None:
        _check_start(start, problem, entry.kernel)
    own = None if cost is None else check_cost(cost, problem.n_classes)
    job = _Job(
        method, entry.kernel, own, entry.n_threads, cache_mb, max_iter or _MAX_ITER,
        entry.monitor,
    )  # fmt: skip
    share = entry.folds()
    with entry.monitor as monitor:
        models, used = job.fit(problem, costs, start, products)
        f = decisions(models, used, problem.X, X_test)

        def of_fold(part: Problem, rows: np.ndarray) -> list[SvorModel]:
            return [job.fit(part, [whole.C], whole)[0][0] for whole in models]

        models = calibrate(models, problem, share, of_fold, monitor)
        monitor.conclude(models[-1].convergence)
    for model in models:
        warn_of(model, entry.monitor.method)
    return models, f


def _default_cost(method: _Method, r: int) -> np.ndarray:
    absolute = method in ("svorim", "redsvm")
    return absolute_cost(r) if absolute else np.minimum(absolute_cost(r), 1)


@dataclass(frozen=True, slots=True)
class _Job:
    """Checked options, the same for the fit of all rows and those of the folds."""

    method: _Method
    kernel: Kernel
    cost: np.ndarray | None
    n_threads: int
    cache_mb: float
    max_iter: int
    monitor: Monitor

    def fit(
        self,
        problem: Problem,
        costs: list[float],
        start: SvorModel | None,
        products: Products | None = None,
    ) -> tuple[list[SvorModel], list[np.ndarray]]:
        """A model a C, and the numbers of its support rows."""
        unit = self._program(problem)
        threads, least = self.n_threads, least_rows(unit.lo.shape[1])
        gram = gram_in_time(
            self.monitor, self.kernel, problem.X, self.cache_mb, threads, least,
            products,
        )  # fmt: skip
        pivoting = [Pivoting(gram, unit.curvature)]
        found: list[Solution] = []
        for i, C in enumerate(costs):
            program = _weighed(unit, C * problem.weight)
            if found:
                # (D) along the ray through the last solution is a parabola: to its top,
                # or as far as the boxes grew
                s = found[-1]
                curve = float(s.g[0].sum(axis=0) @ s.f[0])
                top = -float(program.phi(s.g)[0]) / curve if curve > 0 else 1.0
                ratio = C / costs[i - 1]
                length = min(max(top, min(1.0, ratio)), ratio)
                g = snap_to_bounds(length * s.g, program.lo, program.hi)
            elif start is not None:
                g = _start(start, problem, program, C)
            else:
                g = np.zeros_like(program.lo)
            with self.monitor.numbered("point", i, len(costs)):
                solution = solve(
                    gram, program, g, tol=self.monitor.tol, max_iter=self.max_iter,
                    n_threads=self.n_threads, monitor=self.monitor, pivoting=pivoting,
                )  # fmt: skip
            found.append(solution)
        unit = _weighed(unit, problem.weight)
        return self._models(problem, unit, costs, found)

    def _program(self, problem: Problem) -> Program:
        """(D) with boxes for weight 1, a group for each threshold between ranks that
        have rows."""
        present = np.flatnonzero(problem.present)
        rank = problem.rank_among_present
        cost = self.cost
        if cost is None:
            cost = _default_cost(self.method, problem.n_classes)
        step = np.abs(np.diff(cost[np.ix_(present, present)], axis=1))
        above = rank > np.arange(present.size - 1)[:, None]
        width, slope = step[rank].T, np.where(above, -1.0, 1.0)[None]
        return Program(
            lo=np.where(above, 0.0, -width)[None],
            hi=np.where(above, width, 0.0)[None],
            pn=slope,
            pp=slope,
            coupled=self.method == "svorex",
            price=np.diff(present).astype(float) if self.method == "redsvm" else None,
        )

    def _models(
        self,
        problem: Problem,
        unit: Program,
        costs: list[float],
        found: list[Solution],
    ) -> tuple[list[SvorModel], list[np.ndarray]]:
        """A model a solution, and its support rows; `unit` is of C = 1."""
        present, r = np.flatnonzero(problem.present), problem.n_classes
        C = np.array(costs)
        g = np.concatenate([s.g for s in found])
        f = np.concatenate([s.f for s in found])
        b = _thresholds(unit, C, found, f)
        half = 0.5 * np.einsum("cn,cn->c", g.sum(axis=1), f)
        slope, width = unit.pp[0], (unit.hi - unit.lo)[0]
        slack = np.maximum(1 + slope * (f[:, None] - b[:, :, None]), 0)
        primal = half + C * np.einsum("ctn,tn->c", slack, width)
        dual = -half - np.einsum("ctn,tn->c", g, slope)
        if unit.price is not None:
            z = np.concatenate([s.z for s in found])
            primal += 0.5 * b**2 @ unit.price
            dual -= 0.5 * (z**2 / unit.price).sum(axis=1)

        models, used = [], [np.flatnonzero(s.g.any(axis=(0, 1))) for s in found]
        for c, (s, rows) in enumerate(zip(found, used, strict=True)):
            # by columns, which are summed one after the other: those of absent ranks,
            # all 0, then change no bit of `coef`
            alphas = np.zeros((rows.size, r - 1), order="F")
            alphas[:, present[:-1]] = s.g[0][:, rows].T
            model = SvorModel(
                method=self.method,
                support=support_rows(self.kernel, problem.X, rows),
                coef=frozen(alphas.sum(axis=1)),
                dual=frozen(alphas),
                thresholds=frozen(around_ranks(b[c], present, r)),
                C=costs[c],
                cost=self.cost,
                classes=frozen(problem.classes),
                kernel=self.kernel,
                n_features=problem.n_features,
                feature_names=problem.feature_names,
                link=None,
                convergence=self.monitor.record(
                    s.status, s.n_iter[0], s.violation[0], primal[c], dual[c]
                ),
            )
            models.append(model)
        return models, used


def _weighed(unit: Program, weight: np.ndarray) -> Program:
    return replace(unit, lo=weight * unit.lo, hi=weight * unit.hi)


def _thresholds(
    unit: Program, C: np.ndarray, found: list[Solution], f: np.ndarray
) -> np.ndarray:
    """b that minimises (P) for the scores f (c, n) of each C; the middle, if an
    interval does.

    The slope of (P) by b_j is price_j b_j + C times the widths of all f_i + slope_ij <=
    b_j, less C times the widths of the rows below the threshold.
    """
    if unit.coupled:
        return np.concatenate([s.b for s in found])
    v = f[:, None] + unit.pp
    order = np.argsort(v, axis=2)
    every = np.arange(v.shape[1])[:, None]
    sums = np.cumsum((unit.hi - unit.lo)[0][every, order], axis=2)
    below = -unit.lo[0].sum(axis=1, keepdims=True)
    v = np.take_along_axis(v, order, axis=2)

    def at(a: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.take_along_axis(a, k[:, :, None], axis=2)[:, :, 0]

    if unit.price is None:
        rounding = 1e-12 * sums[:, :, -1:]
        first = (sums < below - rounding).sum(axis=2)
        last = (sums < below + rounding).sum(axis=2)
        return np.asarray(
            0.5 * (at(v, first) + at(v, np.minimum(last, v.shape[2] - 1)))
        )
    C, price = C[:, None, None], unit.price[:, None]
    none, end = np.zeros((*v.shape[:2], 1)), np.full((*v.shape[:2], 1), np.inf)
    v, through = np.concatenate([v, end], axis=2), np.concatenate([sums, end], axis=2)
    # the slope is >= 0 right of v[k], but not right of v[k - 1]
    k = (price * v + C * through >= C * below).argmax(axis=2)
    left_of = at(np.concatenate([none, sums], axis=2), k)[:, :, None]
    return np.asarray(np.minimum((C * (below - left_of) / price)[:, :, 0], at(v, k)))


# Warm start


def _check_start(start: Any, problem: Problem, kernel: Kernel) -> None:
    if not isinstance(start, SvorModel):
        raise TypeError(f"start must be a SvorModel, got {type(start).__name__}")
    if not np.array_equal(start.classes, problem.classes):
        raise ValueError(
            f"start has the classes {listed(start.classes)}, the data "
            f"{listed(problem.classes)}"
        )
    by_number = isinstance(kernel, Precomputed)
    if isinstance(start.kernel, Precomputed) != by_number:
        raise ValueError("start and the fit must both be of a precomputed kernel")
    if isinstance(start.support, CSR) != isinstance(problem.X, CSR) and not by_number:
        raise ValueError("start and X must both be dense or both be CSR")
    if None not in (names := {start.feature_names, problem.feature_names}):
        if len(names) > 1:
            raise ValueError("start and X must have the same columns in the same order")
    if not by_number and start.n_features != problem.n_features:
        raise ValueError(
            f"start has {start.n_features} features, X has {problem.n_features}"
        )


def _start(
    start: SvorModel, problem: Problem, program: Program, C: float
) -> np.ndarray:
    """A feasible dual point near that of a model, whose rows are found among X."""
    present = np.flatnonzero(problem.present)
    old = np.add.reduceat(start.dual, present[:-1], axis=1) * (C / start.C)
    where: dict[bytes | int, list[int]] = {}
    for i, key in enumerate(_keys(problem.X, start.support)):
        where.setdefault(key, []).append(i)
    g = np.zeros_like(program.lo)
    for values, key in zip(old, _keys(start.support, start.support), strict=True):
        # of equal rows, one whose rank gives the duals these signs
        for i in where.get(key, ()):
            lo, hi = program.lo[0, :, i], program.hi[0, :, i]
            if not ((values < 0) & (lo == 0) | (values > 0) & (hi == 0)).any():
                g[0, :, i] = values
                where[key].remove(i)
                break
    return _feasible(g, program)


def _feasible(g: np.ndarray, program: Program) -> np.ndarray:
    """A feasible point of (D) near g."""
    lo, hi = program.lo, program.hi
    g = snap_to_bounds(g, lo, hi)
    if program.price is not None:
        return g
    total = np.zeros(g.shape[:2])
    if program.coupled:
        mu = np.maximum(-np.cumsum(g.sum(axis=2), axis=1), 0)
        mu[:, -1] = 0
        wanted = np.diff(-mu, axis=1, prepend=0.0)
        if ((lo.sum(axis=2) < wanted) & (wanted < hi.sum(axis=2))).all():
            total = wanted
    return restore_sums(g, lo, hi, total)


def _keys(X: Any, support: np.ndarray | CSR) -> list[Any]:
    """What a row is known by: its number for a precomputed kernel, else its bytes."""
    if not isinstance(support, CSR) and support.ndim == 1:
        return support.tolist() if X is support else list(range(len(X)))
    if isinstance(X, CSR):
        spans = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [
            X.indices[a:b].tobytes() + (X.data[a:b] + 0.0).tobytes() for a, b in spans
        ]
    return [row.tobytes() for row in X + 0.0]  # -0.0 is 0.0


_ESTIMATORS: dict[_Method, str] = {
    "svorim": "SVORIM",
    "svorex": "SVOREX",
    "shashua_levin": "ShashuaLevin",
    "redsvm": "REDSVM",
}
for _method, _function in _FITS.items():
    register(
        _function,
        name=_method,
        estimator=_ESTIMATORS[_method],
        accepts={"sparse"},
        grid={"C": COSTS, "gamma": GAMMAS},
        varying=("C",),
        fit_path=partial(_fit_path, _method),
    )
