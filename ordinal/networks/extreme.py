"""ELMOR: ridge regression of ordinal codes on a random hidden layer.

Let h(x) be the random hidden layer, m its weighted mean by weights v_i of sum 1, and t
the mean of the codes c_i of the training rows. Fits need only

    S = sum_i v_i (h_i - m)(h_i - m)' = Q diag(s) Q',    B = sum_i v_i (h_i - m) c_i'

The outputs for a ridge l are o(x) = t + (h(x) - m)' Q diag(1 / (s + l)) Q'B. The
outputs of row i by a fit that leaves out one observation of it, whose share of the
weight is d, are

    c_i - (c_i - o_i) / (1 - d (1 + sum_a z_ia^2 / (s_a + l))),    z_i = Q'(h_i - m)

so that one eigendecomposition serves all ridges, and leave-one-out errors cost O(n h r)
per ridge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._input.immutable import read_only
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._input.types import Matrix
from .._model.folds import FewFolds, never_scored
from .._model.links import SoftmaxLink
from .._model.preparation import Prepared
from .._numerics.rows import TILE, dense, strips, take
from .._rows.rows import Chunk, chunks, summed
from .._rows.source import CHUNK
from .._rows.sums import Moments, Parts
from .._watch.cancellation import check_cancelled
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor
from .layers import LayerRows, hidden_units
from .models import ElmorModel, code_distances, network_fields

_KEPT = 8_000_000  # most entries of units that are cached: 64 MB
_BLOCK = 512  # rows of one product, which stay in the cache with 200 units
_LOWEST, _HIGHEST = -9, 3  # range of the ridge over the mean of s, as powers of ten
_DECADE = math.log(10.0)
_FAR = 1e100  # largest standardised value
_FINEST = 1e-12  # rounding error of the logarithm of the ridge
_LEAST = 1e-10  # least divisor of leave-one-out residuals, which may be 0 by rounding


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A hidden layer of random weights U (d + 1, h), on standardised features."""

    mean: np.ndarray
    scale: np.ndarray
    U: np.ndarray

    @classmethod
    def from_problem(cls, problem: Problem, U: np.ndarray) -> Layer:
        """Make a layer that standardises by the weighted moments of the rows."""
        sparse = is_sparse(problem.X)
        found: Moments | None = None
        for rows, part in chunks(problem.X):
            weight = problem.weight[rows]
            # Only few sparse rows become dense at a time.
            for some in strips(weight.size, TILE if sparse else CHUNK):
                more = Moments.from_rows(dense(take(part, some)), weight[some])
                found = found.joined(more) if found is not None else more
        assert found is not None  # there are rows of positive weight
        return cls(*found.mean_and_scale(), U)

    def __call__(self, X: Matrix) -> np.ndarray:
        """Return the units of rows, (n, h).

        They are finite even for rows of weight 0, whose features may be of any size.
        """
        rows = LayerRows(X, self.mean, self.scale)
        out = np.empty((X.shape[0], self.U.shape[1]))
        for part in rows.chunks():
            check_cancelled()
            with np.errstate(over="ignore"):
                Z = rows[part]
            out[part] = hidden_units(np.clip(Z, -_FAR, _FAR, out=Z), self.U)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class RidgeSolution:
    """Outputs o(x) = intercept + h(x)'weights for a ridge.

    Attributes
    ----------
    weights : (h, m) array
    intercept : (m,) array
    ridge : float
    loo : float or None
        Mean of |c - o|^2 with leave-one-out outputs; None if it was not computed.
    objective : float
        Mean of |c - o|^2 plus the penalty.
    """

    weights: np.ndarray
    intercept: np.ndarray
    ridge: float
    loo: float | None
    objective: float


