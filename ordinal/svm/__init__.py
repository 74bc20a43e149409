"""Support vector machines for ranks: votes of pairs, one against the others, regression
on the ranks, weights by the distance of ranks, and ordered partitions.

A hyperplane f(x) = <w, phi(x)> + b divides some ranks from others. With s_i = +1 for
rows i of the upper side and -1 for those of the lower side, C_i = C v_i c_i for a row
of weight v_i,

    min_{w,b}  1/2 |w|^2 + sum_i C_i max(0, 1 - s_i f(x_i))                         (P)

    min_g  1/2 g'Kg - sum_i s_i g_i   s.t.  sum_i g_i = 0,  0 <= s_i g_i <= C_i      (D)

and f = K g + b. What the methods divide, their c_i, and what they predict:

    SVC     each pair of ranks, or each rank (upper) from all others; c_i = 1. The rank
            with most votes, or the one of the largest f
    CSSVC   each rank k (upper) from all others; c_i = 1 for its own rows, and for the
            others in proportion to |y_i - k|. The one of the largest f
    SVMOP   for each k but the last, the ranks up to k from those above (upper); c_i in
            proportion to the distance from the nearest rank of the other side. The rank
            with as many positive f as are below it

Proportional c_i have, over the rows of a side, the mean that 1 has, so that C means the
same in each method. With a cost matrix D, k being the rank, or the nearest rank of the
other side, m_i = (D[y_i, k] + D[k, y_i]) / 2 takes the place of the distance, and each
c_i is then multiplied by D[y_i, k] / m_i, by which asymmetric costs divide the weight
between the sides; a common factor restores the mean over all rows. For CSSVC's own rows
that ratio is its mean over the ranks next to k, in place of y_i, and k. Regression
(SVR) has one f, near the ranks as numbers t_i = 0..r-1, with C_i = C v_i:

    min_{w,b}  1/2 |w|^2 + sum_i C_i max(0, |f(x_i) - t_i| - epsilon)               (R)

    min_g  1/2 g'Kg + sum_i (epsilon |g_i| - t_i g_i)
    s.t.   sum_i g_i = 0,  -C_i <= g_i <= C_i                                       (RD)

The value of (P) plus that of (D), or of (R) plus that of (RD), is the duality gap, and

    gap <= violation / 2 * sum_i (hi_i - lo_i)                                     (GAP)

where violation is that of `_quadratic/program.py` (KKT), [lo_i, hi_i] the interval of
g_i, and b the middle of its interval.

C. Cortes, V. Vapnik, "Support-vector networks", Machine Learning 20:273-297, 1995.
C.-W. Hsu, C.-J. Lin, "A comparison of methods for multiclass support vector machines",
IEEE Transactions on Neural Networks 13(2):415-425, 2002. A. J. Smola, B. Schoelkopf, "A
tutorial on support vector regression", Statistics and Computing 14:199-222, 2004. W.
Waegeman, L. Boullart, "An ensemble of weighted support vector machines for ordinal
regression", International Journal of Computer Systems Science and Engineering
3(1):47-51, 2009. E. Frank, M. Hall, "A simple approach to ordinal classification", ECML
2001. P. A. Gutierrez et al., "Ordinal regression methods: survey and experimental
study", IEEE TKDE 28(1):127-146, 2016, whose programs weigh the negatives of CSSVC by
|y_i - k| + 1 (which a cost matrix does here) and scale the ranks of SVR to [0, 1].

The modules of this package:

    fit     the functions that users call
    family  what tells the four methods apart: division of the ranks into two-class
            problems, programs, losses and models
"""

from .family import SvmModel, SvrModel
from .fit import fit_cssvc, fit_svc, fit_svmop, fit_svr

__all__ = ["SvmModel", "SvrModel", "fit_cssvc", "fit_svc", "fit_svmop", "fit_svr"]


def __dir__() -> list[str]:
    return __all__
