"""Training rows that a model keeps while it lives, for profiles and refits.

It lies in a slot that is no field of the model, so that neither files nor pickles hold
the rows, and equality and copies know nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._cumulative.chunked import ChunkedLikelihood
from .._cumulative.likelihood import Likelihood
from .._cumulative.newton import Loss, Minimum, minimize
from .._input.frame import Frame
from .._model.model import Model
from .._watch.monitor import Monitor

TOL = 1e-6  # of refits, in standard errors: 1e-12 of twice the log likelihood
_MAX_ITER = 200
_ROUNDING = 1e-8  # of the loss, relative to it, by which the rows are known again


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """The loss of a fit and its minimum.

    Attributes
    ----------
    loss : Likelihood
    x : (p,) array
        The minimum, in the parameters of the loss.
    frame : Frame or None
        The table that a coding has made the columns of, if one has.
    """

    loss: Likelihood
    x: np.ndarray
    frame: Frame | None


class Trained(Model):
    """A model that knows its training rows until it is saved or copied."""

    __slots__ = ("remembered",)


def remember(model: Trained, fit: Remembered) -> None:
    """Give a model that was just made the rows it was made of."""
    object.__setattr__(model, "remembered", fit)  # it is frozen otherwise


def remembered(model: Any, asked: str) -> Remembered:
    """Return the training rows of a model, as they were.

    Raises
    ------
    ValueError
        The model came from a file, a pickle or a copy; its rows were read in chunks; or
        they were changed.
    """
    found: Remembered | None = getattr(model, "remembered", None)
    if found is None:
        raise ValueError(
            f"{asked} needs the training rows, which a model has in the process that "
            "fitted it only, not after load, pickle or copy, and not where X was read "
            "in chunks: call it before, or fit again to rows in memory"
        )
    value = found.loss.at(found.x).value
    stored = model.convergence.primal
    if not abs(value - stored) <= _ROUNDING * max(1.0, abs(stored)):
        raise ValueError(
            f"{asked} needs the training rows as they were: the mean loss on them is "
            f"{value:.8g} now and was {stored:.8g}, so the arrays given to the fit "
            "have been changed since; fit again"
        )
    return found


def refit(loss: Loss, x: np.ndarray, asked: str) -> Minimum:
    """Return the minimum of a loss near another one, from x."""
    return minimize(loss, x, _MAX_ITER, Monitor(asked, TOL))


def null_loglik(loss: Likelihood) -> float:
    """Log likelihood of the model without features: the same thresholds, offset and
    link. Free thresholds without an offset give the ranks their shares.
    """
    D = loss.design
    if D.offset is None and D.J.shape[1] == D.T:
        mass = D.mass()
        mass = mass[mass > 0]
        return float(mass @ np.log(mass / D.total))
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    bare = replace(
        D,
        X=np.empty((D.n_samples, 0)),
        centre=nothing,
        spread=nothing,
        location=none,
        nominal=none,
        scale=none,
    )
    kind = ChunkedLikelihood if D.is_chunked else Likelihood
    without = kind(bare, loss.link, 0.0, loss.n_threads)
    return -D.total * refit(without, without.start(), "null_loglik").point.value
