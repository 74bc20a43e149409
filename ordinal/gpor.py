"""Gaussian processes for ordinal regression: a latent function cut by thresholds.

    f ~ GP(0, k),    P(y = j | f) = Phi((b_j - f) / sigma) - Phi((b_{j-1} - f) / sigma)

with b_0 = -inf, b_r = inf. The posterior of f at the training rows is approximated by a
Gaussian, by Laplace's method (`_laplace`) or by expectation propagation (`_ep`), which
also give the evidence P(D | theta) of the hyperparameters

    theta = (ln gamma [one, or one a feature], ln sigma, b_1, ln Delta_2, ...)

where b_j = b_1 + Delta_2 + .. + Delta_j, and these maximise ln P(D | theta) +
ln P(theta). The scale of f is carried by sigma and the thresholds. Where the kernel's
variance is not 1, both are measured by c, the root of its mean over the training rows.

With the posterior of f(x) of mean mu and variance s^2, (18) is

    P(y = j | x) = Phi((b_j - mu) / t) - Phi((b_{j-1} - mu) / t),  t^2 = sigma^2 + s^2

W. Chu, Z. Ghahramani, "Gaussian processes for ordinal regression", JMLR 6:1019-1041,
2005: (5)-(7), (9)-(11), (16)-(18), (21), (27), Appendices A to C.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import kernels
from ._dual.admm import incomplete_cholesky
from ._gp.covariance import Dense, LowRank
from ._gp.ep import expectation_propagation
from ._gp.laplace import laplace
from ._gp.likelihood import Likelihood, Posterior
from ._input.checks import (
    check_choice,
    check_count,
    check_flag,
    check_positive,
    resolve_rng,
)
from ._input.features import check_features
from ._input.labels import ranks_of, read_labels
from ._input.problem import Problem, around_ranks
from ._input.sparse import CSR, frozen
from ._kernel_matrix.choice import (
    check_precomputed,
    gamma_scale,
    make_kernel,
    takes_missing,
)
from ._kernel_matrix.slopes import diagonal_slopes, gamma_slopes
from ._kernel_matrix.tiles import Evaluator, diagonal_of, values_of
from ._model.convergence import Convergence, Status
from ._model.links import cost_of_rule, decide
from ._model.model import ThresholdModel, check_support, support_rows
from ._model.monitor import Monitor, State
from ._numerics.lbfgs import Minimum, minimize
from ._numerics.rows import strips, take
from ._numerics.threads import resolve_n_threads
from ._solvers import _ordinal_probit

_PARTS = ("gamma", "noise", "gap")  # what a prior may be put on
_ROWS = 1024  # rows predicted at a time
_SHARED = 1000  # rows from which a loop over them is worth a second thread
_MAX_STEP = 3.0  # longest step of theta: evidences are flat far from the data's scale


@dataclass(frozen=True, slots=True, eq=False)
class GporModel(ThresholdModel):
    """A posterior of the latent function and the thresholds that cut it.

    Attributes
    ----------
    inference : str
        "laplace" or "ep".
    support : (m, n_features) array or CSR
        The training rows, or the inducing ones; for a precomputed kernel the (m,)
        numbers of those rows.
    coef : (m,) array
        The latent mean at x is k(x, support) coef.
    root : (m, m) array
        The latent variance at x is k(x, x) - |root k(support, x)|^2.
    thresholds : (r - 1,) array
        In the unit of f. -inf and +inf where no training rows lie beyond, and equal on
        both sides of a rank between that has none: its probability is 0.
    noise : float
        sigma, in the same unit.
    log_evidence : float
        The objective, in nats, at these hyperparameters and without the prior.
    classes : (r,) array
        Labels in rank order.
    kernel : callable
        With what was learned of it.
    n_features : int
    convergence : Convergence
        `primal` is minus the objective, less the log density of the prior up to its
        constants; `violation` its largest slope by an entry of theta (b_1 in units of
        c); `n_iter` counts evaluations, over all starts. With optimize=False,
        `violation` is the residual of the inference instead.
    """

    inference: str
    support: np.ndarray | CSR
    coef: np.ndarray
    root: np.ndarray
    thresholds: np.ndarray
    noise: float
    log_evidence: float
    classes: np.ndarray
    kernel: Callable
    n_features: int
    convergence: Convergence

    def relevance(self) -> np.ndarray:
        """The kernel's weight gamma of every feature, (d,), in 1 / (its unit)^2.

        The larger, the faster the latent function changes along the feature. On
        standardised features they can be compared.

        Raises
        ------
        ValueError
            If the kernel has no weight a feature: fit with kernel="ard" or
            "ard_linear".
        """
        if not isinstance(self.kernel, kernels.ARD | kernels.LinearARD):
            raise ValueError(
                f"a {type(self.kernel).__name__} kernel has no relevance a feature: "
                "fit with kernel='ard' or 'ard_linear'"
            )
        return self.kernel.gamma

    def predict_latent(
        self, X: Any, *, diagonal: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of f(x), (16) or (17), without the noise.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).
        diagonal : (n,) array, for a precomputed kernel only
            k(x, x) of the rows, which a precomputed kernel cannot know.

        Returns
        -------
        (n,) array, (n,) array

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns (the Pearson kernel
            takes NaN), or `diagonal` is missing or not asked for.
        """
        missing = takes_missing(self.kernel)
        X = check_features(X, self.n_features, missing=missing)
        prior = self._prior_variance(X, diagonal)
        values = Evaluator(self.kernel, X, self.support)
        mean, var = np.empty(len(X)), np.empty(len(X))
        for rows in strips(len(X), _ROWS):
            K = np.empty((rows.stop - rows.start, len(self.support)))
            values.tile(rows, slice(None), K)
            mean[rows] = K @ self.coef
            explained = K @ self.root.T
            var[rows] = prior[rows] - np.einsum("ij,ij->i", explained, explained)
        # rounding, where the training rows determine f
        return mean, np.maximum(var, 1e-15 * prior)

    def _prior_variance(self, X, diagonal) -> np.ndarray:
        if not isinstance(self.kernel, kernels.Precomputed):
            if diagonal is not None:
                raise ValueError("diagonal: for a precomputed kernel only")
            return diagonal_of(self.kernel, X)
        if diagonal is None:
            raise ValueError("a precomputed kernel needs diagonal, the k(x, x) of X")
        prior = np.asarray(diagonal, dtype=np.float64)
        if prior.shape != (len(X),) or not (np.isfinite(prior) & (prior >= 0)).all():
            raise ValueError(f"diagonal must be ({len(X)},) finite values >= 0")
        return prior

    def _log_proba(self, X, diagonal) -> np.ndarray:
        """(n, r) logarithms of (18); -inf for a rank that had no rows."""
        mean, var = self.predict_latent(X, diagonal=diagonal)
        r = self.classes.size
        edges = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        has = np.flatnonzero(edges[1:] > edges[:-1])
        b = self.thresholds[has[:-1]]
        width = np.concatenate([[np.inf], np.diff(b), [np.inf]])
        part = np.empty((len(mean), has.size))
        v = var + self.noise**2
        _ordinal_probit.log_probability(mean, v, b, width, part, 1)
        out = np.full((len(mean), r), -np.inf)
        out[:, has] = part
        return out

    def predict_proba(self, X: Any, *, diagonal: Any = None) -> np.ndarray:
        """Probabilities of the ranks by (18).

        Parameters
        ----------
        X, diagonal : as for `predict_latent`, which says what is raised

        Returns
        -------
        (n, r) array
            Rows sum to 1.
        """
        P = np.exp(self._log_proba(X, diagonal))
        return P / P.sum(axis=1, keepdims=True)

    def score_samples(self, X: Any, y: Any, *, diagonal: Any = None) -> np.ndarray:
        """Log predictive probability of given ranks, (n,), in nats.

        Parameters
        ----------
        X, diagonal : as for `predict_latent`
        y : (n,) labels among `classes`
            -inf is the score of a rank without training rows.

        Raises
        ------
        ValueError, TypeError
            As `predict_latent`, or if `y` is not so.
        """
        rank = ranks_of(read_labels(y, "y"), self.classes)
        log_P = self._log_proba(X, diagonal)
        if rank.size != len(log_P):
            raise ValueError(f"y has shape {rank.shape}, expected ({len(log_P)},) as X")
        return log_P[np.arange(rank.size), rank]

    def predict(
        self, X: Any, *, rule: str = "median", cost: Any = None, diagonal: Any = None
    ) -> np.ndarray:
        """Labels by a rule on `predict_proba`.

        Parameters
        ----------
        X, diagonal : as for `predict_latent`
        rule : {"median", "mode", "cost"}, default "median"
            The median has the least expected absolute error, and is the rank whose
            thresholds hold the latent mean; on the paper's sets it misses fewer rows,
            too, than the most probable rank, which the paper takes. "cost" is the rank
            of least expected cost.
        cost : (r, r) array-like, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j.

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError, TypeError
            As `predict_latent`, for an unknown rule, or for a cost that is missing,
            not asked for, or not as in `fit_svorim`.
        """
        rules = "median", "mode", "cost"
        table = cost_of_rule(rule, rules, cost, None, self.classes.size)
        P = self.predict_proba(X, diagonal=diagonal)
        return self.classes[decide(P, rule, table)]

    def _check(self) -> None:
        m, r = len(self.support), self.classes.size
        self._check_arrays({"coef": (m,), "root": (m, m), "thresholds": (r - 1,)})
        edges = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        if not (edges[1:] >= edges[:-1]).all() or not np.isfinite(edges).any():
            raise ValueError("thresholds must increase, and some be finite")
        if not 0 < self.noise < np.inf:
            raise ValueError("noise must be positive")
        check_support(self.support, self.kernel, m, self.n_features)


