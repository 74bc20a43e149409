"""TLS-SVOR: SVORIM with slacks that are squared and cut off at u, for rows that lie.

With s_ij = +1 where y_i > j and -1 elsewhere, f_i = sum_h k(x_i, h) w_h over basis rows
h, and a weight v_i of row i,

    min_{w,b}  psi = 1/(2C) (|w|^2 + |b|^2) + sum_ij v_i p(1 - s_ij (f_i - b_j))^2   (P)

    p(s) = P(s) - P(s - u),  which is 0 up to -eta, s on [eta, u - eta], u from u + eta,
    P(t) = (t + eta)^3 (3 eta - t) / (16 eta^3) between -eta and eta                 (4)

p has two continuous derivatives and is near q(s) = min(max(s, 0), u):

    0 <= p^2 - q^2 < 0.0526 eta^2  up to u - eta,  0 <= q^2 - p^2 < 0.375 u eta  above

The penalty is the plain norm of the coefficients, not w'Kw, so k need not be positive
semi-definite. The basis is every row, or a few of them (the reduced kernel). A row of
weight v is v rows: among them the basis would share out its w_h, which then costs
w_h^2 / v.

u = inf is np-SVOR. psi is then strongly convex: its minimum is unique, its thresholds
increase, and

    psi - min psi <= C/2 |gradient|^2                                              (GAP)

For a finite u it is not convex, whatever the paper says, for p^2 is bounded; a local
minimum is what a fit promises. It begins at that of u = inf, lowers u in steps, each
from the last solution, steps off saddles, and never ends above the psi, at its own u,
that it began with. With D_ij = 2 v_i (p'^2 + p p'') of the slacks a Newton step needs

    d2psi = [ diag(sum_i D_ij) + I/C    -D'K                        ]
            [ -K'D                      K' diag(sum_j D_ij) K + I/C ]

b comes first: its block is diagonal, so a Cholesky factorisation eliminates it, leaving
its Schur complement, at no cost. Where the matrix is indefinite a smaller C is put in
place of C, until it is not, and the short step this gives is lengthened.

A rank without rows has its two thresholds in one, with both their terms and prices.

He H., "Smooth support vector ordinal regression with truncated errors" (in Chinese),
2014, doi:10.3969/j.issn.1001-0548.2014.01.022, Theorems 1 to 3. Y.-J. Lee,
S.-Y. Huang, IEEE Transactions on Neural Networks 18(1):1-13, 2007, for the reduced
kernel.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ._basis.choice import drawn
from ._input.basis import read_basis
from ._input.checks import check_count, check_factor, check_real, check_share
from ._input.problem import Problem, around_ranks
from ._input.sparse import frozen
from ._input.types import (
    ArrayLike,
    Basis,
    ClassWeight,
    Gamma,
    Kernel,
    KernelName,
    Labels,
    MatrixLike,
    Rng,
)
from ._kernel_matrix.tiles import Evaluator
from ._model.calibration import calibrate
from ._model.entry import Callback, enter_with_kernel
from ._model.fields import FINITE, POSITIVE
from ._model.monitor import Monitor, OutOfTime
from ._model.registry import COSTS, GAMMAS, register
from ._model.support import support_rows
from ._model.threshold_model import ScoreModel, warn_of
from ._numerics.rows import take
from ._smooth.continuation import minimize
from ._smooth.objective import TruncatedObjective
from .kernels import Precomputed

__all__ = ["TlsSvorModel", "fit_tlssvor"]


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TlsSvorModel(ScoreModel):
    """A score f(x) = sum_h coef[h] k(support_h, x) and the thresholds that cut it.

    Attributes
    ----------
    support : (m, n_features) array or CSR
        The basis rows; for a precomputed kernel their (m,) numbers.
    coef : (m,) array
        w of (P).
    thresholds : (r - 1,) array
        In the unit of the margin. -inf and +inf where no training rows lie beyond, and
        equal on both sides of a rank between that has none: it is never predicted.
    C, u, eta : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
        Its `primal` is psi; there is no dual.
    """

    C: Annotated[float, FINITE, POSITIVE]
    u: Annotated[float, POSITIVE]
    eta: Annotated[float, FINITE, POSITIVE]


def fit_tlssvor(
    X: MatrixLike,
    y: Labels,
    *,
    C: float = 1.0,
    u: float = 2.0,
    eta: float = 0.1,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    basis: Basis | None = None,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 500,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> TlsSvorModel:
    """Fit TLS-SVOR: squared slacks, none of which counts for more than u^2.

    The module's docstring states (P). A step takes O(n m^2 + m^3) for m basis rows.
    About 10 steps are usual where u is infinite or 3, and up to 150 where it is 1.5 and
    C large. The memory is n m + 2 m^2 doubles.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Rows of features, best standardised. With kernel="precomputed" the (n, n) kernel
        matrix. NaN, an entry not known, goes with `kernels.Pearson` only. `predict`
        finds the columns of a data frame by their names.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    C : float > 0, default 1.0
        Weight of the slacks. The paper searches 1e-3 to 1e3, with a basis of a few rows
        1e-2 to 1e4.
    u : float > 2 eta, default 2.0
        Where a slack is cut off, in the unit of the margin: a row 1 beyond a threshold
        it should be before has a slack of 2. The paper searches 1.5 to 6. inf is
        np-SVOR, where rows of a wrong rank count as much as they like.
    eta : float in (0, 1), default 0.1
        Half the width of p's two bends; the error it makes is below 0.0526 eta^2 a
        slack that is not cut off.
    kernel : {"rbf", "linear", "polynomial", "precomputed"} or callable, default "rbf"
        A callable k(A, B) gives the (len(A), len(B)) matrix; see `ordinal.kernels`.
    gamma : {"scale", "auto"} or float > 0, default "scale"
        Of the RBF and polynomial kernels. "scale" is 1 / (d * variance of X), 1 / d on
        standardised features; "auto" is 1 / d.
    basis : int, float in (0, 1], or sequence of row numbers, optional
        The rows that `coef` belongs to: so many, or this share of the rows (the paper's
        Ratio is its inverse), drawn so that every rank has its share; or these. Default
        every row of positive weight.
    tol : float > 0, default 1e-6
        Largest slope of psi by a coefficient or threshold, relative to the sum of the
        weights of its terms, which for w_h are v_i |k(x_i, h)|: a mean slope a term, in
        the unit of the margin. Newton's method takes a step or two from 1e-3, the
        paper's, to 1e-6.
    sample_weight : (n,) array-like >= 0, optional
        Weight 2 gives the model of the row written twice; with a basis that is drawn
        only if the same rows are. The sum must lie between 1e-50 and 1e50, and positive
        weights differ by a factor of at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows, whose products are limited alike.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    probability : bool, default False
        Also fit the link that `predict_proba` needs, on the scores of five more fits,
        each of which leaves out a fifth of the rows.
    rng : int or numpy.random.Generator, default 0
        Draws the basis, if it is to be drawn, and those fifths.
    n_threads : int, optional
        Of the loops over rows; matrix products use the threads of numpy's BLAS.
        Default: the processors this process may use, or ORDINAL_NUM_THREADS. No
        bit of the result depends on it; last bits do depend on the number of threads
        of numpy's BLAS, which is set apart (docs/reliability.md).
    max_iter : int, default 500
        Newton steps, over all values of u.
    max_time : float > 0, optional
        Seconds, looked at after every step and within it, and between the blocks of K:
        a fit that is late before it has these ends where it begins.
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.
    verbose : bool, default False
        Tell stderr how far the fit is: one line rewritten in place on a terminal, a bar
        in a notebook (of tqdm, if it is there), elsewhere a line every ten seconds.

    Returns
    -------
    TlsSvorModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The fit, or one of those for `probability`, ended short of the tolerance; the
        message says why and what helps.
    DisorderedThresholdsWarning
        The thresholds are out of order, which a finite u allows: `disorder` of the
        model lists them.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_tlssvor(X, y, basis=50)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.support.shape
    (50, 2)
    >>> model.disorder
    ()
    """
    C, eta = check_factor("C", C), check_factor("eta", check_share("eta", eta))
    rule = f"a number above 2 eta = {2 * eta:g}"
    u = check_real("u", u, lambda v: v > 2 * eta, rule)
    max_iter = check_count("max_iter", max_iter)
    entry = enter_with_kernel(
        "fit_tlssvor", X, y, kernel=kernel, gamma=gamma, tol=tol, classes=classes,
        sample_weight=sample_weight, class_weight=class_weight, rng=rng,
        probability=probability, n_threads=n_threads, max_time=max_time,
        callback=callback, verbose=verbose,
    )  # fmt: skip
    problem = entry.problem
    rows = _basis_rows(basis, problem, entry.rng)
    share = entry.folds()
    job = _Job(
        entry.kernel, C, u, eta, basis is None, entry.n_threads, max_iter,
        entry.monitor,
    )  # fmt: skip

    def fit(part: Problem, train: np.ndarray) -> list[TlsSvorModel]:
        return [job.fit(part, np.flatnonzero(np.isin(train, rows)))]

    model: TlsSvorModel
    with entry.monitor as monitor:
        (model,) = calibrate([job.fit(problem, rows)], problem, share, fit, monitor)
        monitor.conclude(model.convergence)
    warn_of(model, entry.monitor.method)
    return model


def _basis_rows(basis: Any, problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the basis rows, increasing."""
    rows = np.flatnonzero(problem.weight > 0)
    if basis is None:
        return rows
    given = read_basis(basis, problem.n_samples)
    if isinstance(given, np.ndarray):
        return given
    m = given if isinstance(given, int) else max(1, round(given * rows.size))
    if m > rows.size:
        raise ValueError(
            f"basis must be at most {rows.size}, the rows of positive weight, got {m}"
        )
    return drawn(rows, problem.rank, m, rng)


