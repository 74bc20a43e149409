"""Functions that fit TLS-SVOR; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from .._input.basis import BasisChoice, read_choice
from .._input.checks import (
    check_count,
    check_factor,
    check_positive,
    check_real,
    check_share,
)
from .._input.fields import FINITE, POSITIVE
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
    MatrixLike,
    Rng,
)
from .._model.basis import enough_rows, read
from .._model.folds import calibrate
from .._model.labelled import MissingLabels
from .._model.preparation import (
    Callback,
    KernelCommon,
    prepare_with_kernel,
    shared_arguments,
)
from .._model.registry import COSTS, GAMMAS, Method, register
from .._model.support import read_only_matrix
from .._model.threshold_model import ScoreModel, warn_of_shortfalls
from .._numerics.rows import dense, take
from .._rows.columns import with_state
from .._rows.reading import Reading
from .._watch.cancellation import OutOfTime
from .._watch.monitor import Monitor
from ..kernels.basis_rows import chosen_rows
from ..kernels.features import ColumnFeatures
from ..kernels.functions import KernelFunction, KernelName, on_basis
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .newton import minimize
from .objective import (
    CachedColumns,
    Fill,
    LossSums,
    SharedTerms,
    Squares,
    TlsPoint,
    TruncatedObjective,
    combined,
    kernel_values,
    root_of,
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TlsSvorModel(ScoreModel):
    """Score f(x) = sum_h coef[h] k(support_h, x), and thresholds on it.

    Attributes
    ----------
    support : (m, n_features) array or CSR
        Basis rows, or unit vectors; for a precomputed kernel, the (m,) numbers of the
        rows.
    coef : (m,) array
        w of (P); for unit vectors, the coefficients of the features, sum_h x_h w_h.
    thresholds : (r - 1,) array
        Thresholds in units of the margin. They are -inf or +inf where no training rows
        lie beyond them, and equal on both sides of an inner rank without training rows,
        which is then never predicted.
    C, u, eta : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Link from scores to probabilities; None unless fitted with `probability=True`.
    convergence : Convergence
        Record of the fit; its `primal` is psi. There is no dual.
    """

    C: Annotated[float, FINITE, POSITIVE]
    u: Annotated[float, POSITIVE]
    eta: Annotated[float, FINITE, POSITIVE]


@preprocessed
def fit_tlssvor(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    u: float = 2.0,
    eta: float = 0.1,
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
    cache_mb: float = 1000.0,
    max_iter: int = 500,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> TlsSvorModel:
    """Fit TLS-SVOR: truncated squared losses, robust against wrong labels.

    The docstring of `ordinal.tlssvor` states the problem (P). A step takes O(n m^2 +
    m^3) operations for m basis rows. About 10 steps are usual if u is infinite or 3,
    and up to 150 if u is 1.5 and C is large. The fit needs memory for n m + 2 m^2
    doubles. With `basis`, the first term is limited by `cache_mb`, and rows may be read
    in chunks.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; standardise them first, because kernels
        compare distances. With kernel="precomputed", X is the (n, n) kernel matrix.
        Only the kernel `kernels.Pearson` accepts missing values (NaN). `predict` finds
        the columns of a data frame by their names. With `basis`, or with a linear
        kernel, X may also be a numpy.memmap, a source of chunks, or a dask array or
        data frame (docs/big_data.md).
    y : (n,) array-like, or None if X is a source of chunks
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of margin violations: a small C regularises more. The paper searches 1e-3
        to 1e3, and 1e-2 to 1e4 with a basis of few rows.
    u : float > 2 eta, default 2.0
        Slack at which the loss is truncated, in units of the margin; a row that lies 1
        on the wrong side of a threshold has a slack of 2. The paper searches 1.5 to 6.
        With inf the loss is not truncated (np-SVOR), so that rows with wrong labels can
        have any influence.
    eta : float in (0, 1), default 0.1
        Half the width of the intervals on which the loss is smoothed. The smoothing
        changes the loss of a slack below u - eta by less than 0.0526 eta^2.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    basis : int, float in (0, 1], "auto", (way, int), row numbers or rows, optional
        Rows h of the sum f.

        * int: this many rows, drawn at random and stratified by rank.
        * (way, int): this many rows, chosen by the way "random", "kmeans++" or
          "cholesky".
        * float: this share of the rows, drawn in the same way as a number; it is the
          inverse of Ratio in the paper.
        * "auto": 100 rows, doubled while the hold-out error decreases.
        * row numbers, or the (m, d) rows themselves.

        Default: all rows of positive weight. With a linear kernel, n >= 2000 and d <=
        min(n / 4, 1000), `support` then holds the d unit vectors, which gives the same
        scores.
    tol : float > 0, default 1e-6
        Tolerance on the partial derivatives of psi by coefficients and thresholds. Each
        is divided by the sum of the weights of its terms, which are v_i |k(x_i, h)| for
        w_h, so that it is a mean per term in units of the margin. The paper uses 1e-3;
        Newton's method takes only one or two steps more to reach 1e-6.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice (with
        a random basis, if the same basis rows are drawn). Their sum must lie between
        1e-50 and 1e50, and the ratio of two positive weights must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
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
        With `basis`, or a linear kernel of few columns, it takes one more fit, or as
        many as are needed to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the rows of `basis` and the folds of
        `probability`. Unused without these.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        With `basis`, memory for kernel values, in 10^6 bytes. Values that do not fit
        are computed again in every pass over the rows, of which a step takes at least
        two. The result does not depend on it.
    max_iter : int, default 500
        Limit on the number of Newton steps, summed over all values of u.
    max_time : float > 0, optional
        Time budget in seconds, checked during and after every step. When it is
        exhausted, the fit returns its best point so far, with a warning. If that
        happens before the fit has seen all rows once, its scores are 0.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` after every step. If it
        returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, in a notebook a progress bar (of tqdm, if installed), elsewhere one line
        every ten seconds.

    Returns
    -------
    TlsSvorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.

    Warns
    -----
    ConvergenceWarning
        If the fit, or one of the fits for `probability`, stopped before it reached the
        tolerance. The message names the reason and the remedy.
    DisorderedThresholdsWarning
        If thresholds are out of order, which is possible for a finite u. The attribute
        `disorder` of the model lists them.

    See Also
    --------
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_svorex : Fit SVOREX: margins at the two nearest thresholds, which are kept in
        order.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_tlssvor(X, y, basis=50)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.support.shape
    (50, 2)
    >>> model.disorder
    ()
    """
    C, eta = check_factor("C", C), check_factor("eta", check_share("eta", eta))
    rule = f"a number above 2 eta = {2 * eta:g}"
    u = check_real("u", u, lambda v: v > 2 * eta, rule)
    max_iter = check_count("max_iter", max_iter)
    cache_mb = check_positive("cache_mb", cache_mb)
    reading = Reading(on_basis(basis, kernel), in_place=basis is not None)
    prepared = prepare_with_kernel(
        "fit_tlssvor", X, y, reading, **shared_arguments(KernelCommon, locals())
    )
    problem = prepared.problem
    choice = _read(basis, problem, prepared.kernel)
    job = _TlsSvorFit(
        prepared.kernel,
        C,
        u,
        eta,
        basis is None,
        prepared.n_threads,
        cache_mb,
        max_iter,
        prepared.monitor,
    )
    model: TlsSvorModel
    with prepared.monitor as monitor, closing(problem):
        chosen = job.chosen(choice, problem, prepared.rng)
        share = prepared.folds(few=basis is not None or chosen.way == "columns")

        def fit(part: Problem, train: np.ndarray) -> list[TlsSvorModel]:
            return [job.fit(part, _restricted_to(chosen, train))]

        (model,) = calibrate([job.fit(problem, chosen)], problem, share, fit, monitor)
        monitor.conclude(model.convergence)
    warn_of_shortfalls(model, prepared.monitor.method)
    return model


def _read(
    basis: AnyBasis | None, problem: Problem, kernel: KernelFunction
) -> BasisChoice:
    """Return the choice of the basis: by default every row of positive weight."""
    if basis is None:
        # The penalty of a row of weight v is w_h^2 / v, so that 0 is not possible.
        every = np.flatnonzero(problem.weight > 0)
        return read(None, kernel, problem) or BasisChoice("numbers", rows=every)
    n = int(np.count_nonzero(problem.weight > 0))
    choice = read_choice(basis, problem.n_samples, problem.n_features, share_of=n)
    if choice.way == "own" and kernel.by_number:
        raise ValueError("basis must be a count or row numbers with precomputed")
    if choice.m > n:
        raise ValueError(
            f"basis must be at most {n}, the rows of positive weight, got {choice.m}"
        )
    return choice


def _restricted_to(choice: BasisChoice, train: np.ndarray) -> BasisChoice:
    """Return the choice in the problem of some rows, given by their numbers."""
    if choice.way != "numbers":
        return choice
    return BasisChoice("numbers", rows=np.flatnonzero(np.isin(train, choice.rows)))


class _Columns(NamedTuple):
    """Columns whose linear combination is the score.

    Attributes
    ----------
    fill : callable
        Computes the columns of some rows.
    penalties : (m,) array
        Factor of the squared coefficient of each column in the penalty.
    support : array or CSR
        Support of the model.
    coef : callable
        Converts coefficients of the columns to those of the support.
    """

    fill: Fill
    penalties: np.ndarray
    support: Any
    coef: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class _TlsSvorFit:
    """Checked options, which the fits of all rows and of the folds share."""

    kernel: KernelFunction
    C: float
    u: float
    eta: float
    every_row: bool  # whether the basis has every row
    n_threads: int
    cache_mb: float
    max_iter: int
    monitor: Monitor

    def chosen(
        self, choice: BasisChoice, problem: Problem, rng: np.random.Generator
    ) -> BasisChoice:
        """Return the choice with its rows drawn: numbers, if they are rows of X."""
        if choice.way == "auto":
            seed = int(rng.integers(2**31))

            def fit(part: Problem, tried: BasisChoice) -> TlsSvorModel:
                drawn = self.chosen(tried, part, np.random.default_rng(seed))
                return self.fit(part, drawn)

            choice = enough_rows(problem, self.kernel, fit, seed)
        if choice.way in ("numbers", "own", "columns"):
            return choice
        rows, _ = chosen_rows(
            choice,
            self.kernel,
            partial(take, problem.X),
            problem.rank,
            problem.weight,
            rng,
            self.n_threads,
        )
        return BasisChoice("numbers", rows=rows)

    def fit(self, problem: Problem, choice: BasisChoice) -> TlsSvorModel:
        """Return the model on a basis whose rows are drawn already."""
        present = np.flatnonzero(problem.present)
        try:
            with self.monitor.stage("kernel matrix"), self.monitor.limited():
                columns, psi, begin = self._prepared(problem, choice)
        except OutOfTime:  # without columns the score is 0, and thresholds take no time
            none = BasisChoice("numbers", rows=np.empty(0, np.intp))
            columns, psi, begin = self._prepared(problem, none)
        point, status, n_iter = minimize(
            psi, begin, self.u, self.max_iter, self.monitor
        )
        T = present.size - 1
        return TlsSvorModel(
            support=columns.support,
            coef=read_only(columns.coef(point.x[T:])),
            thresholds=read_only(around_ranks(point.x[:T], present, problem.n_classes)),
            C=self.C,
            u=self.u,
            eta=self.eta,
            kernel=self.kernel,
            **problem.model_fields(),
            link=None,
            convergence=self.monitor.record(
                status, n_iter, point.violation, point.value
            ),
        )

    def _prepared(
        self, problem: Problem, choice: BasisChoice
    ) -> tuple[_Columns, TruncatedObjective, TlsPoint]:
        """Return the columns, psi, and its point x = 0 for u = inf."""
        columns = self._columns(problem, choice)
        terms, m = SharedTerms.from_problem(problem, self.eta), columns.penalties.size
        # A fit to the whole kernel matrix keeps all of it.
        cache_mb = np.inf if self.every_row else self.cache_mb
        rows = with_state(
            problem.X,
            problem.rank,
            problem.weight,
            partial(_loss_sums, m, columns.fill, terms),
            self.n_threads,
            cache_mb * 1e6 / (8 * max(1, m)),  # columns are doubles
        )
        total = float(problem.weight.sum())
        psi = TruncatedObjective(
            rows, terms, total, self.C, columns.penalties, self.n_threads
        )
        return columns, psi, psi.at(np.zeros(psi.penalties.size), np.inf)

    def _columns(self, problem: Problem, choice: BasisChoice) -> _Columns:
        """Return the kernel values with the basis rows, as columns."""
        kernel, X, rows = self.kernel, problem.X, choice.rows
        if choice.way == "columns":
            return self._feature_columns(problem)
        penalties = np.ones(len(rows))
        if choice.way == "own":
            basis, support = rows, read_only_matrix(rows)
        elif kernel.by_number:
            basis, support = rows, read_only(dense(rows).astype(np.int64))
        else:
            basis = take(X, rows)
            support = read_only_matrix(basis)
        if self.every_row:
            # The penalty of a row written twice: two coefficients of half the size.
            penalties = 1 / problem.weight[rows]
        return _Columns(kernel_values(kernel, basis), penalties, support, np.asarray)

    def _feature_columns(self, problem: Problem) -> _Columns:
        """Return d columns for a linear kernel with every row in the basis."""
        features = ColumnFeatures(self.kernel, problem.n_features)
        squares = partial(Squares, features.double)
        rows = with_state(
            problem.X, problem.rank, problem.weight, squares, self.n_threads
        )
        (S,) = rows.sum("squares")
        R = root_of(S)
        return _Columns(
            combined(features.double, R),
            np.ones(R.shape[1]),
            read_only_matrix(features.support),
            lambda q: features.coefficients(R @ q),
        )


def _loss_sums(
    m: int,
    fill: Fill,
    terms: SharedTerms,
    X: Any,  # noqa: ANN401  (in memory or in chunks)
    rank: np.ndarray,
    weight: np.ndarray,
    room: int,
    n_threads: int,
) -> LossSums:
    """Return the state of some rows, which caches the columns of `room` rows."""
    columns = CachedColumns(X, m, fill, room, n_threads)
    return LossSums(columns, rank, weight, terms, n_threads)


register(
    Method(
        fit_tlssvor,
        name="tlssvor",
        estimator="TLSSVOR",
        accepts={"sparse"},
        grid={"C": COSTS, "gamma": GAMMAS},
    )
)
