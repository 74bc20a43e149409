"""Kernel functions of two sets of rows: what fits ask of them, and their checks.

A kernel is a class with its formula and what solvers use of it. A new one needs nothing
else: a subclass of `KernelFunction` or, for a function of the distance, of `Radial`,
with `arguments` by which fits find it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import (
    as_real_array,
    check_count,
    check_nonnegative,
    check_positive,
    shown,
)
from .._input.features import read_features
from .._input.immutable import Immutable, read_only
from .._input.sparse import CSR, is_sparse
from .._input.types import Index, Kernel, Matrix
from .._numerics.rows import (
    cancellable_slices,
    inner_products,
    squared_norms,
    strips,
    take,
    z_scores,
)
from .._solvers import _kernel_values
from .._watch.cancellation import check_cancelled

_EXP, _POWER, _CHECK = 50, 2000, 50  # cost per value, in multiplications
KernelName = Literal[
    "rbf", "linear", "polynomial", "laplacian", "matern32", "matern52", "precomputed"
]
LARGEST = 1e100  # largest kernel value: solvers compute squares and products of values
NOT_CSR = (
    "CSR rows need a kernel by name that has no weights per feature, such as 'rbf': "
    "pass another kernel, or X.toarray()"
)


class KernelFunction(Immutable):
    """Base class of kernels k(a, b), with what fits ask of them.

    Attributes
    ----------
    arguments : tuple of str
        Names by which fits find the kernel.
    takes_gamma, per_feature : bool
        Whether it has a parameter gamma, and whether that has one entry per feature.
    takes_csr, takes_missing : bool
        Whether rows may be sparse, and whether they may have missing values (NaN).
    is_linear : bool
        Whether k is an inner product of scaled columns.
    of_one : bool
        Whether k(x, x) is 1 for all x.
    is_radial : bool
        Whether k is a function of |a - b|, computed from inner products of the rows.
    is_nearly_low_rank : bool
        Whether the matrix of many rows is positive semi-definite up to rounding and
        usually close to one of low rank.
    by_number : bool
        Whether X holds kernel values, so that rows are identified by their numbers.
    compares_units : bool
        Whether k depends on the units of the features without weights of its own.
    concurrent : bool
        Whether several threads may compute values.
    """

    __slots__ = ()

    arguments: ClassVar[tuple[str, ...]] = ()
    takes_gamma: ClassVar[bool] = False
    per_feature: ClassVar[bool] = False
    takes_csr: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    of_one: ClassVar[bool] = False
    is_radial: ClassVar[bool] = False
    is_nearly_low_rank: ClassVar[bool] = False
    by_number: ClassVar[bool] = False
    compares_units: ClassVar[bool] = False
    concurrent: ClassVar[bool] = True

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        """Return the kernel values of all pairs of rows, (len(A), len(B))."""
        raise NotImplementedError

    @classmethod
    def from_argument(cls, name: str, gamma: Any) -> KernelFunction:
        """Return the kernel of one of `arguments` and, if it takes one, this gamma."""
        return cls(gamma) if cls.takes_gamma else cls()  # type: ignore[call-arg]

    @classmethod
    def gamma_of_scale(cls, scale: float) -> float:
        """Return gamma for a scale in 1 / (units of the features)^2."""
        return scale

    @classmethod
    def sizes(cls, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the size of a column, by which d gamma is divided at a start, (d,)."""
        raise NotImplementedError

    @property
    def relevance(self) -> np.ndarray | None:
        """Weight of each feature, (d,); None for a kernel without."""
        return None

    def on_plain_rows(self, A: Any, B: Any) -> tuple[KernelFunction, Any, Any]:
        """Return a kernel without weights per feature, and rows with the same values.

        Rows are scaled once, rather than for every tile.
        """
        return self, A, B

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) of every row of X, (n,), or raise an error for bad rows."""
        X = _rows(X, self.takes_missing)
        if is_sparse(X) and not self.takes_csr:
            raise TypeError(NOT_CSR)
        out = np.empty(len(X))
        for rows in strips(len(X), 64):  # blocks of values: small ones waste little
            out[rows] = np.diagonal(values_of(self, X[rows], X[rows]))
        return out

    def tile(
        self, A: Any, B: Any, rows: Index, columns: Index, most: float
    ) -> np.ndarray:
        """Return k(A[rows], B[columns]), at most `most`, or raise ValueError."""
        return values_of(self, take(A, rows), take(B, columns), most)

    def of_products(
        self, P: np.ndarray, aa: np.ndarray, bb: np.ndarray, out: np.ndarray
    ) -> None:
        """Fill `out`, float32 or float64, with values of a radial kernel, (n, m).

        P holds the inner products of the rows, and aa and bb their squared norms. `out`
        may be P.
        """
        raise NotImplementedError

    def slopes(self, A: Any, B: Any, K: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the derivative of <G, k(A, B)> by ln gamma, (p,), where K = k(A, B).

        There is one entry per gamma, and none for a kernel that has none to be learned.
        """
        return np.zeros(0)

    def diagonal_slopes(self, X: Any, c: np.ndarray) -> np.ndarray:
        """Return the derivative of sum_i c_i k(x_i, x_i) by ln gamma, (p,)."""
        return np.zeros(self.n_gammas)

    @property
    def n_gammas(self) -> int:
        """Number of entries of gamma that can be learned."""
        return 0


