"""Figures of residuals with a smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._input.checks import check_flag, shown
from ..linear import PomModel
from ..linear.residuals import Residual, feature_values, read_rows
from .style import PALETTE, Axes, axes_of

_GRID = 60
_SPAN = 0.75  # share of the rows in a window of the smooth, that of R's loess


def residuals(
    model: PomModel,
    along: str | None = None,
    ax: Axes | None = None,
    *,
    kind: Residual = "surrogate",
    partial: bool = False,
    rng: Any = 0,
) -> Axes:
    """Plot residuals of the training rows by fitted value or along a feature.

    The line is a local linear smooth (loess). Of a model that fits it is close to 0
    everywhere. Levels of a category have boxes.

    Parameters
    ----------
    model : PomModel
        In the process that fitted it.
    along : str, optional
        Name of a feature. By default the fitted value x'beta.
    ax : matplotlib Axes, optional
    kind : {"probability", "surrogate", "score", "deviance"}, default "surrogate"
        Of `model.residuals`. Surrogate residuals have no bands of equal ranks.
    partial : bool, default False
        Add the effect of the feature, its coefficient times its value about the mean,
        for a number with a coefficient. The smooth then is the shape of the effect.
    rng : int, Generator or None, default 0
        Of surrogate residuals.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        If the model is not of `fit_pom`, has no feature of this name, or no coefficient
        for a partial residual; as `model.residuals`.

    See Also
    --------
    coefficients : Plot coefficients of a cumulative link model with confidence
        intervals.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as the
        proportional odds model.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.plot.residuals(model, "x2").get_xlabel()
    'x2'
    """
    if not isinstance(model, PomModel):
        raise TypeError(f"model must be a PomModel, got {shown(model)}")
    value = model.residuals(kind=kind, rng=rng)
    rows = read_rows(model, "residuals")
    used = rows.weight > 0
    name, labels = "fitted value", None
    if along is None:
        Z, offset = rows.source.at(slice(0, value.size))
        x = Z[:, model.location] @ model.coef + offset
    else:
        name = along
        x, labels = feature_values(rows, along)
    if check_flag("partial", partial):
        if labels is not None or name not in model.coef_names:
            raise ValueError(
                f"partial needs a number with a coefficient, and {shown(name)} is none"
            )
        effect = model.coef[model.coef_names.index(name)]
        value = value + effect * (x - x[used].mean())
    x, value = x[used], value[used]

    ax = axes_of(ax, 5.6, 3.8)
    ax.axhline(0, color="black", lw=1, ls="--", zorder=1)
    if labels is not None:
        parts = [value[x == k] for k in range(labels.size)]
        ax.boxplot(
            parts, positions=range(labels.size), medianprops={"color": PALETTE[1]}
        )
        ax.set_xticks(range(labels.size), [str(label) for label in labels.tolist()])
    else:
        ax.plot(x, value, "o", ms=3, color=PALETTE[0], alpha=0.5, zorder=2)
        grid, line = smooth(x, value, rows.weight[used])
        ax.plot(grid, line, color=PALETTE[5], lw=2, zorder=3)
    what = f"partial residual ({kind})" if partial else f"{kind} residual"
    ax.set(xlabel=name, ylabel=what)
    return ax


def smooth(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Local linear regression with tricube weights, at equally spaced places.

    W. S. Cleveland, "Robust locally weighted regression and smoothing scatterplots",
    JASA 74:829-836, 1979, without the robust steps.
    """
    grid = np.linspace(x.min(), x.max(), _GRID)
    nearest = max(2, int(_SPAN * x.size)) - 1
    line = np.empty(_GRID)
    for k, at in enumerate(grid):
        far = np.abs(x - at)
        # a window of equal values has the width of the range
        width = np.partition(far, nearest)[nearest] or np.ptp(x) or 1.0
        w = weight * np.clip(1 - (far / width) ** 3, 0, None) ** 3
        if not w.any():  # the nearest rows are at the edge of the window
            w = weight * (far <= far.min())
        mean = w @ x / w.sum()
        spread = w @ (x - mean) ** 2
        slope = w @ ((x - mean) * y) / spread if spread > 0 else 0.0
        line[k] = w @ y / w.sum() + slope * (at - mean)
    return grid, line
