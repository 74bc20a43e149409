"""Models over support rows: what they hold, and how they score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from .._input.checks import check_entries, shown
from .._input.fields import DISTINCT, FINITE, LABELS, Array, Length, Size
from .._input.frame import default_names
from .._input.sparse import is_sparse
from .._input.types import Matrix, MatrixLike, RowsLike
from .._numerics.rows import dense
from .._numerics.threads import resolve_n_threads
from .._watch.convergence import Convergence
from ..kernels.functions import KernelFunction
from ..kernels.tiles import Evaluator
from .explanation import Named
from .links import require_link
from .model import Model, read_for


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KernelModel(Model):
    """Base of the models whose scores are sums over support rows, m of d features, for
    r ranks. A subclass may say in `_check_values` what no declaration of a field can.
    """

    support: Annotated[Matrix, Length("m")]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    kernel: KernelFunction
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    convergence: Convergence

    @property
    def coef_by_feature(self) -> Named:
        """Coefficients of the features of a linear kernel, whose names are those of the
        columns.

        `values` are (d,) for a model with one score, which they and a constant make of
        the features, and (k, d) for k scores. AttributeError for other kernels, whose
        scores are not linear.
        """
        if not self.kernel.is_linear:
            raise AttributeError(
                "coef_by_feature is defined for a linear kernel only, and this "
                f"model has the kernel {shown(self.kernel)}: explain(X) computes "
                "feature importances for every kernel"
            )
        coef: np.ndarray = self.coef  # type: ignore[attr-defined]  # (m,) or (m, k)
        values = np.asarray(coef.T @ dense(self.support))
        if self.kernel.relevance is not None:
            values = values * self.kernel.relevance
        return Named(self.feature_names or default_names(self.n_features), values)

    def _check_values(self) -> None:
        """Raise ValueError if fields contradict each other.

        Each field by itself has been checked by its annotation.
        """

    def _check(self) -> None:
        check_support(self.support, self.kernel, self.n_features)
        self._check_values()


def decision(model: Any, X: RowsLike) -> np.ndarray:
    """Return the `decision_function` of a kernel model, from k(X, support) @ coef.

    Raises ValueError or TypeError as `read_features`.
    """
    X = read_for(model, X, missing=model.kernel.takes_missing)
    n_threads = resolve_n_threads(None)
    values = Evaluator(model.kernel, X, model.support, n_threads)
    return np.asarray(model._decided(values.product(model._columns())))


def finite_scores(scores: np.ndarray) -> np.ndarray:
    """Return the scores of rows, (n,) or (n, p); ValueError unless all are finite."""
    check_entries("scores of the rows of X", scores, np.isfinite(scores), "be finite")
    return scores


def check_support(support: Any, kernel: KernelFunction, n_features: int) -> None:
    """Raise ValueError unless these are support rows as `support_rows` makes them.

    The kernel must have as many relevances as there are features, if it has any.
    """
    if kernel.by_number:
        if (
            len(support.shape) != 1
            or support.dtype != np.int64
            or not ((support >= 0) & (support < n_features)).all()
        ):
            raise ValueError("support must number training rows")
        return
    if len(support.shape) != 2 or support.shape[1] != n_features:
        raise ValueError(f"support must have {n_features} columns, as n_features says")
    gamma = kernel.relevance
    if gamma is not None and gamma.size != n_features:
        raise ValueError(f"the kernel must have {n_features} relevances")
    if is_sparse(support):  # which has been checked
        if not kernel.takes_csr:
            raise ValueError(f"a {type(kernel).__name__} kernel takes no CSR support")
    else:
        known = np.isfinite(support) if support.dtype == np.float64 else False
        if not np.all(known | np.isnan(support) if kernel.takes_missing else known):
            raise ValueError("support must be finite float64 rows")


class Hyperplanes(KernelModel):
    """Base class of kernel models with one value per hyperplane and a link.

    `_linked` of a subclass makes the input of the link from these values.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def link(self) -> Any: ...
        def decision_function(self, X: RowsLike) -> np.ndarray: ...
        def _linked(self, f: np.ndarray) -> np.ndarray: ...

    def link_input(self, X: MatrixLike, like: Hyperplanes) -> np.ndarray:
        """Return the input of a link, which is in the same units for all models.

        A rank that this model does not know is as far as the farthest that it knows.
        """
        return self._link_input(self.decision_function(X), like)

    def _link_input(self, f: np.ndarray, like: Hyperplanes) -> np.ndarray:
        """Return `link_input` of rows with the values f."""
        values = np.array(self._linked(f))
        known = np.isfinite(values).all(axis=0)
        if not known.all():
            values[:, ~known] = values[:, known].max(axis=1, keepdims=True)
        return values

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return probabilities of the ranks from `decision_function` by the `link`, as
        the docstring of the class says.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, which says what else is raised.
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        ValueError
            If the model was fitted without `probability`.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """Return `predict_proba` of rows with the values f."""
        return np.asarray(require_link(self.link)(self._linked(f)))
