"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
class LevelRows:
    def __init__(
        self, link: int, weight: NDArray[np.float64], Z: NDArray[np.float64],
        at: NDArray[np.int64], cell: NDArray[np.int64], starts: NDArray[np.int64],
        parts: NDArray[np.int64], m: int, width: int, numbers: NDArray[np.float64],
        n_threads: int
    ) -> None: ...
    def terms(
        self, ends: NDArray[np.float64], b: NDArray[np.float64], least: float,
        share: NDArray[np.float64], direct: NDArray[np.float64],
        value: NDArray[np.float64], first: NDArray[np.float64],
        second: NDArray[np.float64], by_row: NDArray[np.float64]
    ) -> None: ...
    def bends(
        self, ends: NDArray[np.float64], b: NDArray[np.float64], V: NDArray[np.float64],
        beside: NDArray[np.float64], rest: NDArray[np.float64],
        first: NDArray[np.float64], by_row: NDArray[np.float64]
    ) -> None: ...
    def moves(
        self, ends: NDArray[np.float64], b: NDArray[np.float64], k: NDArray[np.float64],
        direct: NDArray[np.float64], first: NDArray[np.float64],
        second: NDArray[np.float64], by_row: NDArray[np.float64]
    ) -> None: ...
class LevelCells:
    def __init__(
        self, q: int, width: int, starts: NDArray[np.int64], column: NDArray[np.int64],
        place: NDArray[np.int64], level: NDArray[np.int64], begins: NDArray[np.int64],
        cells: NDArray[np.int64], n_threads: int
    ) -> None: ...
    def subtract_products(
        self, F: NDArray[np.float64], B: NDArray[np.float64], S: NDArray[np.float64]
    ) -> None: ...
    def products_by_cell(
        self, F: NDArray[np.float64], S: NDArray[np.float64], out: NDArray[np.float64]
    ) -> None: ...
