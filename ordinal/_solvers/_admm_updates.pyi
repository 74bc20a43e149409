"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def clip(
    g: NDArray[np.float64], z: NDArray[np.float64], u: NDArray[np.float64],
    shift: NDArray[np.float64], width: NDArray[np.float64], lo: NDArray[np.float64],
    hi: NDArray[np.float64], sums: NDArray[np.float64], n_threads: int
) -> None: ...
