import numpy as np

def n_chunks(T: int) -> int: ...
def steps(
    f: np.ndarray,
    g: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    p: np.ndarray,
    price: np.ndarray,
    sigma: float,
    b: np.ndarray,
    t: np.ndarray,
    inside: np.ndarray,
    totals: np.ndarray,
    lack: np.ndarray,
    n_threads: int,
) -> None: ...
