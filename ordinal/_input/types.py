"""Names for the types of arguments, for signatures.

Arrays and data frames are `ArrayLike` to a type checker: those of pandas and of polars
have `__array__`, and neither library is imported here.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike as ArrayLike

from .sparse import CSR


class SparseLike(Protocol):
    """Sparse matrix of scipy, in any format."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def tocsr(self) -> Any: ...


class Blocks(Protocol):
    """Source of rows, of which each call of `blocks` yields all, block by block."""

    def blocks(self) -> Iterable[Any]: ...


class Executor(Protocol):
    """Executor of tasks, such as `concurrent.futures.Executor`."""

    def submit(self, call: Any, /, *arguments: Any) -> Future[Any]: ...


Matrix: TypeAlias = np.ndarray | CSR  # a validated matrix, for kernels and solvers
MatrixLike: TypeAlias = ArrayLike | SparseLike | CSR  # a matrix from the caller
# Rows for a fitted model, which may be records; for mypy, a list of anything is one.
RowsLike: TypeAlias = MatrixLike | Mapping[str, Any] | Sequence[Any]
Index: TypeAlias = slice | np.ndarray  # selects rows
Labels: TypeAlias = ArrayLike | Sequence[Any]


class Kernel(Protocol):
    """Kernel function k(A, B), whose values for all pairs of rows are a matrix."""

    def __call__(self, A: Any, B: Any, /) -> np.ndarray: ...


Gamma: TypeAlias = Literal["scale", "auto"] | float
Basis: TypeAlias = int | float | Sequence[int] | np.ndarray
AnyBasis: TypeAlias = Basis | Literal["auto"] | tuple[str, int] | SparseLike | CSR
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"]
Rng: TypeAlias = "int | np.random.Generator"  # numpy.random is slow to import
