"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def n_chunks(T: int) -> int: ...
def steps(
    f: NDArray[np.float64], g: NDArray[np.float64], lo: NDArray[np.float64],
    hi: NDArray[np.float64], p: NDArray[np.float64], price: NDArray[np.float64],
    sigma: float, b: NDArray[np.float64], t: NDArray[np.float64],
    inside: NDArray[np.uint8], totals: NDArray[np.float64], lack: NDArray[np.float64],
    n_threads: int
) -> None: ...
