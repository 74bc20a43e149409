"""Scatter S within the ranks for KDLOR, by the kernel matrix or on a basis."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from .._input.problem import Problem
from .._input.types import Matrix
from .._model.kernel_fit import read_only_matrix, support_rows
from .._numerics.cholesky import Cholesky
from .._numerics.memory import check_memory
from .._numerics.rows import inner, matmul
from .._rows.rows import Chunk, summed
from .._rows.sums import Parts
from ..kernels.features import Features
from ..kernels.functions import KernelFunction, check_values
from ..kernels.tiles import Products, on_itself

# Share of a row of weight 0. Its coefficient is in proportion to it, and no model has
# it.
_NO_SHARE = 1e-60
_SPECTRUM = 700  # most rows; their eigenvectors take less than a tenth of a second


class Direction(NamedTuple):
    """A direction w, and the terms of the duality gap, computed from raw data."""

    coef: np.ndarray  # coefficients of the support rows
    means: np.ndarray  # (q,) mean scores of the ranks that are present
    norm: float  # w'S w
    lost: float  # an upper bound on |e|^2 / (4 u t) of (GAP)


class Shares(NamedTuple):
    """Shares of the rows and of the ranks in the weight."""

    rank: np.ndarray  # (n,) among the q ranks that are present
    p: np.ndarray  # (n,) shares of the rows, of sum 1
    of_rank: np.ndarray  # (q,) shares of the ranks

    @classmethod
    def from_problem(cls, problem: Problem) -> Shares:
        p, rank = problem.weight / problem.weight.sum(), problem.rank_among_present
        return cls(rank, p, np.bincount(rank, p))

    def means(self) -> np.ndarray:
        """Return the coefficients of the rows in the mean of each rank, (n, q)."""
        out = np.zeros((self.p.size, self.of_rank.size))
        out[np.arange(self.p.size), self.rank] = self.p / self.of_rank[self.rank]
        return out


def rows_with_weight(problem: Problem) -> np.ndarray:
    """Return the numbers of the support rows of a fit to the whole kernel matrix."""
    return np.flatnonzero(problem.weight > 0)


def support_of(
    kernel: KernelFunction, problem: Problem, features: Features | None
) -> Matrix:
    """Return the support of a model: rows of positive weight, or that of a basis."""
    if features is None:
        return support_rows(kernel, problem.X, rows_with_weight(problem))
    return read_only_matrix(features.support)


def is_spectrum_faster(n: int, n_ridges: int) -> bool:
    """Return whether eigenvectors are faster than one factorisation per ridge.

    docs/decisions.md has the measurements.
    """
    return n <= _SPECTRUM and n_ridges >= 5 + n // 100


class KernelScatter:
    """Scatter of all rows by their kernel matrix. It takes O(n^2) memory."""

    def __init__(
        self,
        kernel: KernelFunction,
        problem: Problem,
        shares: Shares,
        n_threads: int,
        products: Products | None,
        n_ridges: int,
    ):
        n = problem.rank.size
        matrices = 1 if n_ridges == 1 else 2  # a path keeps K beside its factors
        check_memory(
            "fit_kdlor",
            8.0 * matrices * n * n,
            f"the kernel matrix of {n} rows",
            ": pass basis=500 to fit on 500 of them",
        )
        self.shares, self.n_threads = shares, n_threads
        self.rows = rows_with_weight(problem)
        self.support = support_of(kernel, problem, None)
        self.kernel = on_itself(kernel, problem.X, n_threads, products)
        self.K = np.empty(self.kernel.shape)
        self.kernel.triangle(self.K, mirror=True)
        diagonal, p = np.diagonal(self.K).copy(), shares.p
        h = matmul(self.K, p[:, None])[:, 0]
        self.offset = float(p @ h)
        self.size = float(p @ diagonal)
        self.t = self.size - self.offset
        # |phi_i - m| of every row, whose square may be negative by rounding
        self.distance = np.sqrt(np.maximum(diagonal - 2 * h + self.offset, 0.0))
        use_spectrum = is_spectrum_faster(p.size, n_ridges)
        self.spectrum = Spectrum(self.K, p) if use_spectrum else None

    def with_ridge(self, ridge: float, last: bool) -> KernelSolution:
        """Return (D) for a ridge u t; `last` if the scatter is not needed after it."""
        if self.spectrum is not None:
            return KernelSolution(self, ridge, self.spectrum.with_ridge(ridge))
        # The last ridge may factorise in place: K is the largest array of a fit.
        A = self.K if last else self.K.copy()
        # A row of weight 0 has a diagonal beyond all others, and the coefficient 0.
        A[np.diag_indices_from(A)] += ridge / np.maximum(self.shares.p, _NO_SHARE)
        return KernelSolution(self, ridge, Cholesky(A, self.n_threads))

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """Return the scores of the training rows, (n, k), for coefficients (n, k)."""
        # Without a spectrum a factor may have taken the place of K, so that kernel
        # values are computed again.
        if self.spectrum is None:
            return self.kernel.product(coef)
        return matmul(self.K, coef)


class Spectrum:
    """Eigenvectors of diag(s) K diag(s), s_i = sqrt(p_i), the same for every u."""

    def __init__(self, K: np.ndarray, p: np.ndarray):
        s = np.sqrt(p)
        self._values, vectors = np.linalg.eigh(s[:, None] * K * s)
        self._columns = s[:, None] * vectors

    def with_ridge(self, ridge: float) -> SpectralFactor:
        values = self._values + ridge
        if not values[0] > 0:
            raise np.linalg.LinAlgError("matrix is not positive definite")
        return SpectralFactor(self._columns, np.sqrt(values)[:, None])


class SpectralFactor(NamedTuple):
    """R = columns / roots with R R' = (K + u t diag(1 / p))^-1, as `Cholesky`."""

    columns: np.ndarray
    roots: np.ndarray

    def forward(self, B: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns.T @ B / self.roots)

    def backward(self, B: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns @ (B / self.roots))


