"""Functions that fit KDLOR; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Unpack

import numpy as np

from .._input.checks import check_count, check_factor
from .._input.problem import Problem
from .._input.types import (
    AnyBasis,
    ArrayLike,
    Blocks,
    ClassWeight,
    Gamma,
    Kernel,
    KernelName,
    Labels,
    Matrix,
    MatrixLike,
    Rng,
)
from .._model.basis import features_among, read
from .._model.folds import calibrate
from .._model.preparation import Callback, KernelCommon, prepare_with_kernel
from .._model.registry import GAMMAS, Method, register
from .._model.support import decisions
from .._rows.chunks import Reading
from ..kernels.functions import on_basis
from ..kernels.tiles import Products
from ..preprocessing.joined import Preprocess, preprocessed
from .model import KdlorModel
from .scatter import weighty
from .training import KdlorFit

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

    The module's docstring states (P), (D) and (GAP). O(n^3 / 3) multiplications and n^2
    doubles; with `basis` O(n m^2) in one pass over the rows, and m^2 doubles.

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
    ridge : float > 0, default 3e-3
        Ridge, as a part of the trace of the scatter of all rows. Larger ones give
        smoother scores: search 1e-5 to 1e-1.
    C : float > 0, default 1.0
        Of (P): the unit of the score, which changes no prediction.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        The rows that w is a sum of, for very many: a number of rows, drawn at random,
        of each rank its share, or chosen in a way that is named with it: ("kmeans++",
        300) or ("cholesky", 300). A share is the part of the trace of the kernel matrix
        of a sample that may be left out. "auto" is 100 rows, doubled until the error of
        rows held out falls no more. Or the (m, d) rows themselves. The default is every
        row; of a linear kernel, for 2000 rows or more and d <= min(n / 4, 1000), the
        unit vectors, which leave nothing out.
    tol : float > 0, default 1e-6
        Largest duality gap, relative to the objective. The method is exact: what is
        left is rounding, which is in proportion to 1 / ridge.
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice; with a basis that is drawn
        only if the same rows are. The sum must lie between 1e-50 and 1e50, and positive
        weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows, whose products are limited alike. With
        "balanced" every rank counts alike, however few its rows are, and the thresholds
        lie in the middle between the mean scores of neighbouring ranks.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    probability : bool, default False
        Also calibrate the link that `predict_proba` needs, on the scores of five more
        fits, each of which leaves out a fifth of the rows; on a basis of one fit, or of
        as many as it takes to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Draws those fifths, and the rows of a basis. Unused without both.
    n_threads : int, optional
        Number of threads for the fit's own loops and matrix products. Default:
        ORDINAL_NUM_THREADS or, without it, the processors that this process may use.
        No bit of the result depends on it (docs/guides/threads.md).
    max_iter : int, default 10 000
        Steps of the active set for (D); it takes about as many as there are ranks.
    max_time : float > 0, optional
        Seconds, looked at between blocks of every matrix; a fit that is late before it
        has its factorisation has a score of 0.
    callback : callable, optional
        Called with an `ordinal.State` before the factorisation and between the steps of
        the active set; a true value stops.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    KdlorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then. Or the
        kernel is not positive semi-definite.

    Warns
    -----
    ConvergenceWarning
        The fit, or one of those for `probability`, ended short of the tolerance; the
        message says why and what helps.

    See Also
    --------
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_tlssvor : Fit TLS-SVOR: truncated squared losses, robust against wrong labels.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_kdlor(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.threshold_names
    ('1|2', '2|3')
    >>> ordinal.fit_kdlor(X, y, basis=10).support.shape
    (10, 2)
    """
    return _fit(
        X, y, [ridge], C=C, basis=basis, max_iter=max_iter, kernel=kernel, gamma=gamma,
        tol=tol, classes=classes, sample_weight=sample_weight,
        class_weight=class_weight, rng=rng, probability=probability,
        n_threads=n_threads, max_time=max_time, callback=callback, verbose=verbose,
    )[0][0]  # fmt: skip


def _fit_path(
    X: MatrixLike | Blocks,
    y: Labels | None,
    points: Sequence[Mapping[str, float]],
    products: Products | None,
    X_test: Matrix | None,
    **options: Any,  # noqa: ANN401  (as of the fit)
) -> tuple[list[KdlorModel], Sequence[np.ndarray | None]]:
    """Return a model for the ridge of every point, from one kernel matrix, and the
    decision function of each for the rows of `X_test`, or None.
    """
    return _fit(X, y, [p["ridge"] for p in points], products, X_test, **options)


def _fit(
    X: MatrixLike | Blocks,
    y: Labels | None,
    ridges: Sequence[float],
    products: Products | None = None,
    X_test: Matrix | None = None,
    *,
    C: float,
    basis: AnyBasis | None,
    max_iter: int,
    **common: Unpack[KernelCommon],
) -> tuple[list[KdlorModel], Sequence[np.ndarray | None]]:
    """Return one model per ridge, as `_fit_path`."""
    ridges = [check_factor("ridge", u) for u in ridges]
    C, max_iter = check_factor("C", C), check_count("max_iter", max_iter)
    prepared = prepare_with_kernel(
        "fit_kdlor",
        X,
        y,
        Reading(on_basis(basis, common.get("kernel")), False, basis is not None),
        **common,
    )
    problem, kernel = prepared.problem, prepared.kernel
    choice = read(basis, kernel, problem)
    # before the folds are drawn, which change nothing of a model
    seed = 0 if choice is None else int(prepared.rng.integers(2**31))
    share = prepared.folds(few=choice is not None)
    with prepared.monitor as monitor, closing(problem):
        job = KdlorFit(kernel, C, max_iter, prepared.n_threads, monitor)
        features = None
        if choice is not None:
            features = job.features_in_time(choice, problem, ridges, seed)
        models = job.fit(problem, ridges, features, products)
        used = None if features is not None else [weighty(problem)] * len(models)
        f = decisions(models, used, problem.X, X_test)

        def of_fold(part: Problem, rows: np.ndarray) -> list[KdlorModel]:
            here = features
            if features is not None:
                here = features_among(
                    features, kernel, part.X, rows, prepared.n_threads
                )
            return job.fit(part, ridges, here)

        models = calibrate(models, problem, share, of_fold, monitor)
        monitor.conclude(models[-1].convergence)
    for model in models:
        model.convergence.warn_unless_converged("fit_kdlor", "take a basis")
    return models, f


register(
    Method(
        fit_kdlor,
        name="kdlor",
        estimator="KDLOR",
        accepts={"sparse"},
        grid={"ridge": _RIDGES, "gamma": GAMMAS},
        varying=("ridge",),
        fit_path=_fit_path,
    )
)