def fit_gpor(
    X: Any,
    y: Any,
    *,
    inference: str = "ep",
    kernel: str | Callable = "rbf",
    optimize: bool = True,
    objective: str = "evidence",
    prior: str | Mapping | None = "weak",
    inducing: int | None = None,
    n_restarts: int = 0,
    start: Mapping | None = None,
    tol: float = 1e-3,
    max_iter: int = 200,
    max_time: float | None = None,
    sample_weight: Any = None,
    classes: Sequence | None = None,
    n_threads: int | None = None,
    rng: int | np.random.Generator = 0,
    callback: Callable[[State], object] | None = None,
) -> GporModel:
    """Fit GPOR: a Gaussian process, its kernel, noise and thresholds by evidence.

    The module's docstring states the model. O(n^3) an evaluation of the evidence, of
    which a fit takes some tens; O(n m^2) with m inducing rows.

    Parameters
    ----------
    X : (n, d) array-like or CSR matrix
        Rows of features, best standardised. CSR goes with kernel="rbf" and "linear".
        With kernel="precomputed" the (n, n) kernel matrix. NaN, an entry not known,
        goes with `kernels.Pearson` only.
    y : (n,) array-like
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    inference : {"ep", "laplace"}, default "ep"
        How the posterior is made Gaussian. Laplace's method takes the curvature at the
        mode and a third of the time; EP matches moments, and its evidence is the more
        exact.
    kernel : {"rbf", "ard", "linear", "ard_linear", "precomputed"} or callable
        Default "rbf". The gamma of "rbf", and the gamma a feature of "ard" and
        "ard_linear", are learned. A callable k(A, B), such as a kernel of
        `ordinal.kernels`, is taken as it is.
    optimize : bool, default True
        False infers the model at the starting hyperparameters.
    objective : {"evidence", "bound"}, default "evidence"
        What is maximised: the log evidence of the inference, (21) or EP's log Z, with
        its exact gradient; or, for EP, the variational bound (27) of the paper. The
        paper's gradient (28)-(30) of the bound holds the posterior still, which moves,
        and so is not quite its gradient: a search on it may end `stalled`.
    prior : "weak", mapping or None, default "weak"
        Of the logs of hyperparameters: normal, mapping of "gamma", "noise" and "gap"
        (Delta) to (median, standard deviation of the log); what is not named has none.
        On a few dozen rows the evidence alone overfits. "weak" has its medians at the
        paper's initial point: gamma 1 / (2 d variance) (1 / (d mean square) for
        "ard_linear", each of its own feature for the two ARD kernels), noise c, gap 2 c
        / r. Its deviations, 2, 0.5 and 2, did best on three of the paper's sets in 5
        and 10 bins: it is the noise that must be kept from vanishing.
    inducing : int, optional
        Take the FITC approximation by so many rows, which a pivoted Cholesky
        factorisation of the kernel at the start chooses: for n beyond a few thousand.
        n m doubles of memory, four times.
    n_restarts : int >= 0, default 0
        Further searches from random points, drawn from the prior; the best is kept.
    start : mapping, optional
        Where the search begins: "gamma" (a number, or (d,) for ARD), "noise",
        "thresholds" ((r - 1,), increasing). What is not named is as in the paper: the
        medians of the weak prior, and b_1 = -c.
    tol : float > 0, default 1e-3
        Largest slope of the objective by an entry of theta at which a search ends, in
        nats: along a log, a thousandth of a nat is far below what n rows can tell.
    max_iter : int, default 200
        Quasi-Newton steps of a search.
    max_time : float > 0, optional
        Seconds, looked at after every step.
    sample_weight : (n,) array-like, optional
        Weight 2 gives the model of the row written twice. EP's weights are 0, or 1 and
        more: less than a whole site has no cavity.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, whose probability is 0.
    n_threads : int, optional
        Of the loops over rows; matrix products use the threads of numpy's BLAS.
        Default: the processors this process may use, or ORDINAL_NUM_THREADS. The
        result does not depend on it.
    rng : int or numpy.random.Generator, default 0
        Draws the starts of `n_restarts`.
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.

    Returns
    -------
    GporModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The search ended short of its tolerance, or the inference did; the message says
        why and what helps.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_gpor(X[::3], y[::3])
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> mean, variance = model.predict_latent([[15.0, 15.0]])
    >>> bool(model.thresholds[0] < mean[0] < model.thresholds[1])
    True
    """
    check_choice("inference", inference, ("ep", "laplace"))
    check_choice("objective", objective, ("evidence", "bound"))
    if objective == "bound" and inference != "ep":
        raise ValueError("objective='bound' is EP's: it goes with inference='ep' only")
    check_flag(optimize=optimize)
    check_positive(tol=tol)
    check_count(max_iter=max_iter)
    if n_restarts != 0:
        check_count(n_restarts=n_restarts)
    if inducing is not None:
        check_count(inducing=inducing)
    n_threads = resolve_n_threads(n_threads)
    rng = resolve_rng(rng)
    problem = Problem.from_arrays(
        X, y, classes=classes, sample_weight=sample_weight,
        missing=takes_missing(kernel),
    )  # fmt: skip
    monitor = Monitor("fit_gpor", tol, callback, max_time)
    search = _prepare(
        problem, kernel, inference, objective, prior, start, inducing, n_threads
    )
    model = search.run(optimize, n_restarts, rng, tol, max_iter, monitor)
    model.convergence.warn_unless_converged("fit_gpor")
    return model


