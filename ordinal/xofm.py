"""Explainable ordinal factorization: a score in pieces, learned from pairs of rows.

The range of each feature is cut in pieces. Phi(x) has an entry a piece: 1 for those
below x, the share of the piece that holds x, 0 for those above. With a main effect u_a
and a vector v_a of factors a piece, and j(a) the feature of piece a,

    U(x) = sum_a u_a Phi_a + sum_{a<b, j(a) != j(b)} <v_a, v_b> Phi_a Phi_b          (U)

    min_{u,V}  1/(2 M) sum_{y_i > y_j} w_i w_j max(0, tau - U(x_i) + U(x_j))^2
               + lambda_main |u|^2 + lambda_pair |V|^2                               (P)

where M is the sum of the w_i w_j, so that a penalty means the same for any number of
rows. With e_j = sum_{a of j} (u_a, v_a) Phi_a, the value of feature j's curve at x, and
S = sum_j e_j,

    U = S_u + 1/2 (|S_v|^2 - sum_j |e_jv|^2)                                         (F)

which costs O(d k) for k factors, whatever the number of pieces: a table holds the
curves, linear between, at their knots. The gradient is scattered on the knots, then
summed up. With the scores sorted, the sum over pairs of (P) takes O(n log n).

A missing value, or a category, is a piece of its own: Phi is 1 there, and 0 elsewhere.
A piece that no training row has stands for the mean row.

Monotone features: u_a >= 0, for a falling feature with Phi the pieces above x; and
V >= 0 for all features, lest another's factors turn the slope around. Both are squares
of free numbers, but for the stochastic solver, which sets factors below 0 to 0, as the
paper does. (P) is not convex unless k = 0: a local optimum is what the solvers find. At
V = 0 the slope by V is 0, so V starts at random.

M. Guo, Z. Xu, Q. Zhang, X. Liao, J. Liu, "Explainable ordinal factorization model",
ECAI 2020: Definitions 1 to 5, (4), (9), (14)-(17), Algorithm 1. The sum over pairs of
(4) has those of one feature too: main effects that its curve would not show. (1), which
(4) is to restate, has pairs of different features alone, and predictions are as good.
The paper calls (P) convex, and its Proposition 1, L <= R, holds for rows in order only.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np

from ._input.checks import (
    as_real,
    check_choice,
    check_count,
    check_factor,
    check_factor_or_zero,
    check_positive,
    check_real,
    shown,
)
from ._input.columns import Categories, column_categories, column_number, default_names
from ._input.problem import Problem
from ._input.sparse import frozen
from ._input.types import ArrayLike, Labels, MatrixLike, Rng
from ._model.convergence import Convergence
from ._model.entry import Callback, Entry, enter
from ._model.fields import (
    DISTINCT,
    FINITE,
    INCREASING,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    RISING,
    Array,
    Length,
    Rule,
)
from ._model.folds import held_out_size, hold_out
from ._model.model import Model, read_for
from ._model.registry import register
from ._model.rules import cost_of_rule, decide
from ._model.support import finite_scores
from ._numerics.threads import resolve_n_threads
from ._pieces.explanations import (
    Explained,
    Interaction,
    Marginals,
    Named,
    ScoreFunction,
)
from ._pieces.held_out import HeldOutMonitor
from ._pieces.layout import Layout, make_knots
from ._pieces.objective import (
    Bounds,
    Objective,
    PairLoss,
    Rows,
    fill_unseen,
    initial_pieces,
    packed,
    scores,
)
from ._pieces.solvers import Solution, quasi_newton, stochastic_descent

__all__ = ["Interaction", "Named", "ScoreFunction", "XofmModel", "fit_xofm"]


def __dir__() -> list[str]:
    return __all__


_LARGEST_SCALE = 1e20  # at the start: slopes go with its third power
_SOLVER_DEFAULTS: dict[str, dict[str, Any]] = {
    "lbfgs": {"tol": 1e-3, "max_iter": 1000},
    "sgd": {"tol": 1e-2, "learning_rate": None, "n_epochs": None, "batch_size": 64},
}
_OPTION_CHECKS: dict[str, Callable[[str, Any], float]] = {
    "tol": check_positive,
    "max_iter": check_count,
    "learning_rate": check_factor,
    "n_epochs": check_positive,
    "batch_size": check_count,
}

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
    convergence: Convergence

    @property
    def n_features(self) -> int:
        return len(self.categories)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.feature_names or default_names(self.n_features)

    @property
    def _layout(self) -> Layout:
        return Layout.of(self.breakpoints, self.categories, self.monotone < 0)

    @property
    def _explained(self) -> Explained:
        at = [
            points if labels is None else labels
            for points, labels in zip(self.breakpoints, self.categories, strict=True)
        ]
        W, k = packed(self.u, self.V), self.V.shape[1]
        marginals = Marginals(self.node_mass, self.node_between, self.histogram)
        return Explained(self._layout, self._names, tuple(at), W, k, marginals)

    def _rows(self, X: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
        Z = read_for(self, X, missing=True, categories=self.categories)
        assert isinstance(Z, np.ndarray)
        return self._layout.locate(Z)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """The score U(x), which increases with the rank.

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
        node, share = self._rows(X)
        table = self._layout.table(packed(self.u, self.V))
        return finite_scores(scores(node, share, table, resolve_n_threads(None))[0])

    def predict_interval(self, X: MatrixLike) -> np.ndarray:
        """The labels [L, R] between which each row lies, by Definition 4.

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
        return np.asarray(self.classes[self._interval(self.decision_function(X))])

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Shares of the ranks in the interval, by Definition 5.

        kappa_h is the share of the training rows of other ranks that rank h agrees
        with: lower ones that score more than tau less, and higher ones that score more
        than tau more. Over the interval it is normalised to 1. Where all are 0, for no
        training row is that far away, tau is taken as 0, and the ranks are alike if
        that does not help. Ranks outside have 0, and so have those without training
        rows.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, which says what is raised.

        Returns
        -------
        (n, r) array
            Rows sum to 1.
        """
        U = self.decision_function(X)
        ends, rank = self._interval(U), np.arange(self.classes.size)
        inside = (
            (ends[:, :1] <= rank) & (rank <= ends[:, 1:]) & (np.diff(self.start) > 0)
        )
        P = np.where(inside, self._kappa(U, self.tau), 0.0)
        for far_enough in (lambda U: self._kappa(U, 0.0), lambda U: 1.0):
            none = ~P.any(axis=1)
            P[none] = np.where(inside[none], far_enough(U[none]), 0.0)
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def predict(
        self,
        X: MatrixLike,
        *,
        rule: Literal["mode", "median", "cost"] = "mode",
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Labels by a rule.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`.
        rule : {"mode", "median", "cost"}, default "mode"
            "mode" is the paper's: the rank of the interval with the largest kappa, the
            lower one of two alike. Else the median of `predict_proba`, or the rank of
            least expected cost by it.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError, TypeError
            As `decision_function`, and for a rule or cost that is not as above.
        """
        rules = "mode", "median", "cost"
        table = cost_of_rule(rule, rules, cost, None, self.classes.size)
        return np.asarray(self.classes[decide(self.predict_proba(X), rule, table)])

    def _interval(self, U: np.ndarray) -> np.ndarray:
        """Ranks of the ends of the interval of each score, (n, 2)."""
        held = np.flatnonzero(np.diff(self.start))
        least = self.scores[self.start[held]]
        most = self.scores[self.start[held + 1] - 1]
        L = np.where(U[:, None] >= least, held, held[0]).max(axis=1)
        R = np.where(U[:, None] <= most, held, held[-1]).min(axis=1)
        return np.column_stack([np.minimum(L, R), np.maximum(L, R)])

    def _kappa(self, U: np.ndarray, tau: float) -> np.ndarray:
        """kappa of all ranks, (n, r)."""
        n, r = U.size, self.classes.size
        below, above, total = np.zeros((n, r)), np.zeros((n, r)), np.zeros(r)
        for h, (a, b) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            mass = np.append(0.0, self.mass[a:b])
            total[h] = mass[-1]
            with np.errstate(over="ignore"):  # infinity has its place among scores
                low, high = U - tau, U + tau
            below[:, h] = mass[np.searchsorted(self.scores[a:b], low)]
            far = np.searchsorted(self.scores[a:b], high, side="right")
            above[:, h] = total[h] - mass[far]
        lower = np.cumsum(below, axis=1) - below
        higher = np.cumsum(above[:, ::-1], axis=1)[:, ::-1] - above
        # as sums of what is meant: where one rank outweighs the others, a difference
        # of sums that hold its weight could be 0
        sums = np.cumsum(total), np.cumsum(total[::-1])
        others = np.append(0.0, sums[0][:-1]) + np.append(0.0, sums[1][:-1])[::-1]
        return np.asarray((lower + higher) / others)

    # Explanations

    def score_functions(self) -> tuple[ScoreFunction, ...]:
        """The main effect of every feature, in the order of the columns.

        It holds all of U that depends on this feature alone, that of its pairs with
        others as well: g of (E) in `ordinal/_pieces/explanations.py`. Its mean over
        the training rows is 0.

        Returns
        -------
        tuple of (d,) ScoreFunction
        """
        return self._explained.score_functions()

    def importance(self) -> Named:
        """How far every part of U moves it: standard deviations of the main effects and
        of the pair effects beside them.

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
        """How two features act together, beside their score functions.

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
        """The interactions of all pairs of features, or the `top` strongest.

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
        """What the score of each row is made of.

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
        self._check_marginals(layout)
        # each row weighs at most 1, which keeps all sums finite
        if (self.mass > 1 + np.arange(m) - np.repeat(start[:-1], np.diff(start))).any():
            raise ValueError("mass must be at most the number of rows")

    def _check_marginals(self, layout: Layout) -> None:
        if self.node_mass.size != layout.node[-1]:
            raise ValueError("node_mass must have an entry a node")
        total = np.add.reduceat(self.node_mass, layout.node[:-1])
        if np.abs(total - 1).max() > 1e-6:
            raise ValueError("node_mass must sum to 1 for each feature")
        if (self.node_between > self.node_mass).any():
            raise ValueError("node_between must be at most node_mass")
        for shares, labels in zip(self.histogram, self.categories, strict=True):
            if (shares.size > 0) is not (labels is None) or shares.sum() > 1 + 1e-6:
                raise ValueError("histogram must hold shares of features of numbers")


def fit_xofm(
    X: ArrayLike,
    y: Labels,
    *,
    n_intervals: int | Sequence[int] = 4,
    breakpoints: Literal["equal", "quantile"] = "equal",
    n_factors: int = 4,
    tau: float = 1.0,
    lambda_main: float = 1e-3,
    lambda_pair: float = 1e-3,
    early_stopping: float | None = None,
    monotone: Mapping[str, int] | Sequence[int] | None = None,
    categorical: Sequence[str | int] = (),
    solver: Literal["lbfgs", "sgd"] = "lbfgs",
    learning_rate: float | None = None,
    n_epochs: float | None = None,
    batch_size: int | None = None,
    init_scale: float = 0.1,
    sample_weight: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> XofmModel:
    """Fit an explainable ordinal factorization model.

    The module's docstring states (U) and (P). Every feature gets a curve of its own,
    every pair of features an effect beside, and labels come from the training rows that
    score alike.

    Parameters
    ----------
    X : (n, d) array-like or data frame
        Rows of features in their own units: nothing needs to be standardised. NaN, and
        None in a data frame, is missing. Columns of a data frame that are of a
        categorical type hold categories; pandas and polars are recognised, not needed.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    n_intervals : int, or one a feature, default 4
        Pieces of the range of a feature. The paper chooses them by cross-validation.
    breakpoints : {"equal", "quantile"}, default "equal"
        Pieces of equal length, as in the paper, or of equal weight of rows. Fewer where
        breakpoints coincide.
    n_factors : int >= 0, default 4
        Of each piece. 0 for main effects alone, where (P) is convex.
    tau : float > 0, default 1.0
        Margin between rows of different ranks, in the unit of U that it defines.
    lambda_main, lambda_pair : float >= 0, default 1e-3
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
        Whose values are categories, besides those that a data frame says are. A
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
    sample_weight : (n,) array-like >= 0, optional
        A pair has the product of two. Weight 2 means the row written twice. The sum
        must lie between 1e-50 and 1e50, and positive weights differ by a factor of at
        most 1e15.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    rng : int or numpy.random.Generator, default 0
        Draws V, the rows held out and the order of pairs.
    n_threads : int, optional
        Default: the processors this process may use, or ORDINAL_NUM_THREADS. No
        bit of the result depends on it; last bits do depend on the number of threads
        of numpy's BLAS, which is set apart (docs/reliability.md).
    tol : float > 0, default 1e-3, for "sgd" 1e-2
        Largest slope of (P) by a u_a or v_af (by its root, where bounded) of a
        converged fit. A smaller one takes longer and predicted no better.
    max_iter : int, for "lbfgs", default 1000
        Steps.
    max_time : float > 0, optional
        Seconds, looked at before every evaluation of the objective.
    callback : callable, optional
        Called with an `ordinal.State` once a step, or several times a second; a true
        value stops.
    verbose : bool, default False
        Tell stderr how far the fit is: one line rewritten in place on a terminal, a bar
        in a notebook (of tqdm, if it is there), elsewhere a line every ten seconds.

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
    array([ 4.7,  9.7, 14.7, 19.7, 24.7])
    >>> model.interaction("x1", "x2").values.shape
    (5, 5)
    """
    check_choice("breakpoints", breakpoints, ("equal", "quantile"))
    tau = check_factor("tau", tau)
    init_scale = check_factor("init_scale", init_scale, _LARGEST_SCALE)
    lambda_main = check_factor_or_zero("lambda_main", lambda_main)
    lambda_pair = check_factor_or_zero("lambda_pair", lambda_pair)
    n_factors = check_count("n_factors", n_factors, 0)
    options = _solver_options(
        solver, tol=tol, max_iter=max_iter, learning_rate=learning_rate,
        n_epochs=n_epochs, batch_size=batch_size,
    )  # fmt: skip
    categories = column_categories(X, categorical)
    entry = enter(
        "fit_xofm", X, y, tol=options.pop("tol"), classes=classes,
        sample_weight=sample_weight, rng=rng, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose, missing=True, categories=categories,
        watch=HeldOutMonitor,
    )  # fmt: skip
    sign = _signs(monotone, entry.problem, categories)
    layout, rows = _laid_out(entry.problem, categories, sign, n_intervals, breakpoints)
    train = _trained_on(rows, layout, tau, early_stopping, entry)
    loss, bounds = PairLoss(train, tau, entry.n_threads), Bounds.of(layout, sign)
    penalty = packed(np.array([lambda_main]), np.full((1, n_factors), lambda_pair))[0]
    objective = Objective(layout, loss, bounds, penalty)
    W = initial_pieces(objective, n_factors, init_scale, entry.rng)
    stochastic = partial(stochastic_descent, rng=entry.rng)
    solve: Callable[..., Solution] = stochastic if solver == "sgd" else quasi_newton
    with entry.monitor as monitor:
        found = solve(objective, W, monitor, **options)
        model = _model(entry, categories, sign, rows, objective, n_factors, found)
        monitor.conclude(model.convergence)
    model.convergence.warn_unless_converged("fit_xofm")
    return model


def _laid_out(
    problem: Problem, categories: Categories, sign: np.ndarray, n_intervals: Any,
    breakpoints: str,
) -> tuple[Layout, Rows]:  # fmt: skip
    """The pieces, and the rows of positive weight by rank."""
    intervals = _intervals(n_intervals, problem.n_features)
    order = np.argsort(problem.rank, kind="stable")
    order = order[problem.weight[order] > 0]
    X, weight = np.asarray(problem.X)[order], problem.weight[order]
    weight = weight / weight.max()  # products then neither overflow nor vanish together
    is_number = [labels is None for labels in categories]
    knots = make_knots(X, weight, is_number, intervals, breakpoints)
    layout = Layout.of(knots, categories, sign < 0)
    return layout, Rows(*layout.locate(X), problem.rank[order], weight)


def _model(
    entry: Entry, categories: Categories, sign: np.ndarray, rows: Rows,
    objective: Objective, n_factors: int, found: Solution,
) -> XofmModel:  # fmt: skip
    """The model of the pieces found, with the scores of all rows."""
    problem, layout, loss = entry.problem, objective.layout, objective.loss
    fill_unseen(layout, loss.rows, found.W)
    table = layout.table(found.W)
    U, _ = scores(rows.node, rows.share, table, loss.n_threads)
    order = np.lexsort((U, rows.rank))
    start = np.searchsorted(rows.rank, np.arange(problem.n_classes + 1))
    mass = [np.cumsum(w) for w in np.split(rows.weight[order], start[1:-1])]
    marginals = Marginals.of(layout, rows, np.asarray(problem.X), problem.weight)
    return XofmModel(
        u=frozen(found.W[:, 0].copy()),
        V=frozen(found.W[:, 1 : 1 + n_factors].copy()),
        first=frozen(layout.first),
        breakpoints=layout.knots,
        categories=categories,
        feature_names=problem.feature_names,
        monotone=frozen(sign),
        tau=float(loss.tau),
        scores=frozen(U[order]),
        mass=frozen(np.concatenate(mass)),
        start=frozen(start.astype(np.int64)),
        node_mass=marginals.mass,
        node_between=marginals.between,
        histogram=marginals.histogram,
        classes=problem.classes,
        convergence=entry.monitor.record(
            found.status, found.n_iter, found.violation, found.value
        ),
    )


# What the arguments say


def _trained_on(
    rows: Rows, layout: Layout, tau: float, early_stopping: Any, entry: Entry
) -> Rows:
    """The rows to train on; the monitor judges by those that are held out."""
    if early_stopping is None:
        return rows
    train, held = _hold_out(rows, early_stopping, entry.rng)
    monitor = cast(HeldOutMonitor, entry.monitor)
    monitor.watch(layout, PairLoss(held, tau, entry.n_threads))
    return train


def _hold_out(
    rows: Rows, early_stopping: Any, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Rows to train on, and a share of each rank that is held out."""
    rule = "a share between 0 and 1, or None"
    share = check_real("early_stopping", early_stopping, lambda v: 0 < v < 1, rule)
    rank = np.unique(rows.rank, return_inverse=True)[1]
    held = hold_out(rank, held_out_size(share, rank.size, rank.max() + 1), rng)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    if np.unique(rows.rank[test]).size < 2:
        raise ValueError(
            f"early_stopping={share} holds out {test.size} rows of one class: no pairs"
        )
    return rows.take(train), rows.take(test)


def _solver_options(solver: str, **given: Any) -> dict[str, Any]:
    """The options of a solver, checked; what only the other one takes is refused."""
    check_choice("solver", solver, ("lbfgs", "sgd"))
    options = dict(_SOLVER_DEFAULTS[solver])
    for name, value in given.items():
        if value is None:
            continue
        if name not in options:
            other = "sgd" if solver == "lbfgs" else "lbfgs"
            raise ValueError(
                f"{name} is for solver={shown(other)} only, got {shown(value)}"
            )
        options[name] = _OPTION_CHECKS[name](name, value)
    return options


def _intervals(n_intervals: Any, d: int) -> list[int]:
    several = isinstance(n_intervals, Sequence | np.ndarray)
    values = list(n_intervals) if several else [n_intervals] * d
    if len(values) != d:
        raise ValueError(f"n_intervals has {len(values)} entries, X has {d} features")
    return [
        check_count(f"n_intervals[{j}]" if several else "n_intervals", value)
        for j, value in enumerate(values)
    ]


def _signs(monotone: Any, problem: Problem, categories: Categories) -> np.ndarray:
    """-1, 0 or 1 of every feature, (d,) int8."""
    names = problem.feature_names or default_names(problem.n_features)
    sign = np.zeros(len(names), np.int8)
    if monotone is None:
        return sign
    if isinstance(monotone, Mapping):
        given = {column_number(c, names, "monotone"): v for c, v in monotone.items()}
    else:
        values = np.asarray(monotone).tolist()
        if not isinstance(values, list) or len(values) != len(names):
            raise ValueError(
                f"monotone must name features or have {len(names)} entries, got "
                f"{shown(monotone)}"
            )
        given = dict(enumerate(values))
    for j, value in given.items():
        if as_real(value) not in (-1, 0, 1):
            raise ValueError(
                f"monotone of {shown(names[j])} must be -1, 0 or 1, got {shown(value)}"
            )
        if value and categories[j] is not None:
            raise ValueError(
                f"monotone names {shown(names[j])}, whose categories have no order"
            )
        sign[j] = value
    return sign


register(
    fit_xofm,
    name="xofm",
    estimator="XOFM",
    accepts={"missing", "categories"},
    scale_free=True,
)
