"""Model that `fit_ofmhs` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    NOT_NAN,
    POSITIVE,
    RISING,
    THRESHOLDS,
    Array,
    Length,
    Size,
)
from .._input.frame import default_names
from .._input.types import MatrixLike
from .._model.explanation import Named
from .._model.links import CumulativeLink
from .._model.model import read_for
from .._model.printing import Table
from .._model.support import finite_scores
from .._model.threshold_model import Scored
from .._numerics.rows import dense, strips, take
from .._watch.convergence import Convergence
from .hierarchy import scores

_ENTRIES = 2**20  # of rows that are standardised at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfmhsModel(Scored):
    """P(y <= j | x) = 1 / (1 + exp(f(x) - theta_j)) with main effects and pairs,

    f(x) = z'main + sum_(j<k) pairs_jk z_j z_k,   z_j = (x_j - centre_j) / spread_j.

    Attributes
    ----------
    main : (d,) array
        beta: what a deviation of a feature adds to the log odds of higher ranks where
        all others are at their means.
    pairs : (d, d) array
        Theta, symmetric with zeros on its diagonal: what a deviation of feature j adds
        to the effect of feature k.
    brought : (d, d) array
        m: entry (j, k) is the part of main[j] that pair (j, k) has brought in; what
        remains of main[j] came in by itself. The objective (P) is a function of these.
    centre, spread : (d,) arrays
        Means and deviations of the training rows, by weight.
    thresholds : (r - 1,) array
        theta, in order. -inf and +inf where no training rows lie beyond, and equal on
        both sides of a rank between that has none: it is never predicted.
    l1, pair_ratio : float
    largest : float
        The least l1 for which no effects are the solution, with this ratio.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Its `primal` and `dual` are of (P), `violation` their difference by the loss
        without effects.
    """

    main: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    pairs: Annotated[np.ndarray, Array("f8", "d d"), FINITE]
    brought: Annotated[np.ndarray, Array("f8", "d d"), FINITE]
    centre: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    spread: Annotated[np.ndarray, Array("f8", "d"), FINITE, POSITIVE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]
    l1: Annotated[float, FINITE, POSITIVE]
    pair_ratio: Annotated[float, NOT_NAN, NONNEGATIVE]
    largest: Annotated[float, FINITE, NONNEGATIVE]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    convergence: Convergence

    @property
    def link(self) -> CumulativeLink:
        """The probabilities of a score."""
        return CumulativeLink(1.0, self.thresholds)

    @property
    def n_main(self) -> int:
        """Main effects that are not 0."""
        return int(np.count_nonzero(self.main))

    @property
    def n_pairs(self) -> int:
        """Return the pairs with nonzero effects."""
        return int(np.count_nonzero(np.triu(self.pairs)))

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score f(x), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Returns
        -------
        (n,) array
            Log odds: P(y <= j) is 1/2 where the score is thresholds[j].

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        rows = read_for(self, X)
        n, d = rows.shape
        f = np.empty(n)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            for some in strips(n, max(1, _ENTRIES // d)):
                Z = (dense(take(rows, some)) - self.centre) / self.spread
                f[some] = scores(Z, self.main, self.pairs)
        return finite_scores(f)

    def effects(self) -> Table:
        """Return main effects and pairs that are not 0, the largest first.

        Returns
        -------
        Table
            `name`, such as "x1" or "x1:x2", and `effect`, on the log odds of higher
            ranks for deviations of the features. Prints as a table, and is what
            `pandas.DataFrame` takes.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> ordinal.fit_ofmhs(X, y, l1=0.1).effects()
        name  effect
        x1   2.32234
        """
        name, mains, first, second = self._held()
        effect = np.concatenate([self.main[mains], self.pairs[first, second]])
        order = np.argsort(-np.abs(effect), kind="stable")
        return Table({"name": np.array(name, str)[order], "effect": effect[order]})

    def _held(self) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
        """Return the names of the effects that are not 0, main ones first, the features
        of the main effects, and the first and second ones of the pairs.
        """
        names = self.feature_names or default_names(self.n_features)
        mains = np.flatnonzero(self.main)
        first, second = np.nonzero(np.triu(self.pairs))
        shown = [names[j] for j in mains.tolist()]
        for j, k in zip(first.tolist(), second.tolist(), strict=True):
            shown.append(f"{names[j]}:{names[k]}")
        return shown, mains, first, second

    def _score_terms(self, X: MatrixLike) -> Named:
        Z = (dense(read_for(self, X)) - self.centre) / self.spread
        names, mains, first, second = self._held()
        products = Z[:, first] * Z[:, second] * self.pairs[first, second]
        return Named(
            tuple(names), np.hstack([Z[:, mains] * self.main[mains], products])
        )

    def _summary(self) -> dict[str, str]:
        d = self.n_features
        lines = {
            "main effects": f"{self.n_main} of {d}",
            "pairs": f"{self.n_pairs} of {d * (d - 1) // 2}",
            "l1": f"{self.l1:g}, pair_ratio {self.pair_ratio:g}",
        }
        return lines | super(OfmhsModel, self)._summary()

    def _check(self) -> None:
        if (self.pairs != self.pairs.T).any() or np.diagonal(self.pairs).any():
            raise ValueError("pairs must be symmetric, with zeros on its diagonal")
