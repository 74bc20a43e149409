"""A fit that begins at the model of another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dual.feasible import near
from .._dual.program import Program
from .._input.checks import listed
from .._input.problem import Problem
from .._input.sparse import CSR
from .._input.types import Kernel
from ..kernels import Precomputed
from .model import SvorModel


def check_start(start: Any, problem: Problem, kernel: Kernel, needs_dual: bool) -> None:
    """Raise TypeError or ValueError unless a fit to the problem can begin at it."""
    if not isinstance(start, SvorModel):
        raise TypeError(f"start must be a SvorModel, got {type(start).__name__}")
    if needs_dual and start.dual is None:
        raise ValueError("start is a model on a basis, which has no duals to begin at")
    if not np.array_equal(start.classes, problem.classes):
        raise ValueError(
            f"start has the classes {listed(start.classes)}, the data "
            f"{listed(problem.classes)}"
        )
    by_number = isinstance(kernel, Precomputed)
    if isinstance(start.kernel, Precomputed) != by_number:
        raise ValueError("start and the fit must both be of a precomputed kernel")
    if isinstance(start.support, CSR) != isinstance(problem.X, CSR) and not by_number:
        raise ValueError("start and X must both be dense or both be CSR")
    names = {start.feature_names, problem.feature_names}
    if None not in names and len(names) > 1:
        raise ValueError("start and X must have the same columns in the same order")
    if not by_number and start.n_features != problem.n_features:
        raise ValueError(
            f"start has {start.n_features} features, X has {problem.n_features}"
        )


def start_from(
    start: SvorModel, problem: Problem, program: Program, C: float
) -> np.ndarray:
    """Return a feasible dual point near that of a model with rows among X."""
    present = np.flatnonzero(problem.present)
    assert start.dual is not None
    old = np.add.reduceat(start.dual, present[:-1], axis=1) * (C / start.C)
    where: dict[bytes | int, list[int]] = {}
    for i, key in enumerate(_keys(problem.X, start.support)):
        where.setdefault(key, []).append(i)
    g = np.zeros_like(program.lo)
    for values, key in zip(old, _keys(start.support, start.support), strict=True):
        # of equal rows, one whose rank gives the duals these signs
        for i in where.get(key, ()):
            lo, hi = program.lo[0, :, i], program.hi[0, :, i]
            if not ((values < 0) & (lo == 0) | (values > 0) & (hi == 0)).any():
                g[0, :, i] = values
                where[key].remove(i)
                break
    return near(g, program)


def _keys(X: Any, support: np.ndarray | CSR) -> list[Any]:
    """Return the key of each row: its number for a precomputed kernel, or its bytes."""
    if not isinstance(support, CSR) and support.ndim == 1:
        return support.tolist() if X is support else list(range(len(X)))
    if isinstance(X, CSR):
        spans = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [
            X.indices[a:b].tobytes() + (X.data[a:b] + 0.0).tobytes() for a, b in spans
        ]
    return [row.tobytes() for row in X + 0.0]  # -0.0 is 0.0
