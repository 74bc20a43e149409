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
    KernelName,
    Labels,
    MatrixLike,
    Rng,
)
from .._model.preparation import Callback
from .._model.registry import COSTS, GAMMAS, Method, register
from .._programs.fit import fit, path_function
from ..preprocessing.joined import Preprocess, preprocessed
from .family import Parameters, Svm, SvmMethod, Thresholds
from .model import Decomposition, SvmModel, SvrModel

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
    one-vs-rest classifiers. The module's docstring states (P), (D) and (GAP).

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN marks a missing value, which only `kernels.Pearson` takes. `predict`
        finds the columns of a data frame by their names. With `basis` or a linear
        kernel also a source of chunks (`ordinal.data`) or a numpy.memmap, whose rows
        are read in every pass and need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks; the papers search 1e-3 to 1e3.
    decomposition : {"one_vs_one", "one_vs_all"}, default "one_vs_one"
        A problem for each pair of ranks, on their rows alone, or one for each rank, on
        all rows. The former are smaller, and LIBSVM's choice.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    tol : float > 0, default 1e-3
        Largest violation of (KKT), in units of f; LIBSVM's epsilon, and its value. On a
        basis the largest duality gap of a problem, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: replace K by a matrix of low rank that is exact at the basis
        rows, which are chosen as for `fit_svorim`, whose default it is, too.
    probability : bool, default False
        Also calibrate the link that `predict_proba` needs, on the scores of five more
        fits, each of which leaves out a fifth of the rows; on a basis of one fit, or of
        as many as it takes to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths, and samples of the rows for a fit on a basis. Unused
        without both.
    n_threads : int, optional
        Number of threads for the fit's own loops and matrix products. Default:
        ORDINAL_NUM_THREADS or, without it, the processors that this process may use.
        No bit of the result depends on it (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows. On a
        basis for features of 32 bits, or of 16 where those of all rows do not fit;
        others are computed at every step.
    max_iter : int, default 10^7
        Pair steps of a problem; on a basis its Newton steps for each sample of the
        rows, default 200.
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K: a fit
        that is late before it has these ends where it begins. On a basis that is the
        model of a sample of the rows, whose `convergence` knows no gap. A fit to the
        whole kernel that the rate of its first second shows to need far more time
        warns then, and goes on; `basis="auto"` is for such problems.
    callback : callable, optional
        Function that is called with an `ordinal.State` several times a second; a true
        value stops the fit.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    SvmModel
        The `parts` of its `convergence` are one a hyperplane.

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The fit, or one of those for `probability`, ended short of the tolerance; the
        message says why and what helps.

    See Also
    --------
    fit_cssvc : Fit CSSVC: one cost-sensitive support vector classifier per rank.
    fit_svmop : Fit SVMOP: one weighted support vector classifier per threshold.
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svc(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.decision_function(X[:2]).shape  # the pairs (1, 2), (1, 3), (2, 3)
    (2, 3)
    >>> model.convergence.converged
    True
    """
    model: SvmModel = fit(
        _family("svc", decomposition=decomposition), X, y, _parameters(C), basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip
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

    The module's docstring states (R), (RD) and (GAP).

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN marks a missing value, which only `kernels.Pearson` takes. `predict`
        finds the columns of a data frame by their names. With `basis` or a linear
        kernel also a source of chunks (`ordinal.data`) or a numpy.memmap, whose rows
        are read in every pass and need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks; the papers search 1e-3 to 1e3.
    epsilon : float >= 0, default 0.1
        Half width of the band around a rank in which errors are free, in units of
        ranks. The papers fix 0.1.
    thresholds : {"rounded", "fitted"}, default "rounded"
        "rounded" predicts the nearest of the ranks that have training rows. "fitted"
        cuts the scores where the mean absolute error of the ranks of the training rows,
        or their mean cost, is least.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    tol : float > 0, default 1e-3
        Largest violation of (KKT), in units of f; LIBSVM's epsilon, and its value. On a
        basis the largest duality gap of a problem, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        cost[j, k] of predicting k for a row of rank j: zero diagonal, not falling away
        from it. Fitted thresholds minimise it, and the rule "cost" of `predict` takes
        it; the score is without. Default |j - k|.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: replace K by a matrix of low rank that is exact at the basis
        rows, which are chosen as for `fit_svorim`, whose default it is, too.
    probability : bool, default False
        Also calibrate the link that `predict_proba` needs, on the scores of five more
        fits, each of which leaves out a fifth of the rows; on a basis of one fit, or of
        as many as it takes to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths, and samples of the rows for a fit on a basis. Unused
        without both.
    n_threads : int, optional
        Number of threads for the fit's own loops and matrix products. Default:
        ORDINAL_NUM_THREADS or, without it, the processors that this process may use.
        No bit of the result depends on it (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows. On a
        basis for features of 32 bits, or of 16 where those of all rows do not fit;
        others are computed at every step.
    max_iter : int, default 10^7
        Pair steps of a problem; on a basis its Newton steps for each sample of the
        rows, default 200.
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K: a fit
        that is late before it has these ends where it begins. On a basis that is the
        model of a sample of the rows, whose `convergence` knows no gap. A fit to the
        whole kernel that the rate of its first second shows to need far more time
        warns then, and goes on; `basis="auto"` is for such problems.
    callback : callable, optional
        Function that is called with an `ordinal.State` several times a second; a true
        value stops the fit.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    SvrModel
        `decision_function` is a rank as a number, 0 for the lowest of `classes`.

    Raises
    ------
    ValueError, TypeError
        As `fit_svc`.

    Warns
    -----
    ConvergenceWarning
        As `fit_svc`.

    See Also
    --------
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_svc : Fit a support vector classifier, which ignores the order of the ranks.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svr(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [20.0, 10.0]])
    array([1, 3])
    >>> model.thresholds
    array([0.5, 1.5])
    """
    model: SvrModel = fit(
        _family("svr", cost=cost, thresholds=thresholds), X, y,
        _parameters(C, epsilon), basis=basis, cache_mb=cache_mb, max_iter=max_iter,
        kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip
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

    Rows of other ranks are weighted by their distance from the rank. The module's
    docstring states (P), (D) and (GAP).

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN marks a missing value, which only `kernels.Pearson` takes. `predict`
        finds the columns of a data frame by their names. With `basis` or a linear
        kernel also a source of chunks (`ordinal.data`) or a numpy.memmap, whose rows
        are read in every pass and need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks; the papers search 1e-3 to 1e3.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    tol : float > 0, default 1e-3
        Largest violation of (KKT), in units of f; LIBSVM's epsilon, and its value. On a
        basis the largest duality gap of a problem, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        cost[j, k] of predicting k for a row of rank j: zero diagonal, not falling away
        from it. Rows of rank j weigh in proportion to it in the problem of rank k,
        where only its ratios matter. Default |j - k|.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: replace K by a matrix of low rank that is exact at the basis
        rows, which are chosen as for `fit_svorim`, whose default it is, too.
    probability : bool, default False
        Also calibrate the link that `predict_proba` needs, on the scores of five more
        fits, each of which leaves out a fifth of the rows; on a basis of one fit, or of
        as many as it takes to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths, and samples of the rows for a fit on a basis. Unused
        without both.
    n_threads : int, optional
        Number of threads for the fit's own loops and matrix products. Default:
        ORDINAL_NUM_THREADS or, without it, the processors that this process may use.
        No bit of the result depends on it (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows. On a
        basis for features of 32 bits, or of 16 where those of all rows do not fit;
        others are computed at every step.
    max_iter : int, default 10^7
        Pair steps of a problem; on a basis its Newton steps for each sample of the
        rows, default 200.
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K: a fit
        that is late before it has these ends where it begins. On a basis that is the
        model of a sample of the rows, whose `convergence` knows no gap. A fit to the
        whole kernel that the rate of its first second shows to need far more time
        warns then, and goes on; `basis="auto"` is for such problems.
    callback : callable, optional
        Function that is called with an `ordinal.State` several times a second; a true
        value stops the fit.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    SvmModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svc`.

    Warns
    -----
    ConvergenceWarning
        As `fit_svc`.

    See Also
    --------
    fit_svc : Fit a support vector classifier, which ignores the order of the ranks.
    fit_svmop : Fit SVMOP: one weighted support vector classifier per threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_cssvc(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    """
    model: SvmModel = fit(
        _family("cssvc", cost=cost), X, y, _parameters(C), basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip
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

    The module's docstring states (P), (D) and (GAP).

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN marks a missing value, which only `kernels.Pearson` takes. `predict`
        finds the columns of a data frame by their names. With `basis` or a linear
        kernel also a source of chunks (`ordinal.data`) or a numpy.memmap, whose rows
        are read in every pass and need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks; the papers search 1e-3 to 1e3.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    tol : float > 0, default 1e-3
        Largest violation of (KKT), in units of f; LIBSVM's epsilon, and its value. On a
        basis the largest duality gap of a problem, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        As in `fit_cssvc`; rows of rank j weigh in proportion to the cost of the nearest
        rank of the other side. Default |j - k|.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: replace K by a matrix of low rank that is exact at the basis
        rows, which are chosen as for `fit_svorim`, whose default it is, too.
    probability : bool, default False
        Also calibrate the link that `predict_proba` needs, on the scores of five more
        fits, each of which leaves out a fifth of the rows; on a basis of one fit, or of
        as many as it takes to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths, and samples of the rows for a fit on a basis. Unused
        without both.
    n_threads : int, optional
        Number of threads for the fit's own loops and matrix products. Default:
        ORDINAL_NUM_THREADS or, without it, the processors that this process may use.
        No bit of the result depends on it (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows. On a
        basis for features of 32 bits, or of 16 where those of all rows do not fit;
        others are computed at every step.
    max_iter : int, default 10^7
        Pair steps of a problem; on a basis its Newton steps for each sample of the
        rows, default 200.
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K: a fit
        that is late before it has these ends where it begins. On a basis that is the
        model of a sample of the rows, whose `convergence` knows no gap. A fit to the
        whole kernel that the rate of its first second shows to need far more time
        warns then, and goes on; `basis="auto"` is for such problems.
    callback : callable, optional
        Function that is called with an `ordinal.State` several times a second; a true
        value stops the fit.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    SvmModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svc`.

    Warns
    -----
    ConvergenceWarning
        As `fit_svc`.

    See Also
    --------
    fit_cssvc : Fit CSSVC: one cost-sensitive support vector classifier per rank.
    fit_redsvm : Fit REDSVM: SVORIM with the thresholds regularised as well.
    fit_nnor : Fit NNOR: a neural network with one output per threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svmop(X, y, C=10.0, probability=True)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    model: SvmModel = fit(
        _family("svmop", cost=cost), X, y, _parameters(C), basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip
    return model


_FITS: dict[SvmMethod, Callable[..., Any]] = {
    "svc": fit_svc,
    "svr": fit_svr,
    "cssvc": fit_cssvc,
    "svmop": fit_svmop,
}
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


_ESTIMATORS: dict[SvmMethod, str] = {
    "svc": "OrdinalSVC",
    "svr": "OrdinalSVR",
    "cssvc": "CSSVC",
    "svmop": "SVMOP",
}
for _method, _function in _FITS.items():
    register(
        Method(
            _function,
            name=_method,
            estimator=_ESTIMATORS[_method],
            accepts={"sparse"},
            variants={"svc": {}, "svc-1va": {"decomposition": "one_vs_all"}}
            if _method == "svc"
            else {},
            grid={"C": COSTS, "gamma": GAMMAS},
            varying=_VARYING if _method == "svr" else ("C",),
            fit_path=path_function(partial(_family, _method), _parameters),
            rows_per_basis_row=5,  # tools/bench/large_search.py --only samples
        )
    )