class Regression:
    """Ridge regression of the codes of a problem on a layer, for any ridge.

    Parameters
    ----------
    problem : Problem
        Its rows are read once here, and once per call of `loo`.
    layer : Layer
    n_threads : int
        The result does not depend on it: chunks of rows are added in a fixed tree.
    """

    def __init__(self, problem: Problem, layer: Layer, n_threads: int):
        self.problem, self.layer, self.n_threads = problem, layer, n_threads
        self.rank, self.m = problem.rank_among_present, int(problem.present.sum()) - 1
        self.total = float(problem.weight.sum())
        self._units: dict[int, np.ndarray] = {}
        self._projected: dict[int, np.ndarray] = {}
        self._keeps = problem.n_samples * layer.U.shape[1] <= _KEPT
        self.codes, self.mean, S, B = summed(problem.X, self._sums, n_threads)
        # The difference loses few digits, because units lie between -1 and 1.
        self.S = S - np.outer(self.mean, self.mean)
        self.right = B - np.outer(self.mean, self.codes)
        check_cancelled()
        s, self.Q = np.linalg.eigh(self.S)
        # With more units than rows some eigenvalues are negative by rounding.
        self.s = np.maximum(s, 0.0)
        self.B = self.Q.T @ self.right
        self.unit = float(self.s.mean()) or 1.0

    def _sums(self, chunk: Chunk) -> Parts:
        """Return the sums of a chunk: of v c, v h, v h h' and v h c'."""
        rows, part = chunk
        H = self.layer(part)
        if self._keeps:
            self._units[rows.start] = H
        v, C = self._share(rows), self._codes(rows)
        # With roots of the weights S is V'V of one matrix, in half of the time.
        root = np.sqrt(v)[:, None]
        S, B = np.zeros((H.shape[1],) * 2), np.zeros((H.shape[1], self.m))
        for some in strips(len(H), _BLOCK):
            check_cancelled()  # all strips of a chunk take seconds with 1000 units
            V = root[some] * H[some]
            S += V.T @ V
            B += V.T @ (root[some] * C[some])
        return v @ C, v @ H, S, B

    def _share(self, rows: slice) -> np.ndarray:
        """Return the weights v of some rows, which sum to 1 over all."""
        return np.asarray(self.problem.weight[rows] / self.total)

    def _codes(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the codes of some rows, (n, m): 1 if y > k, otherwise -1."""
        return np.where(self.rank[rows, None] > np.arange(self.m), 1.0, -1.0)

    def observation(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the share of one observation of each row in the weight, (n,)."""
        # A row of weight 3 stands for three observations, of which one is left out.
        each = np.minimum(self.problem.weight[rows], 1.0)
        return np.asarray(each / self.total)

    def projected(self, X: Matrix) -> np.ndarray:
        """Return z of rows, (n, h)."""
        return self._project(self.layer(X))

    def _project(self, H: np.ndarray) -> np.ndarray:
        """Return z of rows, (n, h), by their units H, which are overwritten."""
        H -= self.mean
        return np.asarray(H @ self.Q)

    def _projected_chunk(self, chunk: Chunk) -> np.ndarray:
        """Return z of the rows of a chunk, cached or computed."""
        rows, part = chunk
        Z = self._projected.get(rows.start)
        if Z is None:
            # The units are removed, because z takes their place in memory.
            H = self._units.pop(rows.start, None)
            Z = self._project(self.layer(part) if H is None else H)
            if self._keeps:
                self._projected[rows.start] = Z
        return Z

    def loo(self, ridges: list[float]) -> np.ndarray:
        """Return the mean leave-one-out |c - o|^2 of each ridge, in one pass."""
        # In the basis of eigenvectors a ridge needs no factorisation.
        G = 1 / (self.s + np.asarray(ridges)[:, None])
        columns = (self.B.T[:, None] * G).reshape(-1, self.s.size)

        def of_chunk(chunk: Chunk) -> Parts:
            Z, rows = self._projected_chunk(chunk), chunk[0]
            C = (self._codes(rows) - self.codes).T[:, None]
            d, v = self.observation(rows), self._share(rows)
            errors = np.zeros(len(ridges))
            for some in strips(len(Z), _BLOCK):  # along the last axis
                check_cancelled()
                R = (columns @ Z[some].T).reshape(self.m, len(ridges), -1)
                np.subtract(C[..., some], R, out=R)
                left = left_of(d[some], G @ np.square(Z[some]).T)
                errors += (np.square(R, out=R).sum(axis=0) / np.square(left)) @ v[some]
            return (errors,)

        (errors,) = summed(self.problem.X, of_chunk, self.n_threads)
        return np.asarray(errors)

    def left_out(self, X: Matrix, rows: np.ndarray, ridge: float) -> np.ndarray:
        """Return the leave-one-out outputs of training rows, (n, m).

        X holds these rows, and `rows` their numbers.
        """
        Z, g = self.projected(X), 1 / (self.s + ridge)
        C = self._codes(rows)
        R = C - self.codes - Z @ (g[:, None] * self.B)
        d = self.observation(rows)[:, None]
        return np.asarray(C - R / left_of(d, np.square(Z) @ g[:, None]))

    def solution(self, ridge: float, loo: float | None) -> RidgeSolution:
        """Return the solution for a ridge, whose leave-one-out error is `loo`."""
        A = self.B / (self.s + ridge)[:, None]  # Q'weights
        weights = self.Q @ A
        # |c - o|^2 = |c - t|^2 - 2 A'B + A'SA, and the codes are 1 or -1
        error = (1 - self.codes**2).sum() - 2 * (A * self.B).sum()
        error += (A * A * (self.s[:, None] + ridge)).sum()
        intercept = self.codes - self.mean @ weights
        return RidgeSolution(weights, intercept, ridge, loo, float(error))


def left_of(share: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Return the divisor of leave-one-out residuals."""
    return np.asarray(np.maximum(1 - share * (1 + leverage), _LEAST))


@dataclass(frozen=True, slots=True, eq=False)
class LinkedWeights:
    """Fitted network; `link` is None unless probabilities were requested."""

    layer: Layer
    solution: RidgeSolution
    link: SoftmaxLink | None
    convergence: Convergence


def fit_codes(
    prepared: Prepared,
    U: np.ndarray,
    ridge: float | None,
    share: FewFolds | None,
    max_iter: int,
) -> LinkedWeights:
    """Fit the outputs on a hidden layer of weights U, (d + 1, h).

    Without a ridge, that of the least leave-one-out error is found. If the time is up,
    the ridge is the best one so far.
    """
    problem, monitor = prepared.problem, prepared.monitor
    layer = Layer.from_problem(problem, U)
    regression = Regression(problem, layer, prepared.n_threads)
    if ridge is None:
        solution, convergence = _searched(regression, max_iter, monitor)
    else:
        solution, convergence = _given(regression, ridge, monitor)
    return LinkedWeights(
        layer, solution, _link(regression, solution.ridge, share), convergence
    )


def _given(
    regression: Regression, ridge: float, monitor: Monitor
) -> tuple[RidgeSolution, Convergence]:
    """Return the solution for a ridge; the violation is that of normal equations."""
    found = regression.solution(ridge, None)
    residual = regression.S @ found.weights + ridge * found.weights - regression.right
    violation = float(np.abs(residual).max() / (np.abs(regression.right).max() or 1.0))
    status = monitor.stop(1, violation)
    if violation <= monitor.tol:
        status = Status.CONVERGED
    return found, monitor.record(
        status or Status.STALLED, 1, violation, found.objective
    )


def _searched(
    regression: Regression, max_iter: int, monitor: Monitor
) -> tuple[RidgeSolution, Convergence]:
    """Return the solution for the ridge of least leave-one-out error.

    The search descends on a grid of powers of ten, from the middle of the range, five
    of them per pass, to a point whose neighbours are worse or at the end of the range.
    Then the step becomes a quarter of the last one, with six new points between these
    neighbours, and so on. The minimum may be a local one. The violation is the
    logarithm of the factor between the ridge and its neighbours.
    """
    found: dict[float, float] = {}
    best, step, n_iter = (_LOWEST + _HIGHEST) / 2, 1.0, 0
    around, reach = (_HIGHEST - _LOWEST) / 2, 2
    while True:
        near = [
            min(max(best + a * step, _LOWEST), _HIGHEST)
            for a in range(-reach, reach + 1)
        ]
        new = [p for p in dict.fromkeys(near) if p not in found]
        if new:
            violation = _DECADE * around
            status = _end(violation, n_iter, max_iter, monitor)
            if status is not None:
                break
            errors = regression.loo([regression.unit * 10.0**p for p in new])
            found |= dict(zip(new, errors.tolist(), strict=True))
            n_iter += 1
        least = min(near, key=lambda p: (found[p], -p))
        if near[0] < least < near[-1] or least in {_LOWEST, _HIGHEST}:
            around, step, reach = step, step / 4, 4  # 9 points, 3 of them known
        best = least
    ridge = regression.unit * 10.0**best
    solution = regression.solution(ridge, found.get(best))
    return solution, monitor.record(status, n_iter, violation, solution.objective)


def _end(
    violation: float, n_iter: int, max_iter: int, monitor: Monitor
) -> Status | None:
    """Return the status with which the search ends, or None to continue."""
    if violation <= monitor.tol:
        return Status.CONVERGED
    if violation < _FINEST:
        return Status.STALLED
    return Status.MAX_ITER if n_iter >= max_iter else monitor.stop(n_iter, violation)


def _link(
    regression: Regression, ridge: float, share: FewFolds | None
) -> SoftmaxLink | None:
    """Return a link to probabilities, fitted to leave-one-out outputs.

    The only row of a rank has its outputs by all rows.
    """
    if share is None:
        return None
    problem = regression.problem
    rows, weight = share.rows, problem.weight[share.rows] * share.factor
    X = take(problem.X, rows) if problem.n_samples > rows.size else problem.X
    outputs = regression.left_out(X, rows, ridge)
    single, _ = never_scored(problem, share)
    at = np.searchsorted(rows, single)
    plain = regression.solution(ridge, None)
    outputs[at] = plain.intercept + regression.layer(take(X, at)) @ plain.weights
    distances = code_distances(outputs, problem.present)
    return SoftmaxLink.fit(distances, problem.rank[rows], weight, problem.n_classes)


def elmor_model(problem: Problem, fitted: LinkedWeights) -> ElmorModel:
    """Return the model that `fit_elmor` returns."""
    layer, found = fitted.layer, fitted.solution
    return ElmorModel(
        **network_fields(problem, layer.mean, layer.scale, layer.U, fitted.convergence),
        output_weights=read_only(np.ascontiguousarray(found.weights.T)),
        intercept=read_only(found.intercept),
        observed=read_only(problem.present),
        ridge=found.ridge,
        loo_error=found.loo,
        link=fitted.link,
    )
