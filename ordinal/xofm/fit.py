"""Functions that fit the factorization model; the package states the problem."""

from __future__ import annotations  # numpy.random is slow to import

import copy
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from .._input.checks import (
    check_choice,
    check_count,
    check_factor,
    check_factor_or_zero,
    check_flag,
    check_positive,
)
from .._input.columns import Categories, column_categories
from .._input.features import signs_of
from .._input.problem import Problem
from .._input.sparse import read_only
from .._input.types import ArrayLike, Blocks, Labels, Rng
from .._model.folds import calibrate, few_folds, fold_shares
from .._model.preparation import Callback, prepare
from .._model.registry import PENALTIES, Method, register
from .._rows.chunks import Reading, is_chunked
from .._rows.first_pass import ChunkedProblem
from ..preprocessing.joined import Preprocess, preprocessed
from .chunked import ChunkRows, check_blocks, counted, knots_of, numbers_of
from .layout import Layout, pieces_of
from .model import XofmModel
from .objective import (
    Bounds,
    Objective,
    PairLoss,
    Ranked,
    fill_unseen,
    initial_pieces,
    packed,
)
from .solvers import (
    HeldOutMonitor,
    Solution,
    hold_out_rows,
    quasi_newton,
    solver_options,
    stochastic_descent,
)

_LARGEST_SCALE = 1e20  # at the start: slopes go with its third power


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

    See Also
    --------
    fit_ofmhs : Fit OFMHS: sparse main effects and interactions with strong hierarchy.
    fit_boosting : Fit a cumulative link model whose score is a sum of boosted trees.
    ordinal.plot.score_functions : Plot the main effect of every feature, on one scale,
        the most important first.
    ordinal.plot.interaction : Plot a heat map of the joint effect of two features.

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
        breakpoints, n_factors, tau, penalty, early_stopping, init_scale, solver,
        options, cache_mb, prepared.n_threads,
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
