"""Forecast of the duration of a fit by the rate of its first second."""

from .._input.warning import warn
from ..exceptions import ConvergenceWarning


class Forecast:
    """Warns once if `max_time` is far too short for a fit that `basis=` would suit."""

    RATED = 1.0  # seconds after which the rate of a fit predicts its duration
    # The rate at the beginning of a fit may differ by a factor of two from later ones.
    MARGIN = 2.0

    def __init__(self, method: str, max_time: float):
        self._method, self._limit = method, max_time
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
        if not self._stepped:
            trouble = f"max_time={limit:g} was over before the first steps"
        elif steps and duration > self.MARGIN * limit:
            trouble = (
                "at the rate of its first second the fit needs at least "
                f"{duration:.0f} s, so max_time={limit:g} will end it short of the "
                "optimum"
            )
        else:
            return
        warn(
            f"{self._method}: {trouble}: raise max_time, or pass basis='auto' for a "
            "model on a basis",
            ConvergenceWarning,
        )
