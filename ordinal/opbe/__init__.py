"""OPBE: projections of the rows for "before, here or after" each rank, fused.

For each rank k an SVORIM (ordinal.svor) of three classes, the ranks before k, k
itself and those after it, projects the rows onto a line f_k with thresholds b_k <= c_k;
that of the first and the last rank has two classes and one threshold. With s_ij = +1
where row i is beyond threshold j and -1 elsewhere, and a weight v_i of row i,

    min_{w,b}  1/2 |w|^2 + C sum_ij v_i max(0, 1 - s_ij (f_k(x_i) - b_j))           (P)

    max_a  sum_ij a_ij - 1/2 beta'K beta,   beta_i = sum_j s_ij a_ij                 (D)
    s.t.   0 <= a_ij <= C v_i  and, for each j,  sum_i s_ij a_ij = 0

The class of a row is taken from its projection by the logistic function,

    P_k(before) = 1 / (1 + exp(z - b)),   P_k(after) = 1 / (1 + exp(c - z)),
    P_k(here) = 1 - P_k(before) - P_k(after),

z being f_k(x). Where c_k - b_k < 4, z, b and c are first multiplied by 4 / (c_k - b_k),
so that "here" can be likely. What is before k belongs to each of the ranks there alike,
and so does what is after it, and the r opinions are multiplied:

    P(y = j | x)  in proportion to  prod_k P_k(class of j) / size of that class.   (F)

The value of (P) less that of (D) is the gap of each problem, bounded as in
ordinal.svor.

M. Perez-Ortiz, P. A. Gutierrez, C. Hervas-Martinez, "Projection-based ensemble learning
for ordinal regression", IEEE Transactions on Cybernetics 44(5):681-694, 2014: the best
of its forms, with products, SVORIM, the logistic function and equal shares. ORCA, its
program, divides (F) by the sum of the shares of rank j over k, which belongs to
combining by sums; it is left out here, as (F) is a product of probabilities without.

The modules of this package:

    fit    the function that users call, the program of every rank, and the model, which
           fuses the projections of the ranks
"""

from .fit import OpbeModel, fit_opbe

__all__ = ["OpbeModel", "fit_opbe"]


def __dir__() -> list[str]:
    return __all__
