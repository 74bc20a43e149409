"""Kernel functions of two sets of rows, their abilities, and checks of their values."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import (
    as_real_array,
    check_count,
    check_nonnegative,
    check_positive,
)
from .._input.features import read_features
from .._input.sparse import CSR, Immutable, read_only
from .._input.types import Matrix
from .._numerics.rows import (
    cancellable_slices,
    inner_products,
    squared_norms,
    strips,
    z_scores,
)
from .._solvers import _kernel_values

_EXP, _POWER, _CHECK = 50, 2000, 50  # cost per value, in multiplications


@dataclass(frozen=True, slots=True)
class Linear(Immutable):
    """k(a, b) = <a, b>.

    Examples
    --------
    >>> from ordinal.kernels import Linear
    >>> float(Linear()([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    11.0
    """

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        return _finite(lambda: inner_products(_rows(A), _rows(B)))


@dataclass(frozen=True, slots=True)
class Polynomial(Immutable):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_count("degree", self.degree))
        object.__setattr__(self, "gamma", check_positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", check_nonnegative("coef0", self.coef0))

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        def values() -> np.ndarray:
            out = inner_products(_rows(A), _rows(B))
            for rows in cancellable_slices(len(out), _POWER * out.shape[1]):
                out[rows] = (self.gamma * out[rows] + self.coef0) ** self.degree
            return out

        return _finite(values)


@dataclass(frozen=True, slots=True)
class RBF(Immutable):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_positive("gamma", self.gamma))

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        A, B = _rows(A), _rows(B)
        aa, bb = squared_norms(A), squared_norms(B)  # finite, hence also the products
        out = inner_products(A, B)
        for rows in cancellable_slices(len(out), _EXP * out.shape[1]):
            _kernel_values.rbf(out[rows], aa[rows], bb, self.gamma, out[rows])
        return out


@dataclass(frozen=True, slots=True, eq=False)
class ARD(Immutable):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _relevances(self.gamma))

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        root = np.sqrt(self.gamma)
        return RBF(1.0)(times_columns(A, root), times_columns(B, root))


@dataclass(frozen=True, slots=True, eq=False)
class LinearARD(Immutable):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _relevances(self.gamma))

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        root = np.sqrt(self.gamma)
        A, B = times_columns(A, root), times_columns(B, root)
        return _finite(lambda: inner_products(A, B))


@dataclass(frozen=True, slots=True)
class Pearson(Immutable):
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

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        return inner_products(z_scores(_rows(A, True)), z_scores(_rows(B, True)))


@dataclass(frozen=True, slots=True)
class Precomputed(Immutable):
    """Precomputed values: X is k(rows, training rows), in a fit a symmetric matrix."""

    def __call__(self, A: ArrayLike | CSR, B: ArrayLike | CSR) -> np.ndarray:
        raise TypeError(
            "a Precomputed kernel has no formula for new rows: pass kernel values "
            "instead"
        )


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
    A = read_features(A, empty=True)
    if isinstance(A, CSR):
        raise TypeError(
            "the ARD kernels need dense rows, got sparse ones: make them dense, or "
            "use another kernel"
        )
    if A.shape[1] != factor.size:
        raise ValueError(
            f"rows of shape {A.shape} do not have the {factor.size} features of gamma"
        )
    return _finite(lambda: A * factor)


LARGEST = 1e100  # largest kernel value: solvers compute squares and products of values
NAMED: dict[str, type] = {
    cls.__name__: cls
    for cls in (Linear, Polynomial, RBF, ARD, LinearARD, Pearson, Precomputed)
}


def takes_missing(kernel: object) -> bool:
    """Return whether a kernel accepts rows with missing values (NaN)."""
    return isinstance(kernel, Pearson)


def is_precomputed(kernel: object) -> bool:
    """Return whether the argument `kernel` says that X holds kernel values."""
    by_name = isinstance(kernel, str) and kernel == "precomputed"
    return by_name or isinstance(kernel, Precomputed)


def is_linear(kernel: object) -> bool:
    """Return whether k(x, z) is an inner product of scaled columns of X."""
    return isinstance(kernel, Linear | LinearARD)


def on_basis(basis: object, kernel: object) -> bool:
    """Return whether a fit uses a basis, given its arguments before any check."""
    linear = kernel == "linear" if isinstance(kernel, str) else is_linear(kernel)
    return basis is not None or linear


def compares_units(kernel: object) -> bool:
    """Return whether the kernel depends on the units of the features.

    Kernels with a weight per feature have their own scales, the Pearson kernel compares
    the rows as profiles, and nothing is known of a callable of the user's.
    """
    if isinstance(kernel, str):
        return kernel in ("rbf", "linear", "polynomial")
    return isinstance(kernel, RBF | Linear | Polynomial)


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


def check_precomputed(K: Matrix) -> None:
    """Raise ValueError or TypeError unless K is dense, square and symmetric."""
    if isinstance(K, CSR):
        raise TypeError("X must be a dense matrix with kernel='precomputed'")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X must be square with kernel='precomputed', got shape {K.shape}"
        )
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
