"""Derivatives of kernel values by ln gamma."""

from typing import Any

import numpy as np

from .._input.types import Kernel
from .._numerics.rows import strips, take
from .._watch.monitor import check_cancelled
from .functions import ARD, RBF, LinearARD

_LEARNED = RBF | ARD | LinearARD


def gamma_slopes(
    kernel: Kernel, A: Any, B: Any, K: np.ndarray, G: np.ndarray
) -> np.ndarray:
    """Return the derivative of <G, k(A, B)> by ln gamma, (p,), where K = k(A, B).

    One entry a gamma; none for a kernel that has none to be learned. O(n m d).
    """
    out = np.zeros(np.size(kernel.gamma) if isinstance(kernel, _LEARNED) else 0)
    if isinstance(kernel, ARD):
        centre = A.mean(axis=0)  # far from 0, squares would cancel
        A, B = A - centre, B - centre
    for rows in strips(len(K) if out.size else 0):  # so that Ctrl-C has its turn
        check_cancelled()
        # the slopes of an RBF kernel are seen from its values, without the rows
        part = None if isinstance(kernel, RBF) else take(A, rows)
        out += _of_rows(kernel, part, B, K[rows], G[rows])
    return out


def _of_rows(
    kernel: Kernel, A: Any, B: Any, K: np.ndarray, G: np.ndarray
) -> np.ndarray:
    """Return the part of some rows in `gamma_slopes`."""
    if isinstance(kernel, ARD):
        N = G * K
        squares = N.sum(axis=1) @ A**2 + N.sum(axis=0) @ B**2
        by_gamma = 2 * np.einsum("ij,ij->j", A, N @ B) - squares
        return np.asarray(kernel.gamma * by_gamma)
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * np.einsum("ij,ij->j", A, G @ B))
    change = np.log(np.maximum(K, np.finfo(float).tiny))  # of an RBF kernel
    change *= K
    return np.array([np.vdot(change, G)])


def diagonal_slopes(kernel: Kernel, X: Any, c: np.ndarray) -> np.ndarray:
    """Return the derivative of sum_i c_i k(x_i, x_i) by ln gamma."""
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * (c @ X**2))
    return np.zeros(np.size(kernel.gamma) if isinstance(kernel, RBF | ARD) else 0)
