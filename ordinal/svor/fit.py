"""Functions that fit the SVOR family; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np  # noqa: F401  (resolves the hint of `rng`)

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
from .._model.kernel_fit import Arguments, Family, checked_cost, fit, path_function
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import BOTH_RULES, COSTS, GAMMAS, Content, Method, register
from ..kernels.functions import KernelName
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .family import Svor, SvorMethod, SvorModel
from .sum_of_margins import Margin, shashua_levin


@preprocessed
def fit_svorim(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    basis: AnyBasis | None = None,
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

    The docstring of `ordinal.svor` states the problem (P), its dual (D) and the bound
    (GAP). `gamma` of the RBF kernel is half of kappa in the paper.

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
    C : float > 0, default 1.0
        Weight of margin violations: a small C regularises more. The papers search 1e-3
        to 1e3.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    tol : float > 0, default 1e-3
        Tolerance on the violation of the optimality conditions, in units of f; tau in
        the paper, with the same value. With `basis`, tolerance on the duality gap
        relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    cost : (r, r) array-like, optional
        cost[j, k] is the cost of predicting rank k for a row of rank j; 0 on the
        diagonal and not decreasing away from it. Default |j - k|. If its rows are
        convex, the thresholds are in order. Otherwise they may not be; a
        `DisorderedThresholdsWarning` then says so.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: f becomes a sum over m basis rows, and a step of
        the solver takes O(n m^2) operations instead of using the (n, n) kernel matrix.

        * int: this many rows, drawn at random and stratified by rank.
        * (way, int): this many rows, chosen by the way "random", "kmeans++" or
          "cholesky".
        * float: as many rows as needed to leave out at most this share of the trace of
          the kernel matrix of a sample.
        * "auto": 100 rows, doubled while the hold-out error decreases, up to the
          smaller of 4000 and max(n / 16, 1000).
        * row numbers, or the (m, d) rows themselves.

        With a basis the best gamma is smaller and the best C larger than with the whole
        kernel, so tune both with the basis that you use. Default: the whole kernel
        matrix; for a linear kernel with n >= 2000 and d <= min(n / 4, 1000) the d unit
        vectors, which is exact.
    start : SvorModel, optional
        Warm start from the dual variables of this model, which may have been fitted
        with another C (the variables are scaled by the ratio) or on fewer rows (matched
        by their features, or by their numbers if the kernel is precomputed). With
        `basis`, from its scores. This changes the time of the fit, and the result only
        within `tol`.
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
    cache_mb : float > 0, default 1000
        Memory for cached rows of the kernel matrix in single precision, in 10^6 bytes;
        the default holds the whole matrix of 15 800 rows. With `basis`, memory for
        cached features, which are stored in 16 instead of 32 bits if those of all rows
        do not fit otherwise. What is not cached is computed again at every step.
    max_iter : int, default 10^7
        Limit on the number of steps, each of which changes two dual variables. With
        `basis`, limit on the number of Newton steps per sample of the rows, 200 by
        default.
    max_time : float > 0, optional
        Time budget in seconds, checked some 25 times per second. When it is exhausted,
        the fit returns its best point so far, with a warning; if that happens while the
        kernel matrix is being computed, this is the starting point. A fit to the whole
        kernel matrix estimates its total time after the first second and warns at once
        if the budget will not suffice; use `basis="auto"` for such problems. With
        `basis`, a fit that is interrupted early returns the model of a sample of the
        rows, whose `convergence` has no duality gap.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` several times per second.
        If it returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    SvorModel

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
        If thresholds are out of order; the attribute `disorder` of the model lists
        them.

    See Also
    --------
    fit_svorex : Fit SVOREX: margins at the two nearest thresholds, which are kept in
        order.
    fit_npsvor : Fit NPSVOR: one hyperplane per rank.
    fit_gpor : Fit GPOR: a Gaussian process with an ordinal likelihood.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.
    compare : Compare methods by cross-validation.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorim(X, y, C=10.0, probability=True)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.threshold_names
    ('1|2', '2|3')
    >>> ordinal.fit_svorim(X, y, C=10.0, basis=10).support.shape
    (10, 2)
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    given = shared_arguments(Arguments, locals())
    return fit(Svor("svorim", cost), X, y, checked_cost(C), **given)


@preprocessed
def fit_svorex(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 10.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    basis: AnyBasis | None = None,
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
    """Fit SVOREX: margins at the two nearest thresholds, which are kept in order.

    A row has at most two margins, whatever the number of ranks, whereas it has r - 1 in
    SVORIM. Where a constraint on the order is active, two thresholds are equal, and the
    rank between them is never predicted. The docstring of `ordinal.svor` states the
    problem.

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
    C : float > 0, default 10.0
        Weight of margin violations: a small C regularises more. The papers search 1e-3
        to 1e3. With 1, the MAE on 4 of 19 data sets is above that of `fit_pom` by more
        than two standard errors where it is not with the best C; with 10, on one.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    tol : float > 0, default 1e-3
        Tolerance on the violation of the optimality conditions, in units of f; tau in
        the paper, with the same value. With `basis`, tolerance on the duality gap
        relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    cost : (r, r) array-like, optional
        As in `fit_svorim`, but 1 off the diagonal by default. The thresholds are in
        order for any cost.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: f becomes a sum over m basis rows, and a step of
        the solver takes O(n m^2) operations instead of using the (n, n) kernel matrix.

        * int: this many rows, drawn at random and stratified by rank.
        * (way, int): this many rows, chosen by the way "random", "kmeans++" or
          "cholesky".
        * float: as many rows as needed to leave out at most this share of the trace of
          the kernel matrix of a sample.
        * "auto": 100 rows, doubled while the hold-out error decreases, up to the
          smaller of 4000 and max(n / 16, 1000).
        * row numbers, or the (m, d) rows themselves.

        With a basis the best gamma is smaller and the best C larger than with the whole
        kernel, so tune both with the basis that you use. Default: the whole kernel
        matrix; for a linear kernel with n >= 2000 and d <= min(n / 4, 1000) the d unit
        vectors, which is exact.
    start : SvorModel, optional
        Warm start from the dual variables of this model, which may have been fitted
        with another C (the variables are scaled by the ratio) or on fewer rows (matched
        by their features, or by their numbers if the kernel is precomputed). With
        `basis`, from its scores. This changes the time of the fit, and the result only
        within `tol`.
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
    cache_mb : float > 0, default 1000
        Memory for cached rows of the kernel matrix in single precision, in 10^6 bytes;
        the default holds the whole matrix of 15 800 rows. With `basis`, memory for
        cached features, which are stored in 16 instead of 32 bits if those of all rows
        do not fit otherwise. What is not cached is computed again at every step.
    max_iter : int, default 10^7
        Limit on the number of steps, each of which changes two dual variables. With
        `basis`, limit on the number of Newton steps per sample of the rows, 200 by
        default.
    max_time : float > 0, optional
        Time budget in seconds, checked some 25 times per second. When it is exhausted,
        the fit returns its best point so far, with a warning; if that happens while the
        kernel matrix is being computed, this is the starting point. A fit to the whole
        kernel matrix estimates its total time after the first second and warns at once
        if the budget will not suffice; use `basis="auto"` for such problems. With
        `basis`, a fit that is interrupted early returns the model of a sample of the
        rows, whose `convergence` has no duality gap.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` several times per second.
        If it returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As in `fit_svorim`.

    Warns
    -----
    ConvergenceWarning
        As in `fit_svorim`.

    See Also
    --------
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    ordinal.companions.fit_shashua_levin : Fit the fixed-margin method of Shashua and
        Levin.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorex(X, y, C=10.0)
    >>> model.disorder
    ()
    """
    given = shared_arguments(Arguments, locals())
    return fit(Svor("svorex", cost), X, y, checked_cost(C), **given)


@preprocessed
def fit_shashua_levin(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    margin: Margin = "fixed",
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    basis: AnyBasis | None = None,
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
    """Fit the fixed-margin method of Shashua and Levin.

    With margin="fixed", all thresholds have the same margin. The method is SVOREX
    without constraints on the order of the thresholds. They may be out of order, which
    a warning and the attribute `disorder` of the model report; `predict` then still
    counts the thresholds that a score reaches. `fit_svorim` with a cost of 1 off the
    diagonal gives the same model.

    With margin="sum", every threshold has a margin of its own, and their sum is
    maximised for directions of length 1. The thresholds are in order. The docstring of
    `ordinal.svor.sum_of_margins` states the problem (S) and its dual (T).

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
    C : float > 0, default 1.0
        Weight of margin violations: a small C regularises more. The papers search 1e-3
        to 1e3. With margin="sum", C times the weight of the lowest and of the highest
        rank must be at least 1; from 1 on, ranks that a direction separates are
        separated without violations.
    margin : {"fixed", "sum"}, default "fixed"
        The policy: the same margin at all thresholds, or a margin at each threshold,
        of which the sum counts. "sum" fits the whole kernel matrix, and takes neither
        `cost` nor `basis` nor `start`.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    tol : float > 0, default 1e-3
        Tolerance on the violation of the optimality conditions, in units of f; tau in
        the paper, with the same value. With `basis`, tolerance on the duality gap
        relative to the value of (P). With margin="sum", relative to the sum of the
        margins.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    cost : (r, r) array-like, optional
        As in `fit_svorim`, but 1 off the diagonal by default.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: f becomes a sum over m basis rows, and a step of
        the solver takes O(n m^2) operations instead of using the (n, n) kernel matrix.

        * int: this many rows, drawn at random and stratified by rank.
        * (way, int): this many rows, chosen by the way "random", "kmeans++" or
          "cholesky".
        * float: as many rows as needed to leave out at most this share of the trace of
          the kernel matrix of a sample.
        * "auto": 100 rows, doubled while the hold-out error decreases, up to the
          smaller of 4000 and max(n / 16, 1000).
        * row numbers, or the (m, d) rows themselves.

        With a basis the best gamma is smaller and the best C larger than with the whole
        kernel, so tune both with the basis that you use. Default: the whole kernel
        matrix; for a linear kernel with n >= 2000 and d <= min(n / 4, 1000) the d unit
        vectors, which is exact.
    start : SvorModel, optional
        Warm start from the dual variables of this model, which may have been fitted
        with another C (the variables are scaled by the ratio) or on fewer rows (matched
        by their features, or by their numbers if the kernel is precomputed). With
        `basis`, from its scores. This changes the time of the fit, and the result only
        within `tol`.
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
    cache_mb : float > 0, default 1000
        Memory for cached rows of the kernel matrix in single precision, in 10^6 bytes;
        the default holds the whole matrix of 15 800 rows. With `basis`, memory for
        cached features, which are stored in 16 instead of 32 bits if those of all rows
        do not fit otherwise. What is not cached is computed again at every step.
    max_iter : int, default 10^7
        Limit on the number of steps, each of which changes two dual variables. With
        `basis`, limit on the number of Newton steps per sample of the rows, 200 by
        default.
    max_time : float > 0, optional
        Time budget in seconds, checked some 25 times per second. When it is exhausted,
        the fit returns its best point so far, with a warning; if that happens while the
        kernel matrix is being computed, this is the starting point. A fit to the whole
        kernel matrix estimates its total time after the first second and warns at once
        if the budget will not suffice; use `basis="auto"` for such problems. With
        `basis`, a fit that is interrupted early returns the model of a sample of the
        rows, whose `convergence` has no duality gap.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` several times per second.
        If it returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As in `fit_svorim`. With margin="sum" also if C is too small for a finite
        optimum, or so large that no direction has a margin.

    Warns
    -----
    ConvergenceWarning, DisorderedThresholdsWarning
        As in `fit_svorim`.

    See Also
    --------
    ordinal.fit_svorex : Fit SVOREX: margins at the two nearest thresholds, which are
        kept in order.
    ordinal.fit_svorim : Fit SVORIM: every row has a margin at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.companions.fit_shashua_levin(X, y, C=10.0).disorder
    ()
    >>> model = ordinal.companions.fit_shashua_levin(X, y, C=0.05, margin="sum")
    >>> model.margins.shape
    (2,)
    """
    given = shared_arguments(Arguments, locals())
    return fit(shashua_levin(cost, margin), X, y, checked_cost(C), **given)


@preprocessed
def fit_redsvm(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    basis: AnyBasis | None = None,
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

    This is the reduction of Li and Lin to one SVM on pairs (row, threshold) with the
    kernel k(x, x') + [j = j']. With another `cost` it is known as SVM-EBC. The
    thresholds are unique, and in order if the rows of the cost are convex. The
    docstring of `ordinal.svor` states the problem.

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
    C : float > 0, default 1.0
        Weight of margin violations: a small C regularises more. The papers search 1e-3
        to 1e3.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    tol : float > 0, default 1e-3
        Tolerance on the violation of the optimality conditions, in units of f; tau in
        the paper, with the same value. With `basis`, tolerance on the duality gap
        relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    cost : (r, r) array-like, optional
        As in `fit_svorim`.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: f becomes a sum over m basis rows, and a step of
        the solver takes O(n m^2) operations instead of using the (n, n) kernel matrix.

        * int: this many rows, drawn at random and stratified by rank.
        * (way, int): this many rows, chosen by the way "random", "kmeans++" or
          "cholesky".
        * float: as many rows as needed to leave out at most this share of the trace of
          the kernel matrix of a sample.
        * "auto": 100 rows, doubled while the hold-out error decreases, up to the
          smaller of 4000 and max(n / 16, 1000).
        * row numbers, or the (m, d) rows themselves.

        With a basis the best gamma is smaller and the best C larger than with the whole
        kernel, so tune both with the basis that you use. Default: the whole kernel
        matrix; for a linear kernel with n >= 2000 and d <= min(n / 4, 1000) the d unit
        vectors, which is exact.
    start : SvorModel, optional
        Warm start from the dual variables of this model, which may have been fitted
        with another C (the variables are scaled by the ratio) or on fewer rows (matched
        by their features, or by their numbers if the kernel is precomputed). With
        `basis`, from its scores. This changes the time of the fit, and the result only
        within `tol`.
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
    cache_mb : float > 0, default 1000
        Memory for cached rows of the kernel matrix in single precision, in 10^6 bytes;
        the default holds the whole matrix of 15 800 rows. With `basis`, memory for
        cached features, which are stored in 16 instead of 32 bits if those of all rows
        do not fit otherwise. What is not cached is computed again at every step.
    max_iter : int, default 10^7
        Limit on the number of steps, each of which changes two dual variables. With
        `basis`, limit on the number of Newton steps per sample of the rows, 200 by
        default.
    max_time : float > 0, optional
        Time budget in seconds, checked some 25 times per second. When it is exhausted,
        the fit returns its best point so far, with a warning; if that happens while the
        kernel matrix is being computed, this is the starting point. A fit to the whole
        kernel matrix estimates its total time after the first second and warns at once
        if the budget will not suffice; use `basis="auto"` for such problems. With
        `basis`, a fit that is interrupted early returns the model of a sample of the
        rows, whose `convergence` has no duality gap.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` several times per second.
        If it returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As in `fit_svorim`.

    Warns
    -----
    ConvergenceWarning, DisorderedThresholdsWarning
        As in `fit_svorim`.

    See Also
    --------
    ordinal.fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_svmop : Fit SVMOP: one weighted support vector classifier per threshold.
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.companions.fit_redsvm(X, y, C=10.0).convergence.converged
    True
    """
    given = shared_arguments(Arguments, locals())
    return fit(Svor("redsvm", cost), X, y, checked_cost(C), **given)


