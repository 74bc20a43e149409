"""Hyperparameters theta: their layout, prior, and starting points of searches.

    theta = (ln gamma [one, or one per feature], ln sigma, b_1, ln Delta_2, ...)

The thresholds are those between ranks that have rows. sigma, b_1 and Delta are in units
of c, the root of the mean prior variance of f.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._input.checks import as_real_array, check_factor, check_positive, listed, shown

_FARTHEST = 1e20  # largest ratio of c and the noise or a threshold at a start
_LEARNED = ("gamma", "noise", "gap")  # hyperparameters that may have a prior


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """Hyperparameters theta: their layout, prior and starts.

    Attributes
    ----------
    n_gammas : int
    c : float
    begin : (p,) array
        Starting point of the first search.
    centre, spread : (p,) arrays
        Mean and standard deviation of the normal prior of theta; the spread of an entry
        without a prior is inf.
    weak : two (p,) arrays
        Mean and standard deviation of random starting points.
    """

    n_gammas: int
    c: float
    begin: np.ndarray
    centre: np.ndarray
    spread: np.ndarray
    weak: tuple[np.ndarray, np.ndarray]

    @classmethod
    def from_arguments(
        cls,
        gamma: np.ndarray,
        c: float,
        present: np.ndarray,
        n_classes: int,
        prior: Any,
        start: Any,
    ) -> Self:
        """Return the hyperparameters for the arguments of `fit_gpor`.

        `gamma` holds the gammas of the default start, `present` the numbers of the
        ranks that have rows. Raises ValueError or TypeError for an invalid prior or
        start.
        """
        # The default thresholds span about two standard deviations of f in all.
        gap = np.log(2 / present.size)
        median = {"gamma": np.log(gamma), "noise": 0.0, "first": -1.0, "gap": gap}
        weak = {"gamma": 2.0, "noise": 0.5, "first": 0.5, "gap": 2.0}
        centre: dict[str, Any] = dict(median)
        spread = {**weak, "first": np.inf}
        if prior is None or isinstance(prior, Mapping):
            spread = dict.fromkeys(median, np.inf)
            given = _checked_prior(prior or {}, gamma.size, c)
            for name, (middle, sd) in given.items():
                centre[name] = np.log(middle)
                spread[name] = sd
        elif not (isinstance(prior, str) and prior == "weak"):
            raise ValueError(
                f"prior must be 'weak', a mapping or None, got {shown(prior)}"
            )
        begin = {}
        if start is not None:
            begin = _checked_start(start, gamma.size, present, n_classes, c)

        sizes = {"gamma": gamma.size, "noise": 1, "first": 1, "gap": present.size - 2}

        def theta(parts: Mapping[str, Any]) -> np.ndarray:
            each = [np.broadcast_to(parts[k], (size,)) for k, size in sizes.items()]
            return np.concatenate(each).astype(float)

        return cls(
            n_gammas=gamma.size,
            c=c,
            begin=theta({**median, **begin}),
            centre=theta(centre),
            spread=theta(spread),
            weak=(theta(median), theta(weak)),
        )

    def penalty(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus the log density of theta, up to a constant, and its slopes."""
        # An entry without a prior has an infinite spread, which gives 0.
        offset = (theta - self.centre) / self.spread
        return 0.5 * float(offset @ offset), offset / self.spread

    def starts(self, n_restarts: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield the starting points of the searches: `begin`, and draws from `weak`."""
        mean, sd = self.weak
        # The first search does not depend on the generator, so restarts only add to it.
        yield self.begin
        for _ in range(n_restarts):
            yield mean + sd * rng.standard_normal(mean.size)

    def gammas(self, theta: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(theta[: self.n_gammas]))

    def of_likelihood(self, theta: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return sigma, b_1 and the (r,) widths of the ranks, inf for the outer two."""
        noise, first, *gaps = theta[self.n_gammas :]
        inner = self.c * np.exp(gaps)
        width = np.concatenate([[np.inf], inner, [np.inf]])
        return self.c * float(np.exp(noise)), self.c * float(first), width


def _checked_prior(
    prior: Mapping[str, Any], n_gammas: int, c: float
) -> dict[str, tuple[Any, Any]]:
    out = {}
    for name, pair in prior.items():
        if name not in _LEARNED or (name == "gamma" and not n_gammas):
            raise ValueError(
                f"prior names {shown(name)}, which the model does not learn"
            )
        try:
            middle, sd = pair
        except (TypeError, ValueError):
            raise ValueError(
                f"prior[{shown(name)}] must be a pair (median, standard deviation "
                f"of the logarithm), got {shown(pair)}"
            ) from None
        sd = check_factor(f"prior[{shown(name)}] deviation", sd)
        if name == "gamma":
            middle = _checked_gammas("prior['gamma']", middle, n_gammas)
        else:
            middle = _relative(f"prior[{shown(name)}] median", middle, c)
        out[name] = (middle, sd)
    return out


def _relative(name: str, value: Any, c: float) -> float:
    """Return a positive number in units of c, after a check of its size."""
    ratio = check_positive(name, value) / c
    # Numbers beyond that vanish in sums with numbers near 1: their derivatives are 0.
    if not 1 / _FARTHEST <= ratio <= _FARTHEST:
        raise ValueError(
            f"{name} must be within a factor of {_FARTHEST:g} of {c:.3g}, the "
            f"standard deviation of f, got {shown(value)}"
        )
    return ratio


def _checked_gammas(name: str, value: Any, n_gammas: int) -> np.ndarray:
    values = as_real_array(value, name)
    if values.shape not in ((), (n_gammas,)):
        raise ValueError(f"{name} has shape {values.shape}, expected ({n_gammas},)")
    if not ((values > 0) & (values < np.inf)).all():
        raise ValueError(f"{name} must be positive and finite, got {shown(value)}")
    return values


def _checked_start(
    start: Any, n_gammas: int, present: np.ndarray, n_classes: int, c: float
) -> dict[str, Any]:
    """Return the parts of theta that `start` names."""
    if not isinstance(start, Mapping):
        raise TypeError(f"start must be a mapping, got {type(start).__name__}")
    unknown = set(start) - {"gamma", "noise", "thresholds"}
    if unknown or ("gamma" in start and not n_gammas):
        name = min(unknown, default="gamma")
        raise ValueError(f"start names {shown(name)}, which the model does not learn")
    out: dict[str, Any] = {}
    if "gamma" in start:
        gamma = _checked_gammas("start['gamma']", start["gamma"], n_gammas)
        out["gamma"] = np.log(gamma)
    if "noise" in start:
        out["noise"] = np.log(_relative("start['noise']", start["noise"], c))
    if "thresholds" in start:
        b = _checked_thresholds(start["thresholds"], present, n_classes) / c
        if np.abs(b).max() > _FARTHEST or np.diff(b).min(initial=1) < 1 / _FARTHEST:
            raise ValueError(
                f"start['thresholds'] must be at most {_FARTHEST:g} times {c:.3g}, "
                "the standard deviation of f, in absolute value, and differ by at "
                f"least {1 / _FARTHEST:g} times it, got "
                f"{shown(start['thresholds'])}"
            )
        out["first"], out["gap"] = b[0], np.log(np.diff(b))
    return out


def _checked_thresholds(value: Any, present: np.ndarray, n_classes: int) -> np.ndarray:
    """Validate (r - 1,) thresholds, and return those between ranks that have rows."""
    b = as_real_array(value, "start['thresholds']", (n_classes - 1,))
    first: np.ndarray = b[present[:-1]]
    last = b[present[1:] - 1]
    if not np.isfinite(first).all() or not (np.diff(first) > 0).all():
        raise ValueError(f"start['thresholds'] must increase, got {listed(b)}")
    if not (first == last).all():
        raise ValueError(
            "start['thresholds'] must be equal on both sides of a rank without "
            f"rows, got {listed(b)}"
        )
    return first
