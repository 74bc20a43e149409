"""Written by tools/stubs.py."""
import numpy as np
from numpy.typing import NDArray
def lower_inverse(L: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
