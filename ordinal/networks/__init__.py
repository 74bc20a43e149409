"""NNOR and NNPOM: one hidden layer below ordered outputs, or below one score.

With ranks y_i in 0..r-1, weights w_i of sum W, and the units of a hidden layer on
standardised features,

    h(x) = tanh(U'x + a)                                                             (H)

    min_{U,a,V,t}  (1/W) sum_i w_i loss_i + l2/2 (|U|^2 + |V|^2)                     (P)

NNOR has an output o_k = 1 / (1 + exp(t_k - v_k'h(x))) per threshold, which estimates
P(y > k). The code of rank y is 1 for k < y, otherwise 0:

    loss_i = - sum_(k < y_i) log o_k - sum_(k >= y_i) log(1 - o_k)                   (1)
    loss_i = 1/2 sum_k (o_k - [k < y_i])^2                                           (2)

NNPOM has one score f = v'h(x) and a cumulative link with ordered thresholds,

    loss_i = - log(F(theta_(y_i) - f) - F(theta_(y_i - 1) - f))                      (3)

where the parameters are the mean of the thresholds and the logarithms of the gaps
between them, so that the thresholds are always in order.

(P) is not convex: a fit returns the best of the local optima that it reaches from
several random hidden layers, with all outputs at 0. tanh(x) = 2 / (1 + exp(-2 x)) - 1,
so that units with tanh make the same functions as logistic units; their values lie
about 0, where the outputs begin.

J. Cheng, Z. Wang, G. Pollastri, "A neural network approach to ordinal regression",
IJCNN 2008, 1279-1284, which has both (1) and (2). M. J. Mathieson, "Ordinal models for
neural networks", Neural Networks in Financial Engineering, 1996, 523-536. P. A.
Gutierrez, M. Perez-Ortiz, J. Sanchez-Monedero, F. Fernandez-Navarro, C.
Hervas-Martinez, "Ordinal regression methods: survey and experimental study", IEEE TKDE
28:127-146, 2016; its toolbox ORCA has NNOR with (2), called NNOP, and NNPOM with
squares of numbers as gaps. ORCA trains both by Rprop; here L-BFGS uses the exact
gradient.

The modules of this package:

    fit                the functions that users call
    layers             standardised rows, the hidden layer, and losses of outputs
    training           L-BFGS from several random hidden layers
    extreme            ELMOR: ridge regression above a random hidden layer
    convolution        CNNOR: a convolutional network trained on triplets; its model
    models             models of the other fits
"""

from .convolution import CnnorModel
from .fit import fit_cnnor, fit_elmor, fit_nnor, fit_nnpom
from .models import ElmorModel, NnorModel, NnpomModel

__all__ = [
    "CnnorModel",
    "ElmorModel",
    "NnorModel",
    "NnpomModel",
    "fit_cnnor",
    "fit_elmor",
    "fit_nnor",
    "fit_nnpom",
]


def __dir__() -> list[str]:
    return __all__
