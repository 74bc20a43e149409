"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def direction(
    steps: NDArray[np.float64], changes: NDArray[np.float64], rho: NDArray[np.float64],
    newest: int, count: int, gradient: NDArray[np.float64],
    weights: NDArray[np.float64], out: NDArray[np.float64]
) -> None: ...
