"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
class ActiveSet:
    def __init__(
        self, K: NDArray[np.float64], curvature: NDArray[np.float64], room: int
    ) -> None: ...
    @property
    def size(self) -> int: ...
    def free(self) -> tuple[np.ndarray, np.ndarray]: ...
    def minimise(
        self, g: NDArray[np.float64], f: NDArray[np.float64], lo: NDArray[np.float64],
        hi: NDArray[np.float64], pn: NDArray[np.float64], pp: NDArray[np.float64],
        tol: float, most: int
    ) -> int: ...
