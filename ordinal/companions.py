"""Further methods of the literature, for comparison.

They take the same arguments as the functions of `ordinal` itself, return models with
the same methods, and go by their names in `compare`, `select`, the command and
`ordinal.sklearn`:

    fit_redsvm, fit_shashua_levin  support vectors with parallel hyperplanes: reduction
                                   to one binary problem; fixed margin, or the sum of
                                   margins
    fit_svc, fit_cssvc, fit_svmop  support vector machines: votes of pairs of ranks, one
                                   rank against the others, ordered partitions
    fit_svr                        support vector regression on the ranks
    fit_opbe, fit_kdlor            fused binary problems; kernel discriminant analysis
    fit_lit, fit_lat               linear models with a logistic loss at thresholds
    fit_ofmhs                      sparse linear models with pairs of features
    fit_nnor, fit_nnpom            neural networks with one hidden layer
    fit_elmor, fit_cnnor           extreme learning machine; convolutional network

>>> import ordinal
>>> X, y = ordinal.datasets.make_gaussians(rng=0)
>>> model = ordinal.companions.fit_svc(X, y)
>>> model.predict(X[:3])
array([1, 1, 1])
"""

from ._model.public import find_public, public_names

__all__ = public_names("companions")


def __getattr__(name: str) -> object:
    """Import the module of a method when it is first used."""
    globals()[name] = found = find_public(name, "companions")
    return found


def __dir__() -> list[str]:
    return __all__
