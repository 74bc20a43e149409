"""Fit of OPBE, and its model; the package states the problem.

`Opbe` states the programs, "before, here or after" each rank, and makes the model,
which fuses the projections of the ranks.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from .._input.fields import FINITE, NOT_NAN, POSITIVE, Array
from .._input.immutable import read_only
from .._input.problem import Problem
from .._input.types import (
    AnyBasis,
    ArrayLike,
    Blocks,
    ClassWeight,
    Gamma,
    Kernel,
    Labels,
    MatrixLike,
    Rng,
    RowsLike,
)
from .._model.kernel_fit import Arguments, checked_cost, fit, path_function
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import COSTS, GAMMAS, Method, register
from .._model.support import KernelModel, decision, finite_scores
from .._model.threshold_model import ON_PROBABILITIES, decide, predicted
from .._quadratic.family import QuadraticFamily, Solved
from .._quadratic.losses import Losses, losses_by_rank
from .._quadratic.program import Program
from .._watch.convergence import of_ranks
from ..kernels.functions import KernelName
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed

Rule: TypeAlias = Literal["mode", "median", "cost"]
_WIDTH = 4.0  # least distance of the two thresholds; narrower ones are scaled to it
_NARROW = 1e-6  # least distance of the two thresholds before scaling
_LARGEST = 1e100  # largest distance from a threshold; larger ones are clipped


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OpbeModel(KernelModel):
    """One projection per rank: f_k(x) = sum_i coef[i, k] k(support_i, x).

    Attributes
    ----------
    support : (m, n_features) array or CSR
        Training rows that have a coefficient other than 0, or the basis rows of a fit
        with `basis`. For a precomputed kernel, the (m,) numbers of those rows.
    coef : (m, r) array
    cuts : (r, 2) array
        Thresholds b and c of each rank, in units of the margin. They are -inf or +inf
        where no rank with training rows lies before or after it. Both are +inf for a
        rank without training rows, which is never predicted.
    C : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit; `parts` has one entry per rank of `classes`.
    """

    coef: Annotated[np.ndarray, Array("f8", "m r"), FINITE]
    cuts: Annotated[np.ndarray, Array("f8", "r _"), NOT_NAN]
    C: Annotated[float, FINITE, POSITIVE]
    _rules = ON_PROBABILITIES

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the projections f_k(x), which increase with the rank.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n, r) array
            In units of the margin; 0 for a rank without training rows.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    @property
    def _present(self) -> np.ndarray:
        """Ranks with training rows."""
        return np.flatnonzero(np.isfinite(self.cuts).any(axis=1))

    def _columns(self) -> np.ndarray:
        """Return the coefficients of the ranks that had training rows.

        A matrix product may round otherwise if it has more columns, and absent ranks
        are to change no bit.
        """
        return np.ascontiguousarray(self.coef[:, self._present])

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """Return the projections from sums over the support rows, one column per
        present rank.
        """
        f = np.zeros((len(sums), self.classes.size))
        f[:, self._present] = finite_scores(sums)
        return f

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks.

        They are fused from the projections by (F) of `ordinal.opbe`. They are part of
        the method and not calibrated: they treat the r projections as independent, and
        are therefore too close to 0 and 1.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, with the same errors.
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array
            Rows sum to 1.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """Return `predict_proba` of rows with the projections f."""
        present = self._present
        q = present.size
        log = np.zeros((len(f), q))
        with np.errstate(under="ignore"):  # small probabilities underflow to 0
            for k, rank in enumerate(present):
                before, here, after = _log_classes(f[:, rank], *self.cuts[rank])
                log[:, :k] += (before - np.log(max(k, 1)))[:, None]
                log[:, k] += here
                log[:, k + 1 :] += (after - np.log(max(q - 1 - k, 1)))[:, None]
            log -= log.max(axis=1, keepdims=True)
            P = np.zeros((len(f), self.classes.size))
            P[:, present] = np.exp(log)
            return np.asarray(P / P.sum(axis=1, keepdims=True))

    def predict(
        self, X: RowsLike, *, rule: Rule | None = None, cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "mode": the most probable
            rank, as in the paper; the median; or the rank of least expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError
            If the rule is unknown, or if `cost` is passed with another rule or is not
            a finite (r, r) matrix.
        """
        return predicted(self, X, rule, cost)

    def _labels(self, f: np.ndarray) -> np.ndarray:
        """Return the labels of rows with the projections f, by the mode."""
        return np.asarray(self.classes[decide(self._proba(f), "mode")])

    def _check_values(self) -> None:
        if self.cuts.shape[1] != 2 or self._present.size < 2:
            raise ValueError("cuts must have two columns, finite for two ranks or more")
        known = self.cuts[self._present]
        ends = known[0, 0], -known[-1, 1]
        inner = known.ravel()[1:-1]
        absent = np.delete(self.cuts, self._present, axis=0)
        if ends != (-np.inf, -np.inf) or not (absent == np.inf).all():
            raise ValueError(
                "cuts must be infinite below the lowest rank and at absent ranks"
            )
        if not (np.abs(inner) <= _LARGEST).all():
            raise ValueError(f"cuts must be at most {_LARGEST:g}")


