"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def times(
    start: NDArray[np.int64], index: NDArray[np.int32], value: NDArray[np.float64],
    x: NDArray[np.float64], out: NDArray[np.float64], n_threads: int
) -> None: ...
def weighted_gram(
    start: NDArray[np.int64], index: NDArray[np.int32], value: NDArray[np.float64],
    across: NDArray[np.int64], column: NDArray[np.int32], held: NDArray[np.float64],
    weight: NDArray[np.float64], out: NDArray[np.float64], n_threads: int
) -> None: ...
def sum_by_group(
    start: NDArray[np.int64], index: NDArray[np.int32], value: NDArray[np.float64],
    group: NDArray[np.int32], weight: NDArray[np.float64], out: NDArray[np.float64],
    n_threads: int
) -> None: ...
def transpose(
    start: NDArray[np.int64], index: NDArray[np.int32], value: NDArray[np.float64],
    start_out: NDArray[np.int64], index_out: NDArray[np.int32],
    value_out: NDArray[np.float64]
) -> None: ...
