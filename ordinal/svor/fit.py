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
    KernelName,
    Labels,
    MatrixLike,
    Rng,
)
from .._model.preparation import Callback
from .._model.registry import COSTS, GAMMAS, Method, register
from .._programs.fit import checked_cost, fit, path_function
from ..preprocessing.joined import Preprocess, preprocessed
from .family import Svor, SvorMethod, SvorModel


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

    The package's docstring states (P), (D) and (GAP); gamma is half of the paper's
    kappa.

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
        Largest violation of (KKT), in units of f; the paper's tau, and its value. On a
        basis the largest duality gap, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        cost[j, k] of predicting k for a row of rank j: zero diagonal, not falling away
        from it. Default |j - k|. The thresholds come out in order if its rows are
        convex; if not, and they do not, a `DisorderedThresholdsWarning` says so.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: f is a sum over basis rows only, so that (P) is solved among
        fewer functions, in O(n m^2) a step for m of them. A number of rows is drawn at
        random, of each rank its share, or chosen in a way that is named with it:
        ("kmeans++", 300) or ("cholesky", 300). A share is the part of the trace of the
        kernel matrix of a sample that may be left out. "auto" is 100 rows, doubled
        until the error of rows held out falls no more, or up to 4000 or a 16th of the
        rows (1000 at least), whichever is less. Or the (m, d) rows themselves. A basis
        wants a smaller gamma and a larger C than the whole kernel: search with it. The
        default is the whole kernel; of a linear one, for 2000 rows or more and
        d <= min(n / 4, 1000), the unit vectors, which leave nothing out.
    start : SvorModel, optional
        Begin at the duals of this model: of another C (they are scaled by the ratio),
        or of fewer rows (a row is known by its features, by its number if the kernel is
        precomputed). On a basis, at its scores. Changes the time a fit takes, and the
        result within `tol`.
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
        Pair steps; on a basis Newton steps for each sample of the rows, default 200.
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
    return fit(
        Svor("svorim", cost), X, y, checked_cost(C), start=start, basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip


@preprocessed
def fit_svorex(
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

    Twice as many margins as rows whatever the number of ranks, where SVORIM has r - 1
    times as many. Where a constraint on the order is active, two thresholds are equal
    and the rank between them is never predicted by them.

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
        Largest violation of (KKT), in units of f; the paper's tau, and its value. On a
        basis the largest duality gap, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        As in `fit_svorim`; default 1 off the diagonal. The order holds for any.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: f is a sum over basis rows only, so that (P) is solved among
        fewer functions, in O(n m^2) a step for m of them. A number of rows is drawn at
        random, of each rank its share, or chosen in a way that is named with it:
        ("kmeans++", 300) or ("cholesky", 300). A share is the part of the trace of the
        kernel matrix of a sample that may be left out. "auto" is 100 rows, doubled
        until the error of rows held out falls no more, or up to 4000 or a 16th of the
        rows (1000 at least), whichever is less. Or the (m, d) rows themselves. A basis
        wants a smaller gamma and a larger C than the whole kernel: search with it. The
        default is the whole kernel; of a linear one, for 2000 rows or more and
        d <= min(n / 4, 1000), the unit vectors, which leave nothing out.
    start : SvorModel, optional
        Begin at the duals of this model: of another C (they are scaled by the ratio),
        or of fewer rows (a row is known by its features, by its number if the kernel is
        precomputed). On a basis, at its scores. Changes the time a fit takes, and the
        result within `tol`.
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
        Pair steps; on a basis Newton steps for each sample of the rows, default 200.
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
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svorim`.

    Warns
    -----
    ConvergenceWarning
        As `fit_svorim`.

    See Also
    --------
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_redsvm : Fit REDSVM: SVORIM with the thresholds regularised as well.
    fit_shashua_levin : Fit the sum-of-margins method of Shashua and Levin.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorex(X, y, C=10.0)
    >>> model.disorder
    ()
    """
    return fit(
        Svor("svorex", cost), X, y, checked_cost(C), start=start, basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip


@preprocessed
def fit_shashua_levin(
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
    """Fit the sum-of-margins method of Shashua and Levin.

    SVOREX without the constraints: the thresholds may come out in disorder, which the
    model's `disorder` and a warning report. `predict` then still counts the thresholds
    that a score reaches. `fit_svorim` with the cost 1 off the diagonal is the same.

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
        Largest violation of (KKT), in units of f; the paper's tau, and its value. On a
        basis the largest duality gap, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        As in `fit_svorim`; default 1 off the diagonal.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: f is a sum over basis rows only, so that (P) is solved among
        fewer functions, in O(n m^2) a step for m of them. A number of rows is drawn at
        random, of each rank its share, or chosen in a way that is named with it:
        ("kmeans++", 300) or ("cholesky", 300). A share is the part of the trace of the
        kernel matrix of a sample that may be left out. "auto" is 100 rows, doubled
        until the error of rows held out falls no more, or up to 4000 or a 16th of the
        rows (1000 at least), whichever is less. Or the (m, d) rows themselves. A basis
        wants a smaller gamma and a larger C than the whole kernel: search with it. The
        default is the whole kernel; of a linear one, for 2000 rows or more and
        d <= min(n / 4, 1000), the unit vectors, which leave nothing out.
    start : SvorModel, optional
        Begin at the duals of this model: of another C (they are scaled by the ratio),
        or of fewer rows (a row is known by its features, by its number if the kernel is
        precomputed). On a basis, at its scores. Changes the time a fit takes, and the
        result within `tol`.
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
        Pair steps; on a basis Newton steps for each sample of the rows, default 200.
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
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svorim`.

    Warns
    -----
    ConvergenceWarning, DisorderedThresholdsWarning
        As `fit_svorim`.

    See Also
    --------
    fit_svorex : Fit SVOREX: margins at the two nearest thresholds, which are kept in
        order.
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.fit_shashua_levin(X, y, C=10.0).disorder
    ()
    """
    return fit(
        Svor("shashua_levin", cost), X, y, checked_cost(C), start=start,
        basis=basis, cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma,
        tol=tol, classes=classes, sample_weight=sample_weight,
        class_weight=class_weight, rng=rng, probability=probability,
        n_threads=n_threads, max_time=max_time, callback=callback, verbose=verbose,
    )  # fmt: skip


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

    The reduction of Li and Lin to one SVM on pairs (row, threshold), whose kernel is
    k(x, x') + [j = j']. With a cost of one's own it is SVM-EBC. The thresholds are
    unique, and in order where the rows of the cost are convex.

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
        Largest violation of (KKT), in units of f; the paper's tau, and its value. On a
        basis the largest duality gap, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        As in `fit_svorim`; default |j - k|.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: f is a sum over basis rows only, so that (P) is solved among
        fewer functions, in O(n m^2) a step for m of them. A number of rows is drawn at
        random, of each rank its share, or chosen in a way that is named with it:
        ("kmeans++", 300) or ("cholesky", 300). A share is the part of the trace of the
        kernel matrix of a sample that may be left out. "auto" is 100 rows, doubled
        until the error of rows held out falls no more, or up to 4000 or a 16th of the
        rows (1000 at least), whichever is less. Or the (m, d) rows themselves. A basis
        wants a smaller gamma and a larger C than the whole kernel: search with it. The
        default is the whole kernel; of a linear one, for 2000 rows or more and
        d <= min(n / 4, 1000), the unit vectors, which leave nothing out.
    start : SvorModel, optional
        Begin at the duals of this model: of another C (they are scaled by the ratio),
        or of fewer rows (a row is known by its features, by its number if the kernel is
        precomputed). On a basis, at its scores. Changes the time a fit takes, and the
        result within `tol`.
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
        Pair steps; on a basis Newton steps for each sample of the rows, default 200.
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
    SvorModel

    Raises
    ------
    ValueError, TypeError
        As `fit_svorim`.

    Warns
    -----
    ConvergenceWarning, DisorderedThresholdsWarning
        As `fit_svorim`.

    See Also
    --------
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_svmop : Fit SVMOP: one weighted support vector classifier per threshold.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.fit_redsvm(X, y, C=10.0).convergence.converged
    True
    """
    return fit(
        Svor("redsvm", cost), X, y, checked_cost(C), start=start, basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip


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
for _method, _function in _FITS.items():
    register(
        Method(
            _function,
            name=_method,
            estimator=_ESTIMATORS[_method],
            accepts={"sparse"},
            grid={"C": COSTS, "gamma": GAMMAS},
            varying=("C",),
            fit_path=path_function(partial(Svor, _method), checked_cost),
            rows_per_basis_row=5,  # tools/bench/large_search.py --only samples
        )
    )
