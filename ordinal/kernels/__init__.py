"""Kernels: small frozen callables, k(A, B) -> (len(A), len(B)) float64.

Any callable of that form that is symmetric and positive semi-definite will do in their
place. `Linear`, `Polynomial` and `RBF` also take CSR rows, `Pearson` takes NaN.

The modules of this package:

    functions  kernel functions
    choice     kernel that an argument means, and its abilities
    tiles      values of a kernel, tile by tile, and their derivatives by ln gamma
"""

from .functions import ARD, RBF, Linear, LinearARD, Pearson, Polynomial, Precomputed

__all__ = ["ARD", "RBF", "Linear", "LinearARD", "Pearson", "Polynomial", "Precomputed"]


def __dir__() -> list[str]:
    return __all__
