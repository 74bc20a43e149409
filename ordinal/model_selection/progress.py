"""Progress of a search: fits done, the best point so far, and the remaining time."""

from __future__ import annotations

from typing import Any

from .._watch.progress import Line, duration


class Progress:
    """Progress of a search, reported on its line if it has one.

    Attributes
    ----------
    total : int
        Fits that are known to be asked for.
    best : str
        The best point so far, in words.
    """

    def __init__(self, line: Line | None):
        self._line = line
        self._done = self._known = 0  # fits; those of which the result was stored
        self.total = 0
        self.best = ""

    @classmethod
    def from_argument(cls, progress: Any) -> Progress:
        """Make the progress that the argument `progress` of a search asks for."""
        return cls(Line.from_argument(progress))

    @property
    def shown(self) -> bool:
        return self._line is not None

    def add(self, fits: int, stored: bool) -> None:
        """Count fits that are done, in this run or by an earlier one."""
        self._done += fits
        self._known += fits * stored
        if self._line is not None and self._line.due():
            total, here = max(self.total, self._done), self._done - self._known
            left = (total - self._done) * self._line.seconds / max(1, here)
            time = f"{duration(left)} left" if here else ""
            self._line.show(self._told(total, time), self._done, total)

    def close(self) -> None:
        """Leave the last text on the line."""
        if self._line is not None:
            time = f"{duration(self._line.seconds)} in all"
            self._line.close(self._told(self._done, time), self._done, self._done)
            self._line = None

    def _told(self, total: int, time: str) -> str:
        parts = f"{self._done}/{total} fits", self.best, time
        return "  ".join(part for part in parts if part)