_FITS: dict[SvorMethod, Callable[..., SvorModel]] = {
    "svorim": fit_svorim,
    "svorex": fit_svorex,
    "shashua_levin": fit_shashua_levin,
    "redsvm": fit_redsvm,
}


_ESTIMATORS: dict[SvorMethod, str] = {
    "svorim": "SVORIM",
    "svorex": "SVOREX",
    "shashua_levin": "ShashuaLevin",
    "redsvm": "REDSVM",
}
_FAMILIES: dict[SvorMethod, Callable[..., Family[float, SvorModel]]] = {
    "svorim": partial(Svor, "svorim"),
    "svorex": partial(Svor, "svorex"),
    "shashua_levin": shashua_levin,
    "redsvm": partial(Svor, "redsvm"),
}
# The margins of the others end at the thresholds next to a row's rank.
_INTERVALS: dict[SvorMethod, tuple[Content, ...]] = {
    "svorim": ("intervals",),
    "redsvm": ("intervals",),
}
for _method, _function in _FITS.items():
    register(
        Method(
            _function,
            name=_method,
            estimator=_ESTIMATORS[_method],
            own_rule="threshold",
            keeps_rule=BOTH_RULES,
            accepts={"sparse", *_INTERVALS.get(_method, ())},
            grid={"C": COSTS, "gamma": GAMMAS},
            varying=("C",),
            fit_path=path_function(_FAMILIES[_method], checked_cost),
            # samples of fewer rows chose other points of a grid, measured on covtype
            rows_per_basis_row=5,
        )
    )
