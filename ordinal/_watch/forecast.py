"""Forecast of the duration of a fit by the rate of its first second."""

import math

from .._input.warning import warn
from ..exceptions import ConvergenceWarning
from .progress import duration as shown


class Forecast:
    """Warns once if `max_time` is far too short for a fit that `basis=` would suit, or
    if it is None and the fit needs hours.
    """

    RATED = 1.0  # seconds after which the rate of a fit predicts its duration
    # The rate at the beginning of a fit may differ by a factor of two from later ones.
    MARGIN = 2.0
    LONG = 3600.0  # seconds, without `max_time`

    def __init__(self, method: str, max_time: float | None):
        self._method = method
        self._limit = math.inf if max_time is None else max_time
        self._stepped = False  # whether a part of the fit has taken a step
        self._made = False

    def update(self, seconds: float, steps: int, needed: int, began: float) -> None:
        """Forecast the duration as soon as the rate is known, and warn if it is late.

        Parameters
        ----------
        seconds : float
            Seconds of the fit until now.
        steps, needed : int
            Steps since `began`, and the least number that any such fit takes.
        began : float
            Seconds of the fit at its first step.
        """
        if self._made:
            return
        limit = self._limit
        self._stepped |= steps > 0
        # A fit that is late has no other occasion to advise; less than a second says
        # nothing.
        ends = seconds >= max(limit, self.RATED)
        if not ends and (not steps or seconds - began < self.RATED):
            return
        self._made = True
        duration = began + needed * (seconds - began) / max(steps, 1)
        advice = "raise max_time, or"
        if not self._stepped:
            trouble = f"max_time={limit:g} was over before the first steps"
        elif limit == math.inf and duration > self.LONG:
            trouble = (
                "at the rate of its first second the fit needs at least "
                f"{shown(duration)}"
            )
            advice = "pass max_time= to end it earlier, or better"
        elif steps and duration > self.MARGIN * limit:
            trouble = (
                "at the rate of its first second the fit needs at least "
                f"{duration:.0f} s, so max_time={limit:g} will end it short of the "
                "optimum"
            )
        else:
            return
        warn(
            f"{self._method}: {trouble}: {advice} pass basis='auto' for a model on a "
            "basis",
            ConvergenceWarning,
        )
