"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
LINKS: tuple[str, ...]
def row_terms(
    link: int, a: NDArray[np.float64], b: NDArray[np.float64],
    delta: NDArray[np.float64], out: NDArray[np.float64], n_threads: int
) -> None: ...
def blocks_of(n: int) -> int: ...
def score_slopes(
    link: int, f: NDArray[np.float64], rank: NDArray[np.int32],
    weight: NDArray[np.float64], edges: NDArray[np.float64], slope: NDArray[np.float32],
    curvature: NDArray[np.float32], value: NDArray[np.float64], n_threads: int
) -> None: ...
def share_of_rows(n: int, held: int) -> int: ...
def scratch_of_share(stride: int, m: int) -> int: ...
def padded(d: int) -> int: ...
def sums(
    link: int, X: NDArray[np.float64], location: NDArray[np.int64],
    nominal: NDArray[np.int64], scale: NDArray[np.int64], centre: NDArray[np.float64],
    factor: NDArray[np.float64], offset: NDArray[np.float64], rank: NDArray[np.int32],
    weight: NDArray[np.float64], theta: NDArray[np.float64], gap: NDArray[np.float64],
    nu: NDArray[np.float64], beta: NDArray[np.float64], zeta: NDArray[np.float64],
    rows: int, scratch: NDArray[np.float64], value: NDArray[np.float64],
    by_slot: NDArray[np.float64], by_core: NDArray[np.float64],
    diag: NDArray[np.float64], off: NDArray[np.float64], border: NDArray[np.float64],
    core: NDArray[np.float64], n_threads: int
) -> None: ...
