"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def descend_gram(
    H: NDArray[np.float64], price: NDArray[np.float64], ridge: NDArray[np.float64],
    tol: float, most: int, slope: NDArray[np.float64], b: NDArray[np.float64],
    scratch: NDArray[np.float64], active: NDArray[np.int32]
) -> tuple[int, float]: ...
def descend_columns(
    start: NDArray[np.int64], row: NDArray[np.int32], value: NDArray[np.float64],
    curvature: NDArray[np.float64], border: NDArray[np.float64],
    price: NDArray[np.float64], ridge: NDArray[np.float64], tol: float, most: int,
    slope: NDArray[np.float64], free: NDArray[np.float64], b: NDArray[np.float64],
    scratch: NDArray[np.float64], active: NDArray[np.int32]
) -> tuple[int, float]: ...
