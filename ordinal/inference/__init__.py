"""Tests, intervals and diagnostics of fitted linear models.

The functions take a model of `fit_pom`, `fit_ratio` or `fit_clmm`, also behind
preprocessing or as the result of a search, as R's generics do; those for which the
mathematics of a family is not defined raise TypeError and say what to use. Some need
the training rows, to which a model refers until it is saved or copied.

    calls                 decorator of these functions
    fitted                protocol of fitted models, and their training rows
    sandwich, limits      covariances; limits of fits whose ranks are separated
    tables, profiles      estimates and statistics; profile likelihood intervals
    covariance            covariances of very many thresholds
    margins               sums over rows, and their gradients by the parameters
    outcomes              probabilities, means and quantiles; marginal effects
    foreign               adapter for the package marginaleffects
    comparisons           Wald tests, contrasts of levels, simultaneous intervals
    nested, steps         likelihood ratio tests; fits of some of the terms
    assumptions           tests of proportional odds, of one scale and of the fit
    diagnostics           residuals, goodness of fit, influence of rows
    simulation            labels that a fitted model draws, and residuals by them
    jeffreys_penalty      finite estimates by the penalty of Jeffreys

>>> import ordinal
>>> X, y = ordinal.datasets.make_gaussians(rng=0)
>>> ordinal.inference.drop1(ordinal.fit_pom(X, y))["name"]
array(['none', 'x1', 'x2'], dtype='<U4')
"""

from .assumptions import goodness_of_fit, proportional_odds_test, scale_test
from .comparisons import (
    contrasts,
    equality_test,
    simultaneous_band,
    simultaneous_intervals,
    wald_test,
)
from .diagnostics import (
    GoodnessOfFit,
    Influence,
    augment,
    hosmer_lemeshow,
    influence,
    negative_rows,
    residuals,
)
from .foreign import for_marginaleffects
from .jeffreys_penalty import jeffreys
from .nested import LikelihoodRatio, anova, lr_test
from .outcomes import marginal_effects, predictions
from .simulation import SimulatedResiduals, simulate, simulated_residuals
from .steps import Steps, add1, drop1, step
from .tables import confint, glance, monotone_effects, odds_ratios, summary, table, tidy

__all__ = [
    "GoodnessOfFit",
    "Influence",
    "LikelihoodRatio",
    "SimulatedResiduals",
    "Steps",
    "add1",
    "anova",
    "augment",
    "confint",
    "contrasts",
    "drop1",
    "equality_test",
    "for_marginaleffects",
    "glance",
    "goodness_of_fit",
    "hosmer_lemeshow",
    "influence",
    "jeffreys",
    "lr_test",
    "marginal_effects",
    "monotone_effects",
    "negative_rows",
    "odds_ratios",
    "predictions",
    "proportional_odds_test",
    "residuals",
    "scale_test",
    "simulate",
    "simulated_residuals",
    "simultaneous_band",
    "simultaneous_intervals",
    "step",
    "summary",
    "table",
    "tidy",
    "wald_test",
]


def __dir__() -> list[str]:
    return __all__
