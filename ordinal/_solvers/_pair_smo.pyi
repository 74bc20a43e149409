"""Written by tools/stubs.py."""
from enum import IntFlag
from typing import Any
import numpy as np
from numpy.typing import NDArray
class Phase(IntFlag):
    RUN = 0
    READY = 1
    WAIT = 2
    NEWTON = 3
    DONE = 4
    LIMIT = 5
    STUCK = 6
def advance(
    tasks: list[Any],
    space: Workspace,
    seconds: float,
    n_threads: int,
) -> None: ...
class Smo:
    def __init__(
        self,
        K: NDArray[np.float32],
        slot: NDArray[np.int32],
        diag: NDArray[np.float64],
        lo: NDArray[np.float64],
        hi: NDArray[np.float64],
        pn: NDArray[np.float64],
        pp: NDArray[np.float64],
        curvature: NDArray[np.float64],
        coupled: bool,
        g: NDArray[np.float64],
        mu: NDArray[np.float64],
        f: NDArray[np.float64],
        stretches: NDArray[np.int32],
        q: int,
        tol: float,
        max_steps: int,
        patience: float,
    ) -> None: ...
    @property
    def phase(self) -> int: ...
    @phase.setter
    def phase(self, value: int) -> None: ...
    @property
    def steps(self) -> int: ...
    @property
    def patience(self) -> float: ...
    @property
    def work(self) -> float: ...
    @property
    def indefinite(self) -> bool: ...
    @property
    def violation(self) -> float: ...
    @property
    def pivots(self) -> bool: ...
    def allow_pivots(self, room: int, held: int, setup: float) -> None: ...
    def resume(self, patience: float, steps: int) -> None: ...
    def needed(self) -> np.ndarray: ...
def groups_of_block(T: int) -> int: ...
class Workspace:
    n_threads: int
    def __init__(self, n: int, T: int, q: int, n_threads: int) -> None: ...
