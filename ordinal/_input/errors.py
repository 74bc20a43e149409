"""The base of this package's own exceptions."""


class OrdinalError(Exception):
    """What goes wrong without being the caller's TypeError or ValueError."""
