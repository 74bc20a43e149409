"""Residuals, goodness of fit and influence as methods of a fitted cumulative model."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from .._input.checks import check_choice, check_count, resolve_rng
from .._input.sparse import read_only
from .._input.types import ArrayLike, MatrixLike
from .estimates import covariance_for, remembered
from .inference import Inference
from .residuals import (
    GoodnessOfFit,
    Influence,
    Residual,
    hosmer_lemeshow,
    influence_of,
    probabilities_of,
    read_rows,
    residuals_of,
)
from .sandwich import Middle, covariance_of


class Diagnostics(Inference):
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
        """Return one residual per row; positive ones are of ranks above expectation.

        Parameters
        ----------
        X : (n, n_features) array or data frame, optional
            By default the training rows that the fit has used.
        y : (n,) array-like, optional
            Labels of the rows of `X`.
        kind : {"probability", "surrogate", "score", "deviance"}, default "probability"
            "probability" is P(rank < y) - P(rank > y), within -1 and 1. "surrogate"
            draws the latent variable, given the rank, and takes its mean off: of a
            true model these residuals have the distribution of the link for every row,
            in units of the spread. "score" is the slope of log P(y) by x'beta, which a
            fit makes orthogonal to all features. "deviance" is sqrt(-2 log P(y)) with
            the sign of the first; the weighted sum of its squares is `deviance`.
        offset : (n,) array-like, default 0
            Offset of the rows of `X`.
        rng : int, Generator or None
            Seed of the draws of "surrogate".

        Returns
        -------
        (n,) array
            Weights do not enter. With link="cauchit", which has no mean, surrogate
            residuals are about the median.

        Raises
        ------
        ValueError, TypeError
            As for `decision_function`; an unknown kind; X without y; labels of ranks
            without training rows; no `X` and a model without its training rows.

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

    def hosmer_lemeshow(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        groups: int = 10,
        offset: ArrayLike | None = None,
    ) -> GoodnessOfFit:
        """Test the goodness of fit after Fagerland and Hosmer.

        Rows are put in groups by quantiles of their mean rank, sum_j j P(y = j), and
        the ranks in each group are compared with the sums of their probabilities. A
        small p-value says that the probabilities are wrong. Rows with equal means share
        a group, so that there may be fewer groups than asked for. The approximation by
        a chi-square is poor where many expected numbers are below 5.

        Parameters
        ----------
        X, y : optional
            As for `residuals`. By default the training rows with their weights, which
            are frequencies.
        groups : int >= 2, default 10
            Number of groups to form.
        offset : (n,) array-like, default 0
            Offset of the rows of `X`.

        Returns
        -------
        GoodnessOfFit
            A named tuple (chi2, dof, p_value, observed, expected).

        Raises
        ------
        ValueError, TypeError
            As for `residuals`; too few groups of different mean ranks.

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
        P = probabilities_of(self, rows)
        return hosmer_lemeshow(P, rows.rank, rows.weight, groups)

    def influence(self) -> Influence:
        """Return the leverage of the training rows, and how the estimates change when
        one is left out, by one Newton step.

        Exact to first order; of a row with weight 2 both rows are left out. Curvatures
        are those of the fit, with the information of a row for scale effects at its
        mean over the ranks.

        Returns
        -------
        Influence
            A named tuple (leverage, cooks_distance, change). Entries are infinite or
            nan for rows without which the estimates do not exist.

        Raises
        ------
        ValueError
            As for `standard_errors`; a model without its training rows.

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
        middle = Middle("observed", None)
        V = covariance_of(fit.loss, fit.loss.at(fit.x), middle)
        assert V is not None  # as there is one of the model
        found = influence_of(self, read_rows(self, "influence"), V)
        return Influence(*map(read_only, found))
