"""The function that boosts a cumulative link model; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Unpack

import numpy as np

from .._cumulative.design import masses
from .._cumulative.likelihood import Link, for_all_ranks
from .._input.checks import (
    check_choice,
    check_count,
    check_factor_or_zero,
    check_real,
    shown,
)
from .._input.columns import Categories, column_categories
from .._input.features import column_groups, signs_of
from .._input.immutable import read_only
from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike, Rng
from .._model.folds import N_FOLDS, dealt_shares
from .._model.grouping import group_folds, group_numbers
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, Common, Prepared, prepare, shared_arguments
from .._model.registry import Method, register
from .._numerics.rows import take
from .._numerics.threads import is_forked
from .._rows.reading import Reading, check_in_memory, check_width
from .._solvers import _cumulative
from .._watch.convergence import Status
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .growing import (
    BoostingOptions,
    ColumnOrder,
    Ensemble,
    GrownTrees,
    RoundsEnd,
    Structure,
    grow_by_folds,
    grow_rounds,
    import_lightgbm,
)
from .model import BoostingModel

_ROUNDS = 100  # if no rows can be held out
_MOST_LEAVES = 1024
_ONE_FOLD = 20_000  # rows from which on one fold tells the number of rounds
# Rows from which on trees take several threads. LightGBM's threads spin after each of
# the short steps of a tree: 20 to 50 times the time for less than 2000 rows, where
# other processes keep the processors busy.
_THREADED = 20_000
# From so many features on, a tree is given a part of them. A part of fewer features
# misses interactions.
_SOME_FEATURES = 8
_SAMPLE = 20_000  # about as many rows determine the medians


@preprocessed
def fit_boosting(
    X: MatrixLike,
    y: Labels,
    *,
    n_rounds: int | Literal["auto"] = "auto",
    structure: Structure = "score",
    link: Link = "logit",
    learning_rate: float | None = None,
    n_leaves: int | None = None,
    min_rows: int | None = None,
    row_share: float | None = None,
    feature_share: float | None = None,
    l2: float = 1.0,
    monotone: Mapping[str, int] | Sequence[int] | None = None,
    categorical: Sequence[str | int] = (),
    interactions: Sequence[Sequence[str | int]] | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    tol: float = 1e-4,
    max_iter: int = 2000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> BoostingModel:
    """Fit a cumulative link model whose score is a sum of boosted trees.

    The docstring of `ordinal.boosting` states the model. Trees suit tables with columns
    in different units, categories, missing values and interactions. LightGBM grows them
    (`pip install 'ordinal-regression[trees]'`); predictions, files and explanations of
    the model need numpy alone.

    Parameters
    ----------
    X : (n, d) array-like, sparse matrix or data frame
        Features, one row per observation, in any units. Entries that a sparse matrix
        does not store are 0. NaN, and None in a data frame, marks a missing value.
        Columns of strings or of a categorical type hold categories.
    y : (n,) array-like
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    n_rounds : int or "auto", default "auto"
        Number of boosting rounds, each of which adds one tree per score. "auto" uses
        the number with the smallest hold-out loss in 5-fold cross-validation, or on a
        hold-out set of a fifth of the rows if there are 20 000 or more. Folds are
        stratified by rank.
    structure : {"score", "scores"}, default "score"
        "score" fits one score, with one tree per round. "scores" fits one score per
        threshold, with r - 1 trees per round, for ranks that do not lie along one
        direction.
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default "logit"
        Name of the distribution function F.
    learning_rate : float in (0, 1], optional
        Factor by which the values of each tree are multiplied. Smaller rates need more
        rounds and generalise better. Default: 0.05, or 0.1 for 20 000 rows or more.
    n_leaves : int from 2 to 1024, optional
        Largest number of leaves per tree. Default: 8, 16 for 2000 rows or more, 63 for
        20 000 rows or more.
    min_rows : int, optional
        Smallest number of training rows per leaf, whatever their weights; LightGBM
        estimates this number. Default: 5, n / 20 for less than 100 rows, 20 for 20 000
        rows or more.
    row_share, feature_share : float in (0, 1], optional
        Shares of the rows and features that are drawn for each tree, at least one row
        and one feature. Default: 0.7 of both, but 1 of both for 20 000 rows or more,
        and all of up to 7 features, because trees on a part of few features miss
        interactions.
    l2 : float >= 0, default 1
        Penalty added to the second derivative of each leaf in (3), for weights scaled
        to mean 1.
    monotone : mapping of columns to -1, 0, 1, or a sequence of these, optional
        1 for a feature in which the score must not decrease, -1 for one in which it
        must not increase.
    categorical : names or numbers of columns, optional
        Columns whose values are categories, in addition to those of strings and
        categorical types. Predictions treat a category that does not occur in the
        training rows as missing.
    interactions : sequence of sequences of names or numbers of columns, optional
        Groups of features that may interact: all splits on the path from the root of a
        tree to a leaf use features of one group. Features that are in no group form one
        more group. With one group per feature, the score is a sum of functions of one
        feature each. By default all features may interact.
    groups : (n,) array-like, optional
        Group of each row, such as a patient, for n_rounds="auto". Rows of a group are
        held out together. If all rows are of one group, there are 100 rounds.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows in the loss; they are scaled to mean 1. Unlike in other
        methods, weight 2 is not quite the same as writing the row twice: `l2` is then
        smaller beside the rows, which are more, and bins, `min_rows` and the folds of
        n_rounds="auto" count rows.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds, and the rows and features of
        each tree.
    n_threads : int, optional
        Number of threads. By default, and with fewer than 20 000 rows, LightGBM uses
        one, because its threads wait for each other after each step, which makes fits
        slower, on a busy machine many times; other computations use as many as other
        fits. The result does not depend on it, to the last bit.
    tol : float > 0, default 1e-4
        Tolerance of n_rounds="auto": boosting ends when the last 2.5 / learning_rate
        rounds have lowered the hold-out loss by no more than this share of it.
    max_iter : int, default 2000
        Limit on the number of rounds of n_rounds="auto".
    max_time : float > 0, optional
        Time budget in seconds, checked after every tree. When it is exhausted, the fit
        returns the model with the best number of rounds so far, with a warning. The
        binning of the columns before the first tree and the thresholds after the last
        one are not cut short.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` after every round. If it
        returns a true value, the fit stops. Ctrl-C also takes effect between two
        rounds: it waits for one tree per score and fold, or for LightGBM to bin the
        columns, which takes about a second for a million rows of 20 columns.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    BoostingModel

    Raises
    ------
    ImportError
        If LightGBM is not installed.
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.

    Warns
    -----
    ConvergenceWarning
        If the hold-out loss still decreased after `max_iter` rounds, the time budget
        was exhausted, or the callback stopped the fit. Boosting has no optimum to
        converge to.

    See Also
    --------
    fit_xofm : Fit XOFM: an additive model of piecewise linear curves and surfaces.
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.
    ordinal.plot.importance : Plot importances of features with their standard errors,
        the largest on top.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_boosting(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.importance().names
    ('x1', 'x2')
    """
    options = _TreeOptions(
        structure=structure, link=link, learning_rate=learning_rate, l2=l2,
        n_leaves=n_leaves, min_rows=min_rows, row_share=row_share,
        feature_share=feature_share, monotone=monotone, categorical=categorical,
        interactions=interactions,
    )  # fmt: skip
    count = _count(n_rounds)
    given = shared_arguments(Common, locals())
    fit = _prepare_fit(X, y, groups, count is None, max_iter, options, **given)
    with fit.prepared.monitor:
        fit.begin(holds_out=count is None)
        end = fit.grow(count)
        model = fit.model(end, fit.trees(end.rounds))
        fit.prepared.monitor.conclude(model, warn=_warn)
    return model


def _warn(model: BoostingModel) -> None:
    model.convergence.warn_unless_converged("fit_boosting", remedy=model._remedy())


@dataclass(frozen=True, slots=True)
class _TreeOptions:
    """Options of the trees, as the caller gave them."""

    structure: Any
    link: Any
    learning_rate: Any
    n_leaves: Any
    min_rows: Any
    row_share: Any
    feature_share: Any
    l2: Any
    monotone: Any
    categorical: Any
    interactions: Any

    def check(self) -> None:
        """Raise ValueError for an option that is unusable, whatever the rows."""
        self.settings((1, 1), None, 0, 1, 1)

    def settings(
        self,
        shape: tuple[int, int],
        monotone: np.ndarray | None,
        seed: int,
        tree_threads: int,
        n_threads: int,
        columns: Sequence[int] = (),
        interactions: Sequence[Sequence[int]] = (),
    ) -> BoostingOptions:
        """Return the checked options, whose defaults depend on the numbers of rows and
        features in `shape`.

        `columns` are those of categories; `monotone` and `interactions` are by column.
        """
        n, d = shape
        check_choice("structure", self.structure, ("score", "scores"))
        check_choice("link", self.link, _cumulative.LINKS)
        few, some = n < 2000, n < _ONE_FOLD
        sampled = 0.7 if some else 1.0
        rate = _share("learning_rate", self.learning_rate, 0.05 if some else 0.1)
        row_share = _share("row_share", self.row_share, sampled)
        feature_share = _share(
            "feature_share", self.feature_share, sampled if d >= _SOME_FEATURES else 1.0
        )
        leaves = 8 if few else 16 if some else 63
        if self.n_leaves is not None:
            leaves = check_count("n_leaves", self.n_leaves, 2)
            if leaves > _MOST_LEAVES:
                raise ValueError(
                    f"n_leaves must be at most {_MOST_LEAVES}, got "
                    f"{shown(self.n_leaves)}"
                )
        least = min(5, max(1, n // 20)) if some else 20
        if self.min_rows is not None:
            # LightGBM counts rows in 32 bits; more than there are allow no split.
            least = min(check_count("min_rows", self.min_rows), 2**31 - 1)
        return BoostingOptions(
            self.link, self.structure, learning_rate=rate, n_leaves=leaves,
            min_rows=least, row_share=row_share, feature_share=feature_share,
            l2=check_factor_or_zero("l2", self.l2),
            monotone=np.zeros(0, np.int8) if monotone is None else monotone,
            categorical=list(columns), interactions=interactions, seed=seed,
            tree_threads=tree_threads, n_threads=n_threads,
        )  # fmt: skip


def _share(name: str, value: Any, default: float) -> float:
    """Return an option in (0, 1], or its default for None."""
    if value is None:
        return default
    rule = "a number above 0, and at most 1"
    return check_real(name, value, lambda v: 0 < v <= 1, rule)


def _count(n_rounds: Any) -> int | None:
    """Return a checked number of rounds, or None for "auto"."""
    if not isinstance(n_rounds, str):
        return check_count("n_rounds", n_rounds)
    if n_rounds != "auto":
        raise ValueError(
            f"n_rounds must be a positive integer or 'auto', got {shown(n_rounds)}"
        )
    return None


def _prepare_fit(
    X: Any,
    y: Any,
    groups: Any,
    holds_out: bool,
    max_iter: Any,
    options: _TreeOptions,
    **common: Unpack[Common],
) -> _BoostingFit:
    """Check all arguments and read the rows; `holds_out` allows `groups`.

    Raises
    ------
    ImportError, ValueError, TypeError
        As `fit_boosting`.
    """
    max_iter = check_count("max_iter", max_iter)
    options.check()
    if groups is not None and not holds_out:
        raise ValueError(
            "groups is for n_rounds='auto' only, which holds rows out: leave it out"
        )
    import_lightgbm()
    check_in_memory("fit_boosting", X)
    check_width("fit_boosting", X)
    categories = column_categories(X, options.categorical)
    reading = Reading(missing=True, categories=categories)
    prepared = prepare("fit_boosting", X, y, reading, **common)
    problem = prepared.problem
    if problem.lower is not None:
        _check_of_intervals(options.structure, options.link)
    # The training rows of a search may be of one group, none of which is held out.
    group = group_numbers(groups, problem.n_samples, least=1)
    sign = signs_of(options.monotone, problem.shown_names, categories)
    seed = int(prepared.rng.integers(2**31))
    n = int(np.count_nonzero(problem.weight))
    if options.row_share is not None and options.row_share * n < 1:
        raise ValueError(
            f"row_share={shown(options.row_share)} of {n} rows is less than one row "
            f"per tree: pass at least {1 / n:.3g}"
        )
    # A region of OpenMP would wait for ever in a forked child.
    explicit = common.get("n_threads") is not None and not is_forked()
    settings = options.settings(
        (n, len(categories)),
        sign,
        seed,
        prepared.n_threads if explicit and n >= _THREADED else 1,
        prepared.n_threads,
        [j for j, labels in enumerate(categories) if labels is not None],
        column_groups(options.interactions, problem.shown_names),
    )
    return _BoostingFit(prepared, group, categories, settings, max_iter)


def _check_of_intervals(structure: str, link: str) -> None:
    """Raise ValueError for options that intervals of ranks do not allow."""
    allowed = {"structure": (structure, "scores"), "link": (link, "cauchit")}
    for name, (given, refused) in allowed.items():
        if given == refused:
            raise ValueError(
                f"{name} must not be {shown(refused)} where y holds RankIntervals: "
                "leave it out, or pass the rows with a known rank"
            )


class _BoostingFit:
    """Boosting of the rows that have a weight.

    Attributes
    ----------
    prepared : Prepared
        It is entered before `begin` and `grow`.
    """

    def __init__(
        self,
        prepared: Prepared,
        group: np.ndarray | None,
        categories: Categories,
        settings: BoostingOptions,
        max_iter: int,
    ):
        whole = prepared.problem
        weighted = np.flatnonzero(whole.weight)
        problem = whole
        if weighted.size < whole.n_samples:
            problem = whole.subset(weighted)
        self.prepared, self.monitor = prepared, prepared.monitor
        self._problem, self._X = problem, problem.X
        self._group = None if group is None else group[weighted]
        self._categories, self._settings, self._rng = categories, settings, prepared.rng
        self._max_iter = max_iter
        self._rank, self._lower = problem.rank_among_present, None
        if problem.lower is not None:
            self._lower = problem.among_present[problem.lower]
        self._q = int(np.count_nonzero(problem.present))
        self._weight = problem.weight / problem.weight.mean()

    def begin(self, holds_out: bool) -> None:
        """Bin the rows by LightGBM, and start the ensemble of all rows.

        With `holds_out`, `grow` may be asked for as many rounds as are needed.
        """
        categorical = self._settings.categorical
        self._order = ColumnOrder.of_rows(self._X, self._problem.weight, categorical)
        numbered = self._order.transform(self._X)
        self._data = self._settings.dataset(numbered)
        self._shares = np.zeros((self._rank.size, 0))
        if holds_out:
            self._shares = self._held_out(replace(self._problem, X=numbered))
        del numbered  # frees memory
        self._main = Ensemble(
            self._data, self._settings, self._rank, self._weight, self._q,
            lower=None if self._lower is None else (self._lower, self._lower),
        )  # fmt: skip

    def grow(self, count: int | None) -> RoundsEnd:
        """Grow the main ensemble up to `count` rounds, or until no more are needed."""
        if count is not None:
            return grow_rounds(self._main, count, self.monitor)
        folds = []
        for share in self._shares.T:
            if self.monitor.late():
                status = self.monitor.stop(0, 1.0) or Status.MAX_TIME
                return RoundsEnd(0, status, 1.0, np.zeros(0))
            if share.any():
                folds.append(self._fold(share))
        folds = [fold for fold in folds if fold.held_weight > 0]
        if not folds:  # there is one row of every rank, or one group
            return grow_rounds(self._main, _ROUNDS, self.monitor)
        rate = self._settings.learning_rate
        return grow_by_folds(self._main, folds, rate, self._max_iter, self.monitor)

    def trees(self, rounds: int) -> GrownTrees:
        """Return the trees of the first rounds of the main ensemble."""
        return self._main.trees(rounds, self._order)

    def _held_out(self, problem: Problem) -> np.ndarray:
        """Return the share of each row's weight that each fold holds out."""
        n = self._rank.size
        if self._group is None:
            share = dealt_shares(problem, self._rng)
        else:
            group = np.unique(self._group, return_inverse=True)[1]
            n_folds = min(N_FOLDS, int(group.max()) + 1)
            share = np.zeros((n, N_FOLDS))
            if n_folds > 1:
                fold = group_folds(self._rank, group, n_folds, self._rng)
                share[np.arange(n), fold] = 1.0
        return share if n < _ONE_FOLD else share[:, :1]

    def _fold(self, share: np.ndarray) -> Ensemble:
        """Return the ensemble that holds out this share of the weight of each row."""
        train, test = np.flatnonzero(share < 1), np.flatnonzero(share > 0)
        part, held = (
            self._data.subset(rows.tolist()).construct() for rows in (train, test)
        )
        left, taken = (1 - share[train]), share[test]
        return Ensemble(
            part,
            self._settings,
            self._rank[train],
            self._weight[train] * left,
            self._q,
            (held, self._rank[test], self._weight[test] * taken),
            None if self._lower is None else (self._lower[train], self._lower[test]),
        )

    def model(self, end: RoundsEnd, grown: GrownTrees) -> BoostingModel:
        """Return the model of the first rounds, with its thresholds at their optimum.

        `grown` holds the trees of these rounds, and may hold those of later ones.
        """
        problem, settings, main = self._problem, self._settings, self._main
        trees, start = grown.first(end.rounds)
        centre, thresholds, losses = [], [], []
        violation = end.violation
        for k, score in enumerate(main.scores):
            size = int(start[k + 1] - start[k])
            f = score.training_scores(size)
            if f is None:
                f = trees.scores(
                    self._X, int(start[k]), int(start[k + 1]), settings.n_threads
                )
            b, loss, step = score.best_thresholds(f, size)
            mean = float(np.average(f, weights=self._weight))
            centre.append(mean)
            thresholds.append(b - mean)
            losses.append(loss)
            promised = step**2 / self._rank.size / max(loss, 1e-9)
            violation = max(violation, promised)
        inner = np.array(thresholds)
        inner = inner[0] if settings.structure == "score" else inner[:, 0]
        fill, filled = _medians(self._X, self._weight, self._categories)
        return BoostingModel(
            trees=trees,
            start=read_only(start.astype(np.int64)),
            centre=read_only(np.array(centre)),
            thresholds=read_only(
                for_all_ranks(problem.present, inner, -np.inf, np.inf)
            ),
            structure=settings.structure,
            link=settings.link,
            frequencies=read_only(_frequencies(problem)),
            n_rows=self._rank.size,
            n_rounds=end.rounds,
            learning_rate=settings.learning_rate,
            n_leaves=settings.n_leaves,
            held_out=read_only(np.minimum(end.held_out, np.finfo(float).max)),
            categories=self._categories,
            fill=read_only(fill),
            filled=read_only(filled),
            monotone=read_only(settings.monotone),
            feature_names=problem.feature_names,
            classes=problem.classes,
            convergence=self.monitor.record(
                end.status,
                max(main.rounds, end.rounds),
                violation,
                float(np.mean(losses)),
            ),
        )


def _frequencies(problem: Problem) -> np.ndarray:
    """Return the share of each rank in the weight of the rows, (r,)."""
    weight = problem.weight / problem.weight.sum()
    if problem.lower is None:
        return np.bincount(problem.rank, weight, problem.n_classes)
    place, out = problem.among_present, np.zeros(problem.n_classes)
    ends = place[problem.lower], place[problem.rank]
    present = problem.present
    share = masses(*ends, weight, int(np.count_nonzero(present)))
    out[present] = share / share.sum()
    return out


def _medians(
    X: Any, weight: np.ndarray, categories: Categories
) -> tuple[np.ndarray, np.ndarray]:
    """Return medians of columns, and whether they replace missing values, (d,) each.

    They do in numeric columns without a missing value. A median is weighted, and the
    lower one of two.
    """
    step = max(1, math.ceil(len(X) / _SAMPLE))
    some = weight[::step]
    if is_sparse(X):
        fill = _sparse_medians(take(X, slice(None, None, step)), some)
        return fill + 0.0, np.ones(X.shape[1], bool)
    fill, filled = np.zeros(X.shape[1]), np.zeros(X.shape[1], bool)
    equal, middle = bool((some == some[0]).all()), (some.size - 1) // 2
    for j, labels in enumerate(categories):
        if labels is not None or np.isnan(X[:, j]).any():
            continue
        x = X[::step, j]
        # A partition takes a tenth of the time of a sort.
        fill[j] = np.partition(x, middle)[middle] if equal else _median(x, some)
        filled[j] = True
    return fill + 0.0, filled  # without the sign of -0


def _sparse_medians(X: CSR, weight: np.ndarray) -> np.ndarray:
    """Return the weighted medians of the columns of a sparse matrix, (d,)."""
    rows = np.repeat(np.arange(len(X)), np.diff(X.indptr))
    by_column = np.argsort(X.indices, kind="stable")
    sizes = np.bincount(X.indices, minlength=X.shape[1])
    bounds = np.cumsum(sizes)[:-1]
    values = np.split(X.data[by_column], bounds)
    weights = np.split(weight[rows[by_column]], bounds)
    total = weight.sum()
    # The entries that are not stored are one entry 0 of their weight.
    return np.array([
        _median(np.append(x, 0.0), np.append(w, max(0.0, total - w.sum())))
        for x, w in zip(values, weights, strict=True)
    ])  # fmt: skip


def _median(x: np.ndarray, weight: np.ndarray) -> float:
    """Return the lower weighted median of some numbers."""
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weight[order])
    return float(x[order[np.searchsorted(below, below[-1] / 2)]])


def _fit_path(
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, Any]],
    products: object,
    X_test: object,
    **options: Any,
) -> tuple[list[BoostingModel], list[None]]:
    """Return one model per number of rounds, all from the same trees.

    `register` says what the arguments are.
    """
    counts = [_count(point["n_rounds"]) for point in points]
    own = _TreeOptions(**{f.name: options.pop(f.name) for f in fields(_TreeOptions)})
    groups, max_iter = options.pop("groups"), options.pop("max_iter")
    fit = _prepare_fit(X, y, groups, None in counts, max_iter, own, **options)
    with fit.prepared.monitor:
        fit.begin(holds_out=None in counts)
        # "auto", whose folds grow beside all rows, comes before any other round.
        ends = {n: fit.grow(n) for n in sorted(set(counts), key=lambda n: n or 0)}
        grown = fit.trees(max(end.rounds for end in ends.values()))
        made = {n: fit.model(end, grown) for n, end in ends.items()}
        models = [made[n] for n in counts]
        fit.prepared.monitor.conclude(*models, warn=_warn)
    return models, [None] * len(models)


register(
    Method(
        fit_boosting,
        name="boosting",
        estimator="Boosting",
        accepts={"missing", "categories", "sparse", "intervals"},
        scale_free=True,
        probabilities=True,
        grid={
            "n_rounds": (50, 100, 200, 400, 800),
            "n_leaves": (4, 8, 16),
            "structure": ("score", "scores"),
        },
        varying=("n_rounds",),
        fit_path=_fit_path,
        by_row={"groups"},
        grouped_folds={"n_rounds": "auto"},
        package="lightgbm",
    )
)