@dataclass(slots=True, eq=False)
class _Search:
    """One training set and what is asked about it; `evaluate` is the objective.

    theta is laid out as in the module's docstring, with sigma, b_1 and Delta in units
    of c, over the r ranks that have rows.

    Attributes
    ----------
    X : training rows of positive weight, or the kernel between them
    rows : their numbers
    rank : (n,) int32, 0..r-1
    weight : (n,) array > 0
    make : callable
        The kernel of a (p,) array of gammas.
    centre, spread : (p + r,) arrays
        Of the normal prior of theta; inf is the spread of what has none.
    weak : two (p + r,) arrays
        Mean and deviation of random starts.
    begin : (p + r,) array
        Where the search begins.
    pivots : numbers of the inducing rows, or None
    state : what the last inference leaves to the next
    """

    problem: Problem
    inference: str
    objective: str
    X: Any
    rows: np.ndarray
    rank: np.ndarray
    weight: np.ndarray
    n_threads: int
    make: Callable[[np.ndarray], Any]
    n_gammas: int
    c: float
    centre: np.ndarray
    spread: np.ndarray
    weak: tuple[np.ndarray, np.ndarray]
    begin: np.ndarray
    pivots: np.ndarray | None = None
    state: np.ndarray | None = None

    def run(self, optimize, n_restarts, rng, tol, max_iter, monitor) -> GporModel:
        if not optimize:
            return self._model(self.begin, None, 1, monitor)
        starts = [self.begin]
        for _ in range(n_restarts):
            mean, sd = self.weak
            starts.append(mean + sd * rng.standard_normal(mean.size))
        best: Minimum | None = None
        n_eval = 0
        for theta in starts:
            if best is not None and monitor.stop(n_eval, best.violation):
                break
            self.state = None
            found = minimize(
                self._minus, theta, tol=tol, max_iter=max_iter, monitor=monitor,
                max_step=_MAX_STEP,
            )  # fmt: skip
            n_eval += found.n_eval
            if best is None or found.value < best.value:
                best = found
        assert best is not None
        return self._model(best.x, best, n_eval, monitor)

    def _minus(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """What is minimised; inf where it cannot be evaluated."""
        try:
            with np.errstate(all="ignore"):  # a trial point may lie anywhere
                posterior, gradient = self.evaluate(theta)
        except (np.linalg.LinAlgError, ValueError):
            return np.inf, np.full_like(theta, np.nan)
        if posterior.converged:
            self.state = posterior.state
        penalty, slopes = self._prior(theta)
        return penalty - posterior.objective, slopes - gradient

    def _prior(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log density of theta, up to a constant, and its slopes."""
        offset = (theta - self.centre) / self.spread
        return 0.5 * float(offset @ offset), offset / self.spread

    def evaluate(self, theta: np.ndarray) -> tuple[Posterior, np.ndarray]:
        """The posterior at theta and the gradient of its objective."""
        posterior, cov, kernel, like = self.infer(theta)
        by_likelihood = like.slopes(posterior.by_row)
        by_likelihood[1] *= self.c
        if self.n_gammas:
            M = cov.sensitivity(posterior.a, posterior.u, posterior.by_row[2])
            by_kernel = self._kernel_slopes(kernel, cov, M)
        else:
            by_kernel = np.empty(0)
        return posterior, np.concatenate([by_kernel, by_likelihood])

    def infer(
        self, theta: np.ndarray
    ) -> tuple[Posterior, Dense | LowRank, Any, Likelihood]:
        """The posterior at theta, and what it was made of."""
        kernel = self.make(np.exp(theta[: self.n_gammas]))
        cov = self._covariance(kernel)
        like = self.likelihood(theta, cov)
        if self.inference == "laplace":
            return laplace(cov, like, self.state), cov, kernel, like
        bound = self.objective == "bound"
        posterior = expectation_propagation(cov, like, self.state, bound=bound)
        return posterior, cov, kernel, like

    def likelihood(self, theta: np.ndarray, cov: Dense | LowRank) -> Likelihood:
        noise, first, *gaps = theta[self.n_gammas :]
        inner = self.c * np.exp(gaps)
        return Likelihood(
            rank=self.rank,
            weight=self.weight,
            noise=self.c * float(np.exp(noise)),
            first=self.c * float(first),
            width=np.concatenate([[np.inf], inner, [np.inf]]),
            rest=cov.rest,
            n_threads=self.n_threads,
        )

    def _covariance(self, kernel) -> Dense | LowRank:
        every = slice(None)
        if self.pivots is None:
            return Dense(self._values(kernel, every, every), self.n_threads)
        return LowRank(
            self._values(kernel, every, self.pivots),
            self._values(kernel, self.pivots, self.pivots),
            diagonal_of(kernel, self.X),
        )

    def _values(self, kernel, rows, columns) -> np.ndarray:
        if isinstance(kernel, kernels.Precomputed):
            K = take(self.X, rows)[:, columns]
        else:
            A, B = take(self.X, rows), take(self.X, columns)
            K = values_of(kernel, A, B)
        return np.ascontiguousarray(K, dtype=np.float64)

    def _kernel_slopes(self, kernel, cov: Dense | LowRank, M) -> np.ndarray:
        if isinstance(cov, Dense):
            return gamma_slopes(kernel, self.X, self.X, cov.Sigma, M)
        (G_nm, G_mm, c), Z = M, take(self.X, self.pivots)
        return (
            gamma_slopes(kernel, self.X, Z, cov.K_nm, G_nm)
            + gamma_slopes(kernel, Z, Z, cov.K_mm, G_mm)
            + diagonal_slopes(kernel, self.X, c)
        )

    def _model(
        self, theta: np.ndarray, found: Minimum | None, n_eval: int, monitor: Monitor
    ) -> GporModel:
        self.state = None  # a model is that of theta, whatever way led there
        posterior, cov, kernel, like = self.infer(theta)
        coef, root = cov.predictor(posterior.a)
        rows = self.rows if self.pivots is None else self.rows[self.pivots]
        present = np.flatnonzero(self.problem.present)
        thresholds = around_ranks(like.b, present, self.problem.n_classes)
        status, violation, tol = Status.CONVERGED, posterior.violation, 1e-4
        if found is not None and posterior.converged:
            status, violation, tol = found.status, found.violation, monitor.tol
        elif not posterior.converged:
            status = Status.STALLED
        return GporModel(
            inference=self.inference,
            support=support_rows(kernel, self.problem.X, rows),
            coef=frozen(coef),
            root=frozen(root),
            thresholds=frozen(thresholds),
            noise=like.noise,
            log_evidence=posterior.objective,
            classes=frozen(self.problem.classes),
            kernel=kernel,
            n_features=self.problem.n_features,
            convergence=Convergence(
                status=status,
                n_iter=n_eval,
                violation=violation,
                tol=tol,
                primal=self._prior(theta)[0] - posterior.objective,
                dual=None,
                seconds=monitor.seconds,
            ),
        )


# Preparation: what the arguments say about theta


def _prepare(
    problem: Problem, kernel, inference, objective, prior, start, inducing, n_threads
) -> _Search:
    rows = np.flatnonzero(problem.weight > 0)
    weight = problem.weight[rows]
    if inference == "ep" and weight.min() < 1:
        raise ValueError(
            "sample_weight must be 0, or 1 or more, with inference='ep', got "
            f"{weight.min()}"
        )
    X: Any = problem.X
    if rows.size < problem.n_samples:
        X = take(X, rows)
    make, gamma, fixed = _kernel_family(kernel, problem, X, weight)
    if isinstance(fixed, kernels.Precomputed) and rows.size < problem.n_samples:
        X = np.ascontiguousarray(X[:, rows])
    c = 1.0
    if fixed is not None:
        mean = float(np.average(diagonal_of(fixed, X), weights=weight))
        if not 0 < mean < np.inf:
            raise ValueError(f"k(x, x) must be positive on average, got {mean:.3g}")
        c = float(np.sqrt(mean))
    present = np.flatnonzero(problem.present)
    r = present.size
    rank = np.searchsorted(present, problem.rank[rows]).astype(np.int32)

    parts = {"gamma": gamma.size, "noise": 1, "first": 1, "gap": r - 2}
    median = {"gamma": np.log(gamma), "noise": 0.0, "first": -1.0, "gap": np.log(2 / r)}
    weak = {"gamma": 2.0, "noise": 0.5, "first": 0.5, "gap": 2.0}
    begin = _concatenated(median, parts)
    centre, spread = dict(median), {**weak, "first": np.inf}
    if prior is None:
        spread = dict.fromkeys(parts, np.inf)
    elif isinstance(prior, Mapping):
        spread = dict.fromkeys(parts, np.inf)
        for name, (middle, sd) in _checked_prior(prior, gamma.size).items():
            centre[name] = np.log(middle if name == "gamma" else middle / c)
            spread[name] = sd
    elif prior != "weak":
        raise ValueError(f"prior must be 'weak', a mapping or None, got {prior!r}")
    if start is not None:
        given = _checked_start(start, gamma.size, present, problem.n_classes, c)
        begin = _concatenated({**median, **given}, parts)

    search = _Search(
        problem=problem,
        inference=inference,
        objective=objective,
        X=X,
        rows=rows,
        rank=rank,
        weight=weight,
        n_threads=n_threads if rows.size >= _SHARED else 1,
        make=make,
        n_gammas=gamma.size,
        c=c,
        centre=_concatenated(centre, parts),
        spread=_concatenated(spread, parts),
        weak=(_concatenated(median, parts), _concatenated(weak, parts)),
        begin=begin,
    )
    if inducing is not None and inducing < rows.size:
        first = make(np.exp(begin[: gamma.size]))
        search.pivots = incomplete_cholesky(first, X, int(inducing), n_threads)[1]
    return search


def _kernel_family(kernel, problem: Problem, X, weight: np.ndarray):
    """(kernel of given gammas, gammas to begin with, the kernel if it has none)."""
    if kernel == "rbf":
        gamma = np.array([0.5 * gamma_scale(problem)])
        return (lambda gamma: kernels.RBF(float(gamma[0]))), gamma, None
    if isinstance(kernel, str) and kernel in ("ard", "ard_linear"):
        if isinstance(X, CSR):
            raise TypeError(f"kernel={kernel!r} takes dense rows")
        mean = np.average(X, axis=0, weights=weight)
        size = np.average(X**2, axis=0, weights=weight)
        if kernel == "ard":
            size = 2 * (size - mean**2)
        # a constant feature, or one of zeros, has no scale and does no harm
        size = np.where(size > 1e-12 * mean**2, size, 1.0)
        make = kernels.ARD if kernel == "ard" else kernels.LinearARD
        return make, 1 / (X.shape[1] * size), None
    names = ("rbf", "ard", "linear", "ard_linear", "precomputed")
    if isinstance(kernel, str):
        check_choice("kernel", kernel, names)
    made = make_kernel(kernel, "scale", problem)
    if isinstance(made, kernels.Precomputed):
        check_precomputed(problem.X)
    return (lambda gamma: made), np.empty(0), made


def _concatenated(values: Mapping, parts: Mapping[str, int]) -> np.ndarray:
    """theta of its parts, numbers spread out where a part has several entries."""
    return np.concatenate(
        [np.broadcast_to(values[name], (size,)) for name, size in parts.items()]
    ).astype(float)


def _checked_prior(prior: Mapping, n_gammas: int) -> dict[str, tuple]:
    out = {}
    for name, pair in prior.items():
        if name not in _PARTS or (name == "gamma" and not n_gammas):
            raise ValueError(f"prior names {name!r}, which the model does not learn")
        try:
            middle, sd = pair
        except (TypeError, ValueError):
            raise ValueError(
                f"prior[{name!r}] must be (median, deviation of the log), got {pair!r}"
            ) from None
        check_positive(**{f"prior[{name!r}] deviation": sd})
        if name == "gamma":
            middle = _gammas("prior['gamma']", middle, n_gammas)
        else:
            check_positive(**{f"prior[{name!r}] median": middle})
        out[name] = (middle, sd)
    return out


def _gammas(name: str, value: Any, n_gammas: int) -> np.ndarray:
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (n_gammas,)):
        raise ValueError(f"{name} has shape {values.shape}, expected ({n_gammas},)")
    if not ((values > 0) & (values < np.inf)).all():
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return values


def _checked_start(
    start: Any, n_gammas: int, present: np.ndarray, r: int, c: float
) -> dict[str, Any]:
    """The parts of theta that `start` names."""
    if not isinstance(start, Mapping):
        raise TypeError(f"start must be a mapping, got {type(start).__name__}")
    unknown = set(start) - {"gamma", "noise", "thresholds"}
    if unknown or ("gamma" in start and not n_gammas):
        name = min(unknown, default="gamma")
        raise ValueError(f"start names {name!r}, which the model does not learn")
    out: dict[str, Any] = {}
    if "gamma" in start:
        out["gamma"] = np.log(_gammas("start['gamma']", start["gamma"], n_gammas))
    if "noise" in start:
        check_positive(**{"start['noise']": start["noise"]})
        out["noise"] = np.log(start["noise"] / c)
    if "thresholds" in start:
        b = np.asarray(start["thresholds"], dtype=np.float64)
        if b.shape != (r - 1,):
            raise ValueError(
                f"start['thresholds'] has shape {b.shape}, expected ({r - 1},)"
            )
        first, last = b[present[:-1]], b[present[1:] - 1]
        if not np.isfinite(first).all() or not (np.diff(first) > 0).all():
            raise ValueError(f"start['thresholds'] must increase, got {b.tolist()}")
        if not (first == last).all():
            raise ValueError(
                "start['thresholds'] must be equal on both sides of a rank without "
                f"rows, got {b.tolist()}"
            )
        out["first"], out["gap"] = first[0] / c, np.log(np.diff(first) / c)
    return out