@dataclass(frozen=True, slots=True)
class _Job:
    """Checked options, the same for the fit of all rows and those of the folds."""

    kernel: Kernel
    C: float
    u: float
    eta: float
    every_row: bool  # is in the basis
    n_threads: int
    max_iter: int
    monitor: Monitor

    def fit(self, problem: Problem, rows: np.ndarray) -> TlsSvorModel:
        present = np.flatnonzero(problem.present)
        columns = isinstance(self.kernel, Precomputed)
        basis = rows if columns else take(problem.X, rows)
        K = np.empty((problem.n_samples, rows.size))
        try:
            with self.monitor.stage("kernel matrix"), self.monitor.limited():
                Evaluator(self.kernel, problem.X, basis, self.n_threads).fill(K)
        except OutOfTime:  # what there is time for: thresholds, and a score of 0
            rows, K = rows[:0], K[:, :0].copy()
        of_row = problem.sample_weight[rows] if self.every_row else np.ones(rows.size)
        psi = TruncatedObjective(
            problem, K, self.C, self.eta, 1 / of_row, self.n_threads
        )
        point, status, n_iter = minimize(psi, self.u, self.max_iter, self.monitor)
        T = present.size - 1
        return TlsSvorModel(
            support=support_rows(self.kernel, problem.X, rows),
            coef=frozen(point.x[T:]),
            thresholds=frozen(around_ranks(point.x[:T], present, problem.n_classes)),
            C=self.C,
            u=self.u,
            eta=self.eta,
            classes=frozen(problem.classes),
            kernel=self.kernel,
            n_features=problem.n_features,
            feature_names=problem.feature_names,
            link=None,
            convergence=self.monitor.record(
                status, n_iter, point.violation, point.value
            ),
        )


register(
    fit_tlssvor,
    name="tlssvor",
    estimator="TLSSVOR",
    accepts={"sparse"},
    grid={"C": COSTS, "gamma": GAMMAS},
)