def values_of(
    kernel: KernelFunction, A: Any, B: Any, most: float = LARGEST
) -> np.ndarray:
    """Return kernel(A, B) after checks of its shape, type and values.

    ValueError or TypeError is raised otherwise: a solver cannot continue with NaN.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # check_values refuses it
        K = np.asarray(kernel(A, B))
    if K.shape != (len(A), len(B)):
        raise ValueError(f"kernel returned shape {K.shape}, not {(len(A), len(B))}")
    if K.dtype.kind not in "fiu":
        raise TypeError(f"kernel must return real numbers, got dtype {K.dtype}")
    check_values(K, most)
    return K


@dataclass(frozen=True, slots=True)
class Custom(KernelFunction):
    """Kernel of a function of the user's, which is called from one thread at a time."""

    function: Kernel
    takes_csr = False
    concurrent = False

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        return self.function(A, B)

    def __repr__(self) -> str:
        return repr(self.function)


@dataclass(frozen=True, slots=True)
class Linear(KernelFunction):
    """k(a, b) = <a, b>.

    Examples
    --------
    >>> from ordinal.kernels import Linear
    >>> float(Linear()([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    11.0
    """

    arguments = ("linear",)
    is_linear = is_nearly_low_rank = compares_units = True

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        return _finite(lambda: inner_products(_rows(A), _rows(B)))

    def diagonal(self, X: Any) -> np.ndarray:
        return squared_norms(_rows(X))


