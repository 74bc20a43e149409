"""Scatter of the rows in (P) and (D) of KDLOR: of all rows, or on a basis."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from .._input.problem import Problem
from .._input.types import Kernel, Matrix
from .._model.support import read_only_matrix, support_rows
from .._numerics.cholesky import Cholesky
from .._numerics.rows import inner, matmul
from .._rows.chunks import Chunk, summed
from .._rows.sums import Parts
from ..kernels.features import Features
from ..kernels.functions import check_values
from ..kernels.tiles import Products, on_itself

# The share of a row that has no weight: its coefficient is then as far below those of
# the others, and no model keeps it
_NO_SHARE = 1e-60
_SPECTRUM = 700  # rows whose eigenvectors take less than a tenth of a second


class Judged(NamedTuple):
    """A direction, and what raw data say of it."""

    coef: np.ndarray  # of the support rows
    means: np.ndarray  # (q,) mean scores of the ranks that are present
    norm: float  # w'S w
    lost: float  # |e|^2 / (4 u t) of (GAP), or more


class ScatterSolution(Protocol):
    """(D) of one u: its matrix, and the direction of a point."""

    Q: np.ndarray

    def direction(self, a: np.ndarray) -> Judged: ...


class Scatter(Protocol):
    """Scatter of the rows for (P), for any u."""

    shares: Shares
    support: Any
    t: float  # the trace that u is a part of
    size: float  # the mean of k(x, x)

    def with_ridge(self, ridge: float, last: bool) -> ScatterSolution: ...


class Shares(NamedTuple):
    """Weights of the rows and of the ranks."""

    rank: np.ndarray  # (n,) among the q ranks that are present
    p: np.ndarray  # (n,) of sum 1
    of_rank: np.ndarray  # (q,) their sums

    @classmethod
    def from_problem(cls, problem: Problem) -> Shares:
        p, rank = problem.weight / problem.weight.sum(), problem.rank_among_present
        return cls(rank, p, np.bincount(rank, p))

    def means(self) -> np.ndarray:
        """Return (n, q): the mean of every rank as a sum of rows."""
        out = np.zeros((self.p.size, self.of_rank.size))
        out[np.arange(self.p.size), self.rank] = self.p / self.of_rank[self.rank]
        return out


def weighty(problem: Problem) -> np.ndarray:
    """Return the rows that a fit to the whole kernel matrix keeps."""
    return np.flatnonzero(problem.weight > 0)


def support_of(kernel: Kernel, problem: Problem, features: Features | None) -> Matrix:
    """Return the support rows of a model."""
    if features is None:
        return support_rows(kernel, problem.X, weighty(problem))
    return read_only_matrix(features.support)


def pays(n: int, n_ridges: int) -> bool:
    """Return whether eigenvectors are faster than one factorisation per ridge.

    docs/decisions.md has the measurements.
    """
    return n <= _SPECTRUM and n_ridges >= 5 + n // 100


class OfRows:
    """The scatter of all rows by their kernel matrix. O(n^2) doubles."""

    def __init__(
        self,
        kernel: Kernel,
        problem: Problem,
        shares: Shares,
        n_threads: int,
        products: Products | None,
        n_ridges: int,
    ):
        self.shares, self.n_threads = shares, n_threads
        self.support, self.rows = support_of(kernel, problem, None), weighty(problem)
        self.kernel = on_itself(kernel, problem.X, n_threads, products)
        self.K = np.empty(self.kernel.shape)
        self.kernel.triangle(self.K, mirror=True)
        diagonal, p = np.diagonal(self.K).copy(), shares.p
        h = matmul(self.K, p[:, None])[:, 0]
        self.offset = float(p @ h)
        self.size = float(p @ diagonal)
        self.t = self.size - self.offset
        # of every row from the mean of all; rounding may leave less than 0
        self.apart = np.sqrt(np.maximum(diagonal - 2 * h + self.offset, 0.0))
        self.spectrum = Spectrum(self.K, p) if pays(p.size, n_ridges) else None

    def with_ridge(self, ridge: float, last: bool) -> SolvedRows:
        if self.spectrum is not None:
            return SolvedRows(self, ridge, self.spectrum.with_ridge(ridge))
        # The last ridge may factorise in place: K is the largest array of a fit.
        A = self.K if last else self.K.copy()
        # A row without weight has a diagonal beyond all others, and the coefficient 0.
        A[np.diag_indices_from(A)] += ridge / np.maximum(self.shares.p, _NO_SHARE)
        return SolvedRows(self, ridge, Cholesky(A, self.n_threads))

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """Return the scores of the training rows for columns of coefficients.

        Kernel values are computed afresh where a factor took their place.
        """
        if self.spectrum is None:
            return self.kernel.product(coef)
        return matmul(self.K, coef)


class Spectrum:
    """Eigenvectors of diag(s) K diag(s), s_i = sqrt(p_i), which serve every u."""

    def __init__(self, K: np.ndarray, p: np.ndarray):
        s = np.sqrt(p)
        self._values, vectors = np.linalg.eigh(s[:, None] * K * s)
        self._columns = s[:, None] * vectors

    def with_ridge(self, ridge: float) -> Shifted:
        values = self._values + ridge
        if not values[0] > 0:
            raise np.linalg.LinAlgError("matrix is not positive definite")
        return Shifted(self._columns, np.sqrt(values)[:, None])


class Shifted(NamedTuple):
    """Operator of a factor: R = columns / roots has the inverse R R'."""

    columns: np.ndarray
    roots: np.ndarray

    def forward(self, B: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns.T @ B / self.roots)

    def backward(self, B: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns @ (B / self.roots))


