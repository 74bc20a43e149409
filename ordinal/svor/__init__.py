"""Support vector ordinal regression: one direction, a threshold between adjacent ranks.

With s_ij = +1 where y_i > j and -1 elsewhere, f_i = <w, phi(x_i)>, and a weight C_ij of
row i at threshold j,

    min_{w,b}  1/2 |w|^2 + sum_ij C_ij max(0, 1 - s_ij (f_i - b_j))                  (P)

    max_a  sum_ij a_ij - 1/2 beta'K beta,   beta_i = sum_j s_ij a_ij                 (D)
    s.t.   0 <= a_ij <= C_ij  and, for each j,  sum_i s_ij a_ij = 0

The weights come from a cost matrix, C_ij = C v_i |cost[y_i, j+1] - cost[y_i, j]| for a
row of weight v_i:

    SVORIM          |k - j|, so that every row has a margin at every threshold
    Shashua-Levin   1 off the diagonal: at the two thresholds next to the row's rank
    SVOREX          the same, with b_1 <= ... <= b_{r-1} as constraints of (P); the sums
                    of (D) are then mu_j - mu_{j+1} with mu >= 0
    REDSVM          |k - j|, with 1/2 sum_j b_j^2 added to (P); in (D) the sums are
                    then free at a price of 1/2 sum_j (sum_i s_ij a_ij)^2. With the
                    caller's cost it is SVM-EBC

If the rows of the cost are convex, as those of |k - j| are, the optimal thresholds are
in order without a constraint; for other costs, such as that of Shashua-Levin, they may
be out of order. The thresholds of a model minimise (P) for its f exactly, so that this
holds without rounding errors (for SVOREX they are the middle of (17)). The value of (P)
less that of (D) is the duality gap, and with the violation v of `_quadratic/program.py`
(KKT)

    gap <= v / 2 * sum_ij C_ij  [+ (r - 1) v^2 / 8 for REDSVM]                     (GAP)

Where a row is known to lie between two ranks only, SVORIM and REDSVM have no margin at
the thresholds between them (Antoniuk, Franc, Hlavac, "V-shaped interval insensitive
loss for ordinal classification", Machine Learning 103:261-283, 2016).

The two thresholds of a rank without rows are one, with the sum of their weights and of
their prices.

W. Chu, S. S. Keerthi, "Support vector ordinal regression", Neural Computation
19(3):792-815, 2007: (11)-(12), (17)-(19), (24)-(25), Lemma 1, Appendix A. A. Shashua,
A. Levin, NIPS 15, 2003. L. Li, H.-T. Lin, "Ordinal regression by extended binary
classification", NIPS 19, 2007. Lemma 1 is stated for any costs, but its proof requires
that the weight of a threshold does not fall with the distance from the rank, that is,
convex rows.

The modules of this package:

    fit     the functions that users call
    family  the model, and the programs, losses and starts of the four methods
    sum_of_margins  the second policy of Shashua and Levin, with its own program
"""

from .family import SvorModel
from .fit import fit_redsvm, fit_shashua_levin, fit_svorex, fit_svorim

__all__ = ["SvorModel", "fit_redsvm", "fit_shashua_levin", "fit_svorex", "fit_svorim"]


def __dir__() -> list[str]:
    return __all__
