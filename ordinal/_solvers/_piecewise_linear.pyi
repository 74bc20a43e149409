import numpy as np

def point(
    f: np.ndarray,
    rank: np.ndarray,
    weight: np.ndarray,
    table: np.ndarray,
    b: np.ndarray,
    g: np.ndarray,
    sigma: float,
    start: int,
    t: np.ndarray,
    inside: np.ndarray,
    sums: np.ndarray,
) -> None: ...
def slopes(
    f: np.ndarray,
    end: np.ndarray,
    rank: np.ndarray,
    weight: np.ndarray,
    table: np.ndarray,
    b: np.ndarray,
    b_end: np.ndarray,
    lengths: np.ndarray,
    g: np.ndarray,
    sigma: float,
    start: int,
    stop: int,
    out: np.ndarray,
) -> None: ...
def jumps(
    f: np.ndarray,
    rank: np.ndarray,
    weight: np.ndarray,
    table: np.ndarray,
    grid: np.ndarray,
    start: int,
    stop: int,
    out: np.ndarray,
) -> None: ...
