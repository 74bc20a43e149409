"""The model and the fit of GPOR; the docstring of the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

import numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from .._input.basis import BasisChoice, read_choice
from .._input.checks import (
    as_real_array,
    check_choice,
    check_count,
    check_entries,
    check_flag,
    check_positive,
    shown,
)
from .._input.fields import FINITE, NOT_NAN, POSITIVE, RISING, THRESHOLDS, Array
from .._input.immutable import read_only
from .._input.labels import ranks_of, read_labels
from .._input.problem import Problem, around_ranks
from .._input.types import (
    AnyBasis,
    ArrayLike,
    Blocks,
    Kernel,
    Labels,
    Matrix,
    MatrixLike,
    Rng,
    RowsLike,
)
from .._model.basis import enough_rows
from .._model.kernel_fit import read_only_matrix, support_rows
from .._model.labelled import MissingLabels
from .._model.model import read_for
from .._model.preparation import Callback, Common, Prepared, prepare, shared_arguments
from .._model.registry import Method, register
from .._model.support import finite_scores
from .._model.threshold_model import ThresholdModel, predicted
from .._numerics.cholesky import pivoted_cholesky
from .._numerics.lbfgs import Minimum
from .._numerics.rows import matmul, matvec, strips, take
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import Reading
from .._solvers import _ordinal_probit
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..kernels.basis_rows import chosen_rows, drawn
from ..kernels.functions import KernelFunction, KernelName, kernel_class
from ..kernels.tiles import Evaluator, diagonal_of, on_itself
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .covariance import ReadAgainError
from .evidence import Basis as FitcBasis
from .evidence import BasisRule, Evidence, Settings, basis_size, maximize

_KernelName: TypeAlias = KernelName | Literal["ard", "ard_linear"]
_ROWS = 1024  # rows predicted at a time
_SAMPLE = 8000  # least number of candidates for a basis by pivoted Cholesky


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GporModel(ThresholdModel):
    """Posterior of a latent function f, and thresholds on it.

    Attributes
    ----------
    inference : str
        "laplace" or "ep".
    support : (m, n_features) array or CSR
        Training rows, or basis rows of a fit with `basis`. For a precomputed kernel,
        the (m,) numbers of those rows.
    coef : (m,) array
        The latent mean at x is k(x, support) coef.
    root : (m, m) array
        The latent variance at x is k(x, x) - |root k(support, x)|^2.
    thresholds : (r - 1,) array
        Thresholds in units of f. They are -inf or +inf where no training rows lie
        beyond them, and equal on both sides of an inner rank without training rows,
        whose probability is 0.
    noise : float
        Standard deviation sigma of the noise, in units of f.
    log_evidence : float
        Objective in nats at the hyperparameters of the model, without the prior.
    classes : (r,) array
        Labels in rank order.
    kernel : callable
        Kernel with its learned parameters.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit. `primal` is minus the objective minus the log density of the
        prior, up to constants; `violation` is the largest partial derivative of
        `primal` by an entry of theta (with b_1 in units of c) or, for a search that
        ends by its expected gain (`tol`), that gain; `n_iter` counts evaluations over
        all starts. With optimize=False, or if the inference itself does not converge,
        `violation` and `tol` are those of the inference.
    """

    inference: Literal["ep", "laplace"]
    root: Annotated[np.ndarray, Array("f8", "m m"), FINITE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]
    noise: Annotated[float, FINITE, POSITIVE]
    log_evidence: Annotated[float, NOT_NAN]

    def relevance(self) -> np.ndarray:
        """Weight gamma of each feature in the kernel, (d,), in 1 / (unit)^2.

        The larger the weight, the faster the latent function changes along the feature.
        Weights of standardised features can be compared.

        Raises
        ------
        ValueError
            If the kernel has no weight per feature. Fit with kernel="ard" or
            "ard_linear" instead.
        """
        if (gamma := self.kernel.relevance) is None:
            raise ValueError(
                f"a {type(self.kernel).__name__} kernel has no relevance per "
                "feature: fit with kernel='ard' or 'ard_linear'"
            )
        return gamma

    def predict_latent(
        self, X: RowsLike, *, diagonal: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f(x), (16) or (17), without the noise.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).
        diagonal : (n,) array, for a precomputed kernel only
            Values k(x, x) of the rows, which are not in the matrix X.

        Returns
        -------
        (n,) array, (n,) array

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns (the Pearson kernel
            accepts NaN), or if `diagonal` is missing, or passed without a precomputed
            kernel.
        """
        X = read_for(self, X, missing=self.kernel.takes_missing)
        prior = self._prior_variance(X, diagonal)
        values = Evaluator(self.kernel, X, self.support)
        mean, known = np.empty(len(X)), np.empty(len(X))
        for rows in strips(len(X), _ROWS):
            K = np.empty((rows.stop - rows.start, len(self.support)))
            values.tile(rows, slice(None), K)
            with np.errstate(over="ignore", invalid="ignore"):  # seen by the checks
                mean[rows] = matvec(K, self.coef)
                explained = matmul(K, self.root.T)
                known[rows] = np.einsum("ij,ij->i", explained, explained)
        # Rounding may leave a negative number where the training rows determine f.
        var = np.maximum(prior - finite_scores(known), 1e-15 * prior)
        return finite_scores(mean), var

    def latent_covariance(self, X: MatrixLike) -> np.ndarray:
        """Return the covariance of f between rows, without the noise.

        Its diagonal is the variance of `predict_latent`. The other entries are needed
        for the standard error of a mean or a difference.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `predict_latent`, with the same errors.

        Returns
        -------
        (n, n) array

        Raises
        ------
        ValueError
            Also if the kernel is precomputed, because its values between these rows are
            not known.
        """
        if self.kernel.by_number:
            raise ValueError(
                "a precomputed kernel knows no covariance between rows of X: fit with "
                "a kernel of features"
            )
        X = read_for(self, X, missing=self.kernel.takes_missing)
        prior, K = np.empty((len(X), len(X))), np.empty((len(X), len(self.support)))
        Evaluator(self.kernel, X, X).tile(slice(None), slice(None), prior)
        Evaluator(self.kernel, X, self.support).tile(slice(None), slice(None), K)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            explained = matmul(K, self.root.T)
            return finite_scores(prior - matmul(explained, explained.T))

    def _prior_variance(self, X: Matrix, diagonal: ArrayLike | None) -> np.ndarray:
        if not self.kernel.by_number:
            if diagonal is not None:
                raise ValueError(
                    "diagonal is for a precomputed kernel only: leave it out"
                )
            return diagonal_of(self.kernel, X)
        if diagonal is None:
            raise ValueError(
                "diagonal must hold k(x, x) of the rows of X for a precomputed "
                "kernel, got None"
            )
        prior = as_real_array(diagonal, "diagonal", (len(X),), " as X")
        holds = np.isfinite(prior) & (prior >= 0)
        check_entries("diagonal", prior, holds, "be finite and >= 0")
        return prior

    def _log_proba(self, X: RowsLike, diagonal: ArrayLike | None) -> np.ndarray:
        """Return (n, r) logarithms of (18); -inf for a rank that had no rows."""
        mean, var = self.predict_latent(X, diagonal=diagonal)
        r = self.classes.size
        edges = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        has = np.flatnonzero(edges[1:] > edges[:-1])
        b = self.thresholds[has[:-1]]
        part = np.empty((len(mean), has.size))
        with np.errstate(over="ignore"):  # seen by the check
            width = np.concatenate([[np.inf], np.diff(b), [np.inf]])
            v = var + np.square(self.noise)
        _ordinal_probit.log_probability(mean, v, b, width, part, 1)
        finite_scores(part.max(axis=1))
        out = np.full((len(mean), r), -np.inf)
        out[:, has] = part
        return out

    def predict_proba(
        self,
        X: RowsLike,
        *,
        diagonal: ArrayLike | None = None,
        as_frame: bool = False,
    ) -> np.ndarray:
        """Return the probabilities of the ranks by (18).

        Parameters
        ----------
        X, diagonal : as for `predict_latent`, with the same errors
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array
            Rows sum to 1.
        """
        log_P = self._log_proba(X, diagonal)
        with np.errstate(under="ignore"):  # 0 is the probability of what is far away
            P = np.exp(log_P)
            return np.asarray(P / P.sum(axis=1, keepdims=True))

    def score_samples(
        self, X: RowsLike, y: Labels, *, diagonal: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the log predictive probability of given labels, (n,), in nats.

        Parameters
        ----------
        X, diagonal : as for `predict_latent`
        y : (n,) labels among `classes`
            Observed labels. The score of a rank without training rows is -inf.

        Raises
        ------
        ValueError, TypeError
            As in `predict_latent`, or if y holds other labels.
        """
        rank = ranks_of(read_labels(y, "y"), self.classes)
        log_P = self._log_proba(X, diagonal)
        if rank.size != len(log_P):
            raise ValueError(f"y has shape {rank.shape}, expected ({len(log_P)},) as X")
        return np.asarray(log_P[np.arange(rank.size), rank])

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["median", "mode", "cost"] | None = None,
        cost: ArrayLike | None = None,
        diagonal: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X, diagonal : as for `predict_latent`
        rule : {"median", "mode", "cost"}, optional
            Default: the `rule` of the model or, without one, "median". The median has
            the least expected absolute error and is the rank between whose thresholds
            the latent mean lies. On the data sets of the paper it also has fewer errors
            than the mode, the most probable rank, which the paper uses. "cost" is the
            rank of least expected cost.
        cost : (r, r) array-like, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default
            |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `predict_latent`; also if the rule is unknown, or if `cost` is passed
            with another rule or is not a finite (r, r) matrix.
        """
        return predicted(self, X, rule, cost, diagonal=diagonal)


@preprocessed
def fit_gpor(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    inference: Literal["ep", "laplace"] = "ep",
    kernel: _KernelName | Kernel = "rbf",
    optimize: bool = True,
    objective: Literal["evidence", "bound"] = "evidence",
    prior: Literal["weak"] | Mapping[str, Any] | None = "weak",
    basis: AnyBasis | None = None,
    n_restarts: int = 0,
    start: Mapping[str, Any] | None = None,
    tol: float = 1e-3,
    max_iter: int = 200,
    max_time: float | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    rng: Rng = 0,
    callback: Callback | None = None,
    verbose: bool = False,
) -> GporModel:
    """Fit GPOR: a Gaussian process with an ordinal likelihood.

    The docstring of `ordinal.gpor` states the model. Each of the 20 to 100 evaluations
    of the evidence that a fit takes costs O(n^3) operations, or O(n m^2) with m basis
    rows.

    Parameters
    ----------
    X : (n, d) array-like or CSR matrix
        Features, one row per observation; standardise them first, because kernels
        compare distances. CSR matrices are accepted with kernel="rbf" and "linear".
        With kernel="precomputed", X is the (n, n) kernel matrix. Only the kernel
        `kernels.Pearson` accepts missing values (NaN). With `basis`, X may also be a
        numpy.memmap or a source of chunks (docs/big_data.md), which every evaluation
        reads again.
    y : (n,) array-like, or None if X is a source of chunks
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    inference : {"ep", "laplace"}, default "ep"
        Gaussian approximation of the posterior. Expectation propagation matches
        moments; its evidence is more accurate. Laplace's method uses the curvature at
        the mode and takes a third of the time.
    kernel : str or callable, default "rbf"
        gamma of "rbf", "laplacian", "matern32" and "matern52" is learned, and so is
        gamma of each feature for "ard" and "ard_linear"; "linear" and "precomputed"
        have none. The parameters of a callable k(A, B), such as a kernel of
        `ordinal.kernels`, are not changed.
    optimize : bool, default True
        Whether to optimise the hyperparameters. If False, the posterior at the starting
        point is returned.
    objective : {"evidence", "bound"}, default "evidence"
        Objective that is maximised: the log evidence of the inference, (21) or log Z of
        EP, with its exact gradient; or, for EP, the variational bound (27) of the
        paper. The gradient (28)-(30) of the paper treats the posterior as constant and
        is therefore not the exact gradient of the bound, so that the search may end
        with status `stalled`.
    prior : "weak", mapping or None, default "weak"
        Prior of the hyperparameters, whose logs are normal and independent. A mapping
        gives (median, standard deviation of the log) for some of "gamma", "noise" and
        "gap" (the distances Delta of neighbouring thresholds); those that it does not
        name have a flat prior, and None is flat for all.

        The default "weak" prevents overfitting on a few dozen rows, above all a noise
        of almost 0. Its medians are the starting point of the paper: 1 / (2 d variance)
        for gamma, c for the noise and 2 c / r for the gaps, where c is the root of the
        mean of k(x, x), 1 for most kernels. The two ARD kernels use the variance of
        each feature, and "ard_linear" has 1 / (d mean square) for gamma. Its standard
        deviations 2, 0.5 and 2 had the lowest errors on three data sets of the paper in
        5 and 10 bins.
    basis : int, float in (0, 1], "auto", (way, int), row numbers or rows, optional
        Basis rows of the FITC approximation, which is meant for more than a few
        thousand rows.

        * int or float: this many rows, or this share of the rows, chosen by a pivoted
          Cholesky factorisation of the kernel at the starting point; candidates are
          max(8000, 10 m) rows drawn at random.
        * ("random", 300): rows drawn at random and stratified by rank.
        * ("kmeans++", 300): each row drawn with a probability proportional to its
          squared distance, in the kernel at the starting point, from the nearest row
          drawn before it.
        * ("cholesky", 300): each row drawn with a probability proportional to the part
          of its kernel value that the rows drawn before it do not explain.
        * "auto": 100 random rows, doubled while the hold-out error decreases.
        * row numbers, which need positive weights, or (m, d) rows.

        The fit then needs memory for n m doubles, or `cache_mb` if that is less;
        without a basis it needs 3.2 n^2 doubles.
    n_restarts : int >= 0, default 0
        Number of further searches from random starting points drawn from the prior. The
        best result of all searches is returned.
    start : mapping, optional
        Starting point of the search: a mapping with some of the keys "gamma" (a number,
        or (d,) for ARD), "noise" and "thresholds" ((r - 1,), increasing). Default: the
        starting point of the paper, which is the medians of the weak prior and b_1 =
        -c. Noise and thresholds must be within a factor of 1e20 of c.
    tol : float > 0, default 1e-3
        Tolerance on the partial derivatives of the objective by the entries of theta,
        in nats. Because theta holds logs, 1e-3 is far below the statistical uncertainty
        of the hyperparameters. Theta holds the lowest threshold and the widths above
        it, so that reversed ranks give mirrored models only up to `tol`. On a basis, a
        search that began on samples (`max_iter`) ends instead when a further
        quasi-Newton step is expected to gain no more than `tol` nats. So does one of
        more than 10 hyperparameters, after as many steps. A gain of 1e-3 corresponds to
        about a twentieth of the standard errors of the hyperparameters.
    max_iter : int, default 200
        Limit on the number of quasi-Newton steps. It applies separately to the search
        on all rows and to those on samples, with which fits of many rows begin: samples
        of n / 2, n / 4, ... rows down to 250 or, with m basis rows, of n / 4, n / 16,
        ... rows down to max(250, 4 m).
    max_time : float > 0, optional
        Time budget in seconds, checked before every evaluation of the evidence and,
        half a second after it is exhausted, within an evaluation. The fit then returns
        the best model of the search, with a warning: that of the largest sample
        (`max_iter`) if no evaluation on all rows was completed and, without samples,
        one with the latent mean found so far and the variance of the prior.
    sample_weight : (n,) array-like, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice. With
        inference="ep", weights must be 0 or at least 1, because EP is not defined for a
        fraction of a row. Their sum must not exceed 1e50, nor the ratio of two positive
        weights 1e15.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; their
        probability is 0.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        With `basis`, memory for the n m features, in 10^6 bytes. Features that do not
        fit are computed again in every pass over the rows. The result does not depend
        on it.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the starting points of `n_restarts` and
        the rows of `basis`.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` after every step, and
        about ten times a second within one. If it returns a true value, the fit stops,
        as after `max_time`.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    GporModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.
    MemoryError
        If the machine has less memory than the fit needs. The message says how much
        that is, and how much a fit with `basis` needs.

    Warns
    -----
    ConvergenceWarning
        If the search or the inference stopped before it reached its tolerance. The
        message names the reason and the remedy.

    See Also
    --------
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_pom : Fit a cumulative link model by maximum likelihood, such as proportional
        odds.
    conformal : Calibrate prediction sets of neighbouring ranks around a fitted model.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_gpor(X[::3], y[::3])
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> mean, variance = model.predict_latent([[15.0, 15.0]])
    >>> bool(model.thresholds[0] < mean[0] < model.thresholds[1])
    True
    """
    _check_inference(inference, objective)
    optimize = check_flag("optimize", optimize)
    max_iter = check_count("max_iter", max_iter)
    n_restarts = check_count("n_restarts", n_restarts, 0)
    cache_mb = check_positive("cache_mb", cache_mb)
    known = kernel_class(kernel)
    by_number, missing = known.by_number, known.takes_missing
    reading = Reading(
        basis is not None, remote=False, missing=missing, whole=by_number or missing
    )
    given = shared_arguments(Common, locals())
    prepared = prepare(
        "fit_gpor", X, y, reading, by_scale=known.compares_units, **given
    )
    if by_number and isinstance(prepared.problem, ChunkedProblem):
        raise ValueError(
            "kernel must not be 'precomputed' where X is read in chunks: pass "
            "features and the name of a kernel"
        )
    choice = None if basis is None else _read_basis(basis, prepared.problem, kernel)
    # The grace period lets an inference end that is nearly done.
    limited = not (max_time is None and callback is None)
    late = partial(prepared.monitor.over, Monitor.GRACE) if limited else None
    settings = Settings(
        kernel, inference, objective, prior, start, prepared.n_threads, late, cache_mb
    )

    def fit(part: Problem, basis: FitcBasis | None, n_restarts: int) -> GporModel:
        part = _prepared_for(part, basis)
        with closing(Evidence(part, basis, settings)) as evidence:
            search = n_restarts, prepared.rng, tol, max_iter, prepared.monitor
            found, n_iter = maximize(evidence, *search) if optimize else (None, 1)
            return _model(evidence, found, n_iter, replace(prepared, problem=part))

    with prepared.monitor, _source_errors():
        if isinstance(choice, BasisChoice) and choice.way == "auto":
            seed = int(prepared.rng.integers(2**31))

            def fit_on(part: Problem, tried: BasisChoice) -> GporModel:
                # Without restarts: trial models are only compared with each other.
                return fit(part, _rule_of(tried, np.random.default_rng(seed)), 0)

            of_rows = known() if known.by_number else None
            choice = enough_rows(prepared.problem, of_rows, fit_on, seed)
        if isinstance(choice, BasisChoice):
            choice = _rule_of(choice, prepared.rng)
        model = fit(prepared.problem, choice, n_restarts)
        prepared.monitor.conclude(model)
    return model


def _check_inference(inference: Any, objective: Any) -> None:
    check_choice("inference", inference, ("ep", "laplace"))
    check_choice("objective", objective, ("evidence", "bound"))
    if objective == "bound" and inference != "ep":
        raise ValueError(
            "objective='bound' is for inference='ep' only, got "
            f"inference={shown(inference)}"
        )


def _read_basis(basis: Any, problem: Problem, kernel: Any) -> FitcBasis | BasisChoice:
    """Return the checked argument `basis`, either rows or a way to draw them."""
    n, d = problem.n_samples, problem.n_features
    positive = int(np.count_nonzero(problem.weight > 0))
    choice = read_choice(basis, n, d, share_of=positive)
    by_number = kernel_class(kernel).by_number
    if by_number and choice.way in ("own", "auto"):
        raise ValueError("basis must be a count or row numbers with precomputed")
    if choice.way in ("own", "numbers"):
        rows: np.ndarray = choice.rows
        return rows
    if not isinstance(basis, numbers.Real):
        return choice
    if by_number:
        return choice.m
    return BasisRule(min(choice.m, positive), partial(_pivots, choice.m))


def _prepared_for(problem: Problem, basis: FitcBasis | None) -> Problem:
    """Return a problem whose rows `Evidence` can read.

    For rows in chunks the moments of the columns are computed or, if all rows are the
    basis, the rows are read into memory.
    """
    if not isinstance(problem, ChunkedProblem):
        return problem
    n = int(np.count_nonzero(problem.weight > 0))
    if basis_size(basis, n) < n:
        return problem.with_moments()
    return problem.part(np.arange(problem.n_samples))


@contextmanager
def _source_errors() -> Iterator[None]:
    """Raise the error of a source in place of the `ReadAgainError` that wraps it."""
    try:
        yield
    except ReadAgainError as caught:
        raise caught.error from None


def _pivots(
    m: int, kernel: KernelFunction, X: Any, rank: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Choose m rows by pivoted Cholesky among candidates that are drawn at random."""
    rng = np.random.default_rng(0)
    # Among all rows, each pivot would cost a pass over them.
    numbers = drawn(np.arange(rank.size), rank, max(_SAMPLE, 10 * m), rng)
    S = take(X, numbers)
    tile = on_itself(kernel, S, 1).tile
    return np.asarray(numbers[pivoted_cholesky(diagonal_of(kernel, S), tile, m)[1]])


def _rule_of(choice: BasisChoice, rng: np.random.Generator) -> BasisRule:
    """Return the rule that draws basis rows as `choice` says."""

    def select(
        kernel: KernelFunction, X: Any, rank: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        return chosen_rows(choice, kernel, partial(take, X), rank, weight, rng)[0]

    return BasisRule(choice.m, select)


def _model(
    evidence: Evidence, found: Minimum | None, n_iter: int, prepared: Prepared
) -> GporModel:
    """Return the model at the minimum `found`, or at the start without a search."""
    problem = prepared.problem
    theta = evidence.hyper.begin if found is None else found.x
    monitor = prepared.monitor
    with monitor.stage("the model"):
        made, late = evidence.model_fields(theta)
    posterior, like = made.posterior, made.like
    thresholds = around_ranks(
        like.b, np.flatnonzero(problem.present), problem.n_classes
    )
    here = posterior.converged and np.array_equal(made.theta, theta)
    if found is not None and here and np.isfinite(found.value):
        status, violation = found.status, found.violation
    elif late and posterior.converged:
        status, violation = monitor.cut_short, made.violation
    else:
        short = monitor.cut_short if late else Status.STALLED
        status = Status.CONVERGED if here else short
        violation, monitor = posterior.violation, prepared.monitor.to_tol(posterior.tol)
    own = len(made.rows.shape) == 2
    return GporModel(
        inference=evidence.inference,
        support=(
            read_only_matrix(made.rows)
            if own
            else support_rows(made.kernel, problem.X, np.asarray(made.rows))
        ),
        coef=read_only(made.coef),
        root=read_only(made.root),
        thresholds=read_only(thresholds),
        noise=like.noise,
        log_evidence=posterior.objective,
        kernel=made.kernel,
        **problem.model_fields(),
        convergence=monitor.record(status, n_iter, violation, made.value),
    )


register(
    Method(
        fit_gpor,
        name="gpor",
        estimator="GPOR",
        probabilities=True,
        accepts={"sparse", "intervals"},
        variants={
            "gpor-laplace": {"inference": "laplace"},
            "gpor-ep": {"inference": "ep"},
        },
    )
)
