"""Fit the models of a family: check and read the arguments, solve, calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Unpack

import numpy as np

from .._basis.fitting import held_for, on_basis
from .._input.checks import check_count, check_positive
from .._input.problem import Problem
from .._input.types import AnyBasis, Blocks, Labels, Matrix, MatrixLike
from .._model.calibration import calibrate
from .._model.preparation import KernelCommon, prepare_with_kernel
from .._model.support import decisions
from ..kernels.tiles import Products
from .family import Family, KernelOptions, M, P
from .on_basis import OnBasis
from .whole import WholeKernel


class Arguments(KernelCommon, total=False):
    """Arguments that the `fit_*` functions of all families hand on."""

    basis: AnyBasis | None
    cache_mb: float
    max_iter: int | None
    start: Any


def fit(
    family: Family[P, M],
    X: MatrixLike | Blocks,
    y: Labels | None,
    point: P,
    **arguments: Unpack[Arguments],
) -> M:
    """Return the model of one point."""
    return fit_path(family, X, y, [point], **arguments)[0][0]


def fit_path(
    family: Family[P, M],
    X: MatrixLike | Blocks,
    y: Labels | None,
    points: Sequence[P],
    products: Products | None = None,
    X_test: Matrix | None = None,
    *,
    basis: AnyBasis | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    start: Any = None,
    **common: Unpack[KernelCommon],
) -> tuple[list[M], Sequence[np.ndarray | None]]:
    """Return one model per point, each begun at the solution of the one before.

    Kernel values, from the inner products `products` of the rows if they are given, or
    features on a basis are computed once for all points. The second value is the
    decision function of each model at the rows of `X_test`, or None.
    """
    cache_mb = check_positive("cache_mb", cache_mb)
    if max_iter is not None:
        max_iter = check_count("max_iter", max_iter)
    prepared = prepare_with_kernel(
        family.name,
        X,
        y,
        in_place=basis is not None,
        chunks=family.reads_chunks and on_basis(basis, common.get("kernel")),
        **common,
    )
    kernel = prepared.kernel
    choice = family.basis(basis, kernel, prepared.problem, start)
    prepared = held_for(choice, prepared)
    problem = prepared.problem
    family = family.prepared(problem, basis)
    if start is not None:
        family.check_start(start, problem, kernel, choice is not None)
    # drawn before the folds, so that `probability` changes nothing of a model
    seed = 0 if choice is None else int(prepared.rng.integers(2**31))
    shares = prepared.folds(few=choice is not None)
    family.check_folds(shares)
    options = KernelOptions(
        kernel, prepared.n_threads, cache_mb, max_iter, seed, prepared.monitor
    )
    with prepared.monitor as monitor, closing(problem):
        solver = (
            family.own_solver(options) or WholeKernel(family, options)
            if choice is None
            else OnBasis.choose(family, options, choice, problem, points[-1])
        )
        models, used = solver.fit(points, problem, start, products)
        scores = decisions(models, used, problem.X, X_test)

        def fit_fold(part: Problem, rows: np.ndarray) -> list[M]:
            here = solver.restricted_to(part, rows)
            if not family.folds_start:
                return here.fit(points, part)[0]
            pairs = zip(points, models, strict=True)
            return [here.fit([point], part, model)[0][0] for point, model in pairs]

        models = calibrate(models, problem, shares, fit_fold, monitor)
        monitor.conclude(models[-1].convergence)
    for model in models:
        family.warn(model)
    return models, scores
