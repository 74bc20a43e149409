"""Fit of KDLOR, and of a path of ridges; the package states the problem.

The dual (D) has one unknown per pair of adjacent ranks. An active set method solves it;
the thresholds follow from the mean scores of the ranks.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

import numpy as np

from .._input.basis import BasisChoice
from .._input.checks import check_factor
from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, Array
from .._input.immutable import read_only
from .._input.problem import Problem, around_ranks
from .._input.types import (
    AnyBasis,
    ArrayLike,
    Blocks,
    ClassWeight,
    Gamma,
    Kernel,
    Labels,
    Matrix,
    MatrixLike,
    Rng,
    RowsLike,
)
from .._model.basis import chosen, features_among
from .._model.kernel_fit import (
    Arguments,
    Family,
    KernelOptions,
    Solver,
    fit,
    path_function,
)
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import GAMMAS, Method, register
from .._model.support import decision, finite_scores
from .._model.threshold_model import Scored, ScoreModel
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor
from ..kernels.features import Features
from ..kernels.functions import KernelName
from ..kernels.tiles import Products
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .scatter import (
    BasisScatter,
    KernelScatter,
    Scatter,
    Shares,
    rows_with_weight,
    support_of,
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KdlorModel(ScoreModel):
    """Score f(x) = sum_i coef[i] k(support_i, x), and thresholds on it.

    Attributes
    ----------
    support : (m, n_features) array or CSR
        Training rows of positive weight, basis rows, or unit vectors. For a precomputed
        kernel, the (m,) numbers of the rows.
    coef : (m,) array
    dual : (r - 1,) array
        a of (D), one entry per pair of neighbouring ranks: how much the pair determines
        the direction. If there are ranks without training rows between the two, the
        first of their entries holds the value.
    thresholds : (r - 1,) array
        Scores at which the most likely rank changes. A threshold lies between the mean
        scores of two neighbouring ranks, farther from that of the rank with more
        weight. Thresholds are -inf or +inf where no training rows lie beyond them, and
        equal on both sides of a rank that is never predicted, such as one without rows.
    rho : float
        Smallest difference of the mean scores of neighbouring ranks.
    C, ridge : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
        Record of the fit; its steps are those of the active-set method.
    """

    dual: Annotated[np.ndarray, Array("f8", "r-1"), FINITE, NONNEGATIVE]
    rho: Annotated[float, FINITE]
    C: Annotated[float, FINITE, POSITIVE]
    ridge: Annotated[float, FINITE, POSITIVE]

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the score f(x), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to predict; for a precomputed kernel, the values k(rows, training
            rows).

        Returns
        -------
        (n,) array
            Scores, proportional to C. The mean scores of neighbouring ranks differ by
            at least `rho`.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns. The Pearson kernel
            accepts NaN.
        """
        return decision(self, X)

    def _link_input(self, f: np.ndarray, like: Scored) -> np.ndarray:
        """Return `link_input` in the unit and from the origin of another model.

        In its unit the smallest difference of adjacent mean scores is the same.
        """
        ratio = 1.0
        if isinstance(like, KdlorModel) and min(self.rho, like.rho) > 0:
            ratio = like.rho / self.rho
        scaled = replace(self, thresholds=ratio * self.thresholds)
        # With slots, dataclass makes a second class, which super() does not know.
        f = finite_scores(ratio * f)
        return super(KdlorModel, scaled)._link_input(f, like)


_ROUNDING = 1e-13  # rounding error of a slope


def solve_dual(
    Q: np.ndarray, C: float, least: float, max_iter: int, monitor: Monitor
) -> tuple[np.ndarray, int, Status]:
    """Minimise a'Q a over a >= 0 with sum_k a_k = C.

    Return the minimum, (q - 1,), the number of steps, and the status. `least` is the
    least denominator of the relative gap.

    Up to a factor of Q, the minimum is proportional to that of x'Q x + (1 - sum_k
    x_k)^2 over x >= 0. This least squares problem is solved by the active set method of
    Lawson and Hanson ("Solving least squares problems", 1974, chapter 23). A step frees
    one more entry, and fixes the entries at 0 that would otherwise become negative.
    """
    largest = float(np.diagonal(Q).max())
    H = Q / (largest if largest > 0 else 1.0) + 1.0
    H[np.diag_indices_from(H)] += 0.1 * _ROUNDING  # two pairs may have the same column
    x, free = np.zeros(len(Q)), np.zeros(len(Q), bool)
    # The active set method begins with the best single pair.
    entering, value, n_iter = int(np.diagonal(Q).argmin()), 0.0, 0
    while True:
        new, inside = _with_entry(H, x, free, entering)
        n_iter += 1
        new_value = 0.5 * float(new @ H @ new) - float(new.sum())
        if not new_value < value:  # the optimum, up to rounding
            return C * x / x.sum(), n_iter, Status.CONVERGED
        x, free, value = new, inside, new_value
        a = C * x / x.sum()
        slope = np.where(free, 0.0, 1 - H @ x)
        entering = int(slope.argmax())
        if not slope[entering] > _ROUNDING:
            return a, n_iter, Status.CONVERGED
        if n_iter == max_iter:
            return a, n_iter, Status.MAX_ITER
        Qa = Q @ a
        norm = 0.25 * float(a @ Qa)
        gap = relative_gap(norm - 0.5 * C * float(Qa.min()), -norm, least)
        # This is the gap of (D), not of the least squares problem.
        if (stopped := monitor.stop(n_iter, gap)) is not None:
            return a, n_iter, stopped


