"""Path of models that `fit_pom_path` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from .._input.checks import as_real_array, check_entries, shown
from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, Array, Length
from .._model.printing import Table, html_notes
from .._model.storage import Storable
from .._watch.convergence import Convergence
from .model import PomModel

ConcaveLink = Literal["logit", "probit", "cloglog", "loglog"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PomPath(Storable):
    """Cumulative link models along a path of penalties, from the largest one.

    Attributes
    ----------
    lambdas : (K,) array
        Penalties, falling.
    ratio : float
        The share of the absolute values in the penalty.
    models : tuple of (K,) PomModel
    convergence : Convergence
        One of its `parts` a penalty, with `primal`, `dual` and `gap`.
    """

    lambdas: Annotated[np.ndarray, Array("f8", "K"), FINITE, POSITIVE]
    ratio: Annotated[float, FINITE, NONNEGATIVE]
    models: Annotated[tuple[PomModel, ...], Length("K")]
    convergence: Convergence

    def __len__(self) -> int:
        return len(self.models)

    def model(self, k: int) -> PomModel:
        """Return the model of `lambdas[k]`.

        Raises
        ------
        ValueError
            If k is no number of a penalty: -K..K-1, of which negative ones count from
            the smallest penalty.
        """
        n = len(self.models)
        if isinstance(k, bool) or not (isinstance(k, int | np.integer) and -n <= k < n):
            raise ValueError(
                f"k must be the number of a penalty, {-n}..{n - 1}, got {shown(k)}"
            )
        return self.models[k]

    @property
    def coefs(self) -> np.ndarray:
        """`coef` of every model, (K, d)."""
        return np.stack([model.coef for model in self.models])

    @property
    def coef_names(self) -> tuple[str, ...]:
        """Return the names of the columns of `coefs`."""
        return self.models[0].coef_names

    @property
    def thresholds(self) -> np.ndarray:
        """`thresholds` of every model, (K, r - 1)."""
        return np.stack([model.thresholds for model in self.models])

    @property
    def n_nonzero(self) -> np.ndarray:
        """Return the numbers of nonzero coefficients, (K,)."""
        return np.array([np.count_nonzero(model.coef) for model in self.models])

    @property
    def loglik(self) -> np.ndarray:
        """Log-likelihoods, without penalties, (K,)."""
        return np.array([model.loglik for model in self.models])

    @property
    def null_loglik(self) -> float:
        """The log-likelihood without features."""
        return self.models[0].null_loglik

    @property
    def dev_ratio(self) -> np.ndarray:
        """The share of the deviance without features that is explained, (K,)."""
        return np.asarray(1 - self.loglik / self.null_loglik)

    @property
    def gaps(self) -> np.ndarray:
        """Duality gaps, (K,): how far the objectives, mean losses with their penalties,
        are from their minima at most.
        """
        return np.array([model.convergence.gap for model in self.models])

    def __repr__(self) -> str:
        names = ("lambdas", self.lambdas, ".3g"), ("nonzero", self.n_nonzero, "d")
        lines = [f"PomPath of {len(self)} penalties, ratio {self.ratio:g}"]
        for name, values, spec in (*names, ("dev_ratio", self.dev_ratio, ".3f")):
            lines.append(f"  {name:<13}{values[0]:{spec}} to {values[-1]:{spec}}")
        return "\n".join([*lines, f"  {'convergence':<13}{self.convergence}"])

    def table(self) -> Table:
        """Return a row per penalty: its value, the number of nonzero coefficients, the
        log-likelihood and the share of the deviance that is explained.
        """
        return Table(
            {
                "lambda": self.lambdas,
                "nonzero": self.n_nonzero,
                "loglik": self.loglik,
                "dev_ratio": self.dev_ratio,
            }
        )

    def _repr_html_(self) -> str:
        notes = [f"PomPath, ratio {self.ratio:g}; {self.convergence}"]
        return html_notes(notes) + self.table()._repr_html_()

    def _check(self) -> None:
        if not self.models:
            raise ValueError("a path needs a model")
        if (np.diff(self.lambdas) > 0).any():
            raise ValueError("lambdas must not rise")
        if len({(m.coef.size, m.thresholds.size) for m in self.models}) > 1:
            raise ValueError("the models of a path must have the same columns")


def read_lambdas(lambdas: Any, ratio: float) -> np.ndarray | None:
    """Return the caller's penalties, largest first, or None if there are none.

    Raises ValueError or TypeError unless they are positive, and ValueError if there are
    none and the ridge penalty alone, `ratio` 0, has no largest one.
    """
    if lambdas is None:
        if ratio == 0:
            raise ValueError(
                "lambdas must be given for ratio=0: no penalty is the largest"
            )
        return None
    a = as_real_array(lambdas, "lambdas")
    if a.ndim != 1 or not a.size:
        raise ValueError(f"lambdas must be a sequence of numbers, got shape {a.shape}")
    check_entries("lambdas", a, np.isfinite(a) & (a > 0), "be positive and finite")
    return np.sort(a)[::-1].copy()


def geometric(largest: float, smallest: float, n: int) -> np.ndarray:
    """Return n penalties at equal ratios, from the largest to `smallest` times that."""
    return largest * smallest ** (np.arange(n) / max(1, n - 1))
