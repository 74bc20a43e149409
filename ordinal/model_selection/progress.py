"""One line that tells how far a search is, on a terminal and nowhere else."""

import shutil
import sys
import time
from typing import TextIO


class Progress:
    """done/total, the best so far and the time left, rewritten in place.

    Nothing at all is written unless `stream` is a terminal.
    """

    EVERY = 0.1  # seconds between two lines

    def __init__(self, shown: bool, stream: TextIO | None = None):
        self._stream = sys.stderr if stream is None else stream
        self.shown = shown and self._stream.isatty()
        self._start = self._last = time.perf_counter()
        self._done = self._known = 0  # fits; those of which the result was stored
        self.total = 0
        self.best = ""

    def add(self, fits: int, stored: bool) -> None:
        """So many more fits are done, in this run or by one before."""
        self._done += fits
        self._known += fits * stored
        now = time.perf_counter()
        if self.shown and now - self._last >= self.EVERY:
            self._last = now
            self._write()

    def close(self) -> None:
        """The last line stays."""
        if self.shown:
            self.total = self._done
            self._write()
            self._stream.write("\n")
            self._stream.flush()
            self.shown = False

    def _write(self) -> None:
        seconds = time.perf_counter() - self._start
        total = max(self.total, self._done)
        parts = [f"{self._done}/{total} fits", self.best]
        here = self._done - self._known
        if self._done == total:
            parts.append(f"{duration(seconds)} in all")
        elif here:
            parts.append(f"{duration(seconds / here * (total - self._done))} left")
        line = "  ".join(part for part in parts if part)
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r{line[:width]:<{width}}")
        self._stream.flush()


def duration(seconds: float) -> str:
    """At most two units: 7 s, 3 min 20 s, 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
