"""The base of this package's own exceptions."""


class OrdinalError(Exception):
    """Base class of errors that are no TypeError or ValueError of the caller."""