@dataclass(frozen=True, slots=True)
class Polynomial(KernelFunction):
    """k(a, b) = (gamma <a, b> + coef0)^degree.

    Parameters
    ----------
    degree : int, default 3
    gamma : float > 0, default 1.0
    coef0 : float >= 0, default 1.0
        Constant term. With 0 the kernel has only products of exactly `degree` features;
        with a negative value it would not be positive semi-definite.

    Examples
    --------
    >>> from ordinal.kernels import Polynomial
    >>> float(Polynomial(2)([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])  # (11 + 1)^2
    144.0
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0
    arguments = ("polynomial",)
    takes_gamma = compares_units = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_count("degree", self.degree))
        object.__setattr__(self, "gamma", check_positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", check_nonnegative("coef0", self.coef0))

    @classmethod
    def from_argument(cls, name: str, gamma: Any) -> Polynomial:
        return cls(gamma=gamma)

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        def values() -> np.ndarray:
            out = inner_products(_rows(A), _rows(B))
            for rows in cancellable_slices(len(out), _POWER * out.shape[1]):
                out[rows] = (self.gamma * out[rows] + self.coef0) ** self.degree
            return out

        return _finite(values)

    def diagonal(self, X: Any) -> np.ndarray:
        norms = squared_norms(_rows(X))
        return _finite(lambda: (self.gamma * norms + self.coef0) ** self.degree)


class Radial(KernelFunction):
    """Base class of kernels of the distance |a - b| that are 1 at 0, with one gamma."""

    __slots__ = ()

    takes_gamma = of_one = is_radial = compares_units = True
    n_gammas = 1

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        A, B = _rows(A), _rows(B)
        aa, bb = squared_norms(A), squared_norms(B)  # finite, hence also the products
        out = inner_products(A, B)
        for rows in cancellable_slices(len(out), _EXP * out.shape[1]):
            self.of_products(out[rows], aa[rows], bb, out[rows])
        return out

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(len(_rows(X)))

    def slopes(self, A: Any, B: Any, K: np.ndarray, G: np.ndarray) -> np.ndarray:
        out = np.zeros(1)
        for rows in strips(len(K)):
            check_cancelled()
            out += np.vdot(self.by_log_gamma(A, B, rows, K[rows]), G[rows])
        return out

    def by_log_gamma(self, A: Any, B: Any, rows: slice, K: np.ndarray) -> np.ndarray:
        """Return the derivatives of the values K of some rows by ln gamma.

        This is the one for a power of the distance in an exponential, K ln K.
        """
        change = np.log(np.maximum(K, np.finfo(float).tiny))  # 0 for K = 0, not NaN
        change *= K
        return np.asarray(change)


@dataclass(frozen=True, slots=True)
class RBF(Radial):
    """k(a, b) = exp(-gamma |a - b|^2).

    Parameters
    ----------
    gamma : float > 0, default 1.0
        Inverse squared length scale, in 1 / (units of the features)^2. kappa of Chu and
        Keerthi is 2 gamma.

    Examples
    --------
    >>> from ordinal.kernels import RBF
    >>> round(float(RBF(0.5)([[0.0]], [[1.0]])[0, 0]), 6)
    0.606531
    """

    gamma: float = 1.0
    arguments = ("rbf",)
    is_nearly_low_rank = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_positive("gamma", self.gamma))

    def of_products(
        self, P: np.ndarray, aa: np.ndarray, bb: np.ndarray, out: np.ndarray
    ) -> None:
        _kernel_values.rbf(P, aa, bb, self.gamma, out)


@dataclass(frozen=True, slots=True)
class Laplacian(Radial):
    """k(a, b) = exp(-gamma |a - b|), of the Euclidean distance.

    It is the Matern kernel of smoothness 1/2: scores are continuous, without slopes.

    Parameters
    ----------
    gamma : float > 0, default 1.0
        Inverse length scale, in 1 / (units of the features).

    Examples
    --------
    >>> from ordinal.kernels import Laplacian
    >>> round(float(Laplacian(0.5)([[0.0, 0.0]], [[0.6, 0.8]])[0, 0]), 6)
    0.606531
    """

    gamma: float = 1.0
    arguments = ("laplacian",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_positive("gamma", self.gamma))

    @classmethod
    def gamma_of_scale(cls, scale: float) -> float:
        return math.sqrt(scale)

    def of_products(
        self, P: np.ndarray, aa: np.ndarray, bb: np.ndarray, out: np.ndarray
    ) -> None:
        s = _distances(P, aa, bb)
        s *= -self.gamma
        np.exp(s, out=out, casting="same_kind")


@dataclass(frozen=True, slots=True)
class Matern(Radial):
    """k(a, b) = (1 + s) exp(-s) or (1 + s + s^2 / 3) exp(-s) for nu = 3/2 or 5/2.

    The scaled distance is s = sqrt(4 nu gamma) |a - b|.

    Scores have one continuous derivative for nu = 3/2, and two for nu = 5/2. gamma has
    the unit and about the effect of that of `RBF`, which is the limit for large nu.

    C. E. Rasmussen, C. K. I. Williams, "Gaussian processes for machine learning", MIT
    Press, 2006, (4.17) with the length scale 1 / sqrt(2 gamma).

    Parameters
    ----------
    nu : {1.5, 2.5}, default 1.5
    gamma : float > 0, default 1.0
        Half of the inverse squared length scale, in 1 / (units of the features)^2.

    Examples
    --------
    >>> from ordinal.kernels import Matern
    >>> round(float(Matern(1.5, 1 / 6)([[0.0]], [[1.0]])[0, 0]), 6)  # 2 / e
    0.735759
    """

    nu: float = 1.5
    gamma: float = 1.0
    arguments = ("matern32", "matern52")

    def __post_init__(self) -> None:
        if self.nu not in (1.5, 2.5):
            raise ValueError(f"nu must be 1.5 or 2.5, got {shown(self.nu)}")
        object.__setattr__(self, "nu", float(self.nu))
        object.__setattr__(self, "gamma", check_positive("gamma", self.gamma))

    @classmethod
    def from_argument(cls, name: str, gamma: Any) -> Matern:
        return cls(1.5 if name == "matern32" else 2.5, gamma)

    def of_products(
        self, P: np.ndarray, aa: np.ndarray, bb: np.ndarray, out: np.ndarray
    ) -> None:
        s = self._scaled(P, aa, bb)
        factor = 1 + s if self.nu == 1.5 else 1 + s * (1 + s / 3)
        np.negative(s, out=s)
        np.multiply(factor, np.exp(s, out=s), out=out, casting="same_kind")

    def by_log_gamma(self, A: Any, B: Any, rows: slice, K: np.ndarray) -> np.ndarray:
        # dk/ds is -s exp(-s) and -s (1 + s) exp(-s) / 3, and ds / d ln gamma is s / 2
        A = take(A, rows)
        s = self._scaled(inner_products(A, B), squared_norms(A), squared_norms(B))
        slope = s * s / 2 if self.nu == 1.5 else s * s * (1 + s) / 6
        return np.asarray(-slope * np.exp(-s))

    def _scaled(self, P: np.ndarray, aa: np.ndarray, bb: np.ndarray) -> np.ndarray:
        """Return s of rows, (n, m)."""
        s = _distances(P, aa, bb)
        s *= math.sqrt(4 * self.nu * self.gamma)
        return s


_NEAR = 16 * np.finfo(np.float64).eps  # rounding of a squared distance, beside squares


def _distances(P: np.ndarray, aa: np.ndarray, bb: np.ndarray) -> np.ndarray:
    """Return |a - b| from inner products and squared norms, a new array (n, m).

    Rounding would make equal rows differ by 1e-8 of their norms, so that distances of
    this size are 0.
    """
    squares = aa[:, None] + bb
    near = _NEAR * squares
    squares -= 2 * P
    squares[squares <= near] = 0.0
    return np.asarray(np.sqrt(squares, out=squares))


class PerFeature(KernelFunction):
    """Base class of kernels with one gamma per feature, for dense rows."""

    __slots__ = ()

    gamma: np.ndarray
    takes_gamma = per_feature = True
    takes_csr = False

    @property
    def relevance(self) -> np.ndarray:
        return self.gamma

    @property
    def n_gammas(self) -> int:
        return self.gamma.size

    def on_plain_rows(self, A: Any, B: Any) -> tuple[KernelFunction, Any, Any]:
        root = np.sqrt(self.gamma)
        of_A = times_columns(A, root)
        return self._plain(), of_A, of_A if B is A else times_columns(B, root)

    def _plain(self) -> KernelFunction:
        """Return the kernel of rows whose columns are multiplied by sqrt(gamma)."""
        raise NotImplementedError

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        kernel, A, B = self.on_plain_rows(A, B)
        return kernel(A, B)

    def diagonal(self, X: Any) -> np.ndarray:
        kernel, X, _ = self.on_plain_rows(X, X)
        return kernel.diagonal(X)


@dataclass(frozen=True, slots=True, eq=False)
class ARD(PerFeature):
    """k(a, b) = exp(-sum_j gamma_j (a_j - b_j)^2): RBF with one relevance per feature.

    Parameters
    ----------
    gamma : (d,) array-like > 0
        Relevances of the features, half of kappa in (19) of Chu and Ghahramani. Rows
        must be dense.

    Examples
    --------
    >>> from ordinal.kernels import ARD
    >>> round(float(ARD([0.5, 9.0])([[0.0, 1.0]], [[1.0, 1.0]])[0, 0]), 6)
    0.606531
    """

    gamma: np.ndarray
    arguments = ("ard",)
    of_one = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _relevances(self.gamma))

    @classmethod
    def sizes(cls, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return 2 * variance

    def _plain(self) -> KernelFunction:
        return RBF(1.0)

    def slopes(self, A: Any, B: Any, K: np.ndarray, G: np.ndarray) -> np.ndarray:
        out = np.zeros(self.gamma.size)
        centre = A.mean(axis=0)  # far from 0, squares would cancel
        A, B = A - centre, B - centre
        for rows in strips(len(K)):
            check_cancelled()
            part, N = A[rows], G[rows] * K[rows]
            squares = N.sum(axis=1) @ part**2 + N.sum(axis=0) @ B**2
            by_gamma = 2 * np.einsum("ij,ij->j", part, N @ B) - squares
            out += self.gamma * by_gamma
        return out


@dataclass(frozen=True, slots=True, eq=False)
class LinearARD(PerFeature):
    """k(a, b) = sum_j gamma_j a_j b_j.

    Parameters
    ----------
    gamma : (d,) array-like > 0
        Relevances of the features, kappa in the gene experiment of Chu and Ghahramani.
        Rows must be dense.

    Examples
    --------
    >>> from ordinal.kernels import LinearARD
    >>> round(float(LinearARD([0.5, 2.0])([[1.0, 2.0]], [[3.0, 4.0]])[0, 0]), 6)
    17.5
    """

    gamma: np.ndarray
    arguments = ("ard_linear",)
    is_linear = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _relevances(self.gamma))

    @classmethod
    def sizes(cls, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return np.asarray(variance + mean**2)

    def _plain(self) -> KernelFunction:
        return Linear()

    def slopes(self, A: Any, B: Any, K: np.ndarray, G: np.ndarray) -> np.ndarray:
        out = np.zeros(self.gamma.size)
        for rows in strips(len(K)):
            check_cancelled()
            out += self.gamma * np.einsum("ij,ij->j", take(A, rows), G[rows] @ B)
        return out

    def diagonal_slopes(self, X: Any, c: np.ndarray) -> np.ndarray:
        return np.asarray(self.gamma * (c @ X**2))


@dataclass(frozen=True, slots=True)
class Pearson(KernelFunction):
    """k(a, b) = <z(a), z(b)> / d, the correlation of two rows of d columns.

    z(a) is a minus its mean, divided by its population standard deviation; both are
    computed from the known entries. Missing entries (NaN) of z(a) are 0, as if they
    were equal to the mean. z(a) is 0 if a has fewer than 2 known entries or these are
    constant, with a standard deviation of at most 4 ulp of their mean.

    Without missing entries this is Pearson's correlation; with them k(a, a) is the
    share of known entries instead of 1. W. Chu, Z. Ghahramani, "Gaussian processes for
    ordinal regression", JMLR 6:1019-1041, 2005, (20), with "mean imputation"; there
    without the division by d.

    Examples
    --------
    >>> from ordinal.kernels import Pearson
    >>> nan = float("nan")
    >>> Pearson()([[1, 2, 3, 4]], [[9, 7, 5, 3], [3, 1, nan, nan]]).round(4)
    array([[-1.    , -0.2236]])
    """

    takes_csr = False
    takes_missing = True

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        return inner_products(z_scores(_rows(A, True)), z_scores(_rows(B, True)))

    def on_plain_rows(self, A: Any, B: Any) -> tuple[KernelFunction, Any, Any]:
        of_A = z_scores(A)  # which refuses CSR rows
        return Linear(), of_A, of_A if B is A else z_scores(B)

    def diagonal(self, X: Any) -> np.ndarray:
        return squared_norms(z_scores(_rows(X, True)))


@dataclass(frozen=True, slots=True)
class Precomputed(KernelFunction):
    """Precomputed values: X is k(rows, training rows), in a fit a symmetric matrix."""

    arguments = ("precomputed",)
    by_number = True

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        raise TypeError(
            "a Precomputed kernel has no formula for new rows: pass kernel values "
            "instead"
        )

    def diagonal(self, X: Any) -> np.ndarray:
        K: Any = _rows(X)
        _check_square(K)
        return np.asarray(np.diagonal(K).copy())

    def tile(
        self, A: Any, B: Any, rows: Index, columns: Index, most: float
    ) -> np.ndarray:
        K = np.asarray(take(A, rows)[:, B[columns]])
        check_values(K, most)
        return K


def _relevances(gamma: ArrayLike) -> np.ndarray:
    """Return a read-only copy of gamma, (d,) > 0, or raise ValueError."""
    values = as_real_array(gamma, "gamma")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"gamma must be a vector, got shape {values.shape}")
    bad = np.flatnonzero(~((values > 0) & (values < np.inf)))
    if bad.size:
        raise ValueError(
            f"gamma must be positive and finite, got {values[bad[0]]} for feature "
            f"{bad[0]}"
        )
    return read_only(values)


def _rows(A: ArrayLike | CSR, missing: bool = False) -> Matrix:
    """Return the checked rows that a caller passed to a kernel."""
    if isinstance(A, CSR):
        return A
    # A model may have no support rows, and a prediction no rows.
    return read_features(A, missing=missing, empty=True)


def _finite(values: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the computed values, or raise ValueError if they overflow."""
    # Overflow is refused below, and underflow is right: far rows have the value 0.
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        K = values()
    for rows in cancellable_slices(len(K), _CHECK * K[:1].size):
        if not np.isfinite(K[rows]).all():
            raise ValueError("kernel values must be finite: scale the features of X")
    return K


