"""Order of the thresholds between ranks of which rows are known as intervals only.

The likelihood of a row whose rank is known keeps the two thresholds about it in order.
Ranks that only intervals hold have no such row. Where the maximum has no weight for
such a rank, the thresholds on its two sides would cross. `RankOrder` finds the ranks
without weight by an active set: it pools thresholds that cross, and separates pooled
ones where the likelihood rises if they move apart. Of flexible thresholds and a convex
loss the result is the maximum over all thresholds that do not cross.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from .design import Design, structure_of

_RISES = 1e-7  # least slope of the mean loss by which pooled thresholds move apart


class _Sloped(Protocol):
    """Loss of the design before any threshold is pooled."""

    @property
    def design(self) -> Design: ...
    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]: ...


class RankOrder:
    """Thresholds that are pooled because no rank between them has weight.

    Parameters
    ----------
    loss : RowwiseLikelihood
        Loss, with or without penalties, of the design without pooled thresholds.

    Attributes
    ----------
    group : (T,) int array
        Number of the pooled threshold of each threshold, which rises by 0 or 1.
    """

    def __init__(self, loss: _Sloped):
        self._loss = loss
        self.group = np.arange(loss.design.T)
        self._seen = {self.group.tobytes()}

    def revise(self, x: np.ndarray, separate: bool = True) -> bool:
        """Pool or separate thresholds at a minimum x of the pooled design, (p,).

        Return whether the groups have changed, so that another fit is needed. Without
        `separate`, x need not be a minimum of the loss.
        """
        D = pooled(self._loss.design, self.group)
        if D.lower is None:
            return False
        alpha, nu, *others = D.split(x)
        theta = D.J @ alpha
        joins = theta[1:] <= theta[:-1]
        if joins.any():
            number = np.append(0, np.cumsum(~joins))
            self.group = number[self.group]
            self._seen.add(self.group.tobytes())
            return True
        if not (separate and D.is_flexible) or self.group[-1] == self.group.size - 1:
            return False
        # Thresholds of the complete design, at which pooled ones are equal.
        every = np.concatenate([theta[self.group], nu[self.group].ravel(), *others])
        gradient = self._loss.value_and_gradient(every)[1][: self.group.size]
        # The slope of the loss as the thresholds of a group from each on move upwards.
        upwards = np.cumsum(gradient[::-1])[::-1]
        after = np.searchsorted(self.group, self.group + 1)
        upwards -= np.append(upwards, 0.0)[after]
        upwards[np.searchsorted(self.group, self.group) == np.arange(after.size)] = 0.0
        at = int(upwards.argmin())
        group = self.group.copy()
        group[at:] += 1
        # Rounding could pool and separate the same thresholds for ever.
        if upwards[at] >= -_RISES or group.tobytes() in self._seen:
            return False
        self.group = group
        self._seen.add(group.tobytes())
        return True


def pooled(D: Design, group: np.ndarray) -> Design:
    """Return a design with one threshold in place of each group of them."""
    T = int(group[-1]) + 1
    if T == D.T:
        return D
    assert D.lower is not None
    kind = "symmetric"
    if D.is_flexible:
        kind = "flexible"
    elif np.array_equal(D.J.dense(), structure_of("equidistant", D.T).dense()):
        kind = "equidistant"
    upper, lower = np.append(group, T), np.append(0, group + 1)
    return replace(
        D,
        rank=upper[D.rank].astype(np.int32),
        lower=lower[D.lower].astype(np.int32),
        J=structure_of(kind, T),
    )


def ranks_left(group: np.ndarray) -> np.ndarray:
    """Return the numbers of the ranks that no pooled threshold excludes, (T' + 1,)."""
    inner = np.flatnonzero(np.diff(group)) + 1
    return np.concatenate([[0], inner, [group.size]])
