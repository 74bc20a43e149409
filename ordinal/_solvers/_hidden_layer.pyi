"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def ordered_codes(
    S: NDArray[np.float64], t: NDArray[np.float64], rank: NDArray[np.int32],
    share: NDArray[np.float64], squared: bool, by_t: NDArray[np.float64]
) -> float: ...
def thresholds(t: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def cumulative(
    link: int, f: NDArray[np.float64], t: NDArray[np.float64], rank: NDArray[np.int32],
    share: NDArray[np.float64], work: NDArray[np.float64], by_t: NDArray[np.float64]
) -> float: ...
def bend(
    H: NDArray[np.float64], V: NDArray[np.float64], G: NDArray[np.float64]
) -> None: ...
