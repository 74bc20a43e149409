"""Residuals, goodness of fit and influence as methods of a fitted cumulative model."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import numpy as np

from .._input.checks import check_choice, check_count, resolve_rng
from .._input.sparse import read_only
from .._input.types import ArrayLike, MatrixLike
from .estimates import covariance_for, remembered
from .inference import Inference, Wald
from .residuals import (
    GoodnessOfFit,
    Influence,
    RankedRows,
    Residual,
    RowParts,
    ends_parts,
    hosmer_lemeshow,
    influence_of,
    probabilities_of,
    read_rows,
    residuals_of,
)
from .sandwich import covariance_of


class GoodnessAndInfluence(Wald):
    """Goodness of fit and influence of rows, for all models of rows with ranks."""

    __slots__ = ()

    def hosmer_lemeshow(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        groups: int = 10,
        offset: ArrayLike | None = None,
    ) -> GoodnessOfFit:
        """Test the goodness of fit by the method of Fagerland and Hosmer.

        Rows are divided into groups by quantiles of their mean rank, sum_j j P(y = j),
        and the counts of the ranks in each group are compared with the sums of their
        probabilities. A small p-value is evidence against the model. Rows with equal
        means are in the same group, so that there may be fewer groups than requested.
        The chi-square approximation is poor if many expected counts are below 5.

        Parameters
        ----------
        X, y : optional
            As for `residuals`. Default: the training rows, with their weights as
            frequencies.
        groups : int >= 2, default 10
            Number of groups.
        offset : (n,) array-like, default 0
            Offset of the rows of `X`.

        Returns
        -------
        GoodnessOfFit
            A named tuple (chi2, dof, p_value, observed, expected).

        Raises
        ------
        ValueError, TypeError
            As for `residuals`; also if there are too few groups with different mean
            ranks.

        References
        ----------
        M. W. Fagerland, D. W. Hosmer, Statistics in Medicine 32:2235-2249, 2013.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> test = ordinal.fit_pom(X, y).hosmer_lemeshow()
        >>> test.dof, test.observed.shape
        (17, (10, 3))
        """
        groups = check_count("groups", groups, 2)
        rows = read_rows(self, "hosmer_lemeshow", X, y, offset)
        P = self._probabilities(rows)
        return hosmer_lemeshow(P, rows.rank, rows.weight, groups)

    def influence(self) -> Influence:
        """Return leverages, and the change of the estimates without each training row.

        The change is that of one Newton step, which is exact to first order. A row of
        weight 2 is left out as two rows. Curvatures are those of the fit; for scale
        effects, the information of a row is replaced by its mean over the ranks.

        Returns
        -------
        Influence
            A named tuple (leverage, cooks_distance, change). Entries are infinite or
            nan if the estimates do not exist without the row.

        Raises
        ------
        ValueError
            As for `standard_errors`; also if the model no longer has its training rows.

        References
        ----------
        D. Pregibon, Annals of Statistics 9:705-724, 1981.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> found = ordinal.fit_pom(X, y).influence()
        >>> round(float(found.leverage.sum()), 6)
        4.0
        """
        covariance_for(self, "influence")
        fit = remembered(self, "influence")
        # The step is one of the likelihood, also if the model has a sandwich.
        V = covariance_of(fit.loss, fit.loss.at(fit.x))
        assert V is not None  # because the model has a covariance
        rows = read_rows(self, "influence")
        parts_of = partial(self._row_parts, rows)
        found = influence_of(self, rows.rank.size, V, parts_of)
        return Influence(*map(read_only, found))

    def _probabilities(self, rows: RankedRows) -> np.ndarray:
        """Return the probabilities of the ranks that have training rows, (n, r)."""
        return probabilities_of(self, rows)

    def _row_parts(self, rows: RankedRows, part: slice) -> RowParts:
        """Return the derivatives of some rows' log-likelihoods for `influence`."""
        return ends_parts(self, rows, part)


class Diagnostics(GoodnessAndInfluence, Inference):
    """Residuals, goodness of fit and influence of rows of a cumulative model."""

    __slots__ = ()

    def residuals(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        kind: Residual = "probability",
        offset: ArrayLike | None = None,
        rng: Any = None,
    ) -> np.ndarray:
        """Return one residual per row, which is positive for ranks above expectation.

        Parameters
        ----------
        X : (n, n_features) array or data frame, optional
            By default the training rows that the fit has used.
        y : (n,) array-like, optional
            Labels of the rows of `X`.
        kind : {"probability", "surrogate", "score", "deviance"}, default "probability"
            "probability" is P(rank < y) - P(rank > y), between -1 and 1. "surrogate" is
            a random draw of the latent variable given the rank, minus its mean; if the
            model is true, these residuals have the distribution of the link in every
            row, in units of the spread. "score" is the derivative of log P(y) by
            x'beta; these residuals of a fit are orthogonal to all features. "deviance"
            is sqrt(-2 log P(y)) with the sign of the first; the weighted sum of their
            squares is `deviance`.
        offset : (n,) array-like, default 0
            Offset of the rows of `X`.
        rng : int, Generator or None
            Source of the random numbers of "surrogate".

        Returns
        -------
        (n,) array
            Residuals, not multiplied by weights. With link="cauchit", which has no
            mean, surrogate residuals are centred at the median.

        Raises
        ------
        ValueError, TypeError
            As for `decision_function`; also if `kind` is unknown, if X is passed
            without y, if labels have ranks without training rows, or if `X` is missing
            and the model no longer has its training rows.

        References
        ----------
        C. Li, B. E. Shepherd, Biometrika 99:473-480, 2012. D. Liu, H. Zhang, JASA
        113:845-854, 2018.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> model.residuals().round(3)
        array([-0.008, -0.033,  0.294, -0.378,  0.496, -0.803,  0.42 ,  0.013])
        """
        check_choice("kind", kind, get_args(Residual))
        rows = read_rows(self, "residuals", X, y, offset)
        drawn = resolve_rng(rng) if kind == "surrogate" else None
        return residuals_of(self, rows, kind, drawn)
