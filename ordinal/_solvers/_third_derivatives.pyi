"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def row_thirds(
    link: int, a: NDArray[np.float64], b: NDArray[np.float64],
    delta: NDArray[np.float64], out: NDArray[np.float64]
) -> None: ...
