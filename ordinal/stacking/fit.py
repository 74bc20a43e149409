"""Function that fits a linear pool of methods."""

from __future__ import annotations  # numpy.random is slow to import

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from inspect import signature
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from .. import metrics
from .._input.checks import (
    check_choice,
    check_flag,
    check_positive,
    resolve_rng,
    with_suggestions,
)
from .._input.immutable import read_only
from .._input.labels import optional_cost
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike, Rng
from .._input.warning import each_warning_once, warn
from .._model.column_names import named
from .._model.labelled import MissingLabels, with_missing_labels
from .._model.preparation import shared_arguments
from .._model.registry import Method, fits_by_name, register
from .._rows.reading import check_in_memory
from .._watch.convergence import Convergence, Status, worse
from ..comparison.learner import GPOR, GPOR_ROWS, chosen_fits
from ..exceptions import ConvergenceWarning
from ..model_selection.data import RowArguments, SearchData
from ..model_selection.search import splits_of
from ..model_selection.spaces import Grid, Points, open_grid
from ..model_selection.splits import Splits, SplitsLike, drawn_folds
from ..preprocessing.base import Preprocess
from .members import Member, MemberWork
from .model import StackingModel
from .weights import Pool, pool_by_log_loss, pool_by_rps

_Methods: TypeAlias = str | Sequence[Any] | Mapping[str, Any] | None
_Scoring: TypeAlias = Literal["rps", "log_loss"]
_POOLS = {"rps": pool_by_rps, "log_loss": pool_by_log_loss}

# Percent by which the RPS on new rows rises without a member, over 7 tables of 800 rows
# and over 17 hold-outs of 10 tables of at most 300 (standard error): npsvor 5.4 (5) and
# 0.0 (2), boosting-scores 0.9 (0.5) and 0.3 (1.6), pom 0.7 (0.5) and 0.3 (0.2), xofm
# 0.2 (0.1) and -0.1 (0.3), boosting 0.2 (0.2) and -0.1 (0.2), GPOR of so few rows that
# it takes seconds 0.1 (0.1); on a basis of 200 rows of larger tables it adds nothing.
# Each alone is worse than the pool, by 7 to 33, and a constant adds nothing. SVORIM is
# left out: it adds 0.02 (0.01) on 42 hold-outs of 19 sets, in a quarter of the time.
_DEFAULT = ("pom", "xofm", "npsvor")
# The search is over its number of rounds, which are one path; its own folds ("auto")
# would be fitted within each of ours.
_BOOSTING = {"n_leaves": None, "structure": "score"}
# A score per rank takes as many times longer: 1.9 instead of 14 s of 2000 rows with ten
# ranks, where the search would lower its RPS from .66 to .65.
_SCORES = _BOOSTING | {"structure": "scores", "n_rounds": 100, "learning_rate": 0.2}
_TOL = 1e-6  # on the duality gap of the weights
_SEARCHES = 0.8  # share of max_time for searches; the rest is for the fits to all rows
_FOLDS = 2  # in which a member is judged that is fitted in this rest