class SolvedRows:
    """(D) of one u, by (ROWS) and raw scores of the direction of every pair."""

    def __init__(self, of: OfRows, ridge: float, factor: Cholesky | Shifted):
        self._of, self._ridge = of, ridge
        self._own = of.shares.means()
        # (ROWS) takes one right-hand side per rank; the scatter itself is never formed.
        F = factor.forward((self._own > 0).astype(float))
        turned = np.linalg.solve(F.T @ F, np.diff(np.eye(F.shape[1])))
        self._beta = factor.backward(F @ turned) / (2 * ridge)
        self._f = of.scores(self._beta)
        self._means = self._own.T @ self._f
        half = np.diff(self._means, axis=0)
        self.Q = half + half.T

    def direction(self, a: np.ndarray) -> Judged:
        of, ridge, (rank, p, _) = self._of, self._ridge, self._of.shares
        beta, f, means = self._beta @ a, self._f @ a, self._means @ a
        away = p * (f - means[rank])
        norm = float(away @ f) + ridge * float(beta @ f)
        e = 2 * (away + ridge * beta) - np.diff(self._own, axis=1) @ a
        far = max(of.offset, 0.0) ** 0.5  # the mean of all, from the origin
        longest = float(np.abs(e) @ of.apart) + abs(float(e.sum())) * far
        return Judged(beta[of.rows], means, norm, longest**2 / (4 * ridge))


class BasisScatter:
    """The scatter of the features of all rows on a basis. O(m^2) doubles."""

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
            # The product of a matrix with itself costs half of one of two matrices.
            V = np.sqrt(p[rows])[:, None] * V  # it may have been X itself
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

    def with_ridge(self, ridge: float, last: bool) -> SolvedOnBasis:
        A = self.S + ridge * np.eye(len(self.S))
        return SolvedOnBasis(self, ridge, Cholesky(A, self.n_threads))


class SolvedOnBasis:
    """(D) of one u, by features on a basis."""

    def __init__(self, of: BasisScatter, ridge: float, factor: Cholesky):
        self._of, self._ridge, self._factor = of, ridge, factor
        self._F = factor.forward(np.diff(of.means, axis=0).T.copy())
        self.Q = self._F.T @ self._F

    def direction(self, a: np.ndarray) -> Judged:
        of, ridge = self._of, self._ridge
        w = 0.5 * self._factor.backward(self._F @ a[:, None])[:, 0]
        Sw = of.S @ w + ridge * w
        # The residual of the direction's own equation: rounding of the factor shows
        # here.
        e = 2 * Sw - a @ np.diff(of.means, axis=0)
        coef = of.features.coefficients(w)
        return Judged(coef, of.means @ w, float(w @ Sw), float(e @ e) / (4 * ridge))
