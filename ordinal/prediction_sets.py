"""Sets of neighbouring ranks that contain the true one with a given probability.

The nonconformity s(x, y) >= 0 of a row x and a rank y says how far the model is from
predicting y. Let s_i = s(x_i, y_i) be those of m calibration rows, to which the model
was not fitted, with weights w_i. The p-value of a rank and the set of a new row are

    p(x, y) = (1 + sum_i w_i [s_i >= s(x, y)]) / (1 + sum_i w_i),                    (P)
    C(x) = {y : p(x, y) > 1 - coverage}.                                             (C)

If these rows and the new one are exchangeable, as independent draws are, then

    coverage <= P(y in C(x)) <= coverage + 1 / (m + 1),                              (G)

where the upper bound needs nonconformities that are all different [1, 2]. Nothing is
assumed about the model: a bad one has large sets. (G) is a mean over easy and hard
rows; with `by_class` the sums are over the rows of rank y, and (G) holds for each rank.

Both nonconformities grow with the distance from one rank, so that C(x) has no gaps:

    "rps"       sum_{k < r-1} (P(rank <= k | x) - [y <= k])^2,                       (R)
    "distance"  how far the score f(x) is from the thresholds around y; for NPSVOR how
                much farther the hyperplane of y, or one on the way there, is than
                the nearest one; for ELMOR and the models of `ordinal.svm` with several
                hyperplanes how much smaller the number of the rank is than the largest.

(R) is the ranked probability score [3]. It is least at the median, because it changes
by 2 P(rank <= y | x) - 1 from y to y + 1. The predicted rank is always added, so that
no set is empty.

`cross_conformal` needs no separate calibration rows. One model per fold is fitted to
the other folds; s_i, and s(x, y) in [s_i >= s(x, y)], are those of the model that has
not seen row i. The sets of one model have no gaps; those of several may have some,
which are filled. P(y in C(x)) is then at least 2 coverage - 1 - sqrt(2 / m) [4, theorem
4; 5], and in practice near `coverage`.

With groups, a weight is divided by the total weight of its group: the sums in (P) count
groups, and (G) holds for a row that is drawn at random from a new group [6].

[1] V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World, 2005.
[2] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman, "Distribution-free
    predictive inference for regression", JASA 113:1094-1111, 2018, theorem 2.
[3] L. Killmaier, A. Javanmardi, E. Hüllermeier, "Reliable conformal prediction for
    ordinal classification using the ranked probability score", arXiv:2606.24959.
[4] R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, "Predictive inference with
    the jackknife+", Annals of Statistics 49:486-507, 2021.
[5] Y. Romano, M. Sesia, E. J. Candès, "Classification with valid and adaptive
    coverage", NeurIPS 2020.
[6] Y. Lee, R. F. Barber, R. Willett, "Distribution-free inference with hierarchical
    data", arXiv:2306.06342.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from ._input.checks import (
    MOST,
    as_real_array,
    check_choice,
    check_flag,
    check_share,
    resolve_rng,
    shown,
    with_suggestions,
)
from ._input.columns import read_once, warn_of_other_order
from ._input.fields import NONNEGATIVE, Array, Rule
from ._input.immutable import read_only
from ._input.intervals import known_labels
from ._input.labels import (
    check_spread,
    ranks_of,
    read_labels,
    row_weights,
    sample_weights,
)
from ._input.types import ArrayLike, Blocks, Labels, MatrixLike, Rng, RowsLike
from ._input.warning import each_warning_once
from ._model.column_names import innermost, named, with_names
from ._model.explanation import Named
from ._model.grouping import group_numbers
from ._model.labelled import (
    Labelled,
    MissingLabels,
    counted,
    numbered_as_caller,
    with_origin,
)
from ._model.model import Model
from ._model.preparation import shared_arguments
from ._model.printing import Table
from ._model.registry import resolve_fit
from ._model.support import Hyperplanes
from ._model.threshold_model import Scored
from ._rows.reading import is_chunked, map_blocks
from ._rows.rows import map_rows
from ._rows.source import Block
from ._watch.convergence import Convergence, held_back
from .exceptions import NoProbabilitiesError
from .model_selection.data import RowArguments
from .model_selection.scoring import classes_of, in_rank_order, scorers_of
from .model_selection.search import splits_of
from .model_selection.selection import model_in
from .model_selection.splits import SplitsLike, drawn_folds
from .model_selection.work import Work
from .preprocessing.base import Preprocess
from .xofm import XofmModel

__all__ = ["ConformalModel", "conformal", "cross_conformal"]


def __dir__() -> list[str]:
    return __all__


_Nonconformity: TypeAlias = Literal["rps", "distance"]
_ROUNDING = 1e-9  # relative rounding error of sums of weights
_IS_WEIGHT = Rule(f"lie in (0, {MOST:g}]", lambda a: (a > 0) & (a <= MOST))
_IS_SHARE = Rule("be between 0 and 1", lambda a: (a > 0) & (a < 1))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConformalModel(Model):
    """Model with prediction sets, from `conformal` or `cross_conformal`.

    Attributes
    ----------
    model : any model
        Fitted model; its `predict` and `predict_proba` are available here as well.
    fold_models : tuple of models
        Models of the folds of `cross_conformal`; empty for `conformal`.
    nonconformity : {"rps", "distance"}
    by_class : bool
    coverage : float
        Default coverage; methods accept any other.
    scores : (m,) array
        Nonconformities s_i of the calibration rows, which may be infinite.
    ranks, folds : (m,) int arrays
        Ranks of these rows, and positions of the `fold_models` that were not fitted to
        them.
    weights : (m,) array
        Weights of these rows in (P).
    """

    model: Any
    fold_models: tuple[Any, ...]
    nonconformity: _Nonconformity
    by_class: bool
    coverage: Annotated[float, _IS_SHARE]
    scores: Annotated[np.ndarray, Array("f8", "m"), NONNEGATIVE]
    ranks: Annotated[np.ndarray, Array("i8", "m"), NONNEGATIVE]
    folds: Annotated[np.ndarray, Array("i8", "m"), NONNEGATIVE]
    weights: Annotated[np.ndarray, Array("f8", "m"), _IS_WEIGHT]

    @property
    def classes(self) -> np.ndarray:
        """Labels in rank order, (r,)."""
        return classes_of(self.model)

    @property
    def convergence(self) -> Convergence:
        """Record of the fit of the model."""
        convergence: Convergence = self.model.convergence
        return convergence

    @property
    def n_features(self) -> int:
        """Number of columns that `predict` expects."""
        return int(self.model.n_features)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Return the names of the features, if the model was fitted on a data frame."""
        names: tuple[str, ...] | None = getattr(self.model, "feature_names", None)
        return names

    @property
    def _wrapped(self) -> Any:
        return self.model

    def _score_terms(self, X: MatrixLike) -> Named | None:
        return self.model._score_terms(X) if isinstance(self.model, Model) else None

    def predict(self, X: RowsLike, **rule: Any) -> np.ndarray:
        """Return the labels predicted by the model with this `rule`, (n,)."""
        return self.model.predict(X, **rule)  # type: ignore[no-any-return]

    def predict_proba(self, X: RowsLike, **how: Any) -> np.ndarray:
        """Return the probabilities by the model, (n, r), if it has them."""
        P = np.asarray(self.model.predict_proba(X, **how))
        return in_rank_order(P, self.model, self.classes)

    def p_values(self, X: RowsLike) -> np.ndarray:
        """Return the p-value (P) of every rank, before anything is added to a set.

        Parameters
        ----------
        X : (n, d) array-like, data frame or sparse matrix
            Rows to predict, as for the model.

        Returns
        -------
        (n, r) array
            The p-value of the true rank is at most a with probability at most a, or
            about 2 a for `cross_conformal`.

        Raises
        ------
        ValueError, TypeError
            As raised by the model.
        """
        r, X = self.classes.size, with_names(read_once(X), self.feature_names)
        models = self.fold_models or (self.model,)
        above = np.ones((0, r))
        for k, model in enumerate(models):
            found = _nonconformities(model, X, self.nonconformity)
            above = above if k else np.ones(found.shape)
            for y in range(r):
                mine = self.folds == k
                if self.by_class:
                    mine &= self.ranks == y
                above[:, y] += _weight_from(
                    self.scores[mine], self.weights[mine], found[:, y]
                )
        total = np.full(r, self.weights.sum())
        if self.by_class:
            total = np.bincount(self.ranks, self.weights, minlength=r)
        return np.asarray(above / (1 + total))

    def predict_interval(
        self, X: RowsLike, *, coverage: float | None = None
    ) -> np.ndarray:
        """Return the lowest and the highest label of the set of every row.

        Parameters
        ----------
        X : (n, d) array-like, data frame or sparse matrix
            Rows to predict, as for the model.
        coverage : float in (0, 1), default that of this model
            Share of rows whose set contains their label.

        Returns
        -------
        (n, 2) array of labels, of the type of `classes`
            The set contains these ranks, all between them, and that of `predict(X)`.

        Raises
        ------
        ValueError, TypeError
            If `coverage` is not between 0 and 1; also as raised by the model.
        """
        return np.asarray(self.classes[self._ends(X, coverage)])

    def predict_set(self, X: RowsLike, *, coverage: float | None = None) -> np.ndarray:
        """Predict sets of ranks, (n, r) bool; `predict_interval` gives their ends."""
        ends, rank = self._ends(X, coverage), np.arange(self.classes.size)
        return np.asarray((ends[:, :1] <= rank) & (rank <= ends[:, 1:]))

    def evaluate(
        self, X: RowsLike, y: Labels, *, coverage: float | None = None
    ) -> Table:
        """Return coverage and mean size of the sets of rows with known labels.

        Parameters
        ----------
        X : (n, d) array-like, data frame or sparse matrix
        y : (n,) labels
        coverage : float in (0, 1), default that of this model

        Returns
        -------
        Table of (r + 1,) arrays
            "label", "rows", "coverage", and "size", the mean number of ranks in a set.
            There is one entry per rank, nan if it has no rows, and a last one, "all",
            for all rows.

        Raises
        ------
        ValueError, TypeError
            If `y` holds a label that is not among `classes`; as in `predict_interval`.
        """
        member = self.predict_set(X, coverage=coverage)
        rank = _ranks(y, self.classes, len(member))
        held = member[np.arange(rank.size), rank]
        size = member.sum(axis=1)
        of = [rank == k for k in range(self.classes.size)] + [rank >= 0]
        nan = np.full(1, np.nan)
        columns = {
            "label": np.array([*map(str, self.classes.tolist()), "all"]),
            "rows": np.array([rows.sum() for rows in of]),
            "coverage": np.array([(held[m] if m.any() else nan).mean() for m in of]),
            "size": np.array([(size[m] if m.any() else nan).mean() for m in of]),
        }
        return Table(columns)

    def _ends(self, X: RowsLike, coverage: float | None) -> np.ndarray:
        """Return numbers of the first and the last rank of every set, (n, 2)."""
        X = with_names(read_once(X), self.feature_names)
        share = self.coverage if coverage is None else check_share("coverage", coverage)
        member = self.p_values(X) > (1 - share) * (1 + _ROUNDING)
        predicted = ranks_of(read_labels(self.predict(X), "labels"), self.classes)
        member[np.arange(len(member)), predicted] = True
        last = self.classes.size - 1 - member[:, ::-1].argmax(axis=1)
        return np.column_stack([member.argmax(axis=1), last])

    def _summary(self) -> dict[str, str]:
        lines = {"model": type(self.model).__name__}
        if isinstance(self.model, Model):
            lines |= self.model._summary()
        kind = f"{len(self.fold_models)} folds" if self.fold_models else "split"
        apart = ", each class apart" if self.by_class else ""
        lines["coverage"] = (
            f"{self.coverage:g} by {self.nonconformity} of {self.scores.size} rows "
            f"({kind}{apart})"
        )
        return lines

    def _check(self) -> None:
        r, k = self.classes.size, max(1, len(self.fold_models))
        if not (self.scores.size and self.ranks.max() < r and self.folds.max() < k):
            raise ValueError(
                "scores must not be empty, and ranks and folds must number classes "
                "and models"
            )
        for model in (self.model, *self.fold_models):
            if not hasattr(model, "predict"):
                raise ValueError(
                    f"models must have a method predict, got a {type(model).__name__}"
                )
            if not np.array_equal(classes_of(model), self.classes):
                raise ValueError("the models of the folds must have the same classes")
            _check_nonconformity(self.nonconformity, model)


