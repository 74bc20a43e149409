"""Scores and predictors of rows by a fitted cumulative model."""

from __future__ import annotations

import numpy as np

from .._cumulative.design import structure_of
from .._input.sparse import CSR
from .._model.support import finite_scores
from .._numerics.rows import matvec
from .estimates import Estimates

_FARTHEST = 700.0  # log spread, whose exponential is finite either way


def score(
    model: Estimates, Z: np.ndarray | CSR, offset: np.ndarray | None
) -> np.ndarray:
    """Return x'beta plus the offset, (n,); ValueError if a score is infinite."""
    f = _times(Z, model.location, model.coef)
    return finite_scores(f if offset is None else f + offset)


def predictors(
    model: Estimates, Z: np.ndarray | CSR, offset: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """eta_ij of (1) in `design` at the T thresholds between ranks that have training
    rows, (n, T), and 1 / s_i, (n, 1).
    """
    f = score(model, Z, offset)[:, None]
    present = np.flatnonzero(model.observed)
    cuts = model.thresholds[present[:-1]]
    if model.nominal.size:
        nu = structure_of(model.threshold, cuts.size) @ model.nominal_coef
        shift = [_times(Z, model.nominal, slopes) for slopes in nu]
        cuts = cuts - np.column_stack(shift)
    log_spread = _times(Z, model.scale, model.scale_coef)
    unit = np.exp(-np.clip(log_spread, -_FARTHEST, _FARTHEST))[:, None]
    with np.errstate(over="ignore"):  # whose limit is right
        return (cuts - f) * unit, unit


def _times(Z: np.ndarray | CSR, columns: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Z[:, columns] @ slopes; ValueError where that is not finite."""
    if not columns.size:
        return np.zeros(len(Z))
    every = np.zeros(Z.shape[1])
    every[columns] = slopes
    with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
        return finite_scores(matvec(Z, every))
