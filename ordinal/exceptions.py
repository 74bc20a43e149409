"""Classes of the warnings of fits and of predictions, and of two errors.

Errors are Python's own: ValueError, TypeError, OSError and MemoryError. A statistic
that a fit does not have raises `NoEstimatesError`, probabilities that a model does not
have raise `NoProbabilitiesError`; both are ValueErrors. Each class of warnings can be
filtered alone, such as by
`warnings.simplefilter("error", ordinal.exceptions.ConvergenceWarning)`.
"""

__all__ = [
    "ApproximationWarning",
    "CollinearColumnsWarning",
    "ConvergenceWarning",
    "DisorderedThresholdsWarning",
    "EmptyColumnsWarning",
    "NoEstimatesError",
    "NoProbabilitiesError",
    "UnknownLevelsWarning",
    "UnnamedColumnsWarning",
    "UnscaledFeaturesWarning",
]


def __dir__() -> list[str]:
    return __all__


class ConvergenceWarning(UserWarning):
    """The returned model is usable, but is not the optimum within the tolerance."""


class NoEstimatesError(ValueError, AttributeError):
    """Error of a statistic that a fit does not have.

    It is an AttributeError, so that `hasattr` returns False for such a property.
    """


class NoProbabilitiesError(ValueError, AttributeError):
    """Error of what needs probabilities, for a model that has none.

    Most such models have them if they are fitted with `probability=True`.
    """


class DisorderedThresholdsWarning(UserWarning):
    """Thresholds of the returned model do not increase, or cross at training rows.

    Its `disorder` lists them.
    """


class CollinearColumnsWarning(UserWarning):
    """Columns that depend linearly on others have no coefficient in the model."""


class UnscaledFeaturesWarning(UserWarning):
    """Some features vary much more than the others, which therefore have no effect."""


class EmptyColumnsWarning(UserWarning):
    """Columns of a table have no value in any training row."""


class UnknownLevelsWarning(UserWarning):
    """New rows have categories that no training row has, or dates far from theirs."""


class ApproximationWarning(UserWarning):
    """The integrals of a mixed model are less accurate than its estimates."""


class UnnamedColumnsWarning(UserWarning):
    """An array is passed to a model fitted on named columns, which uses positions."""
