"""Functions that fit NPSVOR; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np  # noqa: F401  (resolves the hint of `rng`)

from .._input.checks import (
    can_be_listed,
    check_choice,
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
    KernelName,
    Labels,
    MatrixLike,
    Rng,
)
from .._model.preparation import Callback
from .._model.registry import COSTS, GAMMAS, Method, register
from .._programs.fit import fit, fit_path, path_function
from ..preprocessing.joined import Preprocess, preprocessed
from .admm import Npsvor, NpsvorAdmm, Parameters
from .model import NpsvorModel

_Solver: TypeAlias = Literal["smo", "admm"]
_VARYING = ("C", "C2", "epsilon")  # what may differ between the points of a path
# Options of ADMM, with the checks of their values
_ADMM = {
    "rho": check_factor,
    "e_abs": check_factor_or_zero,
    "e_rel": check_factor_or_zero,
    "polish": check_flag,
}


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
    preprocess: Preprocess | None = None,
    normalize: bool = False,
    rho: float | None = None,
    e_abs: float | None = None,
    e_rel: float | None = None,
    polish: bool | None = None,
    basis: AnyBasis | None = None,
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
    C2 : float > 0, default C
        Weight of a margin violation on the other ranks' hyperplanes. One parameter
        is what the paper searches.
    epsilon : float >= 0, default 0.2
        Half width of the band around a hyperplane, in units of its margin. The paper
        finds 0.1 to 0.3 good and fixes 0.2.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    solver : {"smo", "admm"}, default "smo"
        "smo" reaches the optimum to `tol`, on a basis by proximal points. "admm" is
        the paper's algorithm with the paper's tolerances: at large C it ends far from
        the optimum, which regularises and can predict better. The two are then two
        models; choose by validation.
    tol : float > 0, default 1e-3
        Of SMO: largest violation of (KKT), in units of f. The duality gap of a rank
        is then at most tol / 2 * sum (hi_i - lo_i). On a basis the largest duality gap
        of a rank, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        cost[j, k] of predicting k for a row of rank j: zero diagonal, not falling away
        from it. Scales C2; None is 1 everywhere off the diagonal.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks: they keep their column in
        `decision_function` (+inf) and are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    normalize : bool, default False
        Compare |f_k| / |w_k| instead of |f_k|. Matters where the ranks' margins differ
        much, as with class weights or ranks of very unequal spread; the paper
        compares |f_k|, as the training problem does.
    rho : float > 0, default 1.0, ADMM only
        Penalty parameter. It changes the path, and so where the solver stops.
    e_abs, e_rel : float >= 0, default 1e-2, ADMM only
        The tolerances of (19) and (20).
    polish : bool, default False, ADMM only
        Continue with SMO from ADMM's point to `tol`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: replace K by a matrix of low rank that is exact at the basis
        rows, which are chosen as for `fit_svorim`, whose default it is, too. ADMM takes
        so many, or as many as leave this part of the trace of K, by a pivoted
        incomplete Cholesky factorisation, or rows of these numbers; its memory is n
        doubles a basis row.
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
    max_iter : int, optional
        Pair steps of a rank (SMO, default 10^7), Newton steps of a rank for each sample
        of the rows (on a basis, default 200), or iterations (ADMM, default 1000).
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K or its
        factor: a fit that is late before it has these ends where it begins. A fit by
        SMO to the whole kernel that needs far more time warns, as in `fit_svorim`.
    callback : callable, optional
        Function that is called with an `ordinal.State` several times a second; a true
        value stops the fit.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    NpsvorModel
        The `parts` of its `convergence` are one a rank. For SMO `violation` is that of
        (KKT). For ADMM without polish it is the larger residual of (19) and (20) over
        its allowance, so that `tol` is 1, while `gap` tells how far the optimum is.

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The fit ended short of the tolerance; the message says why and what helps.

    See Also
    --------
    fit_npsvor_path : Fit NPSVOR at several values of C, C2 and epsilon.
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    fit_opbe : Fit OPBE: an ensemble of three-class SVORIM models, one per rank.
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
    family = _family(
        "fit_npsvor",
        solver,
        cost,
        normalize=normalize,
        rho=rho,
        e_abs=e_abs,
        e_rel=e_rel,
        polish=polish,
    )
    return fit(
        family,
        X,
        y,
        _parameters(C, C2, epsilon),
        basis=basis,
        cache_mb=cache_mb,
        max_iter=max_iter,
        kernel=kernel,
        gamma=gamma,
        tol=tol,
        classes=classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        rng=rng,
        probability=probability,
        n_threads=n_threads,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )  # fmt: skip


@with_suggestions
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
    normalize: bool = False,
    rho: float | None = None,
    e_abs: float | None = None,
    e_rel: float | None = None,
    polish: bool | None = None,
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

    ADMM factorises K + rho I once and carries every point and rank as one more column
    of the same product. SMO computes K once and starts each point from the last one.
    `max_time` and `callback` are for the whole path.

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
    points : sequence of mappings
        Each with some of the keys "C", "C2", "epsilon"; the defaults are those of
        `fit_npsvor`. Neighbours in the sequence should be near in value.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    solver : {"smo", "admm"}, default "smo"
        "smo" reaches the optimum to `tol`, on a basis by proximal points. "admm" is
        the paper's algorithm with the paper's tolerances: at large C it ends far from
        the optimum, which regularises and can predict better. The two are then two
        models; choose by validation.
    tol : float > 0, default 1e-3
        Of SMO: largest violation of (KKT), in units of f. The duality gap of a rank
        is then at most tol / 2 * sum (hi_i - lo_i). On a basis the largest duality gap
        of a rank, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    cost : (r, r) array-like, optional
        cost[j, k] of predicting k for a row of rank j: zero diagonal, not falling away
        from it. Scales C2; None is 1 everywhere off the diagonal.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks: they keep their column in
        `decision_function` (+inf) and are never predicted.
    normalize : bool, default False
        Compare |f_k| / |w_k| instead of |f_k|. Matters where the ranks' margins differ
        much, as with class weights or ranks of very unequal spread; the paper
        compares |f_k|, as the training problem does.
    rho : float > 0, default 1.0, ADMM only
        Penalty parameter. It changes the path, and so where the solver stops.
    e_abs, e_rel : float >= 0, default 1e-2, ADMM only
        The tolerances of (19) and (20).
    polish : bool, default False, ADMM only
        Continue with SMO from ADMM's point to `tol`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: replace K by a matrix of low rank that is exact at the basis
        rows, which are chosen as for `fit_svorim`, whose default it is, too. ADMM takes
        so many, or as many as leave this part of the trace of K, by a pivoted
        incomplete Cholesky factorisation, or rows of these numbers; its memory is n
        doubles a basis row.
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
    max_iter : int, optional
        Pair steps of a rank (SMO, default 10^7), Newton steps of a rank for each sample
        of the rows (on a basis, default 200), or iterations (ADMM, default 1000).
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K or its
        factor: a fit that is late before it has these ends where it begins. A fit by
        SMO to the whole kernel that needs far more time warns, as in `fit_svorim`.
    callback : callable, optional
        Function that is called with an `ordinal.State` several times a second; a true
        value stops the fit.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    list of NpsvorModel, one a point

    Raises
    ------
    ValueError, TypeError
        As `fit_npsvor`, before anything is computed.

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
    family = _family(
        "fit_npsvor_path",
        solver,
        cost,
        normalize=normalize,
        rho=rho,
        e_abs=e_abs,
        e_rel=e_rel,
        polish=polish,
    )
    models, _ = fit_path(
        family,
        X,
        y,
        _points(points),
        basis=basis,
        cache_mb=cache_mb,
        max_iter=max_iter,
        kernel=kernel,
        gamma=gamma,
        tol=tol,
        classes=classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        rng=rng,
        probability=probability,
        n_threads=n_threads,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )  # fmt: skip
    return models


def _family(
    function: str,
    solver: _Solver,
    cost: ArrayLike | None,
    *,
    normalize: bool,
    **admm: Any,  # noqa: ANN401  (checked here)
) -> Npsvor:
    """Return the method for a solver; options of ADMM that are not None are given."""
    check_choice("solver", solver, get_args(_Solver))
    normalize = check_flag("normalize", normalize)
    given = {name: value for name, value in admm.items() if value is not None}
    if solver == "smo":
        if given:
            raise ValueError(
                f"{', '.join(given)}: for solver='admm' only, got solver='smo'"
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
        raise ValueError(f"points know C, C2 and epsilon, got {listed(list(unknown))}")
    return _parameters(**point)


register(
    Method(
        fit_npsvor,
        name="npsvor",
        estimator="NPSVOR",
        accepts={"sparse"},
        variants={"npsvor": {}, "npsvor-admm": {"solver": "admm"}},
        grid={"C": COSTS, "gamma": GAMMAS},
        varying=_VARYING,
        fit_path=path_function(partial(_family, "fit_npsvor_path"), _parameters),
    )
)
