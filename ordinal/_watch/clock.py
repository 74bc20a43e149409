"""Clock of a fit, its time limit, and a forecast of its duration."""

import time

from .._input.warning import warn
from ..exceptions import ConvergenceWarning


class Clock:
    """Seconds since the start of a fit, and its limit or None."""

    def __init__(self, limit: float | None):
        self.limit = limit
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def late(self, by: float = 0.0) -> bool:
        """Return whether the limit is exceeded by `by` seconds."""
        return self.limit is not None and self.seconds >= self.limit + by


class Forecast:
    """Warns once if `max_time` is far too short for a fit that `basis=` would suit."""

    RATED = 1.0  # seconds after which the rate of a fit predicts its duration
    # The rate at the beginning of a fit may differ by a factor of two from later ones.
    MARGIN = 2.0

    def __init__(self, method: str, clock: Clock):
        self._method, self._clock = method, clock
        self._stepped = False  # whether a part of the fit has taken a step
        self._made = False

    def update(self, steps: int, needed: int, began: float) -> None:
        """Forecast the duration as soon as the rate is known, and warn if it is late.

        Parameters
        ----------
        steps, needed : int
            Steps since `began`, and the least number that any such fit takes.
        began : float
            Seconds of the fit at its first step.
        """
        limit = self._clock.limit
        if limit is None or self._made:
            return
        self._stepped |= steps > 0
        now = self._clock.seconds
        # A fit that is late has no other occasion to advise; less than a second says
        # nothing.
        ends = now >= max(limit, self.RATED)
        if not ends and (not steps or now - began < self.RATED):
            return
        self._made = True
        duration = began + needed * (now - began) / max(steps, 1)
        if not self._stepped:
            trouble = f"max_time={limit:g} s was over before the first steps"
        elif steps and duration > self.MARGIN * limit:
            trouble = (
                "at the rate of its first second the fit needs at least "
                f"{duration:.0f} s, so max_time={limit:g} s will end it short of the "
                "optimum"
            )
        else:
            return
        warn(
            f"{self._method}: {trouble}: raise max_time, or pass basis='auto' for a "
            "model on a basis",
            ConvergenceWarning,
        )