def _with_entry(
    H: np.ndarray, x: np.ndarray, free: np.ndarray, entering: int
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise x'H x / 2 - sum_k x_k over the free entries and an entering one.

    Entries that become 0 on the way to the minimum are fixed there. Return the end, and
    the entries that are free at it.
    """
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


def relative_gap(primal: float, dual: float, least: float) -> float:
    """Return the gap relative to the objectives, or to `least` if they are smaller."""
    return (primal - dual) / max(abs(primal), abs(dual), least)


def thresholds(means: np.ndarray, variance: float, share: np.ndarray) -> np.ndarray:
    """Return the scores at which the most likely rank changes, (q - 1,).

    Scores of rank k are normal with mean means[k], and rank k has the share share[k] of
    the rows. Thresholds increase; two are equal if the rank between them is never the
    most likely one.
    """
    means = np.maximum.accumulate(means)  # not in order if the fit ended early
    apart = means - means[:, None]
    log_odds = np.subtract.outer(np.log(share), np.log(share))
    shift = variance * log_odds / np.where(apart > 0, apart, np.inf)
    # (CUT) of all pairs: entry (k, l) is the score at which ranks k and l are as likely
    even = 0.5 * (means + means[:, None]) + shift
    return np.array(
        [even[: j + 1, j + 1 :].min(axis=1).max() for j in range(means.size - 1)]
    )


# Objectives relative to C^2 k / (4 u t), where k is the mean of k(x, x), that are
# rounding errors of 0, because ranks have the same mean
_NO_ANSWER = 1e-8
_ONE_POINT = 1e-14  # trace of the scatter of equal rows, relative to k, by rounding


@dataclass(frozen=True, slots=True)
class Kdlor(Family[float, KdlorModel]):
    """KDLOR with its option C; a point is its ridge."""

    C: float
    name = "fit_kdlor"
    remote = False

    def solver(
        self,
        options: KernelOptions,
        choice: BasisChoice | None,
        problem: Problem,
        point: float,
        start: object,
        products: Products | None,
    ) -> KdlorSolver:
        """Return the solver by the kernel matrix or on a basis.

        The basis is a single row if the time is up before it is chosen.
        """
        features, kernel, monitor = None, options.kernel, options.monitor
        if choice is not None:
            n_threads = options.n_threads

            def trial(part: Problem, features: Features) -> KdlorModel:
                return KdlorSolver(self.C, options, part, features).fit(point)[0]

            def on(choice: BasisChoice) -> Features:
                return chosen(choice, kernel, problem, n_threads, trial)

            try:
                with monitor.stage("basis"), monitor.limited(Monitor.GRACE):
                    features = on(choice)
            except OutOfTime:
                features = on(BasisChoice("random", 1, seed=choice.seed))
        return KdlorSolver(self.C, options, problem, features, products)

    def warn(self, model: KdlorModel) -> None:
        """Warn if a model has not converged."""
        model.convergence.warn_unless_converged(self.name, "take a basis")


class KdlorSolver(Solver[float, KdlorModel]):
    """Solver of KDLOR on a basis or, without features, by the kernel matrix."""

    def __init__(
        self,
        C: float,
        options: KernelOptions,
        problem: Problem,
        features: Features | None,
        products: Products | None = None,
    ):
        super().__init__(options.monitor)
        self.C, self.options, self.kernel = C, options, options.kernel
        self.problem, self.features, self.products = problem, features, products

    def restricted_to(
        self, problem: Problem, rows: np.ndarray, start: KdlorModel | None = None
    ) -> KdlorSolver:
        """Return the solver of a problem of these training rows."""
        features, n_threads = self.features, self.options.n_threads
        if features is not None:
            features = features_among(features, self.kernel, problem.X, rows, n_threads)
        return KdlorSolver(self.C, self.options, problem, features)

    def fit(self, point: float) -> tuple[KdlorModel, np.ndarray | None]:
        """Return the model of one ridge, and the numbers of its support rows."""
        return self.path([point])[0]

    def path(
        self, points: Sequence[float]
    ) -> list[tuple[KdlorModel, np.ndarray | None]]:
        """Return the results of `fit` for all ridges, which have the same scatter."""
        used = rows_with_weight(self.problem) if self.features is None else None
        found, n = [], len(points)
        scatter = self.scatter(n)
        for i, u in enumerate(points):
            with self._monitor.numbered("point", i, n):
                found.append((self._fit(u, scatter, i + 1 == n), used))
        return found

    def scatter(self, n_ridges: int) -> Scatter | None:
        """Return the scatter for a number of ridges, or None if the time is up."""
        problem, monitor = self.problem, self._monitor
        shares, n_threads = Shares.from_problem(problem), self.options.n_threads
        with suppress(OutOfTime), monitor.stage("scatter"), monitor.limited():
            if self.features is not None:
                return BasisScatter(self.features, problem, shares, n_threads)
            return KernelScatter(
                self.kernel, problem, shares, n_threads, self.products, n_ridges
            )
        return None

    def _fit(self, u: float, scatter: Scatter | None, last: bool) -> KdlorModel:
        """Return the model of one ridge, with scores of 0 if the time is up.

        The scatter is None if the time was up before.
        """
        if scatter is not None:
            with suppress(OutOfTime):
                return self._solve(scatter, u, last)
        support = support_of(self.kernel, self.problem, self.features)
        return self._zero_score(support, u, Status.MAX_TIME)

    def _solve(self, scatter: Scatter, u: float, last: bool) -> KdlorModel:
        """Return the model of one u; `last` if the scatter is not needed after it."""
        # All rows are one point, so that no direction is better than 0.
        if abs(scatter.t) <= _ONE_POINT * abs(scatter.size):
            return self._zero_score(scatter.support, u, Status.CONVERGED)
        if (stopped := self._monitor.stop(0, np.inf)) is not None:
            return self._zero_score(scatter.support, u, stopped)
        ridge = u * scatter.t
        try:
            if not scatter.t > 0:
                raise np.linalg.LinAlgError
            with self._monitor.stage("factorisation"), self._monitor.limited():
                solved = scatter.with_ridge(ridge, last)
        except np.linalg.LinAlgError:
            raise ValueError(
                "ridge must be larger, or the kernel is not positive semi-definite: "
                f"the scatter with ridge={u:g} is not"
            ) from None
        least = _NO_ANSWER * self.C**2 * scatter.size / (4 * ridge)
        max_iter = cast(int, self.options.max_iter)  # the fit has a default for it
        a, n_iter, status = solve_dual(solved.Q, self.C, least, max_iter, self._monitor)
        found = solved.direction(a)
        steps = np.diff(found.means)
        rho = float(steps.min())
        primal = found.norm - self.C * rho
        dual = found.norm - float(steps @ a) - found.lost
        violation = relative_gap(primal, dual, least)
        # The gap is that of raw data: Q of a poor factor may have been solved exactly.
        if status is Status.CONVERGED and not violation <= self._monitor.tol:
            status = Status.STALLED
        record = self._monitor.record(status, n_iter, violation, primal, dual)
        between = thresholds(found.means, found.norm, scatter.shares.of_rank)
        return self._model(scatter.support, u, found.coef, between, a, rho, record)

    def _zero_score(self, support: Matrix, u: float, status: Status) -> KdlorModel:
        """Return a model whose score is 0.

        All rows are one point (CONVERGED), or the fit has ended early.
        """
        pairs = np.count_nonzero(self.problem.present) - 1
        if status is Status.CONVERGED:
            record = self._monitor.record(status, 1, 0.0, 0.0, 0.0)
        else:
            record = self._monitor.record(status, 0, np.inf, 0.0)
        zero, a = np.zeros(len(support)), np.full(pairs, self.C / pairs)
        return self._model(support, u, zero, np.zeros(pairs), a, 0.0, record)

    def _model(
        self,
        support: Matrix,
        u: float,
        coef: np.ndarray,
        between: np.ndarray,
        a: np.ndarray,
        rho: float,
        convergence: Convergence,
    ) -> KdlorModel:
        """Return the model, with entries for ranks without rows."""
        problem = self.problem
        present, r = np.flatnonzero(problem.present), problem.n_classes
        dual = np.zeros(r - 1)
        dual[present[:-1]] = a
        return KdlorModel(
            support=support,
            coef=read_only(coef),
            dual=read_only(dual),
            thresholds=read_only(around_ranks(between, present, r)),
            rho=rho,
            C=self.C,
            ridge=u,
            kernel=self.kernel,
            **problem.model_fields(),
            link=None,
            convergence=convergence,
        )


_RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@preprocessed
def fit_kdlor(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    ridge: float = 3e-3,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    basis: AnyBasis | None = None,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 10_000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> KdlorModel:
    """Fit KDLOR: kernel discriminant analysis with ordered means.

    The docstring of `ordinal.kdlor` states the problem (P), its dual (D) and the bound
    (GAP). The fit takes n^3 / 3 multiplications and memory for n^2 doubles. With m
    basis rows it takes one pass over the rows with O(n m^2) operations, and memory for
    m^2 doubles.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; standardise them first, because kernels
        compare distances. With kernel="precomputed", X is the (n, n) kernel matrix.
        Only the kernel `kernels.Pearson` accepts missing values (NaN). `predict` finds
        the columns of a data frame by their names. With `basis`, or with a linear
        kernel, X may also be a source of chunks (`ordinal.data`) or a numpy.memmap:
        every pass reads the rows again, so that they need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    ridge : float > 0, default 3e-3
        Regularisation strength, as a share of the trace of the scatter of all rows.
        Larger values give smoother scores; tune it from 1e-5 to 1e-1.
    C : float > 0, default 1.0
        Parameter of (P) in the paper. It scales the score and changes no prediction.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: w is a sum over basis rows. Values are those of
        `fit_svorim`. Default: all rows; for a linear kernel with n >= 2000 and d <=
        min(n / 4, 1000) the d unit vectors, which is exact.
    tol : float > 0, default 1e-6
        Tolerance on the duality gap relative to the objective. The method is exact, so
        that the gap is due to rounding, which is proportional to 1 / ridge.
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice; with a basis that is drawn
        only if the same rows are. The sum must lie between 1e-50 and 1e50, and positive
        weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; the limits
        of `sample_weight` hold for the products. "balanced" gives all ranks the same
        total weight; the thresholds are then the midpoints between the mean scores of
        neighbouring ranks.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    probability : bool, default False
        Whether to calibrate the probabilities of `predict_proba`. This takes five more
        fits, each of which leaves out a fifth of the rows, whose scores are then used.
        With `basis` it takes one more fit, or as many as are needed to leave out rows
        of every rank.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds of `probability` and the rows
        of `basis`. Unused without these.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 10 000
        Limit on the steps of the active-set method for (D), which takes about as many
        as there are ranks.
    max_time : float > 0, optional
        Time budget in seconds, checked between the blocks of every matrix. If it is
        exhausted before the matrix is factorised, the scores of the model are 0, with a
        warning.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` before the factorisation
        and between the steps of the active-set method. If it returns a true value, the
        fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    KdlorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid, which is checked before anything is
        computed, or if the kernel is not positive semi-definite.
    MemoryError
        If the kernel matrix of all rows needs more memory than this machine has. A fit
        with `basis` needs less.

    Warns
    -----
    ConvergenceWarning
        The fit, or one of those for `probability`, ended short of the tolerance; the
        message says why and what helps.

    See Also
    --------
    ordinal.fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    ordinal.fit_tlssvor : Fit TLS-SVOR: truncated squared losses, robust against wrong
        labels.
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_kdlor(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.threshold_names
    ('1|2', '2|3')
    >>> ordinal.companions.fit_kdlor(X, y, basis=10).support.shape
    (10, 2)
    """
    given = shared_arguments(Arguments, locals())
    return fit(_family(C), X, y, _checked_ridge(ridge), **given)


def _family(C: float) -> Kdlor:
    return Kdlor(check_factor("C", C))


def _checked_ridge(ridge: float) -> float:
    return check_factor("ridge", ridge)


register(
    Method(
        fit_kdlor,
        name="kdlor",
        estimator="KDLOR",
        own_rule="threshold",
        accepts={"sparse"},
        grid={"ridge": _RIDGES, "gamma": GAMMAS},
        varying=("ridge",),
        fit_path=path_function(_family, _checked_ridge),
    )
)
