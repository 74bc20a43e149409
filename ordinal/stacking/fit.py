"""Function that fits a linear pool of methods."""

from __future__ import annotations  # numpy.random is slow to import

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from inspect import signature
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from .. import metrics
from .._input.checks import (
    as_array,
    check_choice,
    check_flag,
    check_positive,
    resolve_rng,
    shown,
    with_suggestions,
)
from .._input.immutable import read_only
from .._input.labels import optional_cost
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike, Rng
from .._input.warning import warn
from .._model.labelled import (
    Labelled,
    MissingLabels,
    call_of,
    counted,
    with_origin,
)
from .._model.registry import Method, check_intervals, fits_by_name, register
from .._rows.reading import comes_in_blocks
from .._watch.convergence import Convergence, Status, worse
from .._watch.progress import Progress
from ..comparison.methods import chosen_fits
from ..exceptions import ConvergenceWarning
from ..model_selection.data import SearchData
from ..model_selection.search import splits_of
from ..model_selection.splits import Splits, SplitsLike, drawn_folds
from ..preprocessing.base import Preprocess
from .members import Member, MemberWork, work_of
from .model import StackingModel
from .weights import pool_by_log_loss, pool_by_rps

_Methods: TypeAlias = str | Sequence[Any] | Mapping[str, Any] | None
_Scoring: TypeAlias = Literal["rps", "log_loss"]
_POOLS = {"rps": pool_by_rps, "log_loss": pool_by_log_loss}

# Percent by which the RPS on new rows rises without a member, over 7 tables of 800 rows
# and over 17 hold-outs of 10 tables of at most 300 (standard error): npsvor 5.4 (5) and
# 0.0 (2), boosting-scores 0.9 (0.5) and 0.3 (1.6), pom 0.7 (0.5) and 0.3 (0.2), xofm
# 0.2 (0.1) and -0.1 (0.3), boosting 0.2 (0.2) and -0.1 (0.2), svorim 0.0 (0.1) and 0.1
# (0.1). Each alone is worse than the pool, by 7 to 33, and a constant adds nothing.
_DEFAULT = ("pom", "xofm", "svorim", "npsvor")
# Training rows of a fold up to which GPOR takes seconds: without it 0.1 (0.1) percent
# more. On a basis of 200 rows of larger tables it adds nothing.
_GPOR_ROWS = 500
# The search is over its number of rounds, which are one path; its own folds ("auto")
# would be fitted within each of ours.
_BOOSTING = {"n_leaves": None, "structure": "score"}
# A score per rank takes as many times longer: 1.9 instead of 14 s of 2000 rows with ten
# ranks, where the search would lower its RPS from .66 to .65.
_SCORES = {"structure": "scores", "n_rounds": 100, "learning_rate": 0.2}
_TOL = 1e-6  # on the duality gap of the weights
_SEARCHES = 0.8  # share of max_time for searches; the rest is for the fits to all rows


@with_suggestions
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
        "xofm", "svorim", "npsvor", with LightGBM "boosting" with one score and, by 100
        rounds, with a score per rank, and "gpor-ep" for up to 500 training rows. They
        are as different as can be, so that their errors cancel: linear, additive with
        pairs, smooth by kernels of two kinds, trees, and Gaussian processes.
    cv : int, sequence of (train_idx, test_idx), or splitter, default 5
        Folds as for `select`.
    tune : bool, default True
        Whether to search the registered grid of each method that has one. The search
        goes by the ranked probability score (RPS) or, for methods whose probabilities
        need calibration, by the mean absolute error.
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
        default begins with the cheapest; one that is not ready after 80 % of it is left
        out, with a warning that names it, and the fits to all rows share the rest.
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
        If `max_time` was too short for a method, or if a member did not reach its
        tolerance.

    See Also
    --------
    compare : Compare methods by cross-validation; with the method "stacking" also this
        one, on rows that neither members nor weights have seen.
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
    if max_time is not None:
        max_time = check_positive("max_time", max_time)
    until = np.inf if max_time is None else start + _SEARCHES * max_time
    labelled = Labelled.from_arguments(
        missing_labels, X, y, {}, sample_weight=sample_weight, groups=groups
    )
    X, y, cv = labelled.X, labelled.y, labelled.renumbered(cv)
    _check_rows(X, y)
    rows = {**labelled.by_row, "classes": classes, "preprocess": preprocess}
    fits = _chosen(methods, as_array(y, "y").size, cv, class_weight is not None)
    options = {} if class_weight is None else {"class_weight": class_weight}
    works = {
        name: work_of(fit, X, y, options, rows, until) for name, fit in fits.items()
    }
    work = next(iter(works.values()))
    data = work.data
    cost = optional_cost(cost, data.classes.size)
    every = np.arange(len(data.y))
    splits = splits_of(cv, "cv", every, data, partial(drawn_folds, rng=rng))
    members, P, left_out = _searched(works, splits, tune, progress, n_threads, rng)
    test = np.concatenate([test for _, test in splits])
    weight = work.weight(every)
    pool = _POOLS[scoring](P, data.rank[test], weight[test])
    used = [m for m, w in zip(members.values(), pool.weights, strict=True) if w > 0]
    end = None if max_time is None else start + max_time
    models = _refitted(used, n_threads, end)
    status = Status.CONVERGED if pool.gap <= _TOL else Status.MAX_ITER
    seconds, least = time.monotonic() - start, pool.score - pool.gap
    record = Convergence(
        status, pool.n_iter, pool.gap, _TOL, pool.score, least, seconds
    )
    known = [m.convergence for m in models if hasattr(m, "convergence")]
    if left_out:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        warn(f"fit_stacking: left out {reasons}", ConvergenceWarning)
    made = StackingModel(
        models=tuple(models),
        methods=tuple(members),
        params=tuple(dict(member.params) for member in members.values()),
        weights=read_only(pool.weights),
        scores=read_only(_by_fold(P, data, weight, splits, scoring)),
        scoring=scoring,
        pool_score=pool.score,
        left_out=left_out,
        cost=None if cost is None else read_only(cost),
        n_features=int(data.X.shape[1]),
        feature_names=data.feature_names or getattr(data.X, "names", None),
        classes=read_only(data.classes),
        convergence=reduce(worse, known, record),
        rule=None if cost is None else "cost",
    )
    how = {"methods": [*members], "tune": tune, "scoring": scoring}
    call = call_of(fit_stacking, X, how)
    counted(with_origin(made, labelled.X, labelled.y, call), labelled)
    return made


