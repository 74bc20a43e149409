"""OFMHS: an ordinal factorization machine with hierarchical sparsity.

The score of a row is of second order, like that of a factorization machine,

    f(x) = sum_j beta_j z_j + sum_(j<k) Theta_jk z_j z_k,   z_j = (x_j - mean_j) / sd_j

and P(y <= j) = 1 / (1 + exp(f(x) - theta_j)) with increasing thresholds: the model of
POM (`ordinal.linear`). With weights w_i of sum W,

    min  -(1/W) sum_i w_i log P(y_i | x_i)
         + l1 sum_j |own_j| + l_pair sum_(j<k) |(m_jk, m_kj, Theta_jk)|_2            (P)

    beta_j = own_j + sum_k m_jk,     l_pair = l1 sqrt(2 + ratio^2)

A pair has three parts, which are all 0 or all free: its interaction, and contributions
to the main effects of its two features. A pair is therefore in the model only together
with both main effects: strong hierarchy. At the optimum own_j and the nonzero m_jk have
the opposite sign of the slope of the loss by beta_j, so that they do not cancel.
beta_j = 0 with a nonzero pair is only possible if that slope is exactly 0: if 0 is the
best main effect without any penalty. If both main effects are in the model already,
their slopes are l1, and the pair enters when its own slope exceeds ratio l1; otherwise
a larger slope is needed.

(P) is convex. `ofmhs/hierarchy.py` describes its solution, and the duality gap that
certifies it.

S. Guo, S. Chen, Q. Tian, "Ordinal factorization machine with hierarchical sparsity",
Frontiers of Computer Science 14(1):67-83, 2020. Only the abstract of that paper was
available: a factorization machine with hierarchical sparsity, as a convex problem for
ordinal labels, solved by ADMM. The following was chosen here. The convex form of a
factorization machine has the matrix Theta in place of products of factors. The loss is
that of a cumulative logistic model. The penalty is the latent group lasso (Obozinski,
Jacob, Vert; glinternet), because it is the one with strong hierarchy whose proximal
step has a closed form and whose dual is explicit; penalties on the rows of a symmetric
Theta need ADMM, which ends with a small violation. There is no nuclear norm of Theta: a
low rank mixes all features, which the hierarchy forbids. Squares are left out, as in
all factorization machines.

G. Obozinski, L. Jacob, J.-P. Vert, "Group lasso with overlaps: the latent group lasso
approach", arXiv:1110.0413, 2011. M. Lim, T. Hastie, "Learning interactions via
hierarchical group-lasso regularization", JCGS 24:627-654, 2015. J. Bien, J. Taylor,
R. Tibshirani, "A lasso for hierarchical interactions", Annals of Statistics
41:1111-1141, 2013. S. Rendle, "Factorization machines", ICDM 2010.

The modules of this package:

    fit        the model and the function that users call
    hierarchy  minimum of (P) on a path of penalties; scores of rows by pairs
"""

from .fit import OfmhsModel, fit_ofmhs

__all__ = ["OfmhsModel", "fit_ofmhs"]


def __dir__() -> list[str]:
    return __all__
