"""Functions that fit the factorization model; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

import copy
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np

from .._input.checks import (
    check_choice,
    check_count,
    check_factor,
    check_factor_or_zero,
    check_flag,
    check_positive,
    shown,
)
from .._input.columns import Categories, column_categories, column_number
from .._input.features import read_features, signs_of
from .._input.fields import (
    DISTINCT,
    FINITE,
    INCREASING,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    RISING,
    SHARED,
    Array,
    Length,
    Rule,
)
from .._input.frame import default_names
from .._input.problem import Problem
from .._input.sparse import read_only
from .._input.types import ArrayLike, Blocks, Labels, MatrixLike, Rng
from .._model.explanation import Named
from .._model.folds import calibrate, few_folds, fold_shares
from .._model.links import CumulativeLink, require_link
from .._model.model import Model, read_for
from .._model.preparation import Callback, prepare
from .._model.registry import PENALTIES, Method, register
from .._model.support import finite_scores
from .._model.threshold_model import predicted
from .._numerics.threads import resolve_n_threads
from .._rows.chunks import Reading, is_chunked
from .._rows.first_pass import ChunkedProblem
from .._watch.convergence import Convergence
from ..preprocessing.joined import Preprocess, preprocessed
from .chunked import ChunkRows, check_blocks, counted, knots_of, numbers_of
from .explanations import Explained, Interaction, Marginals, ScoreFunction
from .layout import Layout, pieces_of
from .objective import (
    Bounds,
    Objective,
    PairLoss,
    Ranked,
    fill_unseen,
    initial_pieces,
    packed,
    scores,
)
from .solvers import (
    HeldOutMonitor,
    Solution,
    hold_out_rows,
    quasi_newton,
    solver_options,
    stochastic_descent,
)
from .training_scores import TrainingScores

_LARGEST_SCALE = 1e20  # at the start: slopes go with its third power
_Knots: TypeAlias = Annotated[np.ndarray, Array("f8", "_"), FINITE, INCREASING]
_Categories: TypeAlias = Annotated[np.ndarray, Array(LABELS, "_"), FINITE, DISTINCT]
_Shares: TypeAlias = Annotated[np.ndarray, Array("f8", "_"), FINITE, NONNEGATIVE]
_SIGNS = Rule("be -1, 0 or 1", lambda a: np.abs(a) <= 1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class XofmModel(Model):
    """A score U(x), and the scores of the training rows that it is held against.

    Attributes
    ----------
    u : (P,) array
        Main effects of the pieces, feature after feature; the last piece of a feature
        is that of missing values.
    V : (P, n_factors) array
        Factors of the pieces.
    first : (d + 1,) array
        The first piece of each feature.
    breakpoints : tuple of (d,) arrays
        In the unit of the feature; empty for one of categories.
    categories : tuple of (d,) arrays or None
    feature_names : tuple of (d,) str, or None
        Columns of the training data frame; without, explanations say x1..xd.
    monotone : (d,) array of -1, 0, 1
    tau : float
        The margin, in the unit of U.
    scores : (m,) array
        U of the training rows of positive weight by rank, increasing within each.
    mass : (m,) array
        Their weights, summed up within each rank.
    start : (r + 1,) array
        The first of `scores` of each rank.
    node_mass, node_between : (N,) arrays
        How the training rows lie along the features, whose nodes are the breakpoints,
        or the categories, and one for missing values: the share of the weight at each
        node, where a row between two nodes is shared by them, and the mean of s (1 - s)
        for rows that lie a share s of the way from the node to the next.
    histogram : tuple of (d,) arrays
        Shares of the rows in bins of equal width over the range of each feature of
        numbers; empty for one of categories.
    classes : (r,) array
        Labels in rank order.
    link : CumulativeLink or None
        From scores to probabilities, if fitted with `probability`.
    convergence : Convergence
        `primal` is the value of (P), `violation` its largest slope (see `tol`).
    """

    u: Annotated[np.ndarray, Array("f8", "P"), FINITE]
    V: Annotated[np.ndarray, Array("f8", "P k"), FINITE]
    first: Annotated[np.ndarray, Array("i4", "d+1")]
    breakpoints: Annotated[tuple[_Knots, ...], Length("d")]
    categories: Annotated[tuple[_Categories | None, ...], Length("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    monotone: Annotated[np.ndarray, Array("i1", "d"), _SIGNS]
    tau: Annotated[float, FINITE, POSITIVE]
    scores: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    mass: Annotated[np.ndarray, Array("f8", "m"), FINITE, POSITIVE]
    start: Annotated[np.ndarray, Array("i8", "r+1"), RISING]
    node_mass: Annotated[np.ndarray, Array("f8", "N"), FINITE, NONNEGATIVE]
    node_between: Annotated[np.ndarray, Array("f8", "N"), FINITE, NONNEGATIVE]
    histogram: Annotated[tuple[_Shares, ...], Length("d")]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    link: Annotated[CumulativeLink, SHARED] | None
    convergence: Convergence
    link_type = CumulativeLink

    @property
    def n_features(self) -> int:
        """Columns of the training rows."""
        return len(self.categories)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.feature_names or default_names(self.n_features)

    @property
    def _layout(self) -> Layout:
        return Layout.from_knots(self.breakpoints, self.categories, self.monotone < 0)

    @property
    def _marginals(self) -> Marginals:
        return Marginals(self.node_mass, self.node_between, self.histogram)

    @property
    def _training_scores(self) -> TrainingScores:
        return TrainingScores(self.scores, self.mass, self.start)

    @property
    def _explained(self) -> Explained:
        at = [
            points if labels is None else labels
            for points, labels in zip(self.breakpoints, self.categories, strict=True)
        ]
        W, k = packed(self.u, self.V), self.V.shape[1]
        return Explained(self._layout, self._names, tuple(at), W, k, self._marginals)

    def _rows(self, X: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
        Z = read_for(self, X, missing=True, categories=self.categories)
        assert isinstance(Z, np.ndarray)
        return self._layout.locate(Z)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score U(x), which increases with the rank.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            A number beyond the training range counts as its end, an unknown category as
            missing. Columns of a data frame are found by the names of the training one.

        Returns
        -------
        (n,) array

        Raises
        ------
        ValueError, TypeError
            If X lacks columns, or holds anything but finite numbers, NaN and, in
            columns of categories, labels.
        """
        return self._scores(*self._rows(X))

    def _scores(self, node: np.ndarray, share: np.ndarray) -> np.ndarray:
        """U of rows where `Layout.locate` found them."""
        table = self._layout.table(packed(self.u, self.V))
        return finite_scores(scores(node, share, table, resolve_n_threads(None)))

    def link_input(self, X: np.ndarray, like: XofmModel) -> np.ndarray:
        """Scores for the link of another model, of rows as a `Problem` has them, with
        categories by their place.

        (P) knows no origin of U, and a fit that stops early a smaller unit: scores are
        moved and scaled so that the ranks' mean scores of the training rows are nearest
        to those of that model.
        """
        if not isinstance(like, XofmModel) or like.classes.size != self.classes.size:
            raise TypeError(
                f"like must be such a model, of as many ranks, got {shown(like)}"
            )
        Z = np.array(read_features(X, self.n_features, missing=True))
        for j, labels in enumerate(self.categories):
            if labels is not None:  # a place that is none is no memory to read
                Z[~np.isin(Z[:, j], np.arange(labels.size)), j] = np.nan
        U = self._scores(*self._layout.locate(Z))
        return self._training_scores.in_unit_of(like._training_scores, U)

    def predict_interval(self, X: MatrixLike) -> np.ndarray:
        """Return the labels [L, R] between which each row lies, by Definition 4.

        L is the highest rank with a training row that scores no more, R the lowest with
        one that scores no less; the ends of the scale where there is none. L <= R is
        certain only if all training rows score in the order of their ranks: where it
        fails, the row lies among rows of the ranks R to L, and this is the interval.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, which says what is raised.

        Returns
        -------
        (n, 2) array of labels, of the type of `classes`
        """
        U = self.decision_function(X)
        return np.asarray(self.classes[self._training_scores.interval(U)])

    def predict_proba(
        self, X: MatrixLike, *, proba: Literal["link", "share"] = "link"
    ) -> np.ndarray:
        """Probabilities of the ranks, or the paper's shares of them.

        By the link P(y <= j) falls as the score rises, and passes 1/2 at the score
        offsets[j] / slope of the `link`, a logistic regression on scores of rows that
        their model was not fitted to.

        By Definition 5 of the paper kappa_h is the share of the training rows of other
        ranks that rank h agrees with: lower ones that score more than tau less, and
        higher ones that score more than tau more. Over the interval of
        `predict_interval` it is normalised to 1. Where all are 0, for no training row
        is that far away, tau is taken as 0, and the ranks are alike if that does not
        help. Ranks outside have 0, and so have those without training rows: the true
        rank may be among them, so that a log loss is infinite.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, which says what else is raised.
        proba : {"link", "share"}, default "link"

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        ValueError
            If the link is asked of a model that was fitted without `probability`.
        """
        check_choice("proba", proba, ("link", "share"))
        U = self.decision_function(X)
        if proba == "link":
            return self._proba(U)
        return self._training_scores.shares(U, self.tau)

    def _proba(self, U: np.ndarray) -> np.ndarray:
        """Probabilities of rows with the scores U, by the link."""
        return np.asarray(require_link(self.link)(U))

    def predict(
        self,
        X: MatrixLike,
        *,
        rule: Literal["share", "mode", "median", "cost"] = "share",
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a decision rule.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`.
        rule : {"share", "mode", "median", "cost"}, default "share"
            "share" takes the rank with the largest share by Definition 5, the lower one
            of two alike. The others use the probabilities by the link: the most
            probable rank, the median, or the rank of least expected cost. Median and
            mode never fall as the score rises.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError, TypeError
            As `decision_function`, for a rule or cost that is not as above, and for a
            rule on probabilities of a model that was fitted without `probability`.
        """
        return predicted(self, X, rule, "share", cost)

    def _labels(self, U: np.ndarray) -> np.ndarray:
        """`predict` of rows with the scores U, by the paper's rule."""
        shares = self._training_scores.shares(U, self.tau)
        return np.asarray(self.classes[shares.argmax(axis=1)])

    # Explanations

    def score_functions(self) -> tuple[ScoreFunction, ...]:
        """Return the main effect of every feature, in the order of the columns.

        It holds all of U that depends on this feature alone, that of its pairs with
        others as well: g of (E) in `ordinal/xofm/explanations.py`. Its mean over
        the training rows is 0.

        Returns
        -------
        tuple of (d,) ScoreFunction
        """
        return self._explained.score_functions()

    def importance(self) -> Named:
        """Return the standard deviation of every part of U.

        Pair effects are those beside the main effects.

        Over the training rows, by weight; of a pair over the product of the marginals
        of its two features. Were the features independent, the squares would sum to
        the variance of U.

        Returns
        -------
        Named
            `values` (d + d (d - 1) / 2,) in the unit of U; `names` of the features, and
            then "a:b" for each pair, in the order of `contributions`.
        """
        return self._explained.importance()

    def interaction(self, a: str | int, b: str | int) -> Interaction:
        """Return how two features act together, beside their score functions.

        The effect at every two values of theirs: at breakpoints, between which it is
        bilinear, categories, and where values are missing. Its mean over the training
        rows' values of either feature is 0 at every value of the other.

        Parameters
        ----------
        a, b : names or numbers of two columns

        Returns
        -------
        Interaction

        Raises
        ------
        ValueError
            If there is no such column, or it is the same twice.
        """
        i, j = (column_number(c, self._names, n) for c, n in ((a, "a"), (b, "b")))
        if i == j:
            raise ValueError(
                f"a and b must be two features, got {shown(self._names[i])} twice"
            )
        return self._explained.interaction(i, j)

    def interactions(self, top: int | None = None) -> tuple[Interaction, ...]:
        """Return the interactions of all pairs of features, or the `top` strongest.

        Parameters
        ----------
        top : int, optional

        Returns
        -------
        tuple of Interaction, the strongest first

        Raises
        ------
        ValueError
            If `top` is not a positive integer.
        """
        if top is not None:
            top = check_count("top", top)
        return self._explained.interactions(top)

    def contributions(self, X: MatrixLike) -> Named:
        """Return the contributions to the score of each row.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, which says what is raised.

        Returns
        -------
        Named
            `values` (n, 1 + d + d (d - 1) / 2), rows that add up to U: a base that all
            rows have, which is the mean of U were the features independent, the score
            functions, and the interactions. `names` are "base", those of the features,
            and "a:b" for a pair.
        """
        return self._explained.contributions(*self._rows(X))

    def _score_terms(self, X: MatrixLike) -> Named:
        names, values = self.contributions(X)
        return Named(names[1:], values[:, 1:])  # but for the base

    def _check(self) -> None:
        for at, labels in zip(self.breakpoints, self.categories, strict=True):
            if (at.size > 0) is not (labels is None):
                raise ValueError("breakpoints are for the features of numbers")
            if at.size and at[-1] / 2 - at[0] / 2 > np.finfo(np.float64).max / 2:
                raise ValueError("breakpoints must not span more than double can hold")
        layout = self._layout
        if (
            not np.array_equal(layout.first, self.first)
            or layout.n_pieces != self.u.size
        ):
            raise ValueError("first must count the pieces")
        start, m = self.start, self.scores.size
        if start[0] != 0 or start[-1] != m or np.count_nonzero(np.diff(start)) < 2:
            raise ValueError("start must divide the scores among two ranks or more")
        next_rank = np.isin(np.arange(1, m), start)
        for name in ("scores", "mass"):
            if not (next_rank | (np.diff(getattr(self, name)) >= 0)).all():
                raise ValueError(f"{name} must not fall within a rank")
        most = np.maximum.reduceat(
            np.abs(layout.table(packed(self.u, self.V))[:-1]), layout.node[:-1]
        ).sum(axis=0)
        with np.errstate(over="ignore"):  # seen by the check
            largest = most[0] + np.square(most[1:]).sum()
            if not np.isfinite(16 * largest):  # above all parts that a score can have
                raise ValueError("u and V make scores beyond double")
        self._marginals.check(layout)
        # each row weighs at most 1, which keeps all sums finite
        if (self.mass > 1 + np.arange(m) - np.repeat(start[:-1], np.diff(start))).any():
            raise ValueError("mass must be at most the number of rows")


@preprocessed
def fit_xofm(
    X: ArrayLike | Blocks,
    y: Labels | None,
    *,
    n_intervals: int | Sequence[int] = 8,
    breakpoints: Literal["equal", "quantile"] = "equal",
    n_factors: int = 4,
    tau: float = 1.0,
    l2_main: float = 3e-3,
    l2_pair: float = 1e-2,
    early_stopping: float | None = None,
    monotone: Mapping[str, int] | Sequence[int] | None = None,
    categorical: Sequence[str | int] = (),
    solver: Literal["lbfgs", "sgd"] = "lbfgs",
    learning_rate: float | None = None,
    n_epochs: float | None = None,
    batch_size: int | None = None,
    init_scale: float = 0.1,
    cache_mb: float = 1000.0,
    sample_weight: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    preprocess: Preprocess | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> XofmModel:
    """Fit XOFM: an additive model of piecewise linear curves and surfaces.

    The module's docstring states (U) and (P). Every feature gets a curve of its own,
    every pair of features an effect beside, and labels come from the training rows that
    score alike.

    Parameters
    ----------
    X : (n, d) array-like or data frame
        Rows of features in their own units: nothing needs to be standardised. NaN, and
        None in a data frame, is missing. Columns of words, or of a categorical type,
        hold categories; pandas and polars are recognised, not needed. For "lbfgs" also
        a source of blocks of numbers (`ordinal.data`), or a numpy.memmap, whose rows
        are read twice in every step and need not fit in memory; `early_stopping` and
        `categorical` do without.
    y : (n,) array-like, or None if X is a source of chunks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_intervals : int, or one a feature, default 8
        Pieces of the range of a feature. The paper chooses them by cross-validation;
        the default and those of the penalties did well on ten sets
        (docs/decisions.md).
    breakpoints : {"equal", "quantile"}, default "equal"
        Pieces of equal length, as in the paper, or of equal weight of rows: of
        100 000 of them where there are more. Fewer where breakpoints coincide.
    n_factors : int >= 0, default 4
        Of each piece. 0 for main effects alone, where (P) is convex.
    tau : float > 0, default 1.0
        Margin between rows of different ranks: the unit of U. Another one makes the
        same predictions where `l2_pair` and the square of `init_scale` are in
        proportion, so there is nothing to search but `l2_pair`.
    l2_main, l2_pair : float >= 0, default 3e-3 and 1e-2
        A larger one flattens the curves, or fades the interactions. The paper has none;
        without, a small training set is fitted to the last row.
    early_stopping : float in (0, 1), optional
        Share of the rows, of each rank alike, to hold out: the result is the iterate
        whose pairs of them are ordered best. By default none, since penalties did as
        well, and small sets lose by it.
    monotone : mapping of columns to -1, 0, 1, or a sequence of these, optional
        Features by which U may not fall (1) or rise (-1). One such feature makes the
        factors of all others >= 0: the paper's (16).
    categorical : names or numbers of columns, optional
        Whose values are categories, besides those of words and categorical types. A
        category that the training rows lack is missing when predicting.
    solver : {"lbfgs", "sgd"}, default "lbfgs"
        Quasi-Newton steps on the exact gradient, O(n (d k + log n)) each, or the
        paper's stochastic descent on pairs.
    learning_rate : float > 0, for "sgd"
        Of a step on the mean of a batch; it falls to 0 in the course of the run.
        Default 4 over the number of pieces or 16, and over tau if that is above 1; for
        batches of less than 16 pairs, which are noisier, in proportion to their size.
    n_epochs : float > 0, for "sgd"
        Passes over all pairs, of which there can be n^2 / 2: a part of one will do for
        many rows. Default one, or more up to 2 million pairs.
    batch_size : int, for "sgd", default 64
        Pairs in a step. The paper has 1.
    init_scale : float > 0, default 0.1
        Deviation of V at the start, and of the roots of bounded pieces.
    cache_mb : float > 0, default 1000
        Memory in 10^6 bytes for where rows lie among the pieces, 12 bytes an entry of
        X: the others are located at every evaluation of (P). Changes no bit. "sgd" and
        `early_stopping` keep all of them.
    sample_weight : (n,) array-like >= 0, optional
        A pair has the product of two. Weight 2 means the row written twice. The sum
        must lie between 1e-50 and 1e50, and positive weights differ by a factor of at
        most 1e15.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    probability : bool, default False
        Also fit the link that `predict_proba` needs, on the scores of five more fits,
        each of which leaves out a fifth of the rows; of rows that are read in chunks a
        fifth of at most 50 000, and so many fits as it takes to leave out every rank.
    rng : int or numpy.random.Generator, default 0
        Draws V, the folds of `probability`, the rows held out and the order of pairs.
    n_threads : int, optional
        Number of threads for the fit's own loops and matrix products. Default:
        ORDINAL_NUM_THREADS or, without it, the processors that this process may use.
        No bit of the result depends on it (docs/guides/threads.md).
    tol : float > 0, default 1e-3, for "sgd" 1e-2
        Largest slope of (P) by a u_a or v_af (by its root, where bounded) of a
        converged fit. A smaller one takes longer and predicted no better.
    max_iter : int, for "lbfgs", default 1000
        Steps on all rows, and on each of the samples with which a fit begins: of 65 536
        rows and more every 16th row, without `early_stopping`.
    max_time : float > 0, optional
        Seconds, looked at before every evaluation of the objective.
    callback : callable, optional
        Called with an `ordinal.State` once a step, or several times a second; a true
        value stops.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

    Returns
    -------
    XofmModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable, or meant for the other solver; nothing
        has been computed then. A ValueError during the fit if `learning_rate` is so
        large that the scores overflow.

    Warns
    -----
    ConvergenceWarning
        The fit ended short of the tolerance, and not by `early_stopping`; the message
        says why and what helps.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_xofm(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.score_functions()[0].at.round(1)
    array([ 4.7,  7.2,  9.7, 12.2, 14.7, 17.2, 19.7, 22.2, 24.7])
    >>> model.interaction("x1", "x2").values.shape
    (9, 9)
    """
    check_choice("breakpoints", breakpoints, ("equal", "quantile"))
    tau = check_factor("tau", tau)
    init_scale = check_factor("init_scale", init_scale, _LARGEST_SCALE)
    l2_main = check_factor_or_zero("l2_main", l2_main)
    l2_pair = check_factor_or_zero("l2_pair", l2_pair)
    n_factors = check_count("n_factors", n_factors, 0)
    cache_mb = check_positive("cache_mb", cache_mb)
    probability = check_flag("probability", probability)
    options = solver_options(
        solver,
        tol=tol,
        max_iter=max_iter,
        learning_rate=learning_rate,
        n_epochs=n_epochs,
        batch_size=batch_size,
    )
    if chunks := is_chunked(X):
        check_blocks(solver, early_stopping, categorical)
    categories = () if chunks else column_categories(X, categorical)
    prepared = prepare(
        "fit_xofm",
        X,
        y,
        Reading(chunks, remote=False, missing=True, categories=categories),
        tol=options.pop("tol"),
        classes=classes,
        sample_weight=sample_weight,
        rng=rng,
        n_threads=n_threads,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
        watch=HeldOutMonitor,
    )  # fmt: skip
    categories = categories or numbers_of(prepared.problem)
    penalty = packed(np.array([l2_main]), np.full((1, n_factors), l2_pair))[0]
    return _XofmFit(
        categories,
        signs_of(monotone, prepared.problem.shown_names, categories),
        pieces_of(n_intervals, prepared.problem.n_features),
        breakpoints,
        n_factors,
        tau,
        penalty,
        early_stopping,
        init_scale,
        solver,
        options,
        cache_mb,
        prepared.n_threads,
        cast(HeldOutMonitor, prepared.monitor),
    ).watched(prepared.problem, prepared.rng, probability)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _XofmFit:
    """Checked options, the same for the fit of all rows and those of the folds."""

    categories: Categories
    sign: np.ndarray
    n_intervals: list[int]
    breakpoints: str
    n_factors: int
    tau: float
    penalty: np.ndarray
    early_stopping: float | None
    init_scale: float
    solver: str
    options: dict[str, Any]
    cache_mb: float
    n_threads: int
    monitor: HeldOutMonitor

    def watched(
        self, problem: Problem, rng: np.random.Generator, probability: bool
    ) -> XofmModel:
        """Return the model, with what a caller must know of how the fit ended."""
        with self.monitor, closing(problem):
            model = self.fit(problem, rng, probability)
            self.monitor.conclude(model.convergence)
        model.convergence.warn_unless_converged("fit_xofm")
        return model

    def fit(
        self, problem: Problem, rng: np.random.Generator, probability: bool
    ) -> XofmModel:
        """Return the model, with a link if asked for.

        The start of the fits, of the folds as well, is drawn as it is without a link.
        """
        # Copies of the generator: the model is the same with and without a link.
        drawn = copy.deepcopy(rng)
        deal = few_folds if isinstance(problem, ChunkedProblem) else fold_shares
        share = deal(problem, copy.deepcopy(rng)) if probability else None

        def of_fold(part: Problem, train: np.ndarray) -> list[XofmModel]:
            return [self._whole(part, copy.deepcopy(drawn))]

        model: XofmModel
        whole = self._whole(problem, rng)
        (model,) = calibrate([whole], problem, share, of_fold, self.monitor)
        return model

    def _whole(self, problem: Problem, rng: np.random.Generator) -> XofmModel:
        monitor = copy.copy(self.monitor)  # which watches held-out rows of its own
        problem = counted(problem)
        about = self.categories, self.n_intervals, self.breakpoints
        layout = Layout.from_knots(
            knots_of(problem, *about), self.categories, self.sign < 0
        )
        held = self.solver == "sgd" or self.early_stopping is not None
        rows = ChunkRows(
            problem,
            layout,
            self.penalty.size,
            np.inf if held else self.cache_mb,
            self.n_threads,
        )
        train: Ranked = rows
        if held:
            train = by_rank = rows.by_rank()
            if self.early_stopping is not None:
                train, test = hold_out_rows(by_rank, self.early_stopping, rng)
                monitor.watch(layout, PairLoss(test, self.tau, self.n_threads))
        loss = PairLoss(train, self.tau, self.n_threads)
        bounds = Bounds.from_signs(layout, self.sign)
        objective = Objective(layout, loss, bounds, self.penalty)
        W = initial_pieces(objective, self.n_factors, self.init_scale, rng)
        if self.solver == "sgd":
            found = stochastic_descent(objective, W, monitor, rng=rng, **self.options)
        else:
            samples = () if held else rows.samples()
            found = quasi_newton(objective, W, monitor, samples=samples, **self.options)
        return self._model(problem, layout, rows, found)

    def _model(
        self, problem: Problem, layout: Layout, rows: ChunkRows, found: Solution
    ) -> XofmModel:
        """Return the model of the pieces found, with the scores of all rows."""
        fill_unseen(layout, rows, found.W)
        U = rows.scores(layout.table(found.W), self.n_threads)
        order = np.lexsort((U, rows.rank))
        every = np.arange(problem.n_classes + 1)
        start = np.searchsorted(rows.rank[order], every)
        # Cumulative weights give the share of a rank below a score by one search.
        mass = [np.cumsum(w) for w in np.split(rows.weight[order], start[1:-1])]
        return XofmModel(
            u=read_only(found.W[:, 0].copy()),
            V=read_only(found.W[:, 1 : 1 + self.n_factors].copy()),
            first=read_only(layout.first),
            breakpoints=layout.knots,
            categories=self.categories,
            feature_names=problem.feature_names,
            monotone=read_only(self.sign),
            tau=float(self.tau),
            scores=read_only(U[order]),
            mass=read_only(np.concatenate(mass)),
            start=read_only(start.astype(np.int64)),
            node_mass=rows.marginals.mass,
            node_between=rows.marginals.between,
            histogram=rows.marginals.histogram,
            classes=problem.classes,
            link=None,
            convergence=self.monitor.record(
                found.status, found.n_iter, found.violation, found.value
            ),
        )


register(
    Method(
        fit_xofm,
        name="xofm",
        estimator="XOFM",
        accepts={"missing", "categories"},
        scale_free=True,
        reads_chunks=True,
        grid={"l2_main": PENALTIES, "l2_pair": PENALTIES},
    )
)
