"""Fit and model of OFMHS, a factorization machine with hierarchical sparsity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Unpack

import numpy as np

from .._input.checks import check_count, check_factor, check_real
from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    NOT_NAN,
    POSITIVE,
    RISING,
    THRESHOLDS,
    Array,
    Length,
    Size,
)
from .._input.frame import default_names
from .._input.immutable import read_only
from .._input.problem import around_ranks
from .._input.types import ArrayLike, ClassWeight, Labels, MatrixLike, RowsLike
from .._model.explanation import Named
from .._model.labelled import MissingLabels
from .._model.links import CumulativeLink
from .._model.model import read_for
from .._model.preparation import Callback, Common, Prepared, prepare, shared_arguments
from .._model.printing import Table
from .._model.registry import Method, register
from .._model.support import finite_scores
from .._model.threshold_model import Scored
from .._numerics.memory import check_memory
from .._numerics.rows import dense, strips, take
from .._watch.convergence import Convergence
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed
from .hierarchy import HierarchyPath, both_ways, scores

_ENTRIES = 2**20  # entries of rows that are standardised at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfmhsModel(Scored):
    """P(y <= j | x) = 1 / (1 + exp(f(x) - theta_j)) with main effects and pairs,

    f(x) = z'main + sum_(j<k) pairs_jk z_j z_k,   z_j = (x_j - centre_j) / spread_j.

    Attributes
    ----------
    main : (d,) array
        Main effects beta: the change of the log odds of higher ranks when a feature
        increases by one standard deviation, if all others are at their means.
    pairs : (d, d) array
        Interactions Theta, symmetric with zeros on the diagonal: the change of the
        effect of feature k when feature j increases by one standard deviation.
    brought : (d, d) array
        m of (P): entry (j, k) is the part of main[j] that belongs to the pair (j, k);
        the rest of main[j] is independent of pairs.
    centre, spread : (d,) arrays
        Weighted means and standard deviations of the training rows.
    thresholds : (r - 1,) array
        Thresholds theta, in order. They are -inf or +inf where no training rows lie
        beyond them, and equal on both sides of an inner rank without training rows,
        which is then never predicted.
    l1, pair_ratio : float
    largest : float
        Smallest l1 for which all effects are 0, with this `pair_ratio`.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit. `primal` and `dual` are those of (P), and `violation` is
        their difference divided by the loss without effects.
    """

    main: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    pairs: Annotated[np.ndarray, Array("f8", "d d"), FINITE]
    brought: Annotated[np.ndarray, Array("f8", "d d"), FINITE]
    centre: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    spread: Annotated[np.ndarray, Array("f8", "d"), FINITE, POSITIVE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]
    l1: Annotated[float, FINITE, POSITIVE]
    pair_ratio: Annotated[float, NOT_NAN, NONNEGATIVE]
    largest: Annotated[float, FINITE, NONNEGATIVE]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    convergence: Convergence

    @property
    def link(self) -> CumulativeLink:
        """Link from scores to probabilities."""
        return CumulativeLink(1.0, self.thresholds)

    @property
    def n_main(self) -> int:
        """Number of main effects that are not 0."""
        return int(np.count_nonzero(self.main))

    @property
    def n_pairs(self) -> int:
        """Number of pairs whose interaction is not 0."""
        return int(np.count_nonzero(np.triu(self.pairs)))

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the score f(x), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Returns
        -------
        (n,) array
            Scores in units of log odds; P(y <= j) is 1/2 where the score is
            thresholds[j].

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        rows = read_for(self, X)
        n, d = rows.shape
        f = np.empty(n)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            for some in strips(n, max(1, _ENTRIES // d)):
                Z = (dense(take(rows, some)) - self.centre) / self.spread
                f[some] = scores(Z, self.main, self.pairs)
        return finite_scores(f)

    def effects(self) -> Table:
        """Return main effects and pairs that are not 0, the largest first.

        Returns
        -------
        Table
            `name`, such as "x1" or "x1:x2", and `effect`, the change of the log odds of
            higher ranks per standard deviation of the features. It prints as a table
            and can be passed to `pandas.DataFrame`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> ordinal.companions.fit_ofmhs(X, y, l1=0.1).effects()
        name  effect
        x1   2.32234
        """
        name, mains, first, second = self._nonzero()
        effect = np.concatenate([self.main[mains], self.pairs[first, second]])
        order = np.argsort(-np.abs(effect), kind="stable")
        return Table({"name": np.array(name, str)[order], "effect": effect[order]})

    def _nonzero(self) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
        """Return the names and features of the effects that are not 0.

        The names of main effects come first. The features are those of main effects,
        and the first and the second ones of pairs.
        """
        names = self.feature_names or default_names(self.n_features)
        mains = np.flatnonzero(self.main)
        first, second = np.nonzero(np.triu(self.pairs))
        shown = [names[j] for j in mains.tolist()]
        for j, k in zip(first.tolist(), second.tolist(), strict=True):
            shown.append(f"{names[j]}:{names[k]}")
        return shown, mains, first, second

    def _score_terms(self, X: MatrixLike) -> Named:
        Z = (dense(read_for(self, X)) - self.centre) / self.spread
        names, mains, first, second = self._nonzero()
        with np.errstate(over="ignore"):  # the entries are checked
            products = Z[:, first] * Z[:, second] * self.pairs[first, second]
        terms = np.hstack([Z[:, mains] * self.main[mains], products])
        return Named(tuple(names), finite_scores(terms))

    def _summary(self) -> dict[str, str]:
        d = self.n_features
        lines = {
            "main effects": f"{self.n_main} of {d}",
            "pairs": f"{self.n_pairs} of {d * (d - 1) // 2}",
            "l1": f"{self.l1:g}, pair_ratio {self.pair_ratio:g}",
        }
        return lines | super(OfmhsModel, self)._summary()

    def _check(self) -> None:
        if (self.pairs != self.pairs.T).any() or np.diagonal(self.pairs).any():
            raise ValueError("pairs must be symmetric, with zeros on its diagonal")


_BYTES = 150  # bytes of a fit per pair of features
_EASIER = "raise the penalties"  # remedy for a fit that met a limit


@preprocessed
def fit_ofmhs(
    X: MatrixLike,
    y: Labels,
    *,
    l1: float = 1e-2,
    pair_ratio: float = 1.0,
    tol: float = 1e-5,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> OfmhsModel:
    """Fit OFMHS: sparse main effects and interactions with strong hierarchy.

    The method fits a cumulative logit model with main effects and products of two
    features, most of which the penalty sets to 0. A product is in the model only if
    both of its features have main effects. The docstring of `ordinal.ofmhs` states the
    problem (P) and the sources of the method. A fit takes about 10 to 20 steps of O(n
    d^2) operations, and of O(n m^2 + m^3) for m nonzero effects, so that hundreds of
    features are practical if most effects are 0.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation. The fit standardises them, because products
        of features are hard to interpret unless these are centred; results do not
        depend on their units. A sparse matrix is converted to a dense one. `predict`
        finds the columns of a data frame by their names.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    l1 : float > 0, default 0.01
        Penalty on the main effects of the standardised features. The loss is a mean
        over rows, so that a good value does not depend on their number. If l1 is at
        least the attribute `largest` of the model, all effects are 0.
    pair_ratio : float >= 0, default 1
        Ratio of the penalty on pairs to that on main effects. If both features are in
        the model, a pair enters it when the partial derivative of the loss by its
        effect exceeds pair_ratio * l1. inf gives a model without pairs, which is the
        lasso of `fit_pom`.
    tol : float > 0, default 1e-5
        Tolerance on the duality gap of (P) relative to the loss without features. The
        gap is an upper bound on the distance of the objective to its minimum.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Limit on the number of Newton steps, each of which is solved by block coordinate
        descent. It applies separately to each of the decreasing penalties through which
        a fit with a small one goes.
    max_time : float > 0, optional
        Time budget in seconds, checked before and during every step. When it is
        exhausted, the fit returns its best point so far, with a warning.
    callback : callable, optional
        Called with an `ordinal.models.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    OfmhsModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.
    MemoryError
        If the machine has less memory than the pairs of features need.

    Warns
    -----
    ConvergenceWarning
        If the fit stopped before it reached the tolerance. The message names the reason
        and the remedy.

    See Also
    --------
    ordinal.fit_xofm : Fit XOFM: an additive model of piecewise linear curves and
        surfaces.
    ordinal.fit_pom_path : Fit cumulative link models for a path of penalties: the lasso
        and elastic net.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_ofmhs(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.main.shape, model.pairs.shape
    ((2,), (2, 2))
    """
    penalty = _penalty(l1, pair_ratio)
    task = _prepared(X, y, max_iter, **shared_arguments(Common, locals()))
    with task.prepared.monitor:
        model = task.fit(*penalty)
        task.prepared.monitor.conclude(model, warn=_warn)
    return model


def _warn(model: OfmhsModel) -> None:
    model.convergence.warn_unless_converged("fit_ofmhs", _EASIER)


@dataclass(slots=True)
class _OfmhsFit:
    """Checked arguments of fits that differ in their penalties only."""

    prepared: Prepared
    max_iter: int
    path: HierarchyPath | None = None  # warm starts each fit at the one before

    def fit(self, ratio: float, l1: float) -> OfmhsModel:
        """Return the model of two penalties."""
        problem, monitor = self.prepared.problem, self.prepared.monitor
        # Made here, because its first point is part of the fit that the monitor times.
        if self.path is None:
            n_threads = self.prepared.n_threads
            self.path = HierarchyPath(problem, n_threads, self.max_iter, monitor)
        path, found = self.path, self.path.reach(l1, ratio)
        point, present = found.point, np.flatnonzero(problem.present)
        main, theta = path.effects(point.own, point.parts)
        brought = np.zeros((main.size, main.size))
        brought[path.first, path.second] = point.parts[:, 0]
        brought[path.second, path.first] = point.parts[:, 1]
        return OfmhsModel(
            main=read_only(main),
            pairs=read_only(both_ways(main.size, path.first, path.second, theta)),
            brought=read_only(brought),
            centre=read_only(path.design.centre),
            spread=read_only(path.design.spread),
            thresholds=read_only(around_ranks(point.u, present, problem.n_classes)),
            l1=l1,
            pair_ratio=ratio,
            largest=path.largest(ratio),
            **problem.model_fields(),
            convergence=monitor.record(
                found.status, found.n_iter, found.violation, found.primal, found.dual
            ),
        )


def _prepared(
    X: MatrixLike, y: Labels, max_iter: int, **common: Unpack[Common]
) -> _OfmhsFit:
    """Check and read the arguments of a fit."""
    max_iter = check_count("max_iter", max_iter)
    prepared = prepare("fit_ofmhs", X, y, **common)
    d = prepared.problem.n_features
    check_memory("fit_ofmhs", _BYTES * d * (d - 1) / 2, f"the pairs of {d} features")
    problem = replace(prepared.problem, X=dense(prepared.problem.X))
    return _OfmhsFit(replace(prepared, problem=problem), max_iter)


def _penalty(l1: float, pair_ratio: float) -> tuple[float, float]:
    """Check the penalties; return the ratio and l1."""
    rule = "a number from 0 to 1e6, or inf"
    ratio = check_real(
        "pair_ratio", pair_ratio, lambda v: 0 <= v <= 1e6 or v == math.inf, rule
    )
    return ratio, check_factor("l1", l1)


def _fit_path(
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, Any]],
    products: object,
    X_test: object,
    **options: Any,  # noqa: ANN401  (as of the fit)
) -> tuple[list[OfmhsModel], list[None]]:
    """Return one model per point (l1, ratio), in the form that `register` takes."""
    penalties = [_penalty(**point) for point in points]
    models: dict[tuple[float, float], OfmhsModel] = {}
    task = _prepared(X, y, **options)
    with task.prepared.monitor:
        # Pairs enter as the ratio decreases; with an infinite one they are 0.
        for penalty in sorted(set(penalties), reverse=True):
            models[penalty] = task.fit(*penalty)
        task.prepared.monitor.conclude(*models.values(), warn=_warn)
    return [models[penalty] for penalty in penalties], [None] * len(points)


register(
    Method(
        fit_ofmhs,
        name="ofmhs",
        estimator="OFMHS",
        own_rule="threshold",
        accepts={"sparse"},
        scale_free=True,
        probabilities=True,
        grid={"l1": (1e-3, 3e-3, 1e-2, 3e-2), "pair_ratio": (0.5, 1.0, 2.0, 4.0)},
        varying=("l1", "pair_ratio"),
        fit_path=_fit_path,
    )
)
