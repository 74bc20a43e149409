"""Model that the fit of OPBE returns: projections, and their fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from .._input.fields import FINITE, NOT_NAN, POSITIVE, Array
from .._input.immutable import read_only
from .._input.problem import Problem
from .._input.types import ArrayLike, Matrix, MatrixLike
from .._model.support import KernelModel, decision, finite_scores
from .._model.threshold_model import by_probabilities, decide
from .._watch.convergence import Convergence, of_ranks
from ..kernels.functions import KernelFunction

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

    def decision_function(self, X: MatrixLike) -> np.ndarray:
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

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the probabilities of the ranks.

        They are fused from the projections by (F) of `ordinal.opbe`. They are part of
        the method and not calibrated: they treat the r projections as independent, and
        are therefore too close to 0 and 1.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, with the same errors.

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
        self, X: MatrixLike, *, rule: Rule = "mode", cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"mode", "median", "cost"}, default "mode"
            The most probable rank, as in the paper; the median; or the rank of least
            expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError
            If the rule is unknown, or if `cost` is passed with another rule or is not
            a finite (r, r) matrix.
        """
        rules = "mode", "median", "cost"
        return by_probabilities(self, X, rule, rules, cost)

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


def model_of(
    problem: Problem,
    kernel: KernelFunction,
    support: Matrix,
    C: float,
    coef: np.ndarray,
    thresholds: np.ndarray,
    parts: Sequence[Convergence],
) -> OpbeModel:
    """Return a model from the projections of the q ranks with training rows.

    `coef` is (m, q), and `thresholds` (q, 2).
    """
    present, r = problem.present, problem.n_classes
    all_coef = np.zeros((len(coef), r))
    all_coef[:, present] = coef
    both = np.full((r, 2), np.inf)
    both[present] = thresholds
    return OpbeModel(
        support=support,
        coef=read_only(all_coef),
        cuts=read_only(both),
        C=C,
        kernel=kernel,
        **problem.model_fields(),
        convergence=of_ranks(parts, present),
    )
