"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def descend(
    H: NDArray[np.float64], first: NDArray[np.int32], second: NDArray[np.int32],
    price: float, pair_price: float, tol: float, most: int, slope: NDArray[np.float64],
    own: NDArray[np.float64], parts: NDArray[np.float64]
) -> tuple[int, float]: ...
