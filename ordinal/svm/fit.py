"""Functions that fit support vector machines; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np  # noqa: F401  (resolves the hint of `rng`)

from .._input.checks import check_choice, check_factor, check_factor_or_zero
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
from .._model.kernel_fit import Arguments, fit, path_function
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import BOTH_RULES, COSTS, GAMMAS, Method, register
from ..kernels.functions import KernelName
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .family import (
    Decomposition,
    Parameters,
    Svm,
    SvmMethod,
    SvmModel,
    SvrModel,
    Thresholds,
)

_Division: TypeAlias = Literal["one_vs_one", "one_vs_all"]
_VARYING = ("C", "epsilon")  # what may differ between the points of a path


@preprocessed
def fit_svc(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    decomposition: Literal["one_vs_one", "one_vs_all"] = "one_vs_one",
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    basis: AnyBasis | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvmModel:
    """Fit a support vector classifier, which ignores the order of the ranks.

    It predicts by the votes of one-vs-one classifiers, or by the largest value of
    one-vs-rest classifiers. The docstring of `ordinal.svm` states the problem (P), its
    dual (D) and the bound (GAP).

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
    decomposition : {"one_vs_one", "one_vs_all"}, default "one_vs_one"
        One problem per pair of ranks, on the rows of these two, or one problem per
        rank, on all rows. The default has the smaller problems and is the choice of
        LIBSVM.
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
        Tolerance on the violation of the optimality conditions, in units of f; epsilon
        in LIBSVM, with the same value. With `basis`, tolerance on the duality gap of a
        problem relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
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
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: K is replaced by a matrix of low rank that is exact
        at the basis rows. Values and default are those of `fit_svorim`.
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
        Limit on the number of steps per problem, each of which changes two dual
        variables. With `basis`, limit on the number of Newton steps per sample of the
        rows, 200 by default.
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
    SvmModel
        Its `convergence` has one entry of `parts` per hyperplane.

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        If the fit, or one of the fits for `probability`, stopped before it reached the
        tolerance. The message names the reason and the remedy.

    See Also
    --------
    fit_cssvc : Fit CSSVC: one cost-sensitive support vector classifier per rank.
    fit_svmop : Fit SVMOP: one weighted support vector classifier per threshold.
    ordinal.fit_svorim : Fit SVORIM: every row has a margin at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_svc(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.decision_function(X[:2]).shape  # the pairs (1, 2), (1, 3), (2, 3)
    (2, 3)
    >>> model.convergence.converged
    True
    """
    given = shared_arguments(Arguments, locals())
    model: SvmModel = fit(
        _family("svc", decomposition=decomposition), X, y, _parameters(C), **given
    )
    return model


@preprocessed
def fit_svr(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    epsilon: float = 0.1,
    thresholds: Literal["rounded", "fitted"] = "rounded",
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
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvrModel:
    """Fit support vector regression to the ranks as numbers.

    The docstring of `ordinal.svm` states the problem (R), its dual (RD) and the bound
    (GAP).

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
    epsilon : float >= 0, default 0.1
        Half the width of the band around a rank in which errors are free, in units of
        ranks. The papers use 0.1.
    thresholds : {"rounded", "fitted"}, default "rounded"
        "rounded" predicts the nearest of the ranks that have training rows. "fitted"
        places the thresholds where the mean absolute error of the training rows, or
        their mean cost, is least.
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
        Tolerance on the violation of the optimality conditions, in units of f; epsilon
        in LIBSVM, with the same value. With `basis`, tolerance on the duality gap of a
        problem relative to the value of (P).
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
        diagonal and not decreasing away from it. thresholds="fitted" minimises it, and
        rule="cost" of `predict` uses it; the score f does not depend on it, and with
        rounded thresholds it must be symmetric. Default |j - k|.
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
        Approximation for many rows: K is replaced by a matrix of low rank that is exact
        at the basis rows. Values and default are those of `fit_svorim`.
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
        Limit on the number of steps per problem, each of which changes two dual
        variables. With `basis`, limit on the number of Newton steps per sample of the
        rows, 200 by default.
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
    SvrModel
        Its `decision_function` returns ranks as real numbers, 0 for the lowest of
        `classes`.

    Raises
    ------
    ValueError, TypeError
        As in `fit_svc`.

    Warns
    -----
    ConvergenceWarning
        As in `fit_svc`.

    See Also
    --------
    ordinal.fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_svc : Fit a support vector classifier, which ignores the order of the ranks.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_svr(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [20.0, 10.0]])
    array([1, 3])
    >>> model.thresholds
    array([0.5, 1.5])
    """
    given = shared_arguments(Arguments, locals())
    model: SvrModel = fit(
        _family("svr", cost=cost, thresholds=thresholds),
        X,
        y,
        _parameters(C, epsilon),
        **given,
    )
    return model


@preprocessed
def fit_cssvc(
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
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvmModel:
    """Fit CSSVC: one cost-sensitive support vector classifier per rank.

    Rows of other ranks are weighted by their distance from the rank. The docstring of
    `ordinal.svm` states the problem (P), its dual (D) and the bound (GAP).

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
        Tolerance on the violation of the optimality conditions, in units of f; epsilon
        in LIBSVM, with the same value. With `basis`, tolerance on the duality gap of a
        problem relative to the value of (P).
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
        diagonal and not decreasing away from it. In the problem of rank k, the weights
        of rows of rank j grow with it, as `ordinal.svm` says; only ratios matter.
        Default |j - k|.
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
        Approximation for many rows: K is replaced by a matrix of low rank that is exact
        at the basis rows. Values and default are those of `fit_svorim`.
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
        Limit on the number of steps per problem, each of which changes two dual
        variables. With `basis`, limit on the number of Newton steps per sample of the
        rows, 200 by default.
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
    SvmModel

    Raises
    ------
    ValueError, TypeError
        As in `fit_svc`.

    Warns
    -----
    ConvergenceWarning
        As in `fit_svc`.

    See Also
    --------
    fit_svc : Fit a support vector classifier, which ignores the order of the ranks.
    fit_svmop : Fit SVMOP: one weighted support vector classifier per threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_cssvc(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    """
    given = shared_arguments(Arguments, locals())
    model: SvmModel = fit(_family("cssvc", cost=cost), X, y, _parameters(C), **given)
    return model


@preprocessed
def fit_svmop(
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
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> SvmModel:
    """Fit SVMOP: one weighted support vector classifier per threshold.

    The docstring of `ordinal.svm` states the problem (P), its dual (D) and the bound
    (GAP).

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
        Tolerance on the violation of the optimality conditions, in units of f; epsilon
        in LIBSVM, with the same value. With `basis`, tolerance on the duality gap of a
        problem relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    cost : (r, r) array-like, optional
        As in `fit_cssvc`, but the weights of rows of rank j grow with the cost of the
        nearest rank on the other side of the threshold. Default |j - k|.
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
        Approximation for many rows: K is replaced by a matrix of low rank that is exact
        at the basis rows. Values and default are those of `fit_svorim`.
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
        Limit on the number of steps per problem, each of which changes two dual
        variables. With `basis`, limit on the number of Newton steps per sample of the
        rows, 200 by default.
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
    SvmModel

    Raises
    ------
    ValueError, TypeError
        As in `fit_svc`.

    Warns
    -----
    ConvergenceWarning
        As in `fit_svc`.

    See Also
    --------
    fit_cssvc : Fit CSSVC: one cost-sensitive support vector classifier per rank.
    fit_redsvm : Fit REDSVM: SVORIM with the thresholds regularised as well.
    fit_nnor : Fit NNOR: a neural network with one output per threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_svmop(X, y, C=10.0, probability=True)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    given = shared_arguments(Arguments, locals())
    model: SvmModel = fit(_family("svmop", cost=cost), X, y, _parameters(C), **given)
    return model


_DECOMPOSITIONS: dict[SvmMethod, Decomposition | None] = {
    "svr": None,
    "cssvc": "one_vs_all",
    "svmop": "ordered",
}


def _family(
    method: SvmMethod,
    *,
    decomposition: _Division | None = None,
    cost: ArrayLike | None = None,
    thresholds: Thresholds = "rounded",
) -> Svm:
    """Return the method with its own options, checked."""
    check_choice("thresholds", thresholds, get_args(Thresholds))
    if method != "svc":
        return Svm(method, _DECOMPOSITIONS[method], cost, thresholds)
    check_choice("decomposition", decomposition, get_args(_Division))
    return Svm(method, decomposition)


def _parameters(C: float, epsilon: float = 0.0) -> Parameters:
    """Return the checked parameters of one point."""
    return Parameters(check_factor("C", C), check_factor_or_zero("epsilon", epsilon))


_ESTIMATORS: dict[SvmMethod, tuple[Callable[..., Any], str]] = {
    "svc": (fit_svc, "OrdinalSVC"),
    "svr": (fit_svr, "OrdinalSVR"),
    "cssvc": (fit_cssvc, "CSSVC"),
    "svmop": (fit_svmop, "SVMOP"),
}
_KEEPS = {"svr": frozenset[str](), "cssvc": frozenset({"mode"})}
_VARIANTS = {"svc": {"svc": {}, "svc-1va": {"decomposition": "one_vs_all"}}}
for _method, (_function, _estimator) in _ESTIMATORS.items():
    register(
        Method(
            _function,
            name=_method,
            estimator=_estimator,
            own_rule="threshold" if _method == "svr" else "largest",
            keeps_rule=_KEEPS.get(_method, BOTH_RULES),
            accepts={"sparse"},
            variants=_VARIANTS.get(_method, {}),
            grid={"C": COSTS, "gamma": GAMMAS},
            varying=_VARYING if _method == "svr" else ("C",),
            fit_path=path_function(partial(_family, _method), _parameters),
            # samples of fewer rows chose other points of a grid, measured on covtype
            rows_per_basis_row=5,
        )
    )
