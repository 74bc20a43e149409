"""How kernel values change with ln gamma."""

from typing import Any

import numpy as np

from .._input.types import Kernel
from ..kernels import ARD, RBF, LinearARD


def gamma_slopes(
    kernel: Kernel, A: Any, B: Any, K: np.ndarray, G: np.ndarray
) -> np.ndarray:
    """How <G, k(A, B)> changes with ln gamma, (p,), where K = k(A, B).

    One entry a gamma; none for a kernel that has none to be learned. O(n m d).
    """
    if isinstance(kernel, RBF):
        change = np.log(np.maximum(K, np.finfo(float).tiny))
        change *= K
        return np.array([np.vdot(change, G)])
    if isinstance(kernel, ARD):
        centre = A.mean(axis=0)  # far from 0, squares would cancel
        A, B, N = A - centre, B - centre, G * K
        squares = N.sum(axis=1) @ A**2 + N.sum(axis=0) @ B**2
        return np.asarray(
            kernel.gamma * (2 * np.einsum("ij,ij->j", A, N @ B) - squares)
        )
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * np.einsum("ij,ij->j", A, G @ B))
    return np.empty(0)


def diagonal_slopes(kernel: Kernel, X: Any, c: np.ndarray) -> np.ndarray:
    """The same of sum_i c_i k(x_i, x_i)."""
    if isinstance(kernel, LinearARD):
        return np.asarray(kernel.gamma * (c @ X**2))
    return np.zeros(np.size(kernel.gamma) if isinstance(kernel, RBF | ARD) else 0)