@with_suggestions
def conformal(
    model: Any,
    X: MatrixLike | Blocks,
    y: Labels | None,
    coverage: float = 0.9,
    *,
    nonconformity: _Nonconformity | None = None,
    by_class: bool = False,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ConformalModel:
    """Calibrate prediction sets of neighbouring ranks around a fitted model.

    The errors of the model on calibration rows, to which it was not fitted, determine
    how large the sets have to be (split conformal prediction). The coverage is
    guaranteed on average over calibration rows and new rows; the docstring of
    `ordinal.prediction_sets` states (P), (C) and (G).

    Parameters
    ----------
    model : any model, `Selection`, or estimator of `ordinal.sklearn`
        Model fitted to other rows; also a pipeline or a search of scikit-learn around
        such an estimator. Or an object with `predict`, `predict_proba`, and `classes`
        in rank order or, as in scikit-learn, numeric `classes_`.
    X : (m, d) array-like, data frame or sparse matrix
        Calibration rows, from the same distribution as those to be predicted. They must
        not have been used for the fit or for its hyperparameter search. With a few
        hundred rows, the coverage of new rows deviates by about 2 %: given the
        calibration rows, it has a beta distribution of standard deviation sqrt(coverage
        (1 - coverage) / (m + 2)). X may also be read in chunks, one at a time: a
        numpy.memmap, a source of chunks such as `ordinal.data.blocks` of a file, or a
        dask array or data frame, whose workers evaluate the rows.
    y : (m,) array-like, or None if X is a source of chunks
        Labels of the calibration rows.
    coverage : float in (0, 1), default 0.9
        Share of rows whose set contains their label. It needs at least
        coverage / (1 - coverage) rows or groups, 9 for the default.
    nonconformity : {"rps", "distance"}, optional
        Nonconformity based on the probabilities ("rps") or the scores ("distance") of
        the model. Default: "rps" if the model has probabilities. "distance" is for
        models with thresholds or several hyperplanes, and for ELMOR. The probabilities
        of `fit_xofm` without calibration are the shares of its paper.
    by_class : bool, default False
        Whether the coverage should hold among the rows of each rank. A rank with fewer
        calibration rows than the coverage needs is in every set, together with the
        ranks between.
    sample_weight : (m,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice. If
        calibration rows have another distribution than new ones, the weight is the
        ratio of the density of new rows to that of calibration rows; (G) then holds for
        new rows of weight up to 1.
    groups : (m,) array-like, optional
        Group of each row, such as a patient, if new rows are from other groups. Each
        group then counts once, however many rows it has.

    Returns
    -------
    ConformalModel
        `predict_interval` and `predict_set` return the sets for any coverage;
        `evaluate` returns how often they contain the labels.

    Raises
    ------
    ValueError
        If there are too few rows for the coverage, if a label is not among those of the
        model, or if an argument is invalid.
    TypeError
        If the model has neither probabilities nor thresholds.

    See Also
    --------
    cross_conformal : Fit a model and calibrate its prediction sets on the same rows.
    ordinal.plot.prediction_sets : Plot sets of neighbouring ranks, with the true ranks
        of their rows.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorim(X[::2], y[::2], C=10.0)
    >>> sets = ordinal.conformal(model, X[1::2], y[1::2], coverage=0.95)
    >>> sets.predict_interval([[10.0, 10.0], [13.0, 13.0]])
    array([[1, 1],
           [1, 2]])
    """
    model = model_in(model)
    coverage = check_share("coverage", coverage)
    by_class = check_flag("by_class", by_class)
    kind = _nonconformity_of(nonconformity, model)
    warn_of_other_order(X, y=y, sample_weight=sample_weight, groups=groups)
    scores, rank, own = _judged(model, kind, X, y, sample_weight)
    weight = _counted(own, groups, rank, by_class)
    _check_enough(weight.sum(), coverage)
    fold = np.zeros(rank.size, np.int64)
    rows = scores, rank, fold, weight
    return _calibrated(model, (), kind, by_class, coverage, rows)


@each_warning_once
def cross_conformal(
    fit: Callable[..., Any] | str,
    X: MatrixLike | Blocks,
    y: Labels | None,
    coverage: float = 0.9,
    *,
    cv: SplitsLike = 5,
    nonconformity: _Nonconformity | None = None,
    by_class: bool = False,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    standardize: bool | None = None,
    preprocess: Preprocess | None = None,
    n_threads: int | None = None,
    rng: Rng = 0,
    **options: Any,
) -> ConformalModel:
    """Fit a model and calibrate its prediction sets on the same rows.

    The nonconformity of each row comes from a model fitted to the other folds (CV+). No
    rows have to be held out, at the cost of one more fit per fold and of predictions by
    the models of all folds.

    Parameters
    ----------
    fit : callable or str
        A `fit_*` function, the name of a method, or another function, as for `select`.
    X, y, classes, missing_labels, standardize, preprocess, **options
        As for `select`; pass the hyperparameters as **options.
    coverage, nonconformity, by_class
        As for `conformal`.
    cv : int, sequence of (train_idx, test_idx), or splitter, default 5
        As for `select`. No row may be in two test sets; the rows of test sets are used
        for calibration. More folds give smaller sets, because their models are fitted
        to more rows.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows in fits and calibration.
    groups : (n,) array-like, optional
        Group of each row. The rows of a group are in the same fold, as in `select`, and
        count once, as in `conformal`.
    n_threads : int, optional
        Number of threads of each fit.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds.

    Returns
    -------
    ConformalModel
        Its attribute `model` is fitted to all rows.

    Raises
    ------
    ValueError, TypeError
        As in `select` and `conformal`, and as raised by a fit.

    See Also
    --------
    conformal : Calibrate prediction sets of neighbouring ranks around a fitted model.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.
    ordinal.plot.prediction_sets : Plot sets of neighbouring ranks, with the true ranks
        of their rows.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> sets = ordinal.cross_conformal(ordinal.fit_svorim, X, y, 0.95, C=10.0)
    >>> sets.predict_interval([[10.0, 10.0], [13.0, 13.0]])
    array([[1, 1],
           [1, 2]])
    """
    labelled = Labelled.from_arguments(
        missing_labels, X, y, options, sample_weight=sample_weight, groups=groups
    )
    X, y, cv = labelled.X, labelled.y, labelled.renumbered(cv)
    sample_weight, groups = labelled.by_row["sample_weight"], labelled.by_row["groups"]
    coverage = check_share("coverage", coverage)
    by_class = check_flag("by_class", by_class)
    given = shared_arguments(RowArguments, locals())
    fit = resolve_fit(fit)
    y = known_labels("cross_conformal", y)
    scorers = scorers_of("mae", None)
    with numbered_as_caller(labelled.keep):
        work = Work.from_arguments(fit, X, y, scorers, options, **given)
    rank = work.data.rank
    rows, folds = np.arange(rank.size), partial(drawn_folds, rng=resolve_rng(rng))
    splits = splits_of(cv, "cv", rows, work.data, folds)
    fold = np.full(rank.size, -1)
    for k, (_, test) in enumerate(splits):
        if (fold[test] >= 0).any():
            row = test[fold[test] >= 0][0]
            raise ValueError(f"cv must test no row twice, but row {row} is")
        fold[test] = k
    weight = _counted(work.data.weight, groups, rank, by_class, fold >= 0)
    _check_enough(weight.sum(), coverage)

    model = counted(work.refitted({}, n_threads), labelled)
    with_origin(model, labelled.X, labelled.y)
    kind = _nonconformity_of(nonconformity, model)
    parts = tuple(work.refitted({}, n_threads, train) for train, _ in splits)
    scores = np.zeros(rank.size)
    for part, (_, test) in zip(parts, splits, strict=True):
        judge = partial(_of_own_rows, part, kind)
        with held_back():  # a category may have test rows alone
            found = map_rows(judge, work.data.features(test))
        scores[test] = found[np.arange(test.size), rank[test]]
    judged = scores, rank, fold, weight
    return _calibrated(model, parts, kind, by_class, coverage, judged)


def _calibrated(
    model: Any,
    fold_models: tuple[Any, ...],
    kind: _Nonconformity,
    by_class: bool,
    coverage: float,
    rows: tuple[np.ndarray, ...],
) -> ConformalModel:
    """Return the model of scores, ranks, folds and weights of rows, if positive."""
    scores, rank, fold, weight = (values[rows[-1] > 0] for values in rows)
    return ConformalModel(
        model=model,
        fold_models=fold_models,
        nonconformity=kind,
        by_class=by_class,
        coverage=coverage,
        scores=read_only(scores),
        ranks=read_only(rank.astype(np.int64)),
        folds=read_only(fold),
        weights=read_only(weight),
    )


# Nonconformities


def _nonconformity_of(wanted: str | None, model: Any) -> _Nonconformity:
    """Return the nonconformity that is wanted, or the default of the model."""
    check_choice("nonconformity", wanted, (None, "rps", "distance"))
    if wanted is None:
        wanted = "rps" if _has_probabilities(model) else "distance"
        if wanted == "distance" and not _has_scores(model):
            raise TypeError(
                "model must have probabilities or thresholds, got a "
                f"{_name(innermost(model))}"
            )
    _check_nonconformity(wanted, model)
    return "rps" if wanted == "rps" else "distance"


def _check_nonconformity(wanted: str, model: Any) -> None:
    """Raise TypeError, or NoProbabilitiesError, unless the model has this
    nonconformity.
    """
    inner = innermost(model)
    if wanted == "rps" and not _has_probabilities(model):
        raise NoProbabilitiesError(
            f"nonconformity='rps' needs probabilities, which this {_name(inner)} "
            "does not have: fit it with probability=True, or pass 'distance'"
        )
    if wanted == "distance" and not _has_scores(model):
        raise TypeError(
            "nonconformity='distance' needs a model with thresholds or "
            f"hyperplanes, got a {_name(inner)}"
        )


def _name(model: Any) -> str:
    return type(model).__name__


def _has_scores(model: Any) -> bool:
    inner = innermost(model)
    return isinstance(inner, Scored | Hyperplanes) or hasattr(inner, "rank_values")


def _has_probabilities(model: Any) -> bool:
    if _has_scores(model):
        return innermost(model).link is not None
    # A preprocessed model has the method even if its model has none.
    return hasattr(innermost(model), "predict_proba")


def _nonconformities(model: Any, X: Any, kind: _Nonconformity) -> np.ndarray:
    """Return s(x, y) for every row and rank, (n, r).

    It does not decrease with the distance from the rank of its least value.
    """
    if kind == "rps":
        return _rps(_probabilities(model, X))
    inner = innermost(model)
    values = np.asarray(model.decision_function(X))
    if isinstance(inner, Scored):
        return _beyond_thresholds(values, inner.thresholds)
    if hasattr(inner, "rank_values"):  # the largest is predicted
        values = inner.rank_values(values)
        return _beyond_nearest(values.max(axis=1, keepdims=True) - values)
    return _beyond_nearest(np.abs(values))


def _of_own_rows(model: Any, kind: _Nonconformity, X: Any) -> np.ndarray:
    """Return the nonconformities of rows of the fit, which come without names."""
    return _nonconformities(
        model, named(X, getattr(model, "feature_names", None)), kind
    )


def _probabilities(model: Any, X: Any) -> np.ndarray:
    inner = innermost(model)
    # Without a link, XOFM has the shares of its paper in place of probabilities.
    shares = isinstance(inner, XofmModel) and inner.link is None
    P = model.predict_proba(X, **({"proba": "share"} if shares else {}))
    P = as_real_array(P, "predict_proba of the model")
    classes = classes_of(model)
    P, r = in_rank_order(P, model, classes), classes.size
    if P.ndim != 2 or P.shape[1] != r or not np.isfinite(P).all():
        raise ValueError(
            f"predict_proba of the model must give {r} finite numbers a row, got an "
            f"array of shape {P.shape}"
        )
    return P


def _rps(P: np.ndarray) -> np.ndarray:
    """Return (R): (n, r) from (n, r) probabilities."""
    F = np.cumsum(P, axis=1)[:, :-1]
    edge = np.zeros((len(P), 1))
    # Thresholds below y contribute F^2, the others (1 - F)^2.
    below = np.concatenate([edge, np.cumsum(F**2, axis=1)], axis=1)
    above = np.cumsum(((1 - F) ** 2)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(below + np.concatenate([above, edge], axis=1))


def _beyond_thresholds(f: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the distances of scores, (n,), from the interval of every rank."""
    b = np.concatenate([[-np.inf], np.sort(thresholds), [np.inf]])
    below, above = b[:-1] - f[:, None], f[:, None] - b[1:]
    return np.asarray(np.maximum(np.maximum(below, above), 0.0))


def _beyond_nearest(distance: np.ndarray) -> np.ndarray:
    """Return how much farther a rank's hyperplane is than the nearest one.

    Hyperplanes between the two count; the distances are (n, r).
    """
    nearest = distance.argmin(axis=1)[:, None]
    rank = np.arange(distance.shape[1])
    up = np.maximum.accumulate(np.where(rank >= nearest, distance, 0.0), axis=1)
    down = np.where(rank <= nearest, distance, 0.0)[:, ::-1]
    down = np.maximum.accumulate(down, axis=1)[:, ::-1]
    least = np.take_along_axis(distance, nearest, axis=1)
    return np.asarray(np.maximum(up, down) - least)


# Calibration rows


def _judged(
    model: Any, kind: _Nonconformity, X: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return nonconformities of the true ranks, the ranks, and weights or None.

    The rows are in memory, in chunks, or at workers of dask.
    """
    judge, classes = partial(_judged_block, model, kind), classes_of(model)
    if not is_chunked(X):
        scores, rank, _ = judge(Block(X, y))
        return scores, rank, sample_weight
    names = getattr(model, "feature_names", None)
    parts = map_blocks(X, y, sample_weight, judge, classes, names)
    if not parts:
        raise ValueError(
            f"{shown(X)}.blocks() yielded no blocks: it must yield one or more"
        )
    if len({weight is None for _, _, weight in parts}) > 1:
        raise ValueError("all blocks must have weights, or none of them")
    found, ranks, weights = zip(*parts, strict=True)
    own = None if weights[0] is None else np.concatenate(weights)
    return np.concatenate(found), np.concatenate(ranks), own


def _judged_block(
    model: Any, kind: _Nonconformity, block: Block
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    found = _nonconformities(model, block.X, kind)
    if block.y is None:
        raise ValueError("blocks must be (X, y) or (X, y, weight), got X alone")
    rank = _ranks(block.y, classes_of(model), len(found))
    weight = None if block.weight is None else row_weights(block.weight, rank.size)
    return found[np.arange(rank.size), rank], rank, weight


def _ranks(y: Any, classes: np.ndarray, n: int) -> np.ndarray:
    y = read_labels(known_labels("conformal", y), "y")
    if y.size != n:
        raise ValueError(f"y has shape {y.shape}, expected ({n},) as X")
    return ranks_of(y, classes, argument="the classes of the model")


def _counted(
    sample_weight: Any,
    groups: Any,
    rank: np.ndarray,
    by_class: bool,
    tested: np.ndarray | None = None,
) -> np.ndarray:
    """Return the weight of every row in (P); it is 0 unless the row is `tested`."""
    weight = sample_weights(sample_weight, rank.size)
    check_spread("sample_weight", weight)
    if tested is not None:
        weight = np.where(tested, weight, 0.0)
    group = group_numbers(groups, rank.size)
    if group is None:
        return weight
    if by_class:  # the sums are over the rows of one rank
        group = group * (int(rank.max()) + 1) + rank
    total = np.bincount(group, weight)[group]
    shares = np.zeros(rank.size)
    np.divide(weight, total, out=shares, where=total > 0)
    return shares


def _check_enough(total: float, coverage: float) -> None:
    needed = coverage / (1 - coverage)
    if total < needed * (1 - _ROUNDING):
        raise ValueError(
            f"coverage={coverage:g} needs {np.ceil(needed - _ROUNDING):.0f} "
            "calibration rows (in each group, where there are groups), got "
            f"{total:.6g}: lower coverage or add rows"
        )


def _weight_from(
    scores: np.ndarray, weights: np.ndarray, least: np.ndarray
) -> np.ndarray:
    """Return the total weight of the scores that reach each of (n,) bounds, (n,)."""
    order = np.argsort(scores)
    from_here = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    return np.asarray(from_here[np.searchsorted(scores[order], least, side="left")])
