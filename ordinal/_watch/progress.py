"""Progress lines: rewritten in place on a terminal, and one line every few seconds
elsewhere, as in a file or a notebook, whose pages keep all that is written.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .._input.checks import check_verbosity


class Line:
    """Progress line, written to `stream` or to the present sys.stderr.

    A text is dropped if the last one is too recent, except in `close`.

    Parameters
    ----------
    stream : text file, optional
    patient : bool, default False
        Show nothing in the first `PATIENCE` seconds, and nothing at all but on a
        terminal or in a notebook.
    """

    EVERY = 0.1  # seconds between two texts on a terminal
    SELDOM = 10.0  # seconds between two lines elsewhere
    PATIENCE = 5.0  # seconds before a patient line shows its first text

    def __init__(self, stream: TextIO | None = None, *, patient: bool = False):
        self._stream = sys.stderr if stream is None else stream
        self._patient = patient
        self._begun = self._last = time.perf_counter()
        self._shown = False

    @classmethod
    def from_argument(cls, progress: Any) -> Line | None:  # noqa: ANN401  (checked here)
        """Return the line that the argument `progress` of a search asks for."""
        if progress is None:
            return cls(patient=True)
        return cls() if check_verbosity("progress", progress) else None

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begun

    @property
    def _in_place(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def due(self) -> bool:
        """Return whether a text would be shown now."""
        if self._patient and not self._may_begin():
            return False
        wait = self.EVERY if self._in_place else self.SELDOM
        if self._patient and not self._shown:
            wait = 0.0
        return time.perf_counter() - self._last >= wait

    def _may_begin(self) -> bool:
        """Return whether a patient line may show texts by now, where it stands."""
        return self.seconds >= self.PATIENCE and (self._in_place or in_notebook())

    def show(self, text: str) -> None:
        """Show a text if one is due."""
        if self.due():
            self._write(text)

    def wipe(self) -> None:
        """Clear the line on a terminal, so that other output can follow."""
        if self._shown and self._in_place and self._stream is not None:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{'':<{width}}\r")
            self._stream.flush()

    def close(self, text: str) -> None:
        """Leave a last text on the line, unless a patient line has shown none."""
        if self._patient and not self._shown:
            return
        self._write(text)
        if self._in_place and self._stream is not None:
            self._stream.write("\n")
            self._stream.flush()

    def _write(self, text: str) -> None:
        """Write a text in place on a terminal, and as a line elsewhere."""
        self._last, self._shown = time.perf_counter(), True
        if self._stream is not None:  # it is None in a process without a console
            if self._in_place:
                width = shutil.get_terminal_size().columns - 1
                text = f"\r{text[:width]:<{width}}"
            else:
                text += "\n"
            self._stream.write(text)
            self._stream.flush()


def in_notebook() -> bool:
    """Return whether the process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


def duration(seconds: float) -> str:
    """Format a duration in at most two units: 7 s, 3 min 20 s, 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class FitLine:
    """Progress line of a fit: its stages, its steps and how it ended.

    Attributes
    ----------
    end : str
        Description of the end, which `close` shows.
    """

    def __init__(self, method: str, start: float, line: Line):
        self._method, self._start, self._line = method, start, line
        self._stages: list[str] = []
        self.end = ""

    def show(self, *progress: str) -> None:
        """Show the present stages, if a text is due."""
        if self._line.due():
            parts = self._begun(), ", ".join(self._stages), *progress
            self._line.show(": ".join(part for part in parts if part))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name a part of the fit while it lasts."""
        self._stages.append(name)
        try:
            yield
        finally:
            self._stages.pop()

    def close(self, error: type[BaseException] | None) -> None:
        """Leave the end of the fit on the line, or the error that ended it."""
        end = self.end if error is None else error.__name__
        self._line.close(f"{self._begun()}: {end}")

    def _begun(self) -> str:
        """Return the beginning of a line, which a narrow terminal still shows."""
        return f"{self._method}, {time.perf_counter() - self._start:.1f} s"


class Progress:
    """Progress of a search, reported on its line if it has one.

    Attributes
    ----------
    total : int
        Number of fits that are known to be needed.
    best : str
        Description of the best point so far.
    """

    def __init__(self, line: Line | None):
        self._line = line
        self._done = self._stored = 0  # fits done; those of them found in the store
        self.total = 0
        self.name = self.best = ""

    @classmethod
    def from_argument(cls, progress: Any, name: str = "") -> Progress:  # noqa: ANN401
        """Make the progress that the argument `progress` of a search asks for.

        The line begins with the name of what is searched.
        """
        made = cls(Line.from_argument(progress))
        made.name = name
        return made

    @property
    def shown(self) -> bool:
        return self._line is not None

    def add(self, fits: int, stored: bool) -> None:
        """Count fits that are done, in this run or by an earlier one."""
        self._done += fits
        self._stored += fits * stored
        if self._line is not None and self._line.due():
            total, here = max(self.total, self._done), self._done - self._stored
            left = (total - self._done) * self._line.seconds / max(1, here)
            time = f"{duration(left)} left" if here else ""
            self._line.show(self._text(total, time))

    def close(self) -> None:
        """Leave the last text on the line."""
        if self._line is not None:
            time = f"{duration(self._line.seconds)} in all"
            self._line.close(self._text(self._done, time))
            self._line = None

    def _text(self, total: int, time: str) -> str:
        """Return the text of the line."""
        parts = self.name, f"{self._done}/{total} fits", self.best, time
        return "  ".join(part for part in parts if part)