@with_suggestions
@each_warning_once  # members are fitted to the same rows
@with_missing_labels
def fit_stacking(
    X: MatrixLike,
    y: Labels,
    methods: _Methods = None,
    *,
    cv: SplitsLike = 5,
    tune: bool = True,
    scoring: _Scoring = "rps",
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    cost: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    groups: ArrayLike | None = None,
    preprocess: Preprocess | None = None,
    n_threads: int | None = None,
    max_time: float | None = None,
    progress: bool | None = None,
    rng: Rng = 0,
) -> StackingModel:
    """Fit a linear pool of methods, weighted by their out-of-fold probabilities.

    Every method is tuned on the same folds. The probabilities that the chosen fits give
    to the rows that they have not seen decide the weights; methods without weight are
    dropped, and the others are fitted to all rows. The docstring of `ordinal.stacking`
    states the problem.

    Parameters
    ----------
    X : (n, d) array-like or data frame
        Raw features: numbers, categories, missing values. Methods that do not accept
        them receive a table that a `TablePreprocessor` has coded, and those that depend
        on the scale of features receive standardised ones, both fitted to the training
        rows of each fold. Of a sparse matrix methods receive the features as they are.
    y : (n,) array-like
        Labels as for the other fits.
    methods : sequence of methods, mapping of str to them, optional
        Methods as for `compare`, which must have probabilities. Default: "pom",
        "xofm", "npsvor", with LightGBM "boosting" with one score and, by 100
        rounds, with a score per rank, and "gpor-ep" for up to 500 training rows. They
        are as different as can be, so that their errors cancel: linear, additive with
        pairs, smooth by kernels, trees, and Gaussian processes.
    cv : int, sequence of (train_idx, test_idx), or splitter, default 5
        Folds as for `select`.
    tune : bool, default True
        Whether to search the registered grid of each method that has one. From 1500
        training rows on, points compete by successive halving (as in `select`), then in
        two folds, before the better half is fitted in the others. The search goes by
        the ranked probability score (RPS) or, for methods whose probabilities need
        calibration, by the mean absolute error.
    scoring : {"rps", "log_loss"}, default "rps"
        Score of the pool that the weights minimise. The RPS takes the order of the
        ranks into account.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows in fits, searches and the weights of the pool.
    class_weight : mapping of labels to weights, or "balanced", optional
        Passed to the methods, all of which must accept it; the default leaves out those
        that do not. The score that the weights minimise counts rows by it, too.
    cost : (r, r) array-like, optional
        cost[j, k] is the cost of predicting rank k for a row of rank j. The pool then
        predicts the rank of least expected cost.
    classes : sequence of labels in rank order, optional
        As for the other fits; needed for labels that are strings.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    groups : (n,) array-like, optional
        Group of each row, such as a patient or rater. Rows of a group are in the same
        fold.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing of all methods instead of what X and the method require, for
        example with `order` for ordered categories.
    n_threads : int, optional
        Number of threads, on which the fits of a search run side by side. The result
        does not depend on it.
    max_time : float > 0, optional
        Time budget in seconds. Methods are searched in the order of `methods`, whose
        default begins with the cheapest. A search that is not ready after 80 % of it is
        cut: its best point so far is the member, or the member is left out if it has
        none. If that leaves no member, the first one is fitted untuned, and judged in
        two folds. Its fits there, and those of all members to all rows, share the rest.
        Reading rows, coding them for a fit, and your own functions are not cut short.
    progress : bool, optional
        Whether to report progress, as for `select`. Default: after 5 s on a terminal or
        in a notebook.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds.

    Returns
    -------
    StackingModel
        `members` is the table of the methods with their weights and scores.

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid, or if no method could be fitted; the
        first reason is given.

    Warns
    -----
    ConvergenceWarning
        If `max_time` was too short for a method, which it names and which makes the
        status MAX_TIME, or if a member did not reach its tolerance.

    See Also
    --------
    compare : Compare methods by cross-validation.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(40, rng=0)
    >>> model = ordinal.fit_stacking(X, y, ["pom", "svorim"])
    >>> model.methods
    ('pom', 'svorim')
    >>> model.predict([[10.0, 10.0], [20.0, 10.0]])
    array([1, 3])
    """
    start = time.monotonic()
    check_choice("scoring", scoring, get_args(_Scoring))
    tune, rng = check_flag("tune", tune), resolve_rng(rng)
    seconds = np.inf if max_time is None else check_positive("max_time", max_time)
    check_in_memory("fit_stacking", X)
    rows = shared_arguments(RowArguments, locals(), standardize=None)
    data = SearchData.from_arguments(fit_stacking, {}, X, y, **rows)
    every = np.arange(len(data.y))
    cost = optional_cost(cost, data.classes.size)
    weight = data.weights(every, class_weight)
    splits = splits_of(cv, "cv", every, data, partial(drawn_folds, rng=rng))
    options = {} if class_weight is None else {"class_weight": class_weight}
    fits = _chosen(methods, min(train.size for train, _ in splits), options)
    until = start + _SEARCHES * seconds
    # Members share what has been read: strings of a million rows take seconds to read.
    rows = {**rows, "classes": list(data.classes)}
    table = named(data.X, data.feature_names)
    works = {
        name: MemberWork.from_fit(fit, table, data.y, options, rows, until)
        for name, fit in fits.items()
    }
    judge: Callable[..., float] = getattr(metrics, scoring)

    def score(P: np.ndarray, test: np.ndarray) -> float:
        return judge(data.y[test], P, labels=data.classes, sample_weight=weight[test])

    reserve = (1 - _SEARCHES) * seconds
    how = splits, score, progress, n_threads
    members, left_out, late, until = _searched(works, tune, reserve, *how)
    n_folds = len(next(iter(members.values())).scores)  # of all members
    test = np.concatenate([test for _, test in splits[:n_folds]])
    P = np.stack([member.P for member in members.values()])
    pool = _POOLS[scoring](P, data.rank[test], weight[test])
    used = [m for m, w in zip(members.items(), pool.weights, strict=True) if w > 0]
    models = []
    for i, (name, member) in enumerate(used):
        now = time.monotonic()
        end = now + (until - now) / (len(used) - i)
        try:
            models.append(member.refitted(n_threads, end))
        except Exception as error:
            error.add_note(f"fit_stacking: {name}, fitted to all rows")
            raise
    return StackingModel(
        models=tuple(models),
        methods=tuple(members),
        params=tuple(dict(member.params) for member in members.values()),
        weights=read_only(pool.weights),
        scores=read_only(np.array([member.scores for member in members.values()])),
        scoring=scoring,
        pool_score=pool.score,
        left_out=left_out,
        cost=None if cost is None else read_only(cost),
        n_features=int(data.X.shape[1]),
        feature_names=data.feature_names,
        classes=read_only(data.classes),
        convergence=_record(pool, models, late, time.monotonic() - start),
        rule=None if cost is None else "cost",
    )


