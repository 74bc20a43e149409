"""The table of low rank that is nearest to the known entries of another one.

    min_A  sum_ij W_ij (X_ij - A_ij)^2   s.t.  A has rank at most `rank`             (E)

N. Srebro, T. Jaakkola, "Weighted low-rank approximations", ICML 2003, section 3.
"""

from itertools import chain, repeat

import numpy as np

_MORE = 8  # directions of the power method beside those of the approximation


def low_rank(
    X: np.ndarray, W: np.ndarray, rank: int, tol: float, max_iter: int
) -> tuple[np.ndarray, list[float], float]:
    """A of (E) by EM, for a finite X and weights W in [0, 1], in O(n d rank) a step.

    Every step puts A into the entries without weight and takes the best approximation
    of the table that this fills, by a step of the power method from the one before.
    That never makes (E) worse. A begins at the mean of all entries with a higher rank,
    which then falls by one a step; the steps at `rank` end with one that lowers (E) by
    at most the share `tol` of it, or after `max_iter`.

    Returns A, the value of (E) after every step at `rank`, and the share of it by which
    the last step lowered it; 0 where X is met to rounding.
    """
    exact = 1e-28 * float(np.vdot(W * X, X))  # rounding, from which nothing falls
    size = min(rank + _MORE, *X.shape)
    A = np.full(X.shape, np.average(X, weights=W))
    residual = X - A
    V = np.linalg.svd(A + W * residual, full_matrices=False)[2][:size]
    errors, fall = [np.inf], 1.0
    for k in chain(range(size, rank, -1), repeat(rank, max_iter)):
        filled = A + W * residual
        # The best approximation of rank k with columns from the span of filled V'. As
        # the rows of the last A are in the span of V, it is at least as good as that.
        U = np.linalg.qr(filled @ V.T)[0]
        P, s, V = np.linalg.svd(U.T @ filled, full_matrices=False)
        A = U @ (P[:, :k] * s[:k]) @ V[:k]
        residual = X - A
        if k > rank:
            continue
        errors.append(float(np.vdot(W * residual, residual)))
        fall = 1 - errors[-1] / errors[-2] if errors[-1] > exact else 0.0
        if fall <= tol:
            break
    return A, errors[1:], fall
