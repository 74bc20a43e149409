"""Models over support rows: what they keep of the training rows, and how they score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._input.sparse import CSR, frozen
from .._input.types import Kernel, Matrix
from .._kernel_matrix.choice import takes_missing
from .._kernel_matrix.tiles import Evaluator
from .._numerics.rows import take
from .._numerics.threads import resolve_n_threads
from ..kernels import Precomputed
from .convergence import Convergence
from .model import Model, read_for


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KernelModel(Model):
    """Base of the models whose scores are sums over support rows.

    A subclass says in `_shapes` what arrays of float64 it holds, and in `_check_values`
    what else must hold of its fields.
    """

    support: Matrix
    coef: np.ndarray
    classes: np.ndarray
    kernel: Kernel
    n_features: int
    feature_names: tuple[str, ...] | None
    convergence: Convergence

    def _shapes(self, m: int, r: int) -> dict[str, tuple[int, ...]]:
        """Of the fields, for m support rows and r ranks; what is None has none."""
        raise NotImplementedError

    def _check_values(self) -> None:
        """Raise ValueError if the fields, whose shapes are right, make no model."""

    def _check(self) -> None:
        shapes = self._shapes(len(self.support), self.classes.size)
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values is not None and (values.shape, values.dtype) != (shape, "f8"):
                raise ValueError(f"{', '.join(shapes)}: float64 of m and r")
        if self.classes.ndim != 1:
            raise ValueError("classes must be a vector")
        check_support(self.support, self.kernel, len(self.support), self.n_features)
        self._check_values()


def support_rows(kernel: Any, X: np.ndarray | CSR, rows: np.ndarray) -> Any:
    """What a kernel model keeps of its training rows: for a precomputed kernel their
    numbers, else the rows."""
    if isinstance(kernel, Precomputed):
        return frozen(rows.astype(np.int64))
    support = take(X, rows)
    return support if isinstance(support, CSR) else frozen(support)


def decision(model: Any, X: Any) -> np.ndarray:
    """The `decision_function` of a kernel model, from k(X, support) @ coef.

    Raises ValueError or TypeError as `read_features`.
    """
    X = read_for(model, X, missing=takes_missing(model.kernel))
    n_threads = resolve_n_threads(None)
    values = Evaluator(model.kernel, X, model.support, n_threads)
    return np.asarray(model._decided(values.product(model._columns())))


def decisions(
    models: Sequence[Any], used: Sequence[np.ndarray], X: np.ndarray | CSR, X_test: Any
) -> Sequence[np.ndarray | None]:
    """What each model's `decision_function` gives for `X_test`, or None without it.

    The models are of one kernel, and their support rows the rows `used` of X, so that
    k(X_test, X) serves them all.
    """
    if X_test is None or isinstance(models[0].kernel, Precomputed):
        return [None] * len(models)
    columns = [model._columns() for model in models]
    ends = np.cumsum([c.shape[1] for c in columns])
    coef = np.zeros((len(X), ends[-1]))
    for rows, c, end in zip(used, columns, ends, strict=True):
        coef[rows, end - c.shape[1] : end] = c
    some = np.flatnonzero(coef.any(axis=1))
    values = Evaluator(models[0].kernel, X_test, take(X, some))
    sums = np.split(values.product(coef[some]), ends[:-1], axis=1)
    return [model._decided(part) for model, part in zip(models, sums, strict=True)]


def check_support(support: Any, kernel: Any, m: int, n_features: int) -> None:
    """Raise ValueError unless these are m support rows as `support_rows` makes them."""
    if isinstance(kernel, Precomputed):
        if (
            isinstance(support, CSR)
            or support.shape != (m,)
            or support.dtype.kind != "i"
            or not ((support >= 0) & (support < n_features)).all()
        ):
            raise ValueError("support must number training rows")
    elif support.shape != (m, n_features) or (
        not isinstance(support, CSR) and support.dtype != np.float64
    ):
        raise ValueError("support must be float64 rows of n_features")
