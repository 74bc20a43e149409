"""Written by tools/stubs.py."""
from typing import Any
import numpy as np
from numpy.typing import NDArray
def rbf(
    P: NDArray[np.float64], aa: NDArray[np.float64], bb: NDArray[np.float64],
    gamma: float, out: NDArray[Any]
) -> None: ...
def mirror(K: NDArray[np.float32], r0: int, r1: int, c0: int, c1: int) -> None: ...
def csr_times_dense(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float64],
    B: NDArray[np.float64], out: NDArray[np.float64]
) -> None: ...
def csr_times_csr(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float64],
    indptr_b: NDArray[np.int64], indices_b: NDArray[np.int32],
    data_b: NDArray[np.float64], start: NDArray[np.int64], size: NDArray[np.int64],
    row: NDArray[np.int32], value: NDArray[np.float64], out: NDArray[np.float64]
) -> None: ...
def unpack(
    packed: NDArray[Any], scale: NDArray[np.float32], out: NDArray[np.float32]
) -> None: ...
def add_rows(
    K: NDArray[np.float32], rows: NDArray[np.int32], change: NDArray[np.float64],
    G: NDArray[np.float64]
) -> None: ...
