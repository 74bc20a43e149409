"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def n_chunks(n: int) -> int: ...
def slopes(
    f: NDArray[np.float64], b: NDArray[np.float64], rank: NDArray[np.int32],
    v: NDArray[np.float64], c: NDArray[np.float64], u: float, eta: float,
    by_row: NDArray[np.float64], by_chunk: NDArray[np.float64], n_threads: int
) -> None: ...
def curvatures(
    f: NDArray[np.float64], b: NDArray[np.float64], rank: NDArray[np.int32],
    v: NDArray[np.float64], c: NDArray[np.float64], u: float, eta: float,
    D: NDArray[np.float64], by_row: NDArray[np.float64], by_chunk: NDArray[np.float64],
    n_threads: int
) -> None: ...
def loss(
    s: NDArray[np.float64], u: float, eta: float, out: NDArray[np.float64]
) -> None: ...
