"""Residuals of rows, goodness of fit, and the influence of single rows.

With a and b the predictors on the two sides of rank y_i in (1) of the package, s_i the
spread, and p_i = F(a) - F(b), the residuals of a row are

    probability   P(y < y_i) - P(y > y_i) = F(a) + F(b) - 1
    score         d log p_i / d x'beta = (f(b) - f(a)) / (p_i s_i)
    deviance      sqrt(-2 log p_i) with the sign of the first
    surrogate     a draw from F between b and a, less the mean of F

Of a row whose rank is known as an interval, a and b are the predictors on the two sides
of the interval, so that p_i is its probability. If the model is true, their expectation
is 0, and surrogate residuals have the distribution F, centred, in every row; for
intervals, if these depend on the rank only by containing it. The influence of a row is
the Newton step that leaves it out. With x the parameters, V their covariance, g (2,)
the gradient of w_i log p_i by (a, b), M (2, 2) minus its Hessian, J (2, p) the
derivatives of (a, b) by x, and K = J V J',

    leverage = tr(M K)
    change = -V J' (1 - M K)^-1 g                                                    (1)
    cook = u'K u / p,   u = (1 - M K)^-1 g

Ratio models have the T predictors of a row instead of (a, b).

C. Li, B. E. Shepherd, "A new residual for ordinal outcomes", Biometrika 99:473-480,
2012. D. Liu, H. Zhang, "Residuals and diagnostics for ordinal regression models: a
surrogate approach", JASA 113:845-854, 2018. M. W. Fagerland, D. W. Hosmer, "A
goodness-of-fit test for the proportional odds regression model", Statistics in Medicine
32:2235-2249, 2013. D. Pregibon, "Logistic regression diagnostics", Annals of Statistics
9:705-724, 1981.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from .._cumulative.design import Design, mean_offset
from .._cumulative.likelihood import (
    Likelihood,
    cumulative,
    exceeding,
    quantile,
    terms_of,
)
from .._input.checks import check_choice, check_count, listed, resolve_rng
from .._input.immutable import read_only
from .._input.intervals import RankIntervals
from .._input.labels import ranks_of, read_labels
from .._input.types import ArrayLike, MatrixLike, RowsLike
from .._model.printing import Table
from .._model.threshold_model import decide
from .._numerics.rows import counted, quantiles, strips
from .._numerics.tails import chi2_tail
from .calls import on_one_thread
from .fitted import (
    Fitted,
    about_groups,
    covariance_for,
    fitted_model,
    fitted_rows,
    has_errors,
    predictors,
    read_design,
    remembered,
    rows_of,
    scaled_scores,
    thresholds_at,
    warn_of_early_end,
)
from .margins import DesignRows, MatrixRows, TableRows, rows_to_average
from .sandwich import inverse

# what to use instead of functions that need the rows of a fit without random effects
WITHOUT_RANDOM = {"mixed": "fit without random effects, by fit_pom or fit_ratio"}
_LATENT = {"ratio": 'its family has no latent variable, take kind="probability"'}
Residual = Literal["probability", "surrogate", "score", "deviance", "quantile"]
_EULER = 0.5772156649015329  # mean of the Gumbel distribution
# means of F that are not 0; cauchit has no mean, but the median 0
_MEAN = {"loglog": _EULER, "cloglog": -_EULER}
_MIRROR = {"cloglog": "loglog", "loglog": "cloglog"}  # F(-t) = 1 - F(t) of the other
_BLOCK = 1 << 18  # entries of the rows in memory at a time
_MOST = 50_000_000  # entries of tables of rows and ranks, 400 MB
_FEWER = "fit fewer rows, or fewer ranks by ordinal.preprocessing.Binning"


class RankedRows(NamedTuple):
    """Rows with their weights and their ranks 0..T among those with training rows.

    A rank that is known as an interval lies between `first` and `rank`, which are equal
    otherwise. `spread`, (n,), is the standard deviation of the effects of new groups.
    """

    source: MatrixRows | TableRows
    first: np.ndarray
    rank: np.ndarray
    weight: np.ndarray
    spread: np.ndarray | None = None


class GoodnessOfFit(NamedTuple):
    """Result of `hosmer_lemeshow`.

    Attributes
    ----------
    chi2 : float
    dof : int
        (G - 2)(r - 1) + r - 2 for G groups and r ranks.
    p_value : float
    observed, expected : (G, r) arrays
        Weights of the rows of each group by rank, and the sums of their probabilities.
    """

    chi2: float
    dof: int
    p_value: float
    observed: np.ndarray
    expected: np.ndarray

    def __repr__(self) -> str:
        return (
            f"GoodnessOfFit(chi2={self.chi2:.4g}, dof={self.dof}, "
            f"p_value={self.p_value:.3g}; {len(self.observed)} groups)"
        )


class Influence(NamedTuple):
    """Result of `influence`.

    Attributes
    ----------
    leverage : (n,) array
        Share of each row in the fit; the sum is the number of parameters, or near to it
        with scale effects.
    cooks_distance : (n,) array
        Squared length of the change, in standard errors, by the number of parameters.
    change : (n, p) array
        Change of the `parameters` when a row is left out.
    """

    leverage: np.ndarray
    cooks_distance: np.ndarray
    change: np.ndarray


def read_rows(
    model: Fitted, asked: str, X: Any = None, y: Any = None, offset: Any = None
) -> RankedRows:
    """Return the given rows with their ranks, or the training rows.

    Messages name the method `asked`.
    """
    if (X is None) != (y is None):
        given, lacking = ("y", "X") if X is None else ("X", "y")
        raise ValueError(
            f"{asked} needs {lacking} with {given}: pass both or neither, and "
            "all other arguments by name"
        )
    source = rows_to_average(model, asked, X, offset, None)
    if X is None:
        return RankedRows(
            source, *ranks_of_design(remembered(model, asked).loss.design)
        )
    return RankedRows(source, *ranks_among(model, y, source.share.size))


def check_known_ranks(
    ends: tuple[np.ndarray, np.ndarray],
    asked: str,
    why: str = "because it counts rows by rank",
    remedy: str = "pass X and y of rows with known ranks, or look at `residuals`",
) -> None:
    """Raise ValueError if ranks of rows are known as intervals only."""
    if (several := np.count_nonzero(ends[0] < ends[1])) > 0:
        raise ValueError(
            f"{asked} needs the rank of each row, {why}; {several} of {ends[0].size} "
            f"rows have RankIntervals of several ranks: {remedy}"
        )


def ranks_of_design(D: Design) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first and last rank of training rows, and their weights."""
    last = D.rank.astype(np.int64)
    return last if D.lower is None else D.lower.astype(np.int64), last, D.weight


