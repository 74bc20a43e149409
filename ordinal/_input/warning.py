"""Warnings at the caller of the package."""

import os
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first caller outside this package."""
    frame, level = sys._getframe(1), 2
    while (up := frame.f_back) is not None and _is_own(up):
        frame, level = up, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame belongs to this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)
