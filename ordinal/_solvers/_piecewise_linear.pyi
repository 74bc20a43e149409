"""Written by tools/stubs.py."""
from typing import Any
import numpy as np
from numpy.typing import NDArray
def point(
    f: NDArray[Any], rank: NDArray[np.int32], weight: NDArray[np.float32],
    table: NDArray[Any], b: NDArray[np.float64], g: NDArray[Any], sigma: float,
    start: int, t: NDArray[Any], inside: NDArray[Any], sums: NDArray[np.float64]
) -> None: ...
def slopes(
    f: NDArray[Any], end: NDArray[Any], rank: NDArray[np.int32],
    weight: NDArray[np.float32], table: NDArray[Any], b: NDArray[np.float64],
    b_end: NDArray[np.float64], lengths: NDArray[np.float64], g: NDArray[Any],
    sigma: float, start: int, stop: int, out: NDArray[np.float64]
) -> None: ...
def jumps(
    f: NDArray[Any], rank: NDArray[np.int32], weight: NDArray[np.float32],
    table: NDArray[Any], grid: NDArray[np.float64], start: int, stop: int,
    out: NDArray[np.float64]
) -> None: ...