def times_columns(A: ArrayLike | CSR, factor: np.ndarray) -> np.ndarray:
    """Return A with its columns multiplied by `factor`, (d,).

    Raises ValueError for another number of columns, which broadcasting may hide, and
    TypeError for CSR rows.
    """
    X: Any = read_features(A, empty=True)
    if is_sparse(X):
        raise TypeError(
            "the ARD kernels need dense rows, got sparse ones: make them dense, or "
            "use another kernel"
        )
    if X.shape[1] != factor.size:
        raise ValueError(
            f"rows of shape {X.shape} do not have the {factor.size} features of gamma"
        )
    return _finite(lambda: np.asarray(X * factor))


NAMED: dict[str, type[KernelFunction]] = {
    cls.__name__: cls
    for cls in (
        RBF,
        Linear,
        Polynomial,
        Laplacian,
        Matern,
        ARD,
        LinearARD,
        Pearson,
        Precomputed,
    )
}
_BY_ARGUMENT = {name: cls for cls in NAMED.values() for name in cls.arguments}


def kernel_class(kernel: object) -> type[KernelFunction]:
    """Return the class of the kernel that an argument `kernel` states.

    The argument is a name, a kernel or a function of the user's; nothing is known of
    other values, which are errors later.
    """
    if isinstance(kernel, str):
        return _BY_ARGUMENT.get(kernel, Custom)
    return type(kernel) if isinstance(kernel, KernelFunction) else Custom