class KernelSolution:
    """(D) for one u, by (ROWS) and the raw scores of the direction of each pair."""

    def __init__(
        self, scatter: KernelScatter, ridge: float, factor: Cholesky | SpectralFactor
    ):
        self._scatter, self._ridge = scatter, ridge
        self._own = scatter.shares.means()
        # (ROWS) takes one right-hand side per rank; the scatter itself is not formed.
        F = factor.forward((self._own > 0).astype(float))
        g = np.linalg.solve(F.T @ F, np.diff(np.eye(F.shape[1])))
        # Columns are the directions of the unit vectors a, by which w is linear in a.
        self._beta = factor.backward(F @ g) / (2 * ridge)
        self._f = scatter.scores(self._beta)
        self._means = self._own.T @ self._f
        half = np.diff(self._means, axis=0)
        self.Q = half + half.T

    def direction(self, a: np.ndarray) -> Direction:
        """Return w = S^-1 D a / 2 with the terms of its gap."""
        scatter, ridge, (rank, p, _) = self._scatter, self._ridge, self._scatter.shares
        beta, f, means = self._beta @ a, self._f @ a, self._means @ a
        within = p * (f - means[rank])
        norm = float(within @ f) + ridge * float(beta @ f)
        e = 2 * (within + ridge * beta) - np.diff(self._own, axis=1) @ a
        # The bound on |e| below (GAP), with |m| from `offset` = |m|^2.
        far = max(scatter.offset, 0.0) ** 0.5
        longest = float(np.abs(e) @ scatter.distance) + abs(float(e.sum())) * far
        return Direction(beta[scatter.rows], means, norm, longest**2 / (4 * ridge))


class BasisScatter:
    """Scatter of the features of all rows on a basis. It takes O(m^2) memory."""

    def __init__(
        self, features: Features, problem: Problem, shares: Shares, n_threads: int
    ):
        rank, p, of_rank = shares
        self.features, self.support = features, read_only_matrix(features.support)
        q = of_rank.size

        def of_chunk(chunk: Chunk) -> Parts:
            rows, X = chunk
            V = features.values(X)
            check_values(V)
            own = np.zeros((len(V), q))
            own[np.arange(len(V)), rank[rows]] = p[rows]
            sums = own.T @ V
            # V'V of one matrix costs half of a product of two. V may be X itself, so
            # that it is not changed in place.
            V = np.sqrt(p[rows])[:, None] * V
            return sums, inner(V, V)

        sums, squares = summed(problem.X, of_chunk, n_threads)
        mixing = features.mixing
        self.means = matmul(sums, mixing) / of_rank[:, None]
        squares = matmul(matmul(squares, mixing).T.copy(), mixing)
        self.size = float(np.trace(squares))
        centre = of_rank @ self.means
        self.t = self.size - float(centre @ centre)
        weighted = np.sqrt(of_rank)[:, None] * self.means
        S = squares - weighted.T @ weighted
        # Symmetric to the last bit, which the two products are not.
        self.S = 0.5 * (S + S.T)
        self.shares, self.n_threads = shares, n_threads

    def with_ridge(self, ridge: float, last: bool) -> BasisSolution:
        """Return (D) for a ridge u t."""
        A = self.S + ridge * np.eye(len(self.S))
        return BasisSolution(self, ridge, Cholesky(A, self.n_threads))


class BasisSolution:
    """(D) for one u, by features on a basis."""

    def __init__(self, scatter: BasisScatter, ridge: float, factor: Cholesky):
        self._scatter, self._ridge, self._factor = scatter, ridge, factor
        self._F = factor.forward(np.diff(scatter.means, axis=0).T.copy())
        self.Q = self._F.T @ self._F

    def direction(self, a: np.ndarray) -> Direction:
        """Return w = S^-1 D a / 2 with the terms of its gap."""
        scatter, ridge = self._scatter, self._ridge
        w = 0.5 * self._factor.backward(self._F @ a[:, None])[:, 0]
        Sw = scatter.S @ w + ridge * w
        # Residual of 2 S w = D a, in which rounding errors of the factor show.
        e = 2 * Sw - a @ np.diff(scatter.means, axis=0)
        lost = float(e @ e) / (4 * ridge)
        coef = scatter.features.coefficients(w)
        return Direction(coef, scatter.means @ w, float(w @ Sw), lost)


Scatter: TypeAlias = KernelScatter | BasisScatter
