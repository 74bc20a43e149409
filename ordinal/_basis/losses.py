"""Sums of piecewise linear losses over rows and groups, and their duals.

With z_i the features of row i on a basis, f = Z w, and groups j = 1..T,

    min  1/2 |w|^2 + sum_ij phi*_ij(b_j - f_i) [+ 1/2 sum_j price_j b_j^2]           (P)
    [s.t. b_1 <= ... <= b_T]

where phi*_ij is the conjugate of a function of two slopes on a box,

    phi_ij(t) = pn t for t < 0 and pp t for t > 0,  lo <= t <= hi,  lo <= 0 <= hi,
    phi*_ij(v) = max(hi (v - pp), lo (v - pn), 0),

whose slopes depend on the rank of the row, and whose box does but for the weight of the
row. The dual of (P), with beta_i = sum_j t_ij, is the quadratic program (Q) of
`_dual/program.py` with Z Z' for the kernel matrix:

    max  -1/2 |Z'beta|^2 - sum_ij phi_ij(t_ij) [- 1/2 sum_j z_j^2 / price_j]         (D)
    s.t. sum_i t_ij = 0  [ordered: nu_(j-1) - nu_j, nu >= 0 | priced: -z_j]

with nu_0 = nu_T = 0. A feasible t and (w, b) are optimal iff, with v_ij = b_j - f_i,

    w = Z'beta,   t_ij = hi where v > pp, 0 where pn < v < pp, lo where v < pn     (KKT)

(anything between at v = pp or pn) [nu_j (b_(j+1) - b_j) = 0 | z_j = price_j b_j]. The
difference of the objectives of any (w, b) and any feasible t bounds how far the former
is from the optimum, and (P) is strongly convex in w:

    1/2 |w - w*|^2 <= P(w, b) - P* <= P(w, b) - D(t),                            (bound)

so that no score f(x) is off by more than |z(x)| times the root of twice the gap.

In this folder:

    n, m, T, r  rows, features, groups, ranks
    w, b        coefficients of the features, thresholds
    t, g        multipliers, and those of the last proximal step; (T, n)
    f           scores Z w
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Losses that define (P), one row of a table per rank.

    Attributes
    ----------
    table : (r, T, 4) array
        lo, hi, pn and pp of each rank and group, for a row of weight 1.
    ordered : bool
        Whether b is.
    price : (T,) array
        Of b; zeros if it is free.
    """

    table: np.ndarray
    ordered: bool
    price: np.ndarray

    @property
    def T(self) -> int:
        return int(self.table.shape[1])

    @property
    def by_group(self) -> np.ndarray:
        """(T, 4, r) the table as kernels read it."""
        return np.ascontiguousarray(self.table.transpose(1, 2, 0), np.float64)

    @property
    def largest(self) -> float:
        """The widest side of a box, for weight 1."""
        return float(np.abs(self.table[..., :2]).max())
