"""Sparse matrices in CSR form, so that scipy stays optional."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .checks import shown
from .immutable import Immutable


def column_range(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and largest values of the columns of dense or sparse X, (d,).

    NaN is missing; a dense X has rows.
    """
    if is_sparse(X):
        low, high = X.column_range()
        return low, high
    return np.fmin.reduce(X), np.fmax.reduce(X)


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix: it has the parts of a CSR, or `tocsr`."""
    if isinstance(X, np.ndarray):  # the usual case, at once
        return False
    return hasattr(X, "tocsr") or _has_parts(X)


def _has_parts(X: Any) -> bool:
    """Return whether X has the attributes of a CSR matrix."""
    return all(hasattr(X, part) for part in ("indptr", "indices", "data", "shape"))


@dataclass(frozen=True, slots=True, eq=False)
class CSR(Immutable):
    """Compressed sparse rows in canonical form: row i is the dense row with
    `x[indices[indptr[i]:indptr[i + 1]]] = data[indptr[i]:indptr[i + 1]]`, else 0.

    Build one with `from_any`, which validates; the constructor trusts its arguments.
    The arrays are read-only views, so a matrix made by `from_any` may share memory
    with its source. `rows` always copies, and models keep matrices made by it.

    Functions that take dense and sparse rows alike ask `is_sparse` and call methods of
    this class; `_numerics.rows` has those that are needed in many places.

    Attributes
    ----------
    data : (nnz,) float64, finite
    indices : (nnz,) int32
        Columns, strictly increasing within a row: no column is held twice.
    indptr : (n + 1,) int64
    shape : (n, d)
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("data", "indices", "indptr"):
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def __reduce__(self) -> tuple[Any, ...]:  # so that pickles stay read-only
        return CSR, (self.data, self.indices, self.indptr, self.shape)

    @classmethod
    def from_any(cls, X: Any, name: str = "X") -> CSR:
        """Validate a matrix with the attributes of a CSR, or with `tocsr`."""
        if getattr(X, "format", "csr") != "csr" or not _has_parts(X):
            X = X.tocsr()
        if not _has_parts(X):
            raise TypeError(f"{name}.tocsr() must give a CSR matrix, got {shown(X)}")
        if len(X.shape) != 2:
            raise ValueError(f"{name} must be 2-dimensional, got shape {X.shape}")
        n, d = (int(size) for size in X.shape)
        if n < 0 or not 0 <= d <= np.iinfo(np.int32).max:
            raise ValueError(f"{name} must have less than 2^31 columns, got {d}")
        indptr = _vector(X.indptr, f"{name}.indptr", "iu")
        indices = _vector(X.indices, f"{name}.indices", "iu")
        data = _vector(X.data, f"{name}.data", "biuf")

        if indptr.size != n + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
            raise ValueError(
                f"{name}.indptr must have {n + 1} entries that begin at 0 and do not "
                "decrease"
            )
        nnz = int(indptr[-1])
        if min(indices.size, data.size) < nnz:
            raise ValueError(
                f"{name}.indptr must agree with the stored entries: it ends at "
                f"{nnz}, and {name} has {min(indices.size, data.size)}"
            )
        indptr = np.require(indptr, np.int64, ["C", "A"])
        # Matrices of scipy may have unused room behind the entries of the last row.
        indices, data = indices[:nnz], data[:nnz]
        bad = np.flatnonzero((indices < 0) | (indices >= d))
        if bad.size:
            row = np.searchsorted(indptr, bad[0], side="right") - 1
            raise ValueError(
                f"{name} has {d} columns, but row {row} holds column {indices[bad[0]]}"
            )
        indices = np.require(indices, np.int32, ["C", "A"])
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            data = np.require(data, np.float64, ["C", "A"])
            data, indices, indptr = _canonical(data, indices, indptr, d)
        bad = np.flatnonzero(~np.isfinite(data))
        if bad.size:
            row = np.searchsorted(indptr, bad[0], side="right") - 1
            raise ValueError(f"{name} must be finite; first bad row is {row}")
        return cls(data, indices, indptr, (n, d))

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, index: Any) -> CSR:
        """Copy the rows that a slice, an integer array or a boolean mask selects."""
        every = np.arange(len(self))
        index = np.atleast_1d(every[index])
        size = np.diff(self.indptr)[index]
        indptr = _indptr(size)
        take = np.arange(indptr[-1]) + np.repeat(self.indptr[index] - indptr[:-1], size)
        shape = (index.size, self.shape[1])
        return CSR(self.data[take], self.indices[take], indptr, shape)

    def copy(self) -> CSR:
        """Copy the matrix, so that it shares no memory with another one."""
        return self.rows(slice(None))

    @classmethod
    def stacked(cls, parts: Sequence[CSR]) -> CSR:
        """Stack matrices of the same columns, one below the other."""
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        data = np.concatenate([part.data for part in parts])
        indices = np.concatenate([part.indices for part in parts])
        return cls(data, indices, _indptr(sizes), (sizes.size, parts[0].shape[1]))

    def dense(self, start: int | None = None, stop: int | None = None) -> np.ndarray:
        """Return rows start..stop-1 as a dense array, clipped as in slices."""
        start, stop, _ = slice(start, stop).indices(len(self))
        out = np.zeros((max(stop - start, 0), self.shape[1]))
        if out.size:
            held = slice(self.indptr[start], self.indptr[stop])
            row = _row_of_entry(self.indptr[start : stop + 1])
            out[row, self.indices[held]] = self.data[held]
        return out

    def sq_norms(self) -> np.ndarray:
        """Return |x_i|^2 of every row, (n,)."""
        with np.errstate(under="ignore"):
            squares = self.data**2
        sums = np.bincount(_row_of_entry(self.indptr), squares, minlength=len(self))
        return sums.astype(np.float64)  # without entries numpy counts in integers

    def rmatvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product X'v, (d,)."""
        # bincount adds in the order of the entries: the sum does not depend on threads.
        entries = self.data * v[_row_of_entry(self.indptr)]
        sums = np.bincount(self.indices, entries, minlength=self.shape[1])
        return sums.astype(np.float64)  # without entries numpy counts in integers

    def block(self, rows: slice, columns: np.ndarray) -> np.ndarray:
        """Return some columns of some rows, as a dense array."""
        part = self.rows(rows)
        made = np.zeros((len(part), columns.size))
        row = _row_of_entry(part.indptr)
        # A table of places finds the column of each entry in O(1), without sorting.
        places = np.full(self.shape[1], -1)
        places[columns] = np.arange(columns.size)
        place = places[part.indices]
        wanted = place >= 0
        made[row[wanted], place[wanted]] = part.data[wanted]
        return made

    def column_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and largest values of every column; 0 without rows."""
        held = np.bincount(self.indices, minlength=self.shape[1])
        full = (held == len(self)) & (held > 0)  # no entry is absent, which would be 0
        low, high = np.where(full, np.inf, 0.0), np.where(full, -np.inf, 0.0)
        np.minimum.at(low, self.indices, self.data)
        np.maximum.at(high, self.indices, self.data)
        return low, high

    def divided(self, unit: np.ndarray) -> CSR:
        """Return the matrix with its columns divided by positive numbers, (d,)."""
        return replace(self, data=self.data / unit[self.indices])

    def squares(self, share: np.ndarray) -> np.ndarray:
        """Return the sum of the squares of each column, by shares of the rows, (d,)."""
        part = share[_row_of_entry(self.indptr)] * self.data**2
        return np.bincount(self.indices, part, minlength=self.shape[1])

    def of_columns(self, held: np.ndarray) -> CSR:
        """Return the matrix of the columns `held`, which contain all entries.

        The numbers of the columns increase.
        """
        indices = np.searchsorted(held, self.indices).astype(np.int32)
        return CSR(self.data, indices, self.indptr, (len(self), max(1, held.size)))

    def mean_and_var(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted mean and variance of every column, (d,) each; O(nnz + d).

        The sum over absent entries is that of their common value, (0 - mean)^2.
        """
        d, total = self.shape[1], weight.sum()
        w = weight[_row_of_entry(self.indptr)]
        mean = np.bincount(self.indices, w * self.data, minlength=d) / total
        held = w * (self.data - mean[self.indices]) ** 2
        # Rounding may leave a tiny negative weight where no entry is absent.
        absent = np.maximum(total - np.bincount(self.indices, w, minlength=d), 0)
        var = np.bincount(self.indices, held, minlength=d) + absent * mean**2
        return mean, var / total


