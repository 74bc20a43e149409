"""How every solver in this package reports, is watched, and is stopped."""

import enum
import os
import sys
import warnings
from dataclasses import dataclass
from types import FrameType

import numpy as np


class ConvergenceWarning(UserWarning):
    """The returned model is usable but is not the optimum that was asked for."""


class DisorderedThresholdsWarning(UserWarning):
    """Thresholds of the returned model do not increase; its `disorder` lists them."""


# What models hold, so that searches and the command need not warn of it
HELD_BY_MODELS = (ConvergenceWarning, DisorderedThresholdsWarning)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first caller outside this package."""
    level = 2  # of the caller of this function
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class Status(enum.Enum):
    """Why a fit ended."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    N_EPOCHS = "n_epochs"  # the passes of a stochastic method are over
    HELD_OUT = "held_out"  # rows held out were predicted best here, as was asked for
    STOPPED = "stopped"  # the callback asked for it
    STALLED = "stalled"  # rounding leaves no step that improves
    INDEFINITE = "indefinite"  # the kernel is not positive semi-definite


_REMEDY = {
    Status.MAX_ITER: "raise max_iter or tol",
    Status.MAX_TIME: "raise max_time or tol",
    Status.N_EPOCHS: "raise n_epochs or tol, or use another solver",
    Status.STOPPED: "the callback returned a true value",
    Status.STALLED: "rounding hides smaller violations; raise tol or scale the data",
    Status.INDEFINITE: (
        "the kernel is not positive semi-definite, so a local optimum is all that "
        "can be had; use a positive semi-definite kernel"
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """Certificate of a finished fit, recomputed from the solution itself.

    A method that solves one problem a rank (NPSVOR) holds arrays with one entry a
    rank in every field but `status` and `tol`; `status` is then the worst of them.

    Attributes
    ----------
    status : Status
    n_iter : int or (r,) array
        Iterations of the solver in its own unit, which its docstring names.
    violation : float or (r,) array
        The optimality measure that `tol` limits, in the unit the docstring names.
    tol : float
    primal : float or (r,) array
        The objective at the returned point.
    dual : float or (r,) array, or None
        That of the dual problem; `gap`, their difference, is >= 0 and bounds the
        distance of either from the optimum. None for the methods that have no dual,
        whose optimum may be a local one.
    seconds : float
        Wall time of the whole fit.
    """

    status: Status
    n_iter: int | np.ndarray
    violation: float | np.ndarray
    tol: float
    primal: float | np.ndarray
    dual: float | np.ndarray | None
    seconds: float

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float | np.ndarray:
        return np.nan if self.dual is None else self.primal - self.dual

    @property
    def rel_gap(self) -> float | np.ndarray:
        if self.dual is None:
            return np.nan
        scale = np.maximum(np.maximum(np.abs(self.primal), np.abs(self.dual)), 1.0)
        return self.gap / scale

    def warn_unless_converged(self, solver: str) -> None:
        """Warn at the caller of the `fit_*` function: what was missed, and the cure."""
        if self.status not in (Status.CONVERGED, Status.HELD_OUT):
            limited = self.status in (Status.MAX_ITER, Status.MAX_TIME)
            gap, lower_C = "", ""
            if self.dual is not None:
                gap = f", relative duality gap {np.max(self.rel_gap):.2e}"
                lower_C = ", or lower C" if limited else ""
            warn(
                f"{solver}: {self.status.value} after {np.sum(self.n_iter)} steps, "
                f"violation {np.max(self.violation):.2e} against tol {self.tol:.2e}"
                f"{gap}; {_REMEDY[self.status]}{lower_C}",
                ConvergenceWarning,
            )


def worse(whole: Convergence, fold: Convergence) -> Convergence:
    """The record of a fit that also needed one of a fold: its own, unless the fold
    alone fell short."""
    return fold if whole.converged and not fold.converged else whole