def _check_rows(X: Any, y: Any) -> None:
    """Raise TypeError for rows that are not in memory, and for intervals of ranks."""
    check_intervals(fit_stacking, y)
    if comes_in_blocks(X):
        raise TypeError(
            f"X must be in memory: stack a sample of the rows; got {shown(X)}"
        )


def _chosen(
    methods: Any,
    n: int,
    cv: Any,
    class_weighted: bool,
) -> dict[str, Callable[..., Any]]:
    """Return the functions of the members by their names."""
    n_train = n - n // cv if isinstance(cv, int) and cv > 1 else n
    known = fits_by_name()
    if methods is not None:
        fits = chosen_fits(methods, n_train)
    else:
        fits = {name: known[name] for name in _DEFAULT}
        if find_spec("lightgbm"):
            fits["boosting"] = partial(known["boosting"], **_BOOSTING)
            fits["boosting-scores"] = partial(fits["boosting"], **_SCORES)
        if n_train <= _GPOR_ROWS:
            fits["gpor-ep"] = known["gpor-ep"]
    takers = {
        k: f for k, f in fits.items() if "class_weight" in signature(f).parameters
    }
    if not class_weighted or len(takers) == len(fits):
        return fits
    if methods is None:
        return takers
    others = ", ".join(name for name in fits if name not in takers)
    raise TypeError(
        f"class_weight is no argument of {others}: leave it out, or these methods"
    )


def _searched(
    works: Mapping[str, MemberWork],
    splits: Splits,
    tune: bool,
    progress: bool | None,
    n_threads: int | None,
    rng: np.random.Generator,
) -> tuple[dict[str, Member], np.ndarray, dict[str, str]]:
    """Return the members by name, their out-of-fold probabilities, (p, m, r), and why
    others are left out.

    Raises the first error if there is no member.
    """
    members, P, left_out = {}, {}, {}
    errors: list[Exception] = []
    for name, work in works.items():
        line = Progress.from_argument(progress)
        try:
            space = work.space(tune, rng)
            member = Member.searched(work, space, splits, line, n_threads)
            P[name] = member.probabilities()
        except (ValueError, TypeError, ImportError) as error:
            if time.monotonic() > work.until:
                left_out[name] = "not ready in time; raise max_time"
            else:
                left_out[name] = str(error)
                errors.append(error)
        else:
            members[name] = member
    if members:
        return members, np.stack(list(P.values())), left_out
    if errors:
        raise errors[0]
    raise ValueError(
        f"max_time must be longer, because none of {shown(list(works))} was ready"
    )


def _refitted(
    used: Sequence[Member], n_threads: int | None, end: float | None
) -> list[Any]:
    """Return the models of all rows, which share the time until `end`."""
    models = []
    for i, member in enumerate(used):
        left = None if end is None else (end - time.monotonic()) / (len(used) - i)
        models.append(member.refitted(n_threads, left))
    return models


def _by_fold(
    P: np.ndarray, data: SearchData, weight: np.ndarray, splits: Splits, scoring: str
) -> np.ndarray:
    """Return the score of each member in each fold, (p, k)."""
    score = partial(getattr(metrics, scoring), labels=data.classes)
    tests = [test for _, test in splits]
    parts = np.split(P, np.cumsum([test.size for test in tests])[:-1], axis=1)
    found = [
        [score(data.y[test], of, sample_weight=weight[test]) for of in part]
        for test, part in zip(tests, parts, strict=True)
    ]
    return np.array(found).T


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
