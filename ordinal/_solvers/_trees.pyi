"""Written by tools/stubs.py."""
from typing import Any
import numpy as np
from numpy.typing import NDArray
DEEPEST: int
def scores(
    X: NDArray[np.float64], begin: int, end: int, out: NDArray[np.float64],
    n_threads: int, first: NDArray[np.int64], feature: NDArray[np.int32],
    threshold: NDArray[np.float64], missing_left: NDArray[np.uint8],
    category_set: NDArray[np.int32], left: NDArray[np.int32], right: NDArray[np.int32],
    node_rows: NDArray[np.int64], value: NDArray[np.float64],
    leaf_rows: NDArray[np.int64], set_start: NDArray[np.int64], words: NDArray[Any]
) -> None: ...
def contributions(
    X: NDArray[np.float64], begin: int, end: int, out: NDArray[np.float64],
    n_threads: int, first: NDArray[np.int64], feature: NDArray[np.int32],
    threshold: NDArray[np.float64], missing_left: NDArray[np.uint8],
    category_set: NDArray[np.int32], left: NDArray[np.int32], right: NDArray[np.int32],
    node_rows: NDArray[np.int64], value: NDArray[np.float64],
    leaf_rows: NDArray[np.int64], set_start: NDArray[np.int64], words: NDArray[Any]
) -> None: ...
