"""Functions that fit OPBE; the package states the problem.

`Opbe` states the programs, "before, here or after" each rank, and makes the model.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._input.problem import Problem
from .._input.types import (
    AnyBasis,
    ArrayLike,
    Blocks,
    ClassWeight,
    Gamma,
    Kernel,
    KernelName,
    Labels,
    MatrixLike,
    Rng,
)
from .._model.preparation import Callback
from .._model.registry import COSTS, GAMMAS, Method, register
from .._programs.family import Family, Solved
from .._programs.fit import checked_cost, fit, path_function
from .._programs.losses import Losses
from .._programs.on_basis import by_problem
from .._programs.program import Program
from ..preprocessing.joined import Preprocess, preprocessed
from .model import OpbeModel, model_of


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
    cut = np.array([0, q - 2])  # the last rank below the threshold
    ends = RankProblems(np.array([0, q - 1]), (rank > cut[:, None])[:, None])
    if not inner.size:
        return [ends]
    cuts = np.stack([inner - 1, inner], axis=1)
    return [ends, RankProblems(inner, rank > cuts[:, :, None])]


@dataclass(frozen=True, slots=True)
class Opbe(Family[float, OpbeModel]):
    """OPBE; a point is its C."""

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return "fit_opbe"

    def programs(self, point: float, problem: Problem) -> list[Program]:
        """Return (D) of the ranks at the ends, and of the others."""
        rank, weight = problem.rank_among_present, problem.weight
        units = [of.program(rank, weight) for of in _problems(problem)]
        return [replace(q, lo=point * q.lo, hi=point * q.hi) for q in units]

    def losses(self, point: float, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, in every problem."""
        groups = _problems(problem)
        q = sum(of.ranks.size for of in groups)
        programs = [of.program(np.arange(q), np.full(q, point)) for of in groups]
        return [of for p in programs for of in by_problem(p.lo, p.hi, p.pn, p.pp)]

    def model(self, point: float, problem: Problem, solved: Solved) -> OpbeModel:
        """Return the model of one C, with its problems in the order of the ranks."""
        groups = _problems(problem)
        order = np.argsort(np.concatenate([of.ranks for of in groups]))
        b, both = iter(solved.b), []
        for of in groups:
            own = np.stack([next(b) for _ in of.ranks])
            both.append(of.before_and_after(own, order.size))
        records = solved.records()
        return model_of(
            problem,
            solved.options.kernel,
            solved.support,
            point,
            solved.coef[:, order],
            np.concatenate(both)[order],
            [records[i] for i in order],
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

    The module's docstring states (P), (D) and (F). The r fits share one kernel matrix
    and run side by side. Probabilities are part of the method.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN marks a missing value, which only `kernels.Pearson` takes. `predict`
        finds the columns of a data frame by their names. With `basis` or a linear
        kernel also a source of chunks (`ordinal.data`) or a numpy.memmap, whose rows
        are read in every pass and need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks; the papers search 1e-3 to 1e3.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Parameter of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X),
        1 / d on standardised features, where rows count by `sample_weight` but not by
        `class_weight`; "auto" is 1 / d.
    tol : float > 0, default 1e-3
        Largest violation of the optimality conditions of a problem, in units of f. On a
        basis the largest duality gap, relative to the value of (P).
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice. The sum must lie between
        1e-50 and 1e50, and positive weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows; the products have the same limits.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as for `select`; the fit then returns a
        `PreprocessedModel`.
    basis : int, float in (0, 1), "auto", (way, int), row numbers or rows, optional
        For very many rows: every f_k is a sum over basis rows only, as in `fit_svorim`.
        The default is the whole kernel; of a linear one, for 2000 rows or more and
        d <= min(n / 4, 1000), the unit vectors, which leave nothing out.
    rng : int or numpy.random.Generator, default 0
        Draws the rows of a basis, and samples for a fit on it. Unused without.
    n_threads : int, optional
        Number of threads for the fit's own loops and matrix products. Default:
        ORDINAL_NUM_THREADS or, without it, the processors that this process may use.
        No bit of the result depends on it (docs/guides/threads.md).
    cache_mb : float > 0, default 1000
        Memory for float32 rows of K, in 10^6 bytes: all of them to 15 800 rows. On a
        basis for features of 32 bits, or of 16 where those of all rows do not fit;
        others are computed at every step.
    max_iter : int, default 10^7
        Pair steps of one problem; on a basis Newton steps, default 200.
    max_time : float > 0, optional
        Seconds, looked at some 25 times a second, and between the blocks of K: a fit
        that is late before it has these ends where it begins. On a basis that is the
        model of a sample of the rows, whose `convergence` knows no gap. A fit to the
        whole kernel that the rate of its first second shows to need far more time
        warns then, and goes on; `basis="auto"` is for such problems.
    callback : callable, optional
        Function that is called with an `ordinal.State` several times a second; a true
        value stops the fit.
    verbose : bool, default False
        Report progress on stderr: one line rewritten in place on a terminal, a bar in a
        notebook (of tqdm, if it is installed), elsewhere one line every ten seconds.

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
        A problem ended short of the tolerance; the message says why and what helps.

    See Also
    --------
    fit_npsvor : Fit NPSVOR: one hyperplane per rank.
    fit_svorim : Fit SVORIM: every row has a margin at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_opbe(X, y, C=10.0)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    >>> len(model.convergence.parts)
    3
    """
    return fit(
        Opbe(), X, y, checked_cost(C), basis=basis,
        cache_mb=cache_mb, max_iter=max_iter, kernel=kernel, gamma=gamma, tol=tol,
        classes=classes, sample_weight=sample_weight, class_weight=class_weight,
        rng=rng, n_threads=n_threads, max_time=max_time, callback=callback,
        verbose=verbose,
    )  # fmt: skip


register(
    Method(
        fit_opbe,
        name="opbe",
        estimator="OPBE",
        accepts={"sparse"},
        probabilities=True,
        grid={"C": COSTS, "gamma": GAMMAS},
        varying=("C",),
        fit_path=path_function(Opbe, checked_cost),
    )
)
