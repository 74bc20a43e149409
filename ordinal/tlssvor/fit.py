"""Functions that fit TLS-SVOR; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from .._input.basis import BasisChoice, read_choice
from .._input.checks import check_factor, check_real, check_share
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
from .._model.basis import enough_rows
from .._model.kernel_fit import (
    Arguments,
    Family,
    KernelOptions,
    Solver,
    basis_choice,
    fit,
    read_only_matrix,
)
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import BOTH_RULES, COSTS, GAMMAS, Method, register
from .._model.threshold_model import ScoreModel
from .._numerics.rows import dense, take
from .._rows.columns import with_state
from .._watch.cancellation import OutOfTime
from ..kernels.basis_rows import chosen_rows
from ..kernels.features import ColumnFeatures
from ..kernels.functions import KernelFunction, KernelName
from ..kernels.tiles import Products
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
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
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
        place, elsewhere, as in a notebook, one line every ten seconds.

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
    given = shared_arguments(Arguments, locals())
    return fit(TlsSvor(u, eta), X, y, C, **given)


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
class TlsSvor(Family[float, TlsSvorModel]):
    """TLS-SVOR with its options; a point is its C."""

    u: float
    eta: float
    name = "fit_tlssvor"

    def basis(
        self,
        basis: AnyBasis | None,
        kernel: KernelFunction,
        problem: Problem,
        start: object,
    ) -> BasisChoice | None:
        """Return how the basis is chosen; None for every row of positive weight."""
        if basis is None:
            return basis_choice(None, kernel, problem)
        n = int(np.count_nonzero(problem.weight > 0))
        choice = read_choice(basis, problem.n_samples, problem.n_features, share_of=n)
        if choice.way == "own" and kernel.by_number:
            raise ValueError("basis must be a count or row numbers with precomputed")
        if choice.m > n:
            raise ValueError(
                f"basis must be at most {n}, the rows of positive weight, got "
                f"{choice.m}"
            )
        return choice

    def drawn(
        self,
        choice: BasisChoice,
        options: KernelOptions,
        problem: Problem,
        point: float,
        rng: np.random.Generator,
    ) -> BasisChoice:
        """Return the choice with its rows drawn: numbers, if they are rows of X."""
        if choice.way == "auto":
            seed = int(rng.integers(2**31))

            def trial(part: Problem, tried: BasisChoice) -> TlsSvorModel:
                own = np.random.default_rng(seed)
                drawn = self.drawn(tried, options, part, point, own)
                return TlsSvorSolver(self, options, drawn, part).fit(point)[0]

            choice = enough_rows(problem, options.kernel, trial, seed)
        if choice.way in ("numbers", "own", "columns"):
            return choice
        rows, _ = chosen_rows(
            choice,
            options.kernel,
            partial(take, problem.X),
            problem.rank,
            problem.weight,
            rng,
            options.n_threads,
        )
        return BasisChoice("numbers", rows=rows)

    def solver(
        self,
        options: KernelOptions,
        choice: BasisChoice | None,
        problem: Problem,
        point: float,
        start: object,
        products: Products | None,
    ) -> TlsSvorSolver:
        """Return the solver on a basis whose rows are drawn already."""
        if choice is not None:
            return TlsSvorSolver(self, options, choice, problem)
        # The penalty of a row of weight v is w_h^2 / v, so that 0 is not possible.
        every = BasisChoice("numbers", rows=np.flatnonzero(problem.weight > 0))
        # A fit to the whole kernel matrix keeps all of it.
        options = replace(options, cache_mb=np.inf)
        return TlsSvorSolver(self, options, every, problem, every_row=True)


class TlsSvorSolver(Solver[float, TlsSvorModel]):
    """Solver of TLS-SVOR on a basis whose rows are drawn already.

    `every_row` is whether these are all rows of positive weight.
    """

    def __init__(
        self,
        family: TlsSvor,
        options: KernelOptions,
        choice: BasisChoice,
        problem: Problem,
        *,
        every_row: bool = False,
    ):
        super().__init__(options.monitor)
        self.family, self.options = family, options
        self.choice, self.problem, self.every_row = choice, problem, every_row

    def restricted_to(
        self, problem: Problem, rows: np.ndarray, start: TlsSvorModel | None = None
    ) -> TlsSvorSolver:
        """Return the solver of a problem of these training rows."""
        choice = self.choice
        if choice.way == "numbers":
            here = np.flatnonzero(np.isin(rows, choice.rows))
            choice = BasisChoice("numbers", rows=here)
        return TlsSvorSolver(
            self.family, self.options, choice, problem, every_row=self.every_row
        )

    def fit(self, point: float) -> tuple[TlsSvorModel, np.ndarray | None]:
        """Return the model of one C, and the numbers of its support rows."""
        problem, family, monitor = self.problem, self.family, self._monitor
        present, choice = np.flatnonzero(problem.present), self.choice
        try:
            with monitor.stage("kernel matrix"), monitor.limited():
                columns, psi, begin = self._prepared(point, choice)
        except OutOfTime:  # without columns the score is 0, and thresholds take no time
            choice = BasisChoice("numbers", rows=np.empty(0, np.intp))
            columns, psi, begin = self._prepared(point, choice)
        max_iter = cast(int, self.options.max_iter)  # the fit has a default for it
        end, status, n_iter = minimize(psi, begin, family.u, max_iter, monitor)
        T = present.size - 1
        model = TlsSvorModel(
            support=columns.support,
            coef=read_only(columns.coef(end.x[T:])),
            thresholds=read_only(around_ranks(end.x[:T], present, problem.n_classes)),
            C=point,
            u=family.u,
            eta=family.eta,
            kernel=self.options.kernel,
            **problem.model_fields(),
            link=None,
            convergence=monitor.record(status, n_iter, end.violation, end.value),
        )
        return model, choice.rows if self.every_row else None

    def _prepared(
        self, C: float, choice: BasisChoice
    ) -> tuple[_Columns, TruncatedObjective, TlsPoint]:
        """Return the columns, psi, and its point x = 0 for u = inf."""
        problem, n_threads = self.problem, self.options.n_threads
        columns = self._columns(choice)
        m = columns.penalties.size
        terms = SharedTerms.from_problem(problem, self.family.eta)
        rows = with_state(
            problem.X,
            problem.rank,
            problem.weight,
            partial(_loss_sums, m, columns.fill, terms),
            n_threads,
            self.options.cache_mb * 1e6 / (8 * max(1, m)),  # columns are doubles
        )
        total = float(problem.weight.sum())
        psi = TruncatedObjective(rows, terms, total, C, columns.penalties, n_threads)
        return columns, psi, psi.at(np.zeros(psi.penalties.size), np.inf)

    def _columns(self, choice: BasisChoice) -> _Columns:
        """Return the kernel values with the basis rows, as columns."""
        kernel, rows = self.options.kernel, choice.rows
        if choice.way == "columns":
            return self._feature_columns()
        penalties = np.ones(len(rows))
        if choice.way == "own":
            basis, support = rows, read_only_matrix(rows)
        elif kernel.by_number:
            basis, support = rows, read_only(dense(rows).astype(np.int64))
        else:
            basis = take(self.problem.X, rows)
            support = read_only_matrix(basis)
        if self.every_row:
            # The penalty of a row written twice: two coefficients of half the size.
            penalties = 1 / self.problem.weight[rows]
        return _Columns(kernel_values(kernel, basis), penalties, support, np.asarray)

    def _feature_columns(self) -> _Columns:
        """Return d columns for a linear kernel with every row in the basis."""
        problem, n_threads = self.problem, self.options.n_threads
        features = ColumnFeatures(self.options.kernel, problem.n_features)
        squares = partial(Squares, features.double)
        rows = with_state(problem.X, problem.rank, problem.weight, squares, n_threads)
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
        own_rule="threshold",
        keeps_rule=BOTH_RULES,
        accepts={"sparse"},
        grid={"C": COSTS, "gamma": GAMMAS},
    )
)
