"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def scaled(
    Sigma: NDArray[np.float64], root: NDArray[np.float64], start: int, stop: int,
    B: NDArray[np.float64], n_threads: int
) -> None: ...
def column_norms(L: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
