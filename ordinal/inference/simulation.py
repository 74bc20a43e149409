"""Labels that a fitted model draws, and residuals by them.

The data set and n draws of it are n + 1 sets. If the model is true and its estimates
are exact, they are exchangeable, whatever the dependence of the rows in a set. So the
place of a rank among those of its row in all sets, with ties broken at random, is
uniform on (0, 1), and the place of a statistic of a set among those of all sets gives
an exact p-value.

P. K. Dunn, G. K. Smyth, "Randomized quantile residuals", Journal of Computational and
Graphical Statistics 5:236-244, 1996. F. Hartig, "DHARMa", R package, for their
simulation from mixed models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._cumulative.likelihood import cumulative
from .._input.checks import as_array, check_count, resolve_rng
from .._input.immutable import read_only
from .._input.labels import lacks_label
from .._input.types import ArrayLike, RowsLike
from .calls import on_one_thread
from .diagnostics import RankedRows, check_known_ranks, ends_of, probabilities_of
from .fitted import about_groups, fitted_rows, warn_of_early_end

_BAND = 0.95  # share of the sets whose sorted residuals are between the ends of a band


@on_one_thread
def simulate(
    model: Any,
    X: RowsLike | None = None,
    *,
    n: int = 1,
    offset: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    rng: Any = None,
) -> np.ndarray:
    """Draw labels of rows from a fitted model, as R's `simulate` does.

    The model that is fitted to the draws is a parametric bootstrap. With random
    effects, each draw has new effects of all groups, which the rows of a group share.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (m, n_features) array or data frame, optional
        Default: the training rows that the fit has used.
    n : int, default 1
        Number of draws.
    offset : (m,) array-like, default 0
        Offset of the rows of `X`.
    groups : mapping of names to (m,) labels, optional
        Groups of the rows of `X`, of a model with random effects. Default: the columns
        of these names in the data frame X.
    rng : int, Generator or None
        Source of the random numbers.

    Returns
    -------
    (m, n) array of labels, of the type of `classes`

    Raises
    ------
    ValueError, TypeError
        As for `decision_function`; also if `X` is missing and the model no longer has
        its training rows.

    See Also
    --------
    residuals : Return one residual per row, which is positive for ranks above
        expectation.
    simulated_residuals : Return the places of the ranks among simulated ones, as R's
        DHARMa does.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> judges = {"judge": [i // 8 for i in range(72)]}
    >>> model = ordinal.fit_clmm(X[:, :2], y, groups=judges)
    >>> ordinal.inference.simulate(model, n=3, rng=0).shape
    (72, 3)
    """
    model, X = fitted_rows(model, X, "simulate")
    n = check_count("n", n)
    random = about_groups("simulate", model, groups=groups)
    warn_of_early_end(model)
    labels, generator = model.classes[model.predictor.observed], resolve_rng(rng)
    drawn = _drawn(model, "simulate", X, offset, generator, n, random)
    return np.stack([labels[rank] for rank in drawn], axis=1)


def _drawn(
    model: Any,
    asked: str,
    X: Any,
    offset: Any,
    generator: np.random.Generator,
    n: int,
    random: Mapping[str, Any],
) -> Iterator[np.ndarray]:
    """Yield n sets of ranks, among those with training rows, that a model draws."""
    number, last = np.cumsum(model.predictor.observed), None
    for rows in model._simulated(asked, X, offset, generator, n, **random):
        u = generator.random(len(rows))
        if rows is not last:  # draws without random effects share their rows
            last, is_searched = rows, model._is_searched(rows.offset)
            if is_searched:
                at = rows.at(slice(0, len(rows)))
            else:
                below = np.cumsum(probabilities_of(model, rows), axis=1)[:, :-1]
        if is_searched:
            yield number[model._quantiles(at.Z, at.offset, u)] - 1
        else:
            yield (below < u[:, None]).sum(axis=1)


def _within_ends(
    model: Any, rows: RankedRows, generator: np.random.Generator
) -> np.ndarray:
    """Return ranks of rows, (n,), drawn between the ends of intervals."""
    first, last = rows.first, rows.rank
    if np.array_equal(first, last):
        return last
    u = generator.random(last.size)
    at, observed = rows.source.at(slice(0, last.size)), model.predictor.observed
    if rows.spread is None and model._is_searched(rows.source.offset):
        a, b, _ = ends_of(model, at, first, last)
        low, high = cumulative(model.link, b), cumulative(model.link, a)
        found = model._quantiles(at.Z, at.offset, low + u * (high - low))
        rank = np.cumsum(observed)[found] - 1
    else:
        parts = model._probabilities(at.Z, at.offset, rows.spread)
        P = np.concatenate([part for _, part in parts])[:, observed]
        j = np.arange(P.shape[1])
        P[(j < first[:, None]) | (j > last[:, None])] = 0.0
        below = np.cumsum(P, axis=1)
        rank = (below[:, :-1] <= u[:, None] * below[:, -1:]).sum(axis=1)
    return np.asarray(np.clip(rank, first, last))  # which rounding may pass


class SimulatedResiduals(NamedTuple):
    """Result of `simulated_residuals`.

    Attributes
    ----------
    values : (m,) array
        Residuals between 0 and 1, one per row of positive weight or, with `by`, per
        group.
    band : (2, m) array
        Ends between which 95 % of the sets have their sorted residuals, each by itself.
    p_value : float
        Share of the sets whose largest distance from the uniform distribution is as
        large as that of the data.
    """

    values: np.ndarray
    band: np.ndarray
    p_value: float

    def __repr__(self) -> str:
        return (
            f"SimulatedResiduals({self.values.size} values, p_value={self.p_value:.3g})"
        )


@on_one_thread
def simulated_residuals(
    model: Any,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    *,
    by: ArrayLike | None = None,
    n: int = 250,
    offset: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    rng: Any = None,
) -> SimulatedResiduals:
    """Return the places of the ranks among simulated ones, as R's DHARMa does.

    If the model is true, the residuals are uniform on (0, 1), up to the errors of the
    estimates. Draws have new effects of all groups, which the rows of a group share, so
    that the p-value and the band account for the dependence of the rows. Without random
    effects, a rank that is known as an interval is drawn from the probabilities in it.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X, y : optional
        As for `residuals`. Default: the training rows that the fit has used.
    by : (m,) array-like of labels, optional
        Group of each row, such as a person or a day. The residuals are then those of
        the sums of the ranks of the groups, in the order of their labels.
    n : int, default 250
        Number of draws.
    offset : (m,) array-like, default 0
        Offset of the rows of `X`.
    groups : mapping of names to (m,) labels, optional
        As for `simulate`.
    rng : int, Generator or None
        Source of the random numbers.

    Returns
    -------
    SimulatedResiduals
        A named tuple (values, band, p_value).

    Raises
    ------
    ValueError, TypeError
        As for `residuals`; also if `by` lacks a label.

    See Also
    --------
    residuals : Return one residual per row, which is positive for ranks above
        expectation.
    simulate : Draw labels of rows from a fitted model, as R's `simulate` does.
    ordinal.plot.simulated_residuals : Plot residuals by simulation against the uniform
        distribution or a feature.

    References
    ----------
    P. K. Dunn, G. K. Smyth, "Randomized quantile residuals", Journal of Computational
    and Graphical Statistics 5:236-244, 1996. F. Hartig, "DHARMa", R package.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> judges = [i // 8 for i in range(72)]
    >>> model = ordinal.fit_clmm(X[:, :2], y, groups={"judge": judges})
    >>> ordinal.inference.simulated_residuals(model, rng=0)
    SimulatedResiduals(72 values, p_value=0.952)
    """
    asked = "simulated_residuals"
    model, X = fitted_rows(model, X, asked)
    n = check_count("n", n)
    random = about_groups(asked, model, groups=groups)
    rows = model._ranked_rows(asked, X, y, offset, True)
    if model.predictor.is_mixed:
        why = "because the random effects make ranks within intervals dependent"
        remedy = 'take residuals(kind="quantile"), which are of single rows'
        check_known_ranks((rows.first, rows.rank), asked, why, remedy)
    sizes = None if by is None else _numbers(by, rows.rank.size)
    warn_of_early_end(model)
    generator = resolve_rng(rng)
    used = rows.weight > 0
    drawn = _drawn(model, asked, X, offset, generator, n, random)
    ranks = np.stack([_within_ends(model, rows, generator), *drawn], axis=1)[used]
    if sizes is not None:
        _, group = np.unique(sizes[used], return_inverse=True)
        sums = np.zeros((group.max() + 1, n + 1), dtype=np.int64)
        np.add.at(sums, group, ranks)
        ranks = sums
    places = _places(ranks, generator)
    values = places[:, 0].copy()
    places.sort(axis=0)
    m = len(places)
    above = np.abs(places - np.arange(1, m + 1)[:, None] / m).max(axis=0)
    below = np.abs(places - np.arange(m)[:, None] / m).max(axis=0)
    far = np.maximum(above, below)
    ends = np.quantile(places, [(1 - _BAND) / 2, (1 + _BAND) / 2], axis=1)
    p_value = float(np.mean(far >= far[0]))
    return SimulatedResiduals(read_only(values), read_only(ends), p_value)


def _numbers(by: ArrayLike, n: int) -> np.ndarray:
    """Return the number of the group of each row, (n,)."""
    labels = as_array(by, "by")
    if labels.shape != (n,):
        raise ValueError(
            f"by must hold a label for each of the {n} rows, got shape {labels.shape}: "
            "pass a column of their table"
        )
    absent = lacks_label(labels)
    if absent.any():
        raise ValueError(
            f"by must have no missing label, and lacks that of row "
            f"{int(absent.argmax())}: give these rows a group of their own"
        )
    return np.unique(labels, return_inverse=True)[1].ravel()


def _places(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the places of values in their rows, between 0 and 1, (m, N).

    Equal values share an interval of places, in which each has a random one.
    """
    m, N = values.shape
    order = np.argsort(values, axis=1, kind="stable")
    ordered, index = np.take_along_axis(values, order, axis=1), np.arange(N)
    is_new = np.diff(ordered, axis=1, prepend=ordered[:, :1] - 1) > 0
    first = np.maximum.accumulate(np.where(is_new, index, 0), axis=1)
    is_last = np.roll(is_new, -1, axis=1)
    ends = np.where(is_last, index + 1, N)
    stop = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    places = np.empty((m, N))
    found = (first + rng.random((m, N)) * (stop - first)) / N
    np.put_along_axis(places, order, found, axis=1)
    return places