def ranks_among(
    model: Fitted, y: Any, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first and last rank of n labels among those with training rows, and
    weights 1.
    """
    seen = model.predictor.observed
    labels = y if isinstance(y, RankIntervals) else read_labels(y, "y")
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} rows and X {n}; they must match")
    if not isinstance(labels, RankIntervals):
        known = model.classes[seen]
        rank = ranks_of(labels, known, "y", "ranks with training rows").astype(np.int64)
        return rank, rank, np.ones(n)
    first, last = labels.ranks(model.classes)
    number = np.append(0, np.cumsum(seen))
    first, last = number[first], number[last + 1] - 1
    if (first > last).any():
        raise ValueError(
            f"the interval of row {int(np.argmax(first > last))} of y holds no rank "
            f"with training rows: these are {listed(model.classes[seen])}"
        )
    return first, last, np.ones(n)


def ends_of(
    model: Fitted, at: DesignRows, first: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return a, b and 1 / s of rows, (n,) each; a and b are infinite for end ranks."""
    if not model.predictor.may_cross and at.offset.ndim == 1:
        # Only the ends of the rows: there may be a threshold per row.
        f, unit = scaled_scores(model, at.Z, at.offset)
        ends = np.concatenate([[-np.inf], thresholds_at(model, at.Z)[0], [np.inf]])
        return *((ends[k] - f[:, 0]) * unit[:, 0] for k in (rank + 1, first)), unit[
            :, 0
        ]
    eta, unit = predictors(model, at.Z, at.offset)
    eta.sort(axis=1)  # nominal effects may make thresholds cross
    end = np.full((len(eta), 1), np.inf)
    ends, row = np.hstack([-end, eta, end]), np.arange(len(eta))
    return ends[row, rank + 1], ends[row, first], unit[:, 0]


def residuals_of(
    model: Any, rows: RankedRows, kind: Residual, rng: np.random.Generator | None
) -> np.ndarray:
    """Return the residuals of rows, (n,)."""
    out = np.empty(rows.rank.size)
    width = model.predictor.observed.size + len(model.predictor.column_names)
    if model.predictor.family != "cumulative":  # whose rows have curvatures, (T, T)
        width += model.predictor.observed.size**2
    for part in strips(out.size, max(1, _BLOCK // width)):
        at, ends = rows.source.at(part), (rows.first[part], rows.rank[part])
        if kind == "quantile":
            assert rng is not None
            sd = None if rows.spread is None else rows.spread[part]
            below, above = model._mean_sides(at, sd)
            first, last = np.flatnonzero(model.predictor.observed)[np.stack(ends)]
            u = rng.random(last.size)
            out[part] = _drawn_quantiles(below, above, first, last, u)
        else:
            out[part] = model._residuals(at, ends, kind, rng)
    return out


def _drawn_quantiles(
    below: np.ndarray,
    above: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    u: np.ndarray,
) -> np.ndarray:
    """Return normal quantiles of P(y < first) + u P(first <= y <= last), (n,).

    They are computed from the tail in which the probabilities are small and exact.
    """
    none, row = np.zeros((len(last), 1)), np.arange(len(last))
    low, high = np.hstack([none, below]), np.hstack([above, none])  # P(< j), P(> j)
    lower, upper = low[row, first], high[row, last]
    own = np.maximum(1 - lower - upper, 0.0)
    from_top = lower > upper
    p = np.where(from_top, upper + (1 - u) * own, lower + u * own)
    q = quantile("probit", np.clip(p, np.finfo(float).tiny, 1 - np.finfo(float).epsneg))
    return np.asarray(np.where(from_top, -q, q))


def cumulative_residuals(
    model: Fitted,
    at: DesignRows,
    ends: tuple[np.ndarray, np.ndarray],
    kind: Residual,
    rng: np.random.Generator | None,
) -> np.ndarray:
    """Return the residuals of rows of a cumulative model, (n,)."""
    link = model.link
    a, b, unit = ends_of(model, at, *ends)
    if kind == "score":
        return np.asarray(-terms_of(link, a, b)[1] * unit)
    balance = cumulative(link, b) - exceeding(link, a)
    if kind == "probability":
        return np.asarray(balance)
    if kind == "deviance":
        far = np.sqrt(np.maximum(-2 * terms_of(link, a, b)[0], 0.0))
        return np.asarray(np.where(balance < 0, -far, far))
    assert rng is not None
    drawn = _between(link, a, b, rng.random(a.size))
    return np.asarray(drawn - _MEAN.get(link, 0.0))


def _between(link: str, a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the u-quantile of F restricted to the interval from b to a, (n,).

    It is computed from the tail in which the probabilities are small and exact.
    """
    upper = cumulative(link, b) > 0.5
    mirror = _MIRROR.get(link, link)
    low = np.where(upper, exceeding(link, a), cumulative(link, b))
    high = np.where(upper, exceeding(link, b), cumulative(link, a))
    p = low + np.where(upper, 1 - u, u) * (high - low)
    least = np.finfo(float).tiny
    # Quantiles of 0 and 1 are infinite.
    p = np.clip(p, least, 1 - np.finfo(float).epsneg)
    drawn = np.empty(p.size)
    drawn[upper] = -quantile(mirror, p[upper])
    drawn[~upper] = quantile(link, p[~upper])
    return np.clip(drawn, b, a)


def grouped_fit(
    P: np.ndarray, rank: np.ndarray, weight: np.ndarray, groups: int
) -> GoodnessOfFit:
    """Compare ranks with probabilities P, (n, r), in groups of rows by mean rank."""
    r = P.shape[1]
    score = P @ np.arange(1.0, r + 1)
    # Equal scores must be in one group, so duplicate edges are dropped.
    held = weight > 0
    values, counts = counted(score[held], weight[held])
    edges = np.unique(quantiles(values, counts, np.arange(groups) / groups))
    group = np.maximum(np.searchsorted(edges, score, side="left") - 1, 0)
    _, group = np.unique(group, return_inverse=True)  # without empty groups
    G = int(group.max()) + 1
    dof = (G - 2) * (r - 1) + r - 2
    if G < 2 or dof < 1:
        raise ValueError(
            f"hosmer_lemeshow needs 3 groups of different mean ranks (2 for 3 ranks or "
            f"more), and the rows make {G}: add features, or raise groups"
        )
    cell = group * r + rank
    observed = np.bincount(cell, weight, minlength=G * r).reshape(G, r)
    expected = np.array([np.bincount(group, weight * p, minlength=G) for p in P.T]).T
    with np.errstate(invalid="ignore", divide="ignore"):
        cells = (observed - expected) ** 2 / expected
    # Equal counts may both be 0.
    chi2 = float(np.where(observed == expected, 0.0, cells).sum())
    return GoodnessOfFit(chi2, dof, chi2_tail(chi2, dof), observed, expected)


def influence_of(loss: Likelihood, x: np.ndarray, changes: bool = True) -> Influence:
    """Return (1) at the minimum x; without `changes`, no `change`. O(n k p^2)."""
    D, p, k = loss.design, x.size, loss.n_predictors
    V = inverse(loss.at(x).hessian) / D.total
    leverage, cook = np.empty((2, D.n_samples))
    change = np.empty((D.n_samples if changes else 0, p))
    for rows, (J, g, H) in loss.derivatives(x):
        w = D.weight[rows]
        g, M = g * w[:, None], -H * w[:, None, None]
        # One product, because one per row reads all of V each time.
        JV = (J.reshape(-1, p) @ V).reshape(J.shape)
        # K = J V J' of (1), one (k, k) matrix per row
        K = JV @ J.transpose(0, 2, 1)
        MK = M @ K
        leverage[rows] = np.trace(MK, axis1=1, axis2=2)
        A = np.eye(k) - MK
        with np.errstate(divide="ignore", invalid="ignore"):
            # Without these rows, the estimates do not exist.
            needed = ~(np.abs(np.linalg.det(A)) > 0)
            A[needed] = np.nan
            u = np.linalg.solve(A, g[:, :, None])[:, :, 0]
        if changes:
            change[rows] = -np.einsum("nk,nkp->np", u, JV)
        cook[rows] = np.einsum("nk,nkl,nl->n", u, K, u) / p
    with np.errstate(invalid="ignore"):
        change = D.raw(change.T).T
    return Influence(*map(read_only, (leverage, cook, np.ascontiguousarray(change))))


def feature_values(rows: RankedRows, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the values of a feature, (n,), and its labels or None if it is numeric."""
    source = rows.source
    names = source.frame.shown_names if isinstance(source, TableRows) else source.names
    if name not in names:
        raise ValueError(f"along must name a feature, {', '.join(names)}, got {name}")
    j = names.index(name)
    if isinstance(source, TableRows):
        column = source.frame.column(j)
        return column.values, column.labels
    whole = source.at(slice(0, source.share.size)).Z
    return whole[:, j], None


@on_one_thread
def residuals(
    model: Any,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    *,
    kind: Residual = "probability",
    offset: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    rng: Any = None,
) -> np.ndarray:
    """Return one residual per row, which is positive for ranks above expectation.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (n, n_features) array or data frame, optional
        By default the training rows that the fit has used.
    y : (n,) array-like or RankIntervals, optional
        Labels of the rows of `X`.
    kind : {"probability", "surrogate", "score", "deviance", "quantile"}
        "probability" is P(rank < y) - P(rank > y), between -1 and 1. "surrogate" is
        a random draw of the latent variable given the rank, minus its mean; if the
        model is true, these residuals have the distribution of the link in every
        row, in units of the spread. "score" is the derivative of log P(y) by
        x'beta; these residuals of a fit are orthogonal to all features. "deviance"
        is sqrt(-2 log P(y)) with the sign of the first; the weighted sum of their
        squares is the deviance. "quantile" is the normal quantile of a random draw
        between P(rank < y) and P(rank <= y); if the model is true, these residuals are
        standard normal in every row, for every family. With random effects, they are
        those of a new group, over whose effects the probabilities are integrated; all
        other kinds take the conditional modes of the row's groups. For intervals, P(y)
        is P(lower <= rank <= upper), and y is the end next to the other ranks.
    offset : (n,) array-like, default 0
        Offset of the rows of `X`.
    groups : mapping of names to (n,) labels, optional
        Groups of the rows of `X`, of a model with random effects. Default: the columns
        of these names in the data frame X.
    rng : int, Generator or None
        Source of the random numbers of "surrogate" and "quantile".

    Returns
    -------
    (n,) array
        Residuals, not multiplied by weights. Those of the training rows are in the
        order of `model.rows_used`. With link="cauchit", which has no
        mean, surrogate residuals are centred at the median.

    Raises
    ------
    ValueError, TypeError
        As for `decision_function`; also if `kind` is unknown, if X is passed
        without y, if labels have ranks without training rows, or if `X` is missing
        and the model no longer has its training rows.

    See Also
    --------
    augment : Return one entry per row: features, rank, predictions and residuals.
    hosmer_lemeshow : Test the goodness of fit by the method of Fagerland and Hosmer.
    ordinal.plot.residuals : Plot residuals of the training rows by fitted value or
        along a feature.

    References
    ----------
    C. Li, B. E. Shepherd, Biometrika 99:473-480, 2012. D. Liu, H. Zhang, JASA
    113:845-854, 2018. P. K. Dunn, G. K. Smyth, "Randomized quantile residuals", Journal
    of Computational and Graphical Statistics 5:236-244, 1996.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.residuals(model).round(3)
    array([-0.008, -0.033,  0.294, -0.378,  0.496, -0.803,  0.42 ,  0.013])
    """
    model, X = fitted_rows(model, X, "residuals")
    check_choice("kind", kind, get_args(Residual))
    if kind == "surrogate":
        fitted_model(model, 'residuals(kind="surrogate")', _LATENT)
    random = about_groups("residuals", model, groups=groups)
    rows = model._ranked_rows("residuals", X, y, offset, kind == "quantile", **random)
    drawn = resolve_rng(rng) if kind in ("surrogate", "quantile") else None
    return residuals_of(model, rows, kind, drawn)


@on_one_thread
def hosmer_lemeshow(
    model: Any,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    *,
    groups: int = 10,
    offset: ArrayLike | None = None,
) -> GoodnessOfFit:
    """Test the goodness of fit by the method of Fagerland and Hosmer.

    Rows are divided into groups by quantiles of their mean rank, sum_j j P(y = j),
    and the counts of the ranks in each group are compared with the sums of their
    probabilities. A small p-value is evidence against the model. Rows with equal
    means are in the same group, so that there may be fewer groups than requested.
    The chi-square approximation is poor if many expected counts are below 5.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X, y : optional
        As for `residuals`. Default: the training rows, with their weights as
        frequencies.
    groups : int >= 2, default 10
        Number of groups.
    offset : (n,) array-like, default 0
        Offset of the rows of `X`.

    Returns
    -------
    GoodnessOfFit
        A named tuple (chi2, dof, p_value, observed, expected).

    Raises
    ------
    ValueError, TypeError
        As for `residuals`; also if there are too few groups with different mean
        ranks.

    See Also
    --------
    goodness_of_fit : Test the goodness of fit of grouped data by the deviance and
        Pearson's statistic.
    residuals : Return one residual per row, which is positive for ranks above
        expectation.
    proportional_odds_test : Test the proportional odds assumption, for all features and
        for each.

    References
    ----------
    M. W. Fagerland, D. W. Hosmer, Statistics in Medicine 32:2235-2249, 2013.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> test = ordinal.inference.hosmer_lemeshow(ordinal.fit_pom(X, y))
    >>> test.dof, test.observed.shape
    (17, (10, 3))
    """
    model, X = fitted_rows(model, X, "hosmer_lemeshow", WITHOUT_RANDOM)
    groups = check_count("groups", groups, 2)
    rows = read_rows(model, "hosmer_lemeshow", X, y, offset)
    check_known_ranks((rows.first, rows.rank), "hosmer_lemeshow")
    warn_of_early_end(model)
    n, r = rows.rank.size, int(model.predictor.observed.sum())
    check_size("hosmer_lemeshow", n * r, f"counts of {r} ranks, of {n} rows in all")
    P = probabilities_of(model, rows.source)
    return grouped_fit(P, rows.rank, rows.weight, groups)


@on_one_thread
def influence(model: Any) -> Influence:
    """Return leverages, and the change of the estimates without each training row.

    The change is that of one Newton step, which is exact to first order. A row of
    weight 2 is left out as two rows. Curvatures are those of the fit; for scale
    effects, the information of a row is replaced by its mean over the ranks.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.

    Returns
    -------
    Influence
        A named tuple (leverage, cooks_distance, change), with the rows of
        `model.rows_used`. Entries are infinite or nan if the estimates do not exist
        without the row.

    Raises
    ------
    ValueError
        As for `standard_errors`; also if the model no longer has its training rows.

    See Also
    --------
    augment : Return one entry per row: features, rank, predictions and residuals.
    residuals : Return one residual per row, which is positive for ranks above
        expectation.

    References
    ----------
    D. Pregibon, Annals of Statistics 9:705-724, 1981.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> found = ordinal.inference.influence(ordinal.fit_pom(X, y))
    >>> round(float(found.leverage.sum()), 6)
    4.0
    """
    model = fitted_model(model, "influence", WITHOUT_RANDOM)
    covariance_for(model, "influence")
    fit = remembered(model, "influence")
    n, p = fit.loss.design.n_samples, fit.x.size
    changes = f"a change of {p} parameters for each of {n} rows"
    remedy = "take leverages and Cook's distances from augment, or fit fewer rows"
    check_size("influence", n * p, changes, remedy)
    return influence_of(fit.loss, fit.x)


def check_size(asked: str, entries: int, what: str, remedy: str = _FEWER) -> None:
    """Raise ValueError for a table of rows that has too many entries."""
    if entries > _MOST:
        raise ValueError(
            f"{asked} computes {what}, more than {_MOST:g} numbers: {remedy}; "
            "residuals, predict and confint do without them"
        )


def probabilities_of(model: Any, source: MatrixRows | TableRows) -> np.ndarray:
    """Return the probabilities of the ranks that have training rows, (n, r)."""
    P = np.empty((len(source), int(model.predictor.observed.sum())))
    width = model.predictor.observed.size + len(model.predictor.column_names)
    for part in strips(len(P), max(1, _BLOCK // width)):
        eta, _ = predictors(model, *source.at(part)[:2])
        P[part] = model._of_predictors(eta)[:, model.predictor.observed]
    return np.asarray(P / P.sum(axis=1, keepdims=True))


@on_one_thread
def augment(
    model: Any,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    *,
    offset: ArrayLike | None = None,
) -> Table:
    """Return one entry per row: features, rank, predictions and residuals.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X, y, offset : optional
        As for `residuals`. Default: the training rows used by the fit.

    Returns
    -------
    Table
        A dict of (n,) arrays: the features by name; ".row", the position of the row in
        X, or in the training table, from which the fit may have left rows out; ".rank"
        and ".weight", with ".lower" and ".upper" in place of the rank if it is known as
        an interval; ".score", x'beta with the offset; ".fitted", the predicted median;
        ".p[label]" for each rank with training rows; ".residual", the probability-scale
        residual; and, for the training rows of a model with standard errors,
        ".leverage" and ".cooks_distance". `to_pandas` returns them
        with the index of the rows of a pandas DataFrame, so that
        `table.join(augment(model).to_pandas(), rsuffix="_fit")` joins row to row.

    Raises
    ------
    ValueError, TypeError
        As for `residuals`.

    See Also
    --------
    residuals : Return one residual per row, which is positive for ranks above
        expectation.
    influence : Return leverages, and the change of the estimates without each training
        row.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> list(ordinal.inference.augment(ordinal.fit_pom(X, y)))[:6]
    ['x1', 'x2', '.row', '.rank', '.weight', '.score']
    """
    raw, (model, X) = X, fitted_rows(model, X, "augment", WITHOUT_RANDOM)
    rows = read_rows(model, "augment", X, y, offset)
    n, r = rows.rank.size, int(model.predictor.observed.sum())
    check_size("augment", n * r, f"the probabilities of {r} ranks for {n} rows")
    source, every = rows.source, slice(0, rows.rank.size)
    Z, known, _ = source.at(every)
    columns: dict[str, np.ndarray] = {}
    if isinstance(source, TableRows):
        for name, column in zip(source.frame.shown_names, source.frame, strict=True):
            columns[name] = np.asarray(column)
            complete = not np.isnan(column.values).any()
            if column.labels is not None and complete:  # instead of objects
                columns[name] = column.labels[column.values.astype(np.int64)]
    else:
        columns = dict(zip(source.names, Z.T, strict=True))
    positions, index = rows_of(model, raw, n)
    columns[".row"] = positions
    known_ranks = model.classes[model.predictor.observed]
    P = probabilities_of(model, rows.source)
    if np.array_equal(rows.first, rows.rank):
        columns[".rank"] = known_ranks[rows.rank]
    else:
        columns[".lower"], columns[".upper"] = known_ranks[[rows.first, rows.rank]]
    columns |= {
        ".weight": rows.weight,
        ".score": Z[:, model.predictor.location] @ model.coef + mean_offset(known),
        ".fitted": known_ranks[decide(P, "median")],
    }
    columns |= {
        f".p[{label}]": p for label, p in zip(known_ranks.tolist(), P.T, strict=True)
    }
    columns[".residual"] = residuals_of(model, rows, "probability", None)
    if X is None and has_errors(model):
        fit = remembered(model, "augment")
        found = influence_of(fit.loss, fit.x, changes=False)
        columns[".leverage"] = found.leverage
        columns[".cooks_distance"] = found.cooks_distance
    return Table(columns, index)


@on_one_thread
def negative_rows(
    model: Any, X: MatrixLike | None = None, *, offset: ArrayLike | None = None
) -> np.ndarray:
    """Return the rows at which nominal effects make thresholds cross.

    At these rows the formula (1) gives negative probabilities, which
    `predict_proba` avoids by sorting. The option `in_order` of `fit_pom` keeps
    thresholds in order, and `fit_ratio` fits models whose nominal effects cannot
    have this problem.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (n, n_features) array or data frame, optional
        Default: the training rows used by the fit, which are available only in the
        process that fitted the model.
    offset : (n,) array-like, default 0
        With X only.

    Returns
    -------
    (k,) int array
        Positions in X, or in the training table, as `model.rows_used`.

    Raises
    ------
    ValueError, TypeError
        As in `decision_function`; without X as in `influence`, and if an offset is
        passed.

    See Also
    --------
    proportional_odds_test : Test the proportional odds assumption, for all features and
        for each.
    ordinal.fit_ratio : Fit a stopping ratio or an adjacent categories model by maximum
        likelihood.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_pom(X, y, nominal=[0])
    >>> ordinal.inference.negative_rows(model, [[-50.0, 10.0], [15.0, 15.0]])
    array([0])
    """
    model, X = fitted_rows(
        model, X, "negative_rows", None if X is not None else WITHOUT_RANDOM
    )
    if X is not None:
        Z, known = read_design(model, X, offset)
        if model.predictor.family != "cumulative":
            return np.zeros(0, dtype=np.int64)
        theta = thresholds_at(model, Z)  # of one row unless they depend on it
        if known is not None and known.ndim == 2:
            theta = theta - known
        return np.flatnonzero((np.diff(theta, axis=1) < 0).any(axis=1))
    if offset is not None:
        raise ValueError(
            "offset must be None without X, because the training rows have their own"
        )
    design, x = (fit := remembered(model, "negative_rows")).loss.design, fit.x
    if not model.predictor.may_cross:
        return np.zeros(0, dtype=np.int64)
    alpha, nu, _, _ = design.split(x)
    slopes = np.diff(design.J @ nu, axis=0)
    gaps = (
        np.diff(design.J @ alpha)
        - design.columns(slice(0, design.n_samples), design.nominal) @ slopes.T
    )
    if design.offset is not None and design.is_shifted:
        gaps = gaps - np.diff(design.offset)
    return np.asarray(model.rows_used[(gaps < 0).any(axis=1)])