def _chosen(
    methods: Any, n_train: int, options: Collection[str]
) -> dict[str, Callable[..., Any]]:
    """Return the functions of the members by their names, which take the options."""
    chosen, known = methods, fits_by_name()
    if methods is None:
        chosen = {name: name for name in _DEFAULT}
        if find_spec("lightgbm"):
            chosen["boosting"] = partial(known["boosting"], **_BOOSTING)
            chosen["boosting-scores"] = partial(known["boosting"], **_SCORES)
        if n_train <= GPOR_ROWS:
            chosen[GPOR] = GPOR
    fits = chosen_fits(chosen, n_train)
    refuse = [k for k, f in fits.items() if {*options} - signature(f).parameters.keys()]
    if methods is not None and refuse:
        raise TypeError(
            f"{', '.join(options)} is no argument of {', '.join(refuse)}: leave it "
            "out, or these methods"
        )
    return {name: fit for name, fit in fits.items() if name not in refuse}


def _searched(
    works: Mapping[str, MemberWork],
    tune: bool,
    reserve: float,
    splits: Splits,
    *how: Any,
) -> tuple[dict[str, Member], dict[str, str], bool, float]:
    """Return the members by name, why others are left out, whether time was short, and
    when the fits to all rows ought to end.

    `splits` and `how` are further arguments of the search of a member. If all are late,
    the first one is fitted untuned; its fits to two folds and to all rows share
    `reserve` seconds. Warns of what is missing. Raises the first error if there is no
    member and time is not the reason.
    """
    members: dict[str, Member] = {}
    failed: dict[str, Exception] = {}
    late = []
    for name, work in works.items():
        try:
            grid = open_grid(work.fit, work.options) if tune else {}
            space = Grid(**grid) if grid else Points([{}])
            members[name] = work.searched(name, space, splits, *how)
        except Exception as error:
            failed[name] = error
            if time.monotonic() > work.until:
                late.append(name)
    said = [f"the search of {n} was cut" for n, m in members.items() if m.is_cut]
    # The last fit of the searches may have taken longer than their share.
    until = reserve + max(time.monotonic(), next(iter(works.values())).until)
    if late and not members:
        work = works[late[0]].to_end(until, _FOLDS + 1)
        members[late[0]] = work.searched(late[0], Points([{}]), splits[:_FOLDS], *how)
        said, (name, *late) = [f"{late[0]} was not tuned"], late
        failed.pop(name)
    if not members:
        raise next(iter(failed.values()))
    if late:
        said.append(f"{', '.join(late)} {'were' if late[1:] else 'was'} left out")
    if said:
        warn(
            f"fit_stacking: max_time was too short: {'; '.join(said)}; raise max_time",
            ConvergenceWarning,
        )
    failed |= {name: TimeoutError("not ready within max_time") for name in late}
    reasons = [f"{name}: {e}" for name, e in failed.items() if name not in late]
    if reasons:
        warn(f"fit_stacking: left out {'; '.join(reasons)}", ConvergenceWarning)
    return members, {name: str(e) for name, e in failed.items()}, bool(said), until


def _record(
    pool: Pool, models: Sequence[Any], late: bool, seconds: float
) -> Convergence:
    """Return the record of the weights, with the first bad status of a model."""
    status = Status.CONVERGED if pool.gap <= _TOL else Status.MAX_ITER
    status = Status.MAX_TIME if late else status
    ends = pool.score, pool.score - pool.gap
    record = Convergence(status, pool.n_iter, pool.gap, _TOL, *ends, seconds)
    known = [model.convergence for model in models if hasattr(model, "convergence")]
    return reduce(worse, known, record)


register(
    Method(
        fit_stacking,
        name="stacking",
        estimator="Stacking",
        accepts={"missing", "categories", "sparse"},
        scale_free=True,
        probabilities=True,
        by_row={"groups"},
        grouped_folds={"cv": object},  # of any kind
        composed=True,
    )
)