def _log_classes(
    z: np.ndarray, b: float, c: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return logs of P(before), P(here) and P(after) of (F), each (n,)."""
    if b == -np.inf or c == np.inf:
        z = np.clip(z - (c if b == -np.inf else b), -_LARGEST, _LARGEST)
        below, above = -np.logaddexp(0, z), -np.logaddexp(0, -z)
        none = np.full(z.size, -np.inf)
        return (none, below, above) if b == -np.inf else (below, above, none)
    width = max(c - b, _NARROW)
    with np.errstate(over="ignore"):  # clipped below
        z = (z - 0.5 * (b + c)) * max(1.0, _WIDTH / width)
    z, half = np.clip(z, -_LARGEST, _LARGEST), 0.5 * max(width, _WIDTH)
    # log(1 - P(before) - P(after)), without cancellation where their sum is nearly 1
    here = np.log1p(-np.exp(-2 * half)) - np.logaddexp(0, z - half)
    here -= np.logaddexp(0, -z - half)
    return -np.logaddexp(0, z + half), here, -np.logaddexp(0, half - z)


class RankProblems(NamedTuple):
    """Problems with equally many thresholds.

    Attributes
    ----------
    ranks : (P,) array
        The rank of each problem, numbered among those with training rows.
    above : (P, T, q) array of bool
        Whether a row of each rank is above each threshold.
    """

    ranks: np.ndarray
    above: np.ndarray

    def program(self, rank: np.ndarray, width: np.ndarray) -> Program:
        """Return (D) for rows of these ranks and widths of their boxes."""
        above = self.above[:, :, rank]
        slope = np.where(above, -1.0, 1.0)
        return Program(
            lo=np.where(above, 0.0, -width),
            hi=np.where(above, width, 0.0),
            pn=slope,
            pp=slope,
        )

    def before_and_after(self, b: np.ndarray, q: int) -> np.ndarray:
        """Return the thresholds before and after each rank, (P, 2), from (P, T)."""
        first, last = self.ranks == 0, self.ranks == q - 1
        return np.stack(
            [np.where(first, -np.inf, b[:, 0]), np.where(last, np.inf, b[:, -1])],
            axis=1,
        )


def problems_of(q: int) -> list[RankProblems]:
    """Return the problems of the two ranks at the ends, and of the q - 2 others."""
    rank, inner = np.arange(q), np.arange(1, q - 1)
    last_below = np.array([0, q - 2])  # the last rank below the only threshold
    ends = RankProblems(np.array([0, q - 1]), (rank > last_below[:, None])[:, None])
    if not inner.size:
        return [ends]
    last_below = np.stack([inner - 1, inner], axis=1)
    return [ends, RankProblems(inner, rank > last_below[:, :, None])]


@dataclass(frozen=True, slots=True)
class Opbe(QuadraticFamily[float, OpbeModel]):
    """OPBE; a point is its C."""

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return "fit_opbe"

    def programs(self, point: float, problem: Problem) -> list[Program]:
        """Return (D) of the ranks at the ends, and of the others."""
        rank, weight = problem.rank_among_present, problem.weight
        units = [group.program(rank, weight) for group in _problems(problem)]
        return [replace(q, lo=point * q.lo, hi=point * q.hi) for q in units]

    def losses(self, point: float, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, in every problem."""
        groups = _problems(problem)
        q = sum(group.ranks.size for group in groups)
        programs = [group.program(np.arange(q), np.full(q, point)) for group in groups]
        return [losses for p in programs for losses in losses_by_rank(p)]

    def model(self, point: float, problem: Problem, solved: Solved) -> OpbeModel:
        """Return the model of one C, with its problems in the order of the ranks."""
        groups = _problems(problem)
        order = np.argsort(np.concatenate([group.ranks for group in groups]))
        b, both = iter(solved.b), []
        for group in groups:
            own = np.stack([next(b) for _ in group.ranks])
            both.append(group.before_and_after(own, order.size))
        records, present = solved.records(), problem.present
        coef = np.zeros((len(solved.coef), present.size))
        coef[:, present] = solved.coef[:, order]
        cuts = np.full((present.size, 2), np.inf)
        cuts[present] = np.concatenate(both)[order]
        return OpbeModel(
            support=solved.support,
            coef=read_only(coef),
            cuts=read_only(cuts),
            C=point,
            kernel=solved.options.kernel,
            **problem.model_fields(),
            convergence=of_ranks([records[i] for i in order], present),
        )


def _problems(problem: Problem) -> list[RankProblems]:
    return problems_of(int(problem.present.sum()))


@preprocessed
def fit_opbe(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    C: float = 1.0,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    tol: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    basis: AnyBasis | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
    cache_mb: float = 1000.0,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> OpbeModel:
    """Fit OPBE: an ensemble of three-class SVORIM models, one per rank.

    The docstring of `ordinal.opbe` states the problem (P), its dual (D) and the fusion
    of the r models (F). The fits share one kernel matrix and run in parallel.
    Probabilities are part of the method.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; standardise them first, because kernels
        compare distances. With kernel="precomputed", X is the (n, n) kernel matrix.
        Only the kernel `kernels.Pearson` accepts missing values (NaN). `predict` finds
        the columns of a data frame by their names. With `basis`, or with a linear
        kernel, X may also be a source of chunks (`ordinal.data`) or a numpy.memmap:
        every pass reads the rows again, so that they need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    C : float > 0, default 1.0
        Weight of margin violations: a small C regularises more. The papers search 1e-3
        to 1e3.
    kernel : str or callable, default "rbf"
        "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", or
        "precomputed" if X is the kernel matrix.
        A callable k(A, B) returns the (len(A), len(B)) matrix of kernel values;
        `ordinal.kernels` has several.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the named kernels but "linear". "scale" is 1 / (d * variance of X),
        which is 1 / d on standardised features; the variance uses `sample_weight` but
        not `class_weight`. "auto" is 1 / d. For "laplacian" both are the root of that.
    tol : float > 0, default 1e-3
        Tolerance on the violation of the optimality conditions, in units of f. With
        `basis`, tolerance on the duality gap relative to the value of (P).
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
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        Approximation for many rows: every f_k is a sum over basis rows. Values and
        default are those of `fit_svorim`.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the rows of `basis`. Unused without it.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        Memory for cached rows of the kernel matrix in single precision, in 10^6 bytes;
        the default holds the whole matrix of 15 800 rows. With `basis`, memory for
        cached features, which are stored in 16 instead of 32 bits if those of all rows
        do not fit otherwise. What is not cached is computed again at every step.
    max_iter : int, default 10^7
        Limit on the number of steps per problem, each of which changes two dual
        variables. With `basis`, limit on the number of Newton steps per sample of the
        rows, 200 by default.
    max_time : float > 0, optional
        Time budget in seconds, checked some 25 times per second. When it is exhausted,
        the fit returns its best point so far, with a warning; if that happens while the
        kernel matrix is being computed, this is the starting point. A fit to the whole
        kernel matrix estimates its total time after the first second and warns at once
        if the budget will not suffice; use `basis="auto"` for such problems. With
        `basis`, a fit that is interrupted early returns the model of a sample of the
        rows, whose `convergence` has no duality gap.
    callback : callable, optional
        Function that is called with an `ordinal.models.State` several times per second.
        If it returns a true value, the fit stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    OpbeModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        If a problem stopped before it reached the tolerance. The message names the
        reason and the remedy.

    See Also
    --------
    ordinal.fit_npsvor : Fit NPSVOR: one hyperplane per rank.
    ordinal.fit_svorim : Fit SVORIM: every row has a margin at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_opbe(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    >>> len(model.convergence.parts)
    3
    """
    return fit(Opbe(), X, y, checked_cost(C), **shared_arguments(Arguments, locals()))


register(
    Method(
        fit_opbe,
        name="opbe",
        estimator="OPBE",
        own_rule="mode",
        accepts={"sparse"},
        probabilities=True,
        grid={"C": COSTS, "gamma": GAMMAS},
        varying=("C",),
        fit_path=path_function(Opbe, checked_cost),
    )
)
