"""Functions that fit NPSVOR; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args

import numpy as np  # noqa: F401  (resolves the hint of `rng`)

from .._input.checks import (
    can_be_listed,
    check_choice,
    check_count,
    check_factor,
    check_factor_or_zero,
    check_flag,
    listed,
    shown,
    with_suggestions,
)
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
from .._model.kernel_fit import Arguments, fit, fit_path, path_function
from .._model.labelled import MissingLabels, with_missing_labels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import COSTS, GAMMAS, Method, check_intervals, register
from ..kernels.functions import KernelName
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .admm import Npsvor, NpsvorAdmm, Parameters
from .model import NpsvorModel

_Solver: TypeAlias = Literal["smo", "admm"]
_Start: TypeAlias = NpsvorModel | float
Intercept: TypeAlias = Literal["multiplier", "average"]
_VARYING = ("C", "C2", "epsilon")  # what may differ between the points of a path


def _check_intercept(name: str, value: Any) -> str:  # noqa: ANN401  (checked here)
    """Return the value if it is a way to find an intercept."""
    check_choice(name, value, get_args(Intercept))
    return str(value)


# Options of ADMM, with the checks of their values
_ADMM: dict[str, Callable[[str, Any], Any]] = {
    "rho": check_factor,
    "e_abs": check_factor_or_zero,
    "e_rel": check_factor_or_zero,
    "polish": check_flag,
    "n_steps": check_count,
    "intercept": _check_intercept,
}


class AdmmArguments(TypedDict):
    """Arguments for solver="admm" only."""

    rho: float | None
    e_abs: float | None
    e_rel: float | None
    polish: bool | None
    n_steps: int | None
    intercept: Intercept | None


@preprocessed
def fit_npsvor(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    C2: float | None = None,
    epsilon: float = 0.2,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    solver: _Solver = "smo",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    normalize: bool = False,
    rho: float | None = None,
    e_abs: float | None = None,
    e_rel: float | None = None,
    polish: bool | None = None,
    n_steps: int | None = None,
    intercept: Intercept | None = None,
    basis: AnyBasis | None = None,
    start: _Start | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> NpsvorModel:
    """Fit NPSVOR: one hyperplane per rank.

    A row is predicted to have the rank of the nearest hyperplane. The docstring of
    `ordinal.npsvor` states the problem (P), its dual (D) and the bound (GAP).

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
    C2 : float > 0, default C
        Weight of margin violations of the rows of other ranks. The default is that of
        the paper, which searches one parameter for both.
    epsilon : float >= 0, default 0.2
        Half the width of the band around a hyperplane in which errors are free, in
        units of the margin. The paper recommends 0.1 to 0.3 and uses 0.2.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    solver : {"smo", "admm"}, default "smo"
        "smo" reaches the optimum to the tolerance `tol`. "admm" is the algorithm of the
        paper with its tolerances: at large C it stops far from the optimum, which acts
        as a regularisation and can improve predictions. The two then give different
        models; choose between them by cross-validation.
    tol : float > 0, default 1e-3
        Tolerance of solver="smo" on the violation of the optimality conditions, in
        units of f. The duality gap of a rank is then at most tol / 2 * sum (hi_i -
        lo_i). With `basis`, tolerance on the duality gap of a rank relative to the
        value of (P).
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
        diagonal and not decreasing away from it. C2 is multiplied by it. Default: 1 off
        the diagonal.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these
        have +inf in `decision_function` and are never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    normalize : bool, default False
        Whether to predict by the distances |f_k| / |w_k| instead of the values |f_k|,
        which the paper and the training problem compare. This makes a difference if the
        margins of the ranks differ much, for example with class weights or ranks of
        very unequal spread.
    rho : float > 0, default 1.0, ADMM only
        Penalty parameter of ADMM. Because ADMM stops early, the result depends on it.
    e_abs, e_rel : float >= 0, default 1e-2, ADMM only
        Absolute and relative tolerances of the stopping rules (19) and (20) of the
        paper.
    polish : bool, default False, ADMM only
        Whether to continue with SMO from the result of ADMM until the tolerance `tol`
        is reached.
    n_steps : int, optional, ADMM only
        Number of iterations after which a rank ends if it has not met the tolerances:
        early stopping, which regularises. It is a parameter to tune, like C, and a fit
        that ends so has the status "n_steps" and no warning. The program of the paper's
        authors takes 50. Default: iterate up to `max_iter`.
    intercept : {"multiplier", "average"}, default "multiplier", ADMM only
        Where the intercept of (9) comes from. "multiplier" is that of the constraint on
        the sum, "average" is what the complementarity conditions say on average over
        the rows strictly within their bounds. The two agree at the optimum, and can
        differ by more than the margin where ADMM stops early.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: K is replaced by a matrix of low rank that is exact
        at the basis rows. Values and default are those of `fit_svorim`. ADMM takes a
        number, a share of the trace of K or row numbers, chooses rows by a pivoted
        incomplete Cholesky factorisation, and needs 8 n bytes per basis row.
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
    max_iter : int, optional
        Limit per rank: on steps of SMO (default 10^7), on Newton steps per sample of
        the rows (with `basis`, default 200), or on iterations of ADMM (default 1000).
    max_time : float > 0, optional
        Time budget in seconds, checked some 25 times per second. When it is exhausted,
        the fit returns its best point so far, with a warning. A fit by SMO to the whole
        kernel matrix warns early if the budget will not suffice, as in `fit_svorim`.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` several times per second.
        If it returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    NpsvorModel
        Its `convergence` has one entry of `parts` per rank. For SMO, `violation` is
        that of the optimality conditions. For ADMM without `polish`, it is the larger
        of the residuals of (19) and (20), each divided by its tolerance, so that `tol`
        is 1; `gap` then bounds the distance to the optimum.

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        If the fit stopped before it reached the tolerance. The message names the reason
        and the remedy.

    See Also
    --------
    fit_npsvor_path : Fit NPSVOR at several values of C, C2 and epsilon.
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    ordinal.companions.fit_opbe : Fit OPBE: an ensemble of three-class SVORIM models,
        one per rank.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_npsvor(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.convergence.converged
    True
    """
    admm = shared_arguments(AdmmArguments, locals())
    family = _family("fit_npsvor", solver, cost, normalize, **admm)
    given = shared_arguments(Arguments, locals())
    return fit(family, X, y, _parameters(C, C2, epsilon), **given)


@with_suggestions
@with_missing_labels
def fit_npsvor_path(
    X: MatrixLike | Blocks,
    y: Labels | None,
    points: Sequence[Mapping[str, float]],
    *,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    solver: _Solver = "smo",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    normalize: bool = False,
    rho: float | None = None,
    e_abs: float | None = None,
    e_rel: float | None = None,
    polish: bool | None = None,
    n_steps: int | None = None,
    intercept: Intercept | None = None,
    basis: AnyBasis | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> list[NpsvorModel]:
    """Fit NPSVOR at several values of C, C2 and epsilon.

    The kernel matrix is computed once. ADMM factorises K + rho I once and iterates for
    all points and ranks together; SMO starts each point from the previous one.
    `max_time` and `callback` apply to the whole path.

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
    points : sequence of mappings
        Each has some of the keys "C", "C2" and "epsilon", with the defaults of
        `fit_npsvor`. Order them so that consecutive points are similar: the warm starts
        are then better.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    solver : {"smo", "admm"}, default "smo"
        "smo" reaches the optimum to the tolerance `tol`. "admm" is the algorithm of the
        paper with its tolerances: at large C it stops far from the optimum, which acts
        as a regularisation and can improve predictions. The two then give different
        models; choose between them by cross-validation.
    tol : float > 0, default 1e-3
        Tolerance of solver="smo" on the violation of the optimality conditions, in
        units of f. The duality gap of a rank is then at most tol / 2 * sum (hi_i -
        lo_i). With `basis`, tolerance on the duality gap of a rank relative to the
        value of (P).
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
        diagonal and not decreasing away from it. C2 is multiplied by it. Default: 1 off
        the diagonal.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these
        have +inf in `decision_function` and are never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    normalize : bool, default False
        Whether to predict by the distances |f_k| / |w_k| instead of the values |f_k|,
        which the paper and the training problem compare. This makes a difference if the
        margins of the ranks differ much, for example with class weights or ranks of
        very unequal spread.
    rho : float > 0, default 1.0, ADMM only
        Penalty parameter of ADMM. Because ADMM stops early, the result depends on it.
    e_abs, e_rel : float >= 0, default 1e-2, ADMM only
        Absolute and relative tolerances of the stopping rules (19) and (20) of the
        paper.
    polish : bool, default False, ADMM only
        Whether to continue with SMO from the result of ADMM until the tolerance `tol`
        is reached.
    n_steps : int, optional, ADMM only
        Number of iterations after which a rank ends if it has not met the tolerances:
        early stopping, which regularises. It is a parameter to tune, like C, and a fit
        that ends so has the status "n_steps" and no warning. The program of the paper's
        authors takes 50. Default: iterate up to `max_iter`.
    intercept : {"multiplier", "average"}, default "multiplier", ADMM only
        Where the intercept of (9) comes from. "multiplier" is that of the constraint on
        the sum, "average" is what the complementarity conditions say on average over
        the rows strictly within their bounds. The two agree at the optimum, and can
        differ by more than the margin where ADMM stops early.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: K is replaced by a matrix of low rank that is exact
        at the basis rows. Values and default are those of `fit_svorim`. ADMM takes a
        number, a share of the trace of K or row numbers, chooses rows by a pivoted
        incomplete Cholesky factorisation, and needs 8 n bytes per basis row.
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
    max_iter : int, optional
        Limit per rank: on steps of SMO (default 10^7), on Newton steps per sample of
        the rows (with `basis`, default 200), or on iterations of ADMM (default 1000).
    max_time : float > 0, optional
        Time budget in seconds, checked some 25 times per second. When it is exhausted,
        the fit returns its best point so far, with a warning. A fit by SMO to the whole
        kernel matrix warns early if the budget will not suffice, as in `fit_svorim`.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` several times per second.
        If it returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    list of NpsvorModel, one per point

    Raises
    ------
    ValueError, TypeError
        As in `fit_npsvor`.

    See Also
    --------
    fit_npsvor : Fit NPSVOR: one hyperplane per rank.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> path = [{"C": C} for C in (0.1, 1.0, 10.0)]
    >>> models = ordinal.fit_npsvor_path(X, y, path, solver="admm")
    >>> [model.convergence.converged for model in models]
    [True, True, True]
    """
    check_intervals(fit_npsvor_path, y)
    admm = shared_arguments(AdmmArguments, locals())
    family = _family("fit_npsvor_path", solver, cost, normalize, **admm)
    models, _ = fit_path(
        family, X, y, _points(points), **shared_arguments(Arguments, locals())
    )
    return models


def _family(
    function: str,
    solver: _Solver,
    cost: ArrayLike | None,
    normalize: bool,
    **admm: Unpack[AdmmArguments],
) -> Npsvor:
    """Return the method for a solver; options of ADMM that are not None are given."""
    check_choice("solver", solver, get_args(_Solver))
    normalize = check_flag("normalize", normalize)
    given = {name: value for name, value in admm.items() if value is not None}
    if solver == "smo":
        if given:
            raise ValueError(
                f"{', '.join(given)} must be left out with solver='smo': for "
                "solver='admm' only"
            )
        return Npsvor(function, cost, normalize)
    checked: dict[str, Any] = {
        name: check(name, given[name]) for name, check in _ADMM.items() if name in given
    }
    return NpsvorAdmm(function, cost, normalize, **checked)


def _points(points: Any) -> list[Parameters]:  # noqa: ANN401  (checked here)
    """Return the checked points of a path."""
    if not can_be_listed(points):
        raise TypeError(f"points must be a sequence of mappings, got {shown(points)}")
    checked = [_point(point) for point in points]
    if not checked:
        raise ValueError("points must hold at least one mapping")
    return checked


def _parameters(
    C: float = 1.0, C2: float | None = None, epsilon: float = 0.2
) -> Parameters:
    """Return the checked parameters of one point."""
    C = check_factor("C", C)
    C2 = C if C2 is None else check_factor("C2", C2)
    return Parameters(C, C2, check_factor_or_zero("epsilon", epsilon))


def _point(point: Any) -> Parameters:  # noqa: ANN401  (checked here)
    """Return the parameters of a mapping."""
    if not isinstance(point, Mapping):
        raise TypeError(f"points must hold mappings, got {shown(point)}")
    unknown = set(point) - set(_VARYING)
    if unknown:
        raise ValueError(
            f"points may set C, C2 and epsilon only, got {listed(list(unknown))}"
        )
    return _parameters(**point)


register(
    Method(
        fit_npsvor,
        name="npsvor",
        estimator="NPSVOR",
        own_rule="nearest",
        keeps_rule={"median"},
        accepts={"sparse"},
        variants={"npsvor": {}, "npsvor-admm": {"solver": "admm"}},
        grid={"C": COSTS, "gamma": GAMMAS},
        varying=_VARYING,
        fit_path=path_function(partial(_family, "fit_npsvor_path"), _parameters),
    )
)