def _vector(values: ArrayLike, name: str, kinds: str) -> np.ndarray:
    """Return a 1-D array whose dtype is of one of the kinds."""
    a = np.asarray(values)
    if a.ndim != 1:
        raise ValueError(f"{name} must be 1-dimensional, got shape {a.shape}")
    if a.dtype.kind not in kinds:
        kind = "real numbers" if "f" in kinds else "integers"
        raise TypeError(f"{name} must hold {kind}, got dtype {a.dtype}")
    return a


def _indptr(sizes: np.ndarray) -> np.ndarray:
    """Return the offsets of rows from their numbers of entries."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64, copy=False)


def _row_of_entry(indptr: np.ndarray) -> np.ndarray:
    """Return the row of each entry, (nnz,)."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def _canonical(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sort each row by column and add up the entries that share one."""
    place = _row_of_entry(indptr) * n_columns + indices
    if (np.diff(place) > 0).all():
        return data, indices, indptr
    place, entry = np.unique(place, return_inverse=True)
    row, column = np.divmod(place, n_columns)
    sizes = np.bincount(row, minlength=indptr.size - 1)
    return np.bincount(entry, data), column.astype(np.int32), _indptr(sizes)


class NamedCSR(CSR):
    """Matrix whose columns are known to be those of a model, in its order."""

    __slots__ = ()
