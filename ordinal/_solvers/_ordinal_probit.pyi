"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def loss(
    h: NDArray[np.float64], v: NDArray[np.float64], rank: NDArray[np.int32],
    b: NDArray[np.float64], gap: NDArray[np.float64], out: NDArray[np.float64],
    n_threads: int
) -> None: ...
def derivatives(
    h: NDArray[np.float64], v: NDArray[np.float64], rank: NDArray[np.int32],
    b: NDArray[np.float64], gap: NDArray[np.float64], out: NDArray[np.float64],
    n_threads: int
) -> None: ...
def sites(
    h: NDArray[np.float64], A: NDArray[np.float64], q: NDArray[np.float64],
    a: NDArray[np.float64], v: NDArray[np.float64], rank: NDArray[np.int32],
    b: NDArray[np.float64], gap: NDArray[np.float64], site: NDArray[np.float64],
    out: NDArray[np.float64], step: float, n_threads: int
) -> None: ...
def log_probability(
    mean: NDArray[np.float64], v: NDArray[np.float64], b: NDArray[np.float64],
    gap: NDArray[np.float64], out: NDArray[np.float64], n_threads: int
) -> None: ...
