"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def n_chunks(n: int) -> int: ...
def by_row(
    f: NDArray[np.float64], b: NDArray[np.float64], rank: NDArray[np.int32],
    v: NDArray[np.float64], c: NDArray[np.float64], beside: bool,
    slope: NDArray[np.float64], curvature: NDArray[np.float64],
    by_chunk: NDArray[np.float64], n_threads: int
) -> None: ...
def by_threshold(
    f: NDArray[np.float64], b: NDArray[np.float64], rank: NDArray[np.int32],
    v: NDArray[np.float64], c: NDArray[np.float64], beside: bool,
    by_chunk: NDArray[np.float64], n_threads: int
) -> None: ...
def across(
    f: NDArray[np.float64], b: NDArray[np.float64], rank: NDArray[np.int32],
    v: NDArray[np.float64], c: NDArray[np.float64], beside: bool,
    X: NDArray[np.float64], out: NDArray[np.float64]
) -> None: ...
