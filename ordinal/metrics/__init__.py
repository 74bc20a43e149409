"""Metrics of predicted ranks, and of predicted probabilities of ranks.

With a_i and p_i the ranks of row i's true and predicted label, w_i its weight,
W = sum_i w_i, N_j the weight of the rows with a_i = j, and P (n, r) probabilities:

    mze = 1/W sum_i w_i [a_i != p_i]                 mean zero-one error
    accuracy = 1/W sum_i w_i [a_i = p_i] = 1 - mze
    mae = 1/W sum_i w_i |a_i - p_i|                  mean absolute error
    amae, mmae = mean and maximum over j of the mae of the rows with a_i = j
    accuracy_off = 1/W sum_i w_i [|a_i - p_i| <= k]
    gm, ms = geometric mean and minimum over j of the sensitivities
        s_j = 1/N_j sum_{a_i = j} w_i [p_i = j]
    gmsec = sqrt(s_l s_h)
    cem = sum_i w_i c(p_i, a_i) / sum_i w_i c(a_i, a_i),
        c(p, a) = -log2(1/W (N_p / 2 + sum of N_j from a to p, p left out))
    rps = 1/W sum_i w_i sum_{j < r-1} (sum_{k <= j} P_ik - [a_i <= j])^2
    log_loss = -1/W sum_i w_i log P_{i, a_i}

In amae, mmae, gm and ms, j runs over the classes that are present, those with N_j > 0;
l and h are the lowest and the highest of them. The others come from the confusion
matrix C (r, r), C_jk the weight of the rows with a_i = j and p_i = k, so that ties are
sums and not searches: `kappa`, `kendall`, `spearman` and `oci`.

A rank is a position in `labels`, or in the categories of an ordered categorical; else
it is one among the labels that occur, and |a_i - p_i| in `mae`, `amae`, `mmae`
and `accuracy_off` is the difference of the labels themselves, which are numbers, as is
usual. `kappa` and `oci` always count ranks.

`somers_d`, `c_index` and `gamma` compare pairs of rows by a score, and
`confidence_interval` has the standard errors of these and of `kappa`.

Every metric takes (y_true, y_pred, *, labels, sample_weight), `rps` and `log_loss`
probabilities in the place of `y_pred`, and the metrics of pairs scores or labels.

    predictions    metrics of predicted labels
    probabilities  metrics of predicted probabilities
    association    metrics of pairs of rows, and confidence intervals
"""

from .association import (
    Interval,
    c_index,
    confidence_interval,
    gamma,
    somers_d,
    spearman,
)
from .predictions import (
    accuracy,
    accuracy_off,
    amae,
    cem,
    confusion_matrix,
    gm,
    gmsec,
    kappa,
    kendall,
    mae,
    mmae,
    ms,
    mze,
    oci,
)
from .probabilities import log_loss, rps

__all__ = [
    "Interval",
    "accuracy",
    "accuracy_off",
    "amae",
    "c_index",
    "cem",
    "confidence_interval",
    "confusion_matrix",
    "gamma",
    "gm",
    "gmsec",
    "kappa",
    "kendall",
    "log_loss",
    "mae",
    "mmae",
    "ms",
    "mze",
    "oci",
    "rps",
    "somers_d",
    "spearman",
]


def __dir__() -> list[str]:
    return __all__
