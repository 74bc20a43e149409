"""Gaussian processes for ordinal regression: a latent function cut by thresholds.

    f ~ GP(0, k),    P(y = j | f) = Phi((b_j - f) / sigma) - Phi((b_{j-1} - f) / sigma)

with b_0 = -inf, b_r = inf. The posterior of f at the training rows is approximated by a
Gaussian, by Laplace's method (`laplace`) or by expectation propagation (`ep`).
Both also give the evidence P(D | theta) of the hyperparameters

    theta = (ln gamma [one, or one a feature], ln sigma, b_1, ln Delta_2, ...)

where b_j = b_1 + Delta_2 + .. + Delta_j, and these maximise ln P(D | theta) +
ln P(theta). The scale of f is carried by sigma and the thresholds. Where the kernel's
variance is not 1, both are measured by c, the root of its mean over the training rows.

With the posterior of f(x) of mean mu and variance s^2, (18) is

    P(y = j | x) = Phi((b_j - mu) / t) - Phi((b_{j-1} - mu) / t),  t^2 = sigma^2 + s^2

W. Chu, Z. Ghahramani, "Gaussian processes for ordinal regression", JMLR 6:1019-1041,
2005: (5)-(7), (9)-(11), (16)-(18), (21), (27), Appendices A to C.

The modules of this package:

    fit                   the model and the function that users call
    covariance            prior of the latent values of all rows, or on a basis
    laplace, ep           likelihood; Gaussian posterior and evidence, in two ways
    hyperparameters       theta, its prior, and where searches begin
    evidence              evidence as a function of theta, and its maximum
"""

from .fit import GporModel, fit_gpor

__all__ = ["GporModel", "fit_gpor"]


def __dir__() -> list[str]:
    return __all__
