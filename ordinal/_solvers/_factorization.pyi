"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
LANES: int
def n_nodes(first: NDArray[np.int32], kind: NDArray[np.int8]) -> int: ...
def spread(
    W: NDArray[np.float64], first: NDArray[np.int32], kind: NDArray[np.int8],
    table: NDArray[np.float64]
) -> None: ...
def gather(
    G: NDArray[np.float64], first: NDArray[np.int32], kind: NDArray[np.int8],
    dW: NDArray[np.float64]
) -> None: ...
def locate(
    X: NDArray[np.float64], knots: NDArray[np.float64], begin: NDArray[np.int64],
    first: NDArray[np.int64], node: NDArray[np.int32], share: NDArray[np.float64]
) -> None: ...
def scores(
    node: NDArray[np.int32], share: NDArray[np.float64], table: NDArray[np.float64],
    S: NDArray[np.float64], U: NDArray[np.float64], n_threads: int
) -> None: ...
def scatter(
    node: NDArray[np.int32], share: NDArray[np.float64], table: NDArray[np.float64],
    S: NDArray[np.float64], slope: NDArray[np.float64], rows: int,
    G: NDArray[np.float64], n_threads: int
) -> None: ...
def hinge(
    U: NDArray[np.float64], order: NDArray[np.int64], rank: NDArray[np.int32],
    weight: NDArray[np.float64], r: int, tau: float, slope: NDArray[np.float64],
    sorted: NDArray[np.float64], tree: NDArray[np.float64]
) -> float: ...
def sgd(
    node: NDArray[np.int32], share: NDArray[np.float64], weight: NDArray[np.float64],
    start: NDArray[np.int64], first: NDArray[np.int32], kind: NDArray[np.int8],
    tau: float, scale: float, decay: NDArray[np.float64], floor: NDArray[np.float64],
    squared: NDArray[np.uint8], W: NDArray[np.float64], rate: float, batch: int,
    key: int, done: int, stop: int, last: int, seconds: float, n_threads: int
) -> int: ...
