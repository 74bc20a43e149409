"""The figure of prediction sets beside true labels."""

from __future__ import annotations

import numpy as np

from .._input.checks import shown
from .._input.types import Labels, MatrixLike
from ..prediction_sets import ConformalModel
from .models import true_ranks
from .style import PALETTE, Axes, axes_of, category_ticks

_SET, _HELD, _MISSED = PALETTE[4], PALETTE[0], PALETTE[5]


def prediction_sets(
    sets: ConformalModel,
    X: MatrixLike,
    y: Labels,
    ax: Axes | None = None,
    *,
    coverage: float | None = None,
) -> Axes:
    """Plot sets of neighbouring ranks, with the true ranks of their rows.

    Rows with the same set stand side by side, in a block as high as the set and as wide
    as there are such rows, and within it by their true ranks. These are dots: blue in
    the set, red outside. Above stands the share that is inside, and the mean size.

    Parameters
    ----------
    sets : ConformalModel
        From `ordinal.conformal` or `ordinal.cross_conformal`.
    X : (n, n_features) array-like or data frame
        Rows that neither the model nor the sets have seen.
    y : (n,) array-like
        Their labels, among `sets.classes`.
    ax : matplotlib Axes, optional
    coverage : float in (0, 1), default that of the sets

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        If `sets` is none, or `X`, `y` or `coverage` is not so.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorim(X[::3], y[::3])
    >>> sets = ordinal.conformal(model, X[1::3], y[1::3])
    >>> ordinal.plot.prediction_sets(sets, X[2::3], y[2::3]).get_ylabel()
    'rank'
    """
    if not isinstance(sets, ConformalModel):
        raise TypeError(f"sets must be a ConformalModel, got {shown(sets)}")
    member = sets.predict_set(X, coverage=coverage)
    n, r = member.shape
    rank, _ = true_ranks(sets, y, n, None)
    low, size = member.argmax(axis=1), member.sum(axis=1)
    order = np.lexsort((rank, low, 2 * low + size))  # by the middle of the set
    low, size, rank = low[order], size[order], rank[order]
    held = (low <= rank) & (rank < low + size)

    ax = axes_of(ax, 6.4, 1.4 + 0.45 * r)
    first = np.flatnonzero(
        (np.diff(low, prepend=-1) != 0) | (np.diff(size, prepend=-1) != 0)
    )
    ax.bar(
        first, size[first], np.diff(first, append=n), low[first] - 0.5,
        align="edge", color=_SET, alpha=0.45, edgecolor="white", lw=1.0, zorder=1,
    )  # fmt: skip
    side = float(np.clip(2000 / n, 4, 30))
    for rows, colour, z in ((held, _HELD, 2), (~held, _MISSED, 3)):
        at = np.flatnonzero(rows)
        ax.scatter(at + 0.5, rank[at], side, colour, lw=0, zorder=z)
    asked = sets.coverage if coverage is None else coverage
    ax.set_title(
        f"{held.mean():.1%} of {n} rows in their set ({100 * asked:.4g}% asked for), "
        f"{size.mean():.2f} ranks in a set",
        fontsize="medium",
    )
    ax.set(
        xlim=(0, n), ylim=(-0.6, r - 0.4), xlabel="rows, by their set", ylabel="rank"
    )
    category_ticks(ax, "y", sets.classes)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
