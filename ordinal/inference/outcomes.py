"""Predictions on the scale of the outcome, with errors by the delta method.

Let F_j = P(y <= j) of a row, or its mean over rows. Probabilities and the mean are
linear in F,

    P(y = j) = F_j - F_(j-1),   P(y > j) = 1 - F_j
    E c_y = c_r - sum_j (c_(j+1) - c_j) F_j                                          (1)

for labels that are numbers c_j. Between labels, quantiles are interpolated:

    Q(q) = c_(j-1) + w (c_j - c_(j-1)),   w = (q - F_(j-1)) / (F_j - F_(j-1))        (2)

for the first j with F_j >= q, and c_1 for q <= F_1. With e the error of the probability
(1 - w) F_(j-1) + w F_j, which is q, the interval of Q(q) runs from Q to Q of the ends
of the interval of q (Woodruff). Its error is half the length of the interval of one
error e to either side: that of the delta method depends on the gap between two labels,
which with as many ranks as rows is as long as a row's by chance.

R. V. Lenth, "emmeans", R package, for grids of levels. R. S. Woodruff, "Confidence
intervals for medians and other position measures", JASA 47:635-646, 1952.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from .._cumulative.likelihood import for_all_ranks, rank_probabilities
from .._input.checks import (
    check_choice,
    check_flag,
    check_share,
    listed,
    shown,
)
from .._input.columns import (
    check_shape,
    check_zeros_are_values,
    feature_names,
    read_frame,
)
from .._input.frame import Frame
from .._input.labels import sample_weights, shares
from .._input.types import ArrayLike, RowsLike
from .._model.printing import Table
from .._numerics.rows import dense, strips
from .._numerics.tails import normal_margin, normal_two_sided
from .calls import on_one_thread
from .fitted import Fitted, about_groups, fitted_rows, rows_of
from .margins import (
    DesignRows,
    Errors,
    MarginRows,
    Means,
    TableRows,
    logit_interval,
    rows_to_average,
)

Linear = Literal["probability", "cumulative", "exceedance", "mean"]
Smooth = Literal["latent", "probability", "cumulative", "exceedance", "mean"]
Kind = Literal["probability", "cumulative", "exceedance", "mean", "quantile", "latent"]
By: TypeAlias = str | Sequence[str] | Mapping[str, Any]
Ends: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # error, lower, upper
# Entries of gradients in memory at a time: with 16 MB instead of 2, those of 3000 rows
# and 2000 ranks took 3.6 times as long.
_BLOCK = 1 << 18
_MOST = 1 << 26  # entries of the matrix of linear functions of F
_ALL = "probability", "cumulative", "exceedance"


class Found(NamedTuple):
    """Values of k functions, and the gradients from which their errors come.

    Attributes
    ----------
    value : (..., k) array
    gradient : (..., k, p) array
    ends : callable
        Returns standard errors and both ends of intervals from errors by `gradient`
        and the half width in errors.
    """

    value: np.ndarray
    gradient: np.ndarray
    ends: Callable[[np.ndarray, float], Ends]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Functions of the distribution of the outcome, which `outcome_of` makes.

    Attributes
    ----------
    kind : Kind
    names : dict of str to (k,) array
        Columns that tell the functions apart.
    observed : (r,) bool array
        Whether each rank has training rows.
    rank : (k,) int array
        Ranks of "probability", "cumulative" and "exceedance".
    numbers : (T + 1,) array
        Labels of the ranks that have training rows, of "mean" and "quantile".
    q : (k,) array
        Probabilities of "quantile".
    """

    kind: Kind
    names: dict[str, np.ndarray]
    observed: np.ndarray
    rank: np.ndarray
    numbers: np.ndarray
    q: np.ndarray

    @property
    def size(self) -> int:
        """The number k of functions."""
        return {"mean": 1, "latent": 1}.get(self.kind, self.rank.size + self.q.size)

    def functions(self) -> np.ndarray:
        """Return the functions that are linear in F, but for a constant, (k, T)."""
        T = int(self.observed.sum()) - 1
        if self.kind == "mean":
            return -np.diff(self.numbers)[None]
        if self.kind in ("quantile", "latent"):
            return np.zeros((0, T))
        k = self.rank.size
        if k * T > _MOST:
            raise ValueError(
                f"kind={shown(self.kind)} of {k} ranks needs {k} x {T} numbers: pass "
                "at= with the labels that are wanted"
            )
        place = np.cumsum(self.observed)
        W, each = np.zeros((k, T + 2)), np.arange(k)
        # Before the first observed rank F is 0, and from the last on it is 1.
        W[each, place[self.rank]] = 1.0
        if self.kind == "probability":
            W[each, place[self.rank] - self.observed[self.rank]] -= 1.0
        return -W[:, 1:-1] if self.kind == "exceedance" else W[:, 1:-1]

    def linear(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Return linear functions, (..., k), of F and 1 - F, (..., T)."""
        if self.kind == "mean":
            return np.asarray(self.numbers[0] + above @ np.diff(self.numbers))[
                ..., None
            ]
        below = for_all_ranks(self.observed, below, 0.0, 1.0)
        above = for_all_ranks(self.observed, above, 1.0, 0.0)
        if self.kind == "probability":
            return rank_probabilities(below, above)[..., self.rank]
        return (below if self.kind == "cumulative" else above)[..., self.rank]

    def linear_ends(self, value: np.ndarray, error: np.ndarray, z: float) -> Ends:
        """Return errors and intervals of values that are no quantiles."""
        if self.kind == "latent":
            return error, value - z * error, value + z * error
        # A mean is a share of the range of the labels.
        first, width = (
            (self.numbers[0], np.ptp(self.numbers)) if self.numbers.size else (0.0, 1.0)
        )
        share = (value - first) / width
        low, high = logit_interval(share, error / width, z)
        return error, first + low * width, first + high * width

    def quantiles(self, below: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return Q(q), (n, k), and the functions of F that are q there, (n, k, T), for
        F (n, T) and q (n, k).
        """
        F, c = np.hstack([below, np.ones((len(below), 1))]), self.numbers
        j = (below[:, None] < q[..., None]).sum(axis=2)
        before, row = np.maximum(j - 1, 0), np.arange(len(below))[:, None]
        lower, upper = F[row, before], F[row, j]
        gap, step = np.where(j > 0, upper - lower, 1.0), c[j] - c[before]
        w = np.where(j > 0, (q - lower) / gap, 0.0)
        each, W = np.arange(q.shape[1]), np.zeros((*j.shape, F.shape[1]))
        W[row, each, before] = 1 - w
        W[row, each, j] += w
        return c[before] + w * step, W[..., :-1]

    def of_quantiles(
        self, below: np.ndarray, gradients: Callable[[np.ndarray], np.ndarray]
    ) -> Found:
        """Return quantiles of rows with F below, (n, T).

        `gradients` returns those of functions of F, (n, k, p).
        """
        q = np.broadcast_to(self.q, (len(below), self.q.size))
        value, W = self.quantiles(below, q)

        def ends(error: np.ndarray, z: float) -> Ends:
            p = *logit_interval(q, error, 1.0), *logit_interval(q, error, z)
            first, last, lower, upper = (self.quantiles(below, end)[0] for end in p)
            return (last - first) / 2, lower, upper

        return Found(value, gradients(W), ends)

    def of_sums(self, means: Means, source: MarginRows) -> Found:
        """Return the values of the mean distribution of rows, (k,)."""
        if self.kind == "latent":
            return self._mean_score(means, source)
        sums, gradient = means.evaluate(source, self.functions())
        if self.kind != "quantile":
            value = self.linear(*sums)
            return self._linear(value, gradient)
        found = self.of_quantiles(
            sums[:1], lambda W: means.evaluate(source, W[0])[1][None]
        )

        def ends(error: np.ndarray, z: float) -> Ends:
            first, lower, upper = found.ends(error[None], z)
            return first[0], lower[0], upper[0]

        return Found(found.value[0], found.gradient[0], ends)

    def of_rows(
        self, means: Means, source: MarginRows
    ) -> Iterator[tuple[slice, Found]]:
        """Yield some rows at a time with their values, (n, k)."""
        W, weights = self.functions(), source.copies
        N, T = weights.size, int(self.observed.sum()) - 1
        width = means.model.parameters.size + means.n_more + T
        step = max(1, _BLOCK // (N * self.size * width))
        for rows in strips(len(source) // N, step):
            n = rows.stop - rows.start
            at = source.at(slice(rows.start * N, rows.stop * N))

            def mean(A: np.ndarray, n: int = n) -> np.ndarray:
                if N == 1:
                    return A
                A = A.reshape(n, N, *A.shape[1:])
                return np.asarray(np.einsum("ic...,c->i...", A, weights))

            def gradients(W: np.ndarray, at: DesignRows = at) -> np.ndarray:
                W = np.repeat(W, N, axis=0) if W.ndim == 3 else W
                return mean(means.gradients(at, W))

            if self.kind == "latent":
                value, gradient = means.scores(at)
                yield rows, self._linear(mean(value), mean(gradient))
                continue
            below, above = map(mean, means.sides(at))
            if self.kind == "quantile":
                yield rows, self.of_quantiles(below, gradients)
            else:
                yield rows, self._linear(self.linear(below, above), gradients(W))

    def values(self, means: Means, source: MarginRows) -> np.ndarray:
        """Return the values of rows without their gradients, (n, k)."""
        found = []
        for rows in strips(len(source), max(1, _BLOCK // self.observed.size)):
            at = source.at(rows)
            if self.kind == "latent":
                found.append(means.scores(at)[0])
                continue
            below, above = means.sides(at)
            if self.kind == "quantile":
                q = np.broadcast_to(self.q, (len(below), self.q.size))
                found.append(self.quantiles(below, q)[0])
            else:
                found.append(self.linear(below, above))
        return np.concatenate(found)

    def _mean_score(self, means: Means, source: MarginRows) -> Found:
        """Return the mean score of rows."""
        value, gradient = (
            np.zeros(1),
            np.zeros((1, means.model.parameters.size + means.n_more)),
        )
        for rows in strips(len(source), max(1, _BLOCK // gradient.size)):
            share = source.shares(rows)
            own = means.scores(source.at(rows))
            value += share @ own[0]
            gradient += np.tensordot(share, own[1], 1)
        return self._linear(value, gradient)

    def _linear(self, value: np.ndarray, gradient: np.ndarray) -> Found:
        def ends(error: np.ndarray, z: float) -> Ends:
            return self.linear_ends(value, error, z)

        return Found(value, gradient, ends)


def outcome_of(model: Fitted, kind: Kind, at: Any, values: Any) -> Outcome:
    """Return the functions of the distribution of the outcome that a caller asks for.

    Raises
    ------
    ValueError, TypeError
        If the kind is unknown, or if `at` or `values` do not fit it.
    """
    check_choice("kind", kind, get_args(Kind))
    observed, classes = model.predictor.observed, model.classes
    none = np.zeros(0)
    numbers = none
    if kind in ("mean", "quantile"):
        numbers = _numbers(classes, kind, values)[observed]
    elif values is not None:
        raise ValueError(f"values is for kind='mean' and 'quantile', got {shown(kind)}")
    rank, q, names = none.astype(np.int64), none, {}
    if kind == "quantile":
        q = np.atleast_1d(np.asarray(0.5 if at is None else at, np.float64))
        if q.ndim != 1 or not q.size or not ((q > 0) & (q < 1)).all():
            raise ValueError(
                f"at must hold probabilities between 0 and 1, got {shown(at)}"
            )
        names = {"quantile": q}
    elif kind in _ALL:
        last = classes.size - (kind != "probability")
        rank = _ranks(classes, last, at)
        if kind == "probability":
            names = {"rank": classes[rank]}
        else:
            names = {"threshold": np.array(model.threshold_names)[rank]}
    elif at is not None:
        raise ValueError(
            "at is for probabilities and quantiles: leave it out with "
            f"kind={shown(kind)}"
        )
    return Outcome(kind, names, observed, rank, numbers, q)


def _numbers(classes: np.ndarray, kind: str, values: Any) -> np.ndarray:
    """Return the number of each rank, (r,)."""
    if values is None:
        if classes.dtype.kind not in "iuf" or not (np.diff(classes) > 0).all():
            raise ValueError(
                f"kind={shown(kind)} needs labels that are increasing numbers, got "
                f"{listed(classes.tolist())}: pass values= with a number per rank"
            )
        values = classes
    numbers = np.asarray(values, np.float64)
    if numbers.shape != classes.shape or not (np.diff(numbers) > 0).all():
        raise ValueError(
            f"values must be {classes.size} increasing numbers, one per rank, got "
            f"{shown(values)}"
        )
    return numbers


def _ranks(classes: np.ndarray, last: int, at: Any) -> np.ndarray:
    """Return the numbers of the ranks `at`, which are among the first `last` labels or,
    where these end at a threshold, numbers between labels.
    """
    if at is None:
        return np.arange(last)
    known = {label: k for k, label in enumerate(classes[:last].tolist())}
    labels, between = np.atleast_1d(at).tolist(), ""
    if not labels:
        raise ValueError("at must hold a label, got none: leave it out for all labels")
    if (
        last < classes.size
        and classes.dtype.kind in "iuf"
        and (np.diff(classes) > 0).all()
    ):
        between = f" or from {classes[0]} to below {classes[-1]}"
        known |= {
            label: int(np.searchsorted(classes, label, "right")) - 1
            for label in labels
            if isinstance(label, int | float) and classes[0] <= label < classes[-1]
        }
    for label in labels:
        if label not in known:
            raise ValueError(
                f"at must be among {listed(classes[:last].tolist())}{between}, got "
                f"{shown(label)}"
            )
    return np.array([known[label] for label in labels], np.int64)


class Rows(NamedTuple):
    """Arguments that state the rows of a prediction."""

    X: Any
    offset: Any
    sample_weight: Any
    random: dict[str, Any]

    def of(self, model: Any, asked: str) -> tuple[Means, MarginRows, Errors]:
        """Return the sums over the rows of a model, with the function of errors."""
        found: tuple[Means, MarginRows, Errors] = model._averages(
            asked, self.X, self.offset, self.sample_weight, **self.random
        )
        return found


def cells_of(
    model: Any, asked: str, rows: Rows, by: By, grid: bool
) -> tuple[dict[str, np.ndarray], Iterator[Rows]]:
    """Return the values of columns by cell, and the rows with these values for each.

    `grid` makes the rows all combinations of the levels of the other columns instead.
    """
    frame, rows = _framed(model, asked, rows)
    coding = model.predictor.coding
    names = list(frame.shown_names)
    labels: dict[str, Any] = {}
    if coding is not None:
        labels = dict(zip(names, coding.categories, strict=False))
    levels = _levels(model, names, labels)
    asked_values = dict(by) if isinstance(by, Mapping) else dict.fromkeys(_listed(by))
    chosen: dict[str, list[Any]] = {}
    for name, values in asked_values.items():
        if name not in levels:
            raise ValueError(
                f"by must name columns, {listed(names)}, got {shown(name)}"
            )
        found = levels[name] if values is None else np.atleast_1d(values).tolist()
        if found is None:
            raise ValueError(
                f"by names the numeric column {shown(name)}: pass its values, as "
                f"by={{{shown(name)}: [...]}}"
            )
        chosen[name] = found
    if grid:
        read = range(model.n_features) if coding is None else coding.columns_read
        own = [names[j] for j in read if names[j] not in chosen]
        others = {name: levels[name] for name in own if levels[name]}
        frame, rows = _grid(frame, rows, others, labels)
    every = list(product(*chosen.values()))
    columns = {
        k: np.array(v) for k, v in zip(chosen, zip(*every, strict=True), strict=True)
    }

    def each() -> Iterator[Rows]:
        for cell in every:
            made = frame
            for name, value in zip(chosen, cell, strict=True):
                made = _with(made, names.index(name), value, labels.get(name))
            yield rows._replace(X=made)

    return columns, each()


def _listed(by: str | Sequence[str]) -> list[str]:
    """Return the names of one or several columns."""
    return [by] if isinstance(by, str) else list(by)


def _framed(model: Any, asked: str, rows: Rows) -> tuple[Frame, Rows]:
    """Return rows as a frame: those given, or the training rows.

    The features of the model come first, in its order. Only the columns of random
    effects follow them.
    """
    if rows.X is not None:
        check_zeros_are_values(rows.X)
        names = wanted = model.feature_names
        if names is not None and model.predictor.is_mixed:
            given = feature_names(rows.X) or ()
            read = [c for own in model.random for c in own.columns_read if c in given]
            wanted = tuple(dict.fromkeys((*names, *read)))
        frame = read_frame(rows.X, wanted)
        if names is None or frame.names is None:
            check_shape(frame.shape, model.n_features)
        return (frame if frame.names else replace(frame, names=names)), rows
    if model.predictor.is_mixed:
        raise ValueError(
            f"{asked} of cells needs X with random effects: pass rows to average over"
        )
    known = rows_to_average(model, asked, None, rows.offset, rows.sample_weight)
    if isinstance(known, TableRows):
        frame = known.frame
    else:
        frame = Frame.of_numbers(dense(known.X), model.feature_names)
    return frame, rows._replace(offset=known.offset, sample_weight=known.share)


def _levels(
    model: Any, names: Sequence[str], labels: dict[str, Any]
) -> dict[str, list[Any] | None]:
    """Return the levels of each category, 0 and 1 of a column of these, or None.

    Columns of random effects, which follow the features, have none.
    """
    levels: dict[str, list[Any] | None] = dict.fromkeys(names)
    for name, is_binary in zip(names, model.predictor.binary, strict=False):
        if (known := labels.get(name)) is not None:
            levels[name] = known.tolist()
        elif is_binary:
            levels[name] = [0.0, 1.0]
    return levels


def _with(frame: Frame, j: int, value: Any, labels: np.ndarray | None) -> Frame:
    """Return rows with one value in column j, a number or a level."""
    if labels is None:
        return frame.with_column(j, float(value))
    known = labels.tolist()
    if value not in known:
        raise ValueError(
            f"by names the level {shown(value)} of {shown(frame.shown_names[j])}, "
            f"whose levels are {listed(known)}"
        )
    if frame.labels[j] is None:  # categories that a formula makes of numbers
        return frame.with_column(j, float(value))
    return frame.with_column(j, known.index(value), labels)


def _grid(
    frame: Frame, rows: Rows, others: dict[str, Any], labels: dict[str, Any]
) -> tuple[Frame, Rows]:
    """Return a row per combination of levels, with other columns at their means."""
    n, names = len(frame), frame.shown_names
    share = shares(sample_weights(rows.sample_weight, n))
    every = list(product(*others.values()))
    values = np.repeat(frame.values[:1], len(every), axis=0)
    for j in range(frame.shape[1]):
        known = ~np.isnan(frame.values[:, j]) & (share > 0)
        if frame.labels[j] is None and known.any():
            values[:, j] = np.average(frame.values[known, j], weights=share[known])
    kinds = tuple("number" if k in ("whole", "truth") else k for k in frame.kinds)
    made = Frame(values, frame.names, frame.labels, kinds)
    parts = [made.rows(slice(i, i + 1)) for i in range(len(every))]
    for i, cell in enumerate(every):
        for name, value in zip(others, cell, strict=True):
            parts[i] = _with(parts[i], names.index(name), value, labels.get(name))
    values = np.concatenate([part.values for part in parts])
    made = Frame(values, parts[0].names, parts[0].labels, parts[0].kinds)
    offset = rows.offset
    if offset is not None:
        mean = np.average(np.asarray(offset, float), axis=0, weights=share)
        offset = np.broadcast_to(mean, (len(every), *np.shape(mean)))
    return made, rows._replace(offset=offset, sample_weight=None)


@on_one_thread
def predictions(
    model: Any,
    X: RowsLike | None = None,
    *,
    kind: Kind = "probability",
    at: ArrayLike | None = None,
    values: ArrayLike | None = None,
    each: bool = False,
    by: By | None = None,
    grid: bool = False,
    level: float = 0.95,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    effects: str | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
) -> Table:
    """Return probabilities, means and quantiles of the outcome, with standard errors
    and intervals.

    They are averages over the rows, or with `each` those of every row, or with `by`
    those of cells: averages in which all rows have the same values of some columns.
    The standard errors are those due to the estimates (delta method); the rows are
    treated as fixed.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (n, n_features) array or data frame, optional
        Rows to average over. Default: the training rows with their weights and
        offsets.
    kind : str, default "probability"
        "probability" is P(y = j), "cumulative" P(y <= j) and "exceedance" P(y > j).
        "mean" and "quantile" are those of the label, which must be a number; quantiles
        are interpolated between labels, and that of several rows is one of their mixed
        distribution. "latent" is the mean of the latent variable less the mean of the
        thresholds, as in `emmeans`: x'beta plus the offset, but for a constant.
    at : label, probability, or sequence of them, optional
        Labels j of probabilities, default all, or probabilities of quantiles, default
        0.5. "cumulative" and "exceedance" take any number from the lowest label to
        below the highest.
    values : (r,) increasing numbers, optional
        Numbers per rank for "mean" and "quantile". Default: the labels.
    each : bool, default False
        Whether to return an entry per row instead of averages.
    by : str, sequence of str, or mapping of str to values, optional
        Columns that define the cells: all combinations of the levels of these
        categories, of 0 and 1, or of the values in the mapping (None for all levels).
    grid : bool, default False
        Whether cells are averages over all combinations of the levels of the other
        columns, with equal weights and numeric columns at their means, as in R's
        `emmeans`, instead of averages over the rows. Columns of 0 and 1 count as
        categories, as the training rows have them.
    level : float in (0, 1), default 0.95
        Confidence level of the intervals. Those of probabilities are symmetric on the
        scale of log p / (1 - p), as in R's `predict.clm`, and therefore lie between 0
        and 1; those of means, likewise between the lowest and the highest label. Those
        of quantiles are the quantiles of such an interval.
    offset : (n,) array-like, default 0
    sample_weight : (n,) array-like >= 0, optional
        Offsets and weights of the rows of `X`.
    effects, groups : optional
        As for `ClmmModel.predict_proba`, of a model with random effects, which needs
        `X`.

    Returns
    -------
    Table
        A dict of arrays: the columns of `by`, or "row" with `each`, as in `augment`;
        "rank",
        "threshold" or "quantile"; "estimate", "standard_error", "lower" and "upper".
        The error of a quantile is half the length of an interval of one error of its
        probability to either side.

    Raises
    ------
    ValueError, TypeError
        As for `decision_function` and `standard_errors`; also if an argument does not
        fit `kind`, if offsets or weights are passed without `X`, or if `X` is missing
        and the model no longer has its training rows.

    See Also
    --------
    marginal_effects : Return average marginal effects of the features on the outcome.
    contrasts : Compare all pairs of levels of a categorical feature.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.predictions(model, kind="cumulative")
    threshold estimate standard_error    lower    upper
    1|2       0.373492      0.0928077 0.215071 0.564661
    2|3       0.630519        0.10474 0.414172 0.804653
    >>> ordinal.inference.predictions(model, X[:2], kind="mean", each=True)
    row estimate standard_error   lower   upper
      0  1.00845      0.0286165 1.00001 2.53713
      1  1.03454      0.0879344 1.00022 2.47633
    >>> ordinal.inference.predictions(model, kind="exceedance", at=2, by="x1")
    x1 threshold estimate standard_error     lower    upper
     0 2|3       0.222361       0.134435 0.0586493  0.56754
     1 2|3       0.439352        0.11579  0.237738 0.663189
    """
    raw, (model, X) = X, fitted_rows(model, X, "predictions")
    z = normal_margin(check_share("level", level))
    random = about_groups("predictions", model, effects=effects, groups=groups)
    check_flag("each", each)
    check_flag("grid", grid)
    if (by is not None and each) or (by is None and grid):
        raise ValueError(
            "each is for rows and by for cells, of which grid says the weights: pass "
            f"by= without each=True, got by={shown(by)}, each={each} and grid={grid}"
        )
    outcome = outcome_of(model, kind, at, values)
    rows = Rows(X, offset, sample_weight, random)
    if each:
        means, source, errors = rows.of(model, "predictions")
        found = outcome.of_rows(means, source)
        parts = [_summary(own, errors, z) for _, own in found]
        n = len(source) // source.copies.size
        positions, index = rows_of(model, raw, n)
        first = {"row": positions}
        index = None if index is None else index.repeat(outcome.size)
    else:
        first, cells, index = {}, iter([rows]), None
        if by is not None:
            first, cells = cells_of(model, "predictions", rows, by, grid)
        parts = []
        for cell in cells:
            means, source, errors = cell.of(model, "predictions")
            parts.append(_summary(outcome.of_sums(means, source), errors, z))
        n = len(parts)
    names = "estimate", "standard_error", "lower", "upper"
    columns = zip(*parts, strict=True)
    return Table(
        {k: np.repeat(v, outcome.size) for k, v in first.items()}
        | {k: np.tile(v, n) for k, v in outcome.names.items()}
        | {k: np.concatenate(v) for k, v in zip(names, columns, strict=True)},
        index,
    )


def _summary(found: Found, errors: Errors, z: float) -> list[np.ndarray]:
    """Return estimates, errors and both ends of intervals, one after the other."""
    gradient = found.gradient
    error = errors(gradient.reshape(-1, gradient.shape[-1])).reshape(found.value.shape)
    return [part.ravel() for part in (found.value, *found.ends(error, z))]


@on_one_thread
def marginal_effects(
    model: Any,
    X: RowsLike | None = None,
    *,
    kind: Linear = "probability",
    at: ArrayLike | None = None,
    values: ArrayLike | None = None,
    level: float = 0.95,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    effects: str | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
) -> Table:
    """Return average marginal effects of the features on the outcome.

    The effect of a numeric feature is the derivative of the mean probability of a
    rank over the rows. That of a column with values 0 and 1 is the difference
    between the mean probabilities with 1 and with 0 in all rows, and that of a
    level of a category, such as "Infl[High]", the difference from the reference
    level. In a formula, all terms with the feature contribute. The effects of a
    feature on the probabilities sum to 0 over the ranks.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (n, n_features) array or data frame, optional
        Rows to average over. Default: the training rows with their weights and
        offsets.
    kind : {"probability", "cumulative", "exceedance", "mean"}, default "probability"
    at, values : optional
        As for `predictions`.
    level : float in (0, 1), default 0.95
        Confidence level of the intervals.
    offset : (n,) array-like, default 0
    sample_weight : (n,) array-like >= 0, optional
        Offsets and weights of the rows of `X`.
    effects, groups : optional
        As for `ClmmModel.predict_proba`, of a model with random effects, which needs
        `X`.

    Returns
    -------
    Table
        A dict of arrays, with an entry for each feature and rank: "name", "rank" (or
        "threshold"; not for the mean), "effect", "standard_error" (delta method), "z",
        "p_value", "lower", "upper". Ranks without training rows are left out of
        "probability" unless `at` names them.

    Raises
    ------
    ValueError, TypeError
        As for `decision_function` and `standard_errors`; also if offsets or weights
        are passed without `X`, if `X` is missing and the model no longer has its
        training rows, or if a formula has a comparison, which has no derivative.

    See Also
    --------
    predictions : Return probabilities, means and quantiles of the outcome, with
        standard errors and intervals.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> effects = ordinal.inference.marginal_effects(model)
    >>> effects["name"][:3], effects["rank"][:3]
    (array(['x1', 'x1', 'x1'], dtype='<U2'), array([1, 2, 3]))
    >>> effects["effect"][:3].round(4)
    array([-0.2192,  0.0022,  0.217 ])
    """
    model, X = fitted_rows(model, X, "marginal_effects")
    z = normal_margin(check_share("level", level))
    random = about_groups("marginal_effects", model, effects=effects, groups=groups)
    check_choice("kind", kind, get_args(Linear))
    if kind == "probability" and at is None:
        at = model.classes[model.predictor.observed]
    outcome = outcome_of(model, kind, at, values)
    rows = Rows(X, offset, sample_weight, random)
    means, source, errors = rows.of(model, "marginal_effects")
    W, features = outcome.functions(), source.features
    found = means.effects(source, W)
    effect = np.array([W @ value for value, _ in found]).ravel()
    error = np.array([errors(gradient) for _, gradient in found]).ravel()
    # Without an error there is no effect: the model does not use the feature, or the
    # effect has no limit.
    ratio = np.divide(effect, error, out=0 * effect, where=error > 0)
    columns = {k: np.tile(v, len(features)) for k, v in outcome.names.items()}
    names = np.array([f.name for f in features], str)
    return Table(
        {
            "name": np.repeat(names, outcome.size),
            **columns,
            "effect": effect,
            "standard_error": error,
            "z": ratio,
            "p_value": normal_two_sided(ratio),
            "lower": effect - z * error,
            "upper": effect + z * error,
        }
    )