def named_with_gamma(kernel: object) -> TypeGuard[str]:
    """Return whether `kernel`, an argument of fits, is a name that takes a gamma."""
    return isinstance(kernel, str) and kernel_class(kernel).takes_gamma


def as_kernel(kernel: Kernel) -> KernelFunction:
    """Return the kernel of a function of the user's, or the given one."""
    return kernel if isinstance(kernel, KernelFunction) else Custom(kernel)


def kernel_names(per_feature: bool = False) -> tuple[str, ...]:
    """Return the names of kernels, of those with weights per feature if asked."""
    return tuple(k for k, cls in _BY_ARGUMENT.items() if cls.per_feature <= per_feature)


def on_basis(basis: object, kernel: object) -> bool:
    """Return whether a fit uses a basis, given its arguments before any check."""
    return basis is not None or kernel_class(kernel).is_linear


def check_values(K: np.ndarray, most: float = LARGEST) -> None:
    """Raise ValueError unless all kernel values are finite and at most `most`."""
    if K.size == 0:
        return
    worst = max(float(K.max()), -float(K.min()))
    if not worst <= most:
        raise ValueError(
            f"kernel values must be finite and at most {most:.3g}, got {worst:.3g}: "
            "scale the features of X"
        )


def _check_square(K: Any) -> None:
    """Raise ValueError or TypeError unless K is dense and square."""
    if is_sparse(K):
        raise TypeError("X must be a dense matrix with kernel='precomputed'")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X must be square with kernel='precomputed', got shape {K.shape}"
        )


def check_precomputed(K: Any) -> None:
    """Raise ValueError or TypeError unless K is dense, square and symmetric."""
    _check_square(K)
    scale = float(max(np.abs(K[rows]).max() for rows in strips(len(K))))
    if scale > LARGEST:
        raise ValueError(
            f"X must be at most {LARGEST:g} with kernel='precomputed', got {scale:.3g}"
        )
    for rows in strips(len(K)):
        asymmetry = np.abs(K[rows] - K[:, rows].T).max(axis=1)
        if asymmetry.max() > 1e-8 * scale:
            i = rows.start + int(asymmetry.argmax())
            raise ValueError(
                "X must be symmetric with kernel='precomputed'; row and column "
                f"{i} differ by {asymmetry.max():.3g}"
            )
