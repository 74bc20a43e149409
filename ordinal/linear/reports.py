"""Tables of a fitted cumulative model as broom has them: tidy, glance and augment."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .._input.checks import check_flag
from .._input.types import ArrayLike, MatrixLike
from .._model.printing import Table
from .._model.threshold_model import decide
from .comparisons import Comparisons
from .margins import TableRows
from .residuals import probabilities_of, read_rows, residuals_of


class Reports(Comparisons):
    """Tables of the estimates, of the fit as a whole, and of the rows."""

    __slots__ = ()

    def tidy(
        self,
        level: float = 0.95,
        *,
        method: Literal["wald", "profile"] = "wald",
        exponentiate: bool = False,
    ) -> Table:
        """Return one entry per parameter: estimate, error, test and interval.

        Parameters
        ----------
        level, method
            As for `confint`. Profile intervals of thresholds and nominal effects, which
            there are not, are nan.
        exponentiate : bool, default False
            Transform estimates and intervals by exp, such as to odds ratios; standard
            errors and tests stay those of the estimates.

        Returns
        -------
        Table
            The columns of `table`, with "lower" and "upper".

        Raises
        ------
        ValueError
            As for `confint`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> list(ordinal.fit_pom(X, y).tidy())[-4:]
        ['z', 'p_value', 'lower', 'upper']
        """
        table, ends = self.table(), self.confint(level, method=method)
        lower, upper = np.full((2, table["name"].size), np.nan)
        # profiles are of the last ones, `coef` and `scale_coef`
        own = slice(table["name"].size - ends["name"].size, None)
        lower[own], upper[own] = ends["lower"], ends["upper"]
        columns = {**table, "lower": lower, "upper": upper}
        if check_flag("exponentiate", exponentiate):
            with np.errstate(over="ignore"):  # infinite then, which is right
                for name in ("estimate", "lower", "upper"):
                    columns[name] = np.exp(columns[name])
        return Table(columns)

    def glance(self) -> Table:
        """Return the figures of the fit as a whole, in one entry.

        Returns
        -------
        Table
            A dict of arrays of one entry: "link", "threshold", "n_obs", "n_missing",
            "parameters", "loglik", "null_loglik", "deviance", "aic", "bic",
            "mcfadden_r2", "converged".

        Raises
        ------
        ValueError
            As for `dof`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> glance = ordinal.fit_pom(X, y).glance()
        >>> glance["parameters"], glance["n_obs"]
        (array([4]), array([300.]))
        """
        figures = {
            "link": self.link,
            "threshold": self.threshold,
            "n_obs": self.n_obs,
            "n_missing": self.n_missing,
            "parameters": self.dof,
            "loglik": self.loglik,
            "null_loglik": self.null_loglik,
            "deviance": self.deviance,
            "aic": self.aic,
            "bic": self.bic,
            "mcfadden_r2": self.mcfadden_r2,
            "converged": self.convergence.converged,
        }
        return Table({name: np.array([value]) for name, value in figures.items()})

    def augment(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Table:
        """Return one entry per row: features, rank, predictions and residuals.

        Parameters
        ----------
        X, y, offset : optional
            As for `residuals`. Default: the training rows, but for those that the fit
            left out.

        Returns
        -------
        Table
            A dict of (n,) arrays: the features by name; ".rank" and ".weight";
            ".score", x'beta with the offset; ".fitted", the predicted label by the
            median; ".p[label]" for each rank with training rows; ".residual", the
            probability-scale one; and for training rows of a model with
            standard errors ".leverage" and ".cooks_distance".

        Raises
        ------
        ValueError, TypeError
            As for `residuals`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> list(ordinal.fit_pom(X, y).augment())[:6]
        ['x1', 'x2', '.rank', '.weight', '.score', '.fitted']
        """
        rows = read_rows(self, "augment", X, y, offset)
        source, every = rows.source, slice(0, rows.rank.size)
        Z, known = source.at(every)
        columns: dict[str, np.ndarray] = {}
        if isinstance(source, TableRows):
            for name, column in zip(
                source.frame.shown_names, source.frame, strict=True
            ):
                labels = column.labels
                columns[name] = (
                    np.asarray(column)
                    if labels is None
                    else labels[column.values.astype(np.int64)]
                )
        else:
            columns = dict(zip(source.names, Z.T, strict=True))
        known_ranks = self.classes[self.observed]
        P = probabilities_of(self, rows)
        columns |= {
            ".rank": known_ranks[rows.rank],
            ".weight": rows.weight,
            ".score": Z[:, self.location] @ self.coef + known,
            ".fitted": known_ranks[decide(P, "median")],
        }
        columns |= {
            f".p[{label}]": p
            for label, p in zip(known_ranks.tolist(), P.T, strict=True)
        }
        columns[".residual"] = residuals_of(self, rows, "probability", None)
        if X is None and self.has_errors:
            found = self.influence()
            columns[".leverage"] = found.leverage
            columns[".cooks_distance"] = found.cooks_distance
        return Table(columns)
