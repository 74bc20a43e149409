"""Kernels: small frozen callables, k(A, B) -> (len(A), len(B)) float64.

Any callable of that form that is symmetric and positive semi-definite can replace them.
Kernels without weights per feature also accept CSR rows, `Pearson` accepts NaN.

The modules of this package:

    functions   kernel functions, what fits ask of them, and checks of their values
    tiles       values of a kernel, tile by tile
    features    vectors z(x) on a basis of rows, whose inner products are kernel values
    basis_rows  choice of the basis rows, and how many are enough
"""

from .functions import (
    ARD,
    RBF,
    Laplacian,
    Linear,
    LinearARD,
    Matern,
    Pearson,
    Polynomial,
    Precomputed,
)

__all__ = [
    "ARD",
    "RBF",
    "Laplacian",
    "Linear",
    "LinearARD",
    "Matern",
    "Pearson",
    "Polynomial",
    "Precomputed",
]


def __dir__() -> list[str]:
    return __all__
