"""Kernels: small frozen callables, k(A, B) -> (len(A), len(B)) float64.

Any callable of that form that is symmetric and positive semi-definite will do in their
place. `Linear`, `Polynomial` and `RBF` also take CSR rows, `Pearson` takes NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ._input.checks import check_choice, check_count, check_nonnegative, check_positive
from ._input.problem import Problem
from ._input.sparse import CSR, frozen
from ._numerics.threads import Pool
from ._solvers import _kernel_values

_TILE = 512  # rows and columns of a tile: two of them in double fit in the L2 cache


@dataclass(frozen=True, slots=True)
class Linear:
    """k(a, b) = <a, b>.

    Examples
    --------
    >>> from ordinal.kernels import Linear
    >>> float(Linear()([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    11.0
    """

    def __call__(self, A, B) -> np.ndarray:
        return inner_products(A, B)


@dataclass(frozen=True, slots=True)
class Polynomial:
    """k(a, b) = (gamma <a, b> + coef0)^degree.

    Parameters
    ----------
    degree : int, default 3
    gamma : float > 0, default 1.0
    coef0 : float >= 0, default 1.0
        At 0 only the products of exactly `degree` features remain; below 0 the kernel
        would not be positive semi-definite.
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        check_count(degree=self.degree)
        check_positive(gamma=self.gamma)
        check_nonnegative(coef0=self.coef0)

    def __call__(self, A, B) -> np.ndarray:
        return (self.gamma * inner_products(A, B) + self.coef0) ** self.degree


@dataclass(frozen=True, slots=True)
class RBF:
    """k(a, b) = exp(-gamma |a - b|^2).

    Parameters
    ----------
    gamma : float > 0, default 1.0
        In 1 / (units of the features)^2. Chu and Keerthi's kappa is 2 gamma.

    Examples
    --------
    >>> from ordinal.kernels import RBF
    >>> round(float(RBF(0.5)([[0.0]], [[1.0]])[0, 0]), 6)
    0.606531
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        check_positive(gamma=self.gamma)

    def __call__(self, A, B) -> np.ndarray:
        out = inner_products(A, B)
        _kernel_values.rbf(
            out, squared_norms(A), squared_norms(B), float(self.gamma), out
        )
        return out


@dataclass(frozen=True, slots=True, eq=False)
class ARD:
    """k(a, b) = exp(-sum_j gamma_j (a_j - b_j)^2): RBF with a relevance a feature.

    Parameters
    ----------
    gamma : (d,) array-like > 0
        Half of Chu and Ghahramani's kappa, (19). Dense rows only.

    Examples
    --------
    >>> from ordinal.kernels import ARD
    >>> round(float(ARD([0.5, 9.0])([[0.0, 1.0]], [[1.0, 1.0]])[0, 0]), 6)
    0.606531
    """

    gamma: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _relevances(self.gamma))

    def __call__(self, A, B) -> np.ndarray:
        root = np.sqrt(self.gamma)
        return RBF(1.0)(_times_columns(A, root), _times_columns(B, root))


@dataclass(frozen=True, slots=True, eq=False)
class LinearARD:
    """k(a, b) = sum_j gamma_j a_j b_j.

    Parameters
    ----------
    gamma : (d,) array-like > 0
        Chu and Ghahramani's kappa of their gene experiment. Dense rows only.

    Examples
    --------
    >>> from ordinal.kernels import LinearARD
    >>> round(float(LinearARD([0.5, 2.0])([[1.0, 2.0]], [[3.0, 4.0]])[0, 0]), 6)
    17.5
    """

    gamma: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _relevances(self.gamma))

    def __call__(self, A, B) -> np.ndarray:
        root = np.sqrt(self.gamma)
        return inner_products(_times_columns(A, root), _times_columns(B, root))


@dataclass(frozen=True, slots=True)
class Pearson:
    """k(a, b) = <z(a), z(b)> / d, the correlation of two rows of d columns.

    z(a) is a less its mean, over its (population) deviation, of the entries that are
    known; where a is NaN, not known, z(a) is 0: it counts as the mean. A row is 0 as
    a whole if it has fewer than 2 known entries or these are constant: their deviation
    is at most 4 ulp of their mean.

    Where all is known this is Pearson's correlation; else k(a, a), which would be 1, is
    the share of a that is known. W. Chu, Z. Ghahramani, "Gaussian processes for ordinal
    regression", JMLR 6:1019-1041, 2005, (20), with "mean imputation"; there without the
    division by d.

    Examples
    --------
    >>> from ordinal.kernels import Pearson
    >>> nan = float("nan")
    >>> Pearson()([[1, 2, 3, 4]], [[9, 7, 5, 3], [3, 1, nan, nan]]).round(4)
    array([[-1.    , -0.2236]])
    """

    def __call__(self, A, B) -> np.ndarray:
        return inner_products(z_scores(A), z_scores(B))


@dataclass(frozen=True, slots=True)
class Precomputed:
    """The values themselves: X is k(rows, training rows), at fit a symmetric matrix."""

    def __call__(self, A, B) -> np.ndarray:
        raise TypeError("a Precomputed kernel holds no rule for new rows; pass values")


NAMED = {
    cls.__name__: cls
    for cls in (Linear, Polynomial, RBF, ARD, LinearARD, Pearson, Precomputed)
}


def _relevances(gamma) -> np.ndarray:
    values = np.array(gamma, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"gamma must be a vector, got shape {values.shape}")
    bad = np.flatnonzero(~((values > 0) & (values < np.inf)))
    if bad.size:
        raise ValueError(
            f"gamma must be positive and finite, got {values[bad[0]]} for feature "
            f"{bad[0]}"
        )
    return frozen(values)


def _times_columns(A, factor: np.ndarray) -> np.ndarray:
    """A scaled by column, checked: broadcasting would hide a wrong width."""
    if isinstance(A, CSR):
        raise TypeError("the ARD kernels take dense rows")
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or A.shape[1] != factor.size:
        raise ValueError(
            f"rows of shape {A.shape} do not have the {factor.size} features of gamma"
        )
    return A * factor


def takes_missing(kernel) -> bool:
    """Whether the kernel has a use for rows with NaN, entries that are not known."""
    return isinstance(kernel, Pearson)


def make_kernel(kernel, gamma, problem: Problem) -> Callable:
    """The kernel object that a `fit_*` function's `kernel` and `gamma` ask for.

    gamma = "scale" is 1 / (d variance of all entries of X), "auto" is 1 / d. The
    variance takes sample weights into account: weight 2 is the row written twice.
    """
    if isinstance(kernel, str):
        check_choice("kernel", kernel, ("rbf", "linear", "polynomial", "precomputed"))
    elif isinstance(kernel, type) or not callable(kernel):
        raise TypeError(f"kernel must be a name or a callable k(A, B), got {kernel!r}")
    takes_gamma = isinstance(kernel, str) and kernel in ("rbf", "polynomial")
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "auto"))
    else:
        check_positive(gamma=gamma)
    if not takes_gamma:
        if gamma != "scale":
            raise ValueError(
                f"gamma={gamma!r} has no effect on kernel={kernel!r}: only the named "
                "kernels 'rbf' and 'polynomial' take it"
            )
        if isinstance(kernel, str):
            return Linear() if kernel == "linear" else Precomputed()
        return kernel
    if gamma == "scale":
        gamma = scale(problem)
    elif gamma == "auto":
        gamma = 1 / problem.n_features
    return RBF(float(gamma)) if kernel == "rbf" else Polynomial(gamma=float(gamma))


def scale(problem: Problem) -> float:
    """gamma="scale" of the features of a problem."""
    X, w = problem.X, problem.sample_weight / problem.sample_weight.sum()
    if isinstance(X, CSR):
        mean, var = X.mean_and_var(w)
    else:
        mean = w @ X
        var = w @ (X - mean) ** 2
    total = float(np.mean(var) + np.var(mean))  # variance of all entries
    # constant features leave a variance of rounding errors, and no scale
    rounding = (4e-16 * problem.n_samples * float(np.abs(mean).max())) ** 2
    return 1 / (problem.n_features * total) if total > rounding else 1.0


def inner_products(A, B, out: np.ndarray | None = None) -> np.ndarray:
    """<a, b> for all rows of A and B, dense arrays or CSR: (len(A), len(B)) float64,
    C-contiguous. `out`, if given, may be used for the result."""
    if not isinstance(A, CSR) and not isinstance(B, CSR):
        A, B = (np.asarray(M, dtype=np.float64) for M in (A, B))
        return np.matmul(A, B.T, out=out)
    if not isinstance(A, CSR):
        return np.ascontiguousarray(inner_products(B, A).T)
    out = np.zeros((len(A), len(B)))
    # dense columns of B at a time, few enough that they stay near 32 MB
    step = max(1, min(256, 4_000_000 // max(1, A.shape[1])))
    for start in range(0, len(B), step):
        rows = slice(start, min(start + step, len(B)))
        dense = B.dense(rows.start, rows.stop) if isinstance(B, CSR) else B[rows]
        columns = np.ascontiguousarray(dense.T)
        part = np.zeros((len(A), columns.shape[1]))
        _kernel_values.csr_times_dense(A.indptr, A.indices, A.data, columns, part)
        out[:, rows] = part
    return out


def squared_norms(A) -> np.ndarray:
    """|a|^2 for every row; ValueError where it overflows, for inf - inf is NaN."""
    with np.errstate(over="ignore"):  # seen by the check
        if isinstance(A, CSR):
            norms = A.sq_norms()
        else:
            A = np.asarray(A, dtype=np.float64)
            norms = np.einsum("ij,ij->i", A, A)
    if not np.isfinite(norms).all():
        row = int(np.flatnonzero(~np.isfinite(norms))[0])
        raise ValueError(f"row {row} is too long for its square; scale the features")
    return norms


def z_scores(A) -> np.ndarray:
    """Rows whose inner products are those of `Pearson`: z / sqrt(d)."""
    if isinstance(A, CSR):
        raise TypeError("the Pearson kernel takes dense rows")
    A = np.asarray(A, dtype=np.float64)
    if np.isinf(A).any():
        row = int(np.flatnonzero(np.isinf(A).any(axis=1))[0])
        raise ValueError(f"row {row} must be finite or NaN")
    known = ~np.isnan(A)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)

    def mean(D):
        return D.sum(axis=1, keepdims=True) / count

    A = np.where(known, A, 0.0)
    # powers of two, so that no square overflows or vanishes
    A = np.ldexp(A, -np.frexp(np.abs(A).max(axis=1, keepdims=True))[1])
    centre = mean(A)
    D = np.where(known, A - centre, 0.0)
    sd = np.sqrt(mean(D * D))
    varies = sd > 4 * np.finfo(np.float64).eps * np.abs(centre)
    return D / np.where(varies, sd * np.sqrt(A.shape[1]), np.inf)


def take(X, rows):
    """Rows of a dense or CSR matrix, by slice or indices."""
    return X.rows(rows) if isinstance(X, CSR) else X[rows]


def diagonal(kernel, X) -> np.ndarray:
    """k(x, x) for every row of X (or of a precomputed matrix)."""
    n = len(X)
    if isinstance(kernel, Precomputed):
        return np.diagonal(X).copy()
    if isinstance(kernel, RBF | ARD):
        return np.ones(n)
    if isinstance(kernel, Linear):
        return squared_norms(X)
    if isinstance(kernel, Pearson):
        return squared_norms(z_scores(X))
    if isinstance(kernel, Polynomial):
        return (kernel.gamma * squared_norms(X) + kernel.coef0) ** kernel.degree
    out = np.empty(n)
    for start in range(0, n, 64):  # a callable gives blocks; small ones waste little
        rows = slice(start, min(start + 64, n))
        out[rows] = np.diagonal(_call(kernel, X[rows], X[rows]))
    return out


def slopes(kernel, A, B, K: np.ndarray, G: np.ndarray) -> np.ndarray:
    """How <G, k(A, B)> changes with ln gamma, (p,), where K = k(A, B).

    One entry a gamma; none for a kernel that has none to be learned. O(n m d).
    """
    if isinstance(kernel, RBF):
        change = np.log(np.maximum(K, np.finfo(float).tiny))
        change *= K
        return np.array([np.vdot(change, G)])
    if isinstance(kernel, ARD):
        centre = A.mean(axis=0)  # far from 0, squares would cancel
        A, B, N = A - centre, B - centre, G * K
        squares = N.sum(axis=1) @ A**2 + N.sum(axis=0) @ B**2
        return kernel.gamma * (2 * np.einsum("ij,ij->j", A, N @ B) - squares)
    if isinstance(kernel, LinearARD):
        return kernel.gamma * np.einsum("ij,ij->j", A, G @ B)
    return np.empty(0)


def diagonal_slopes(kernel, X, c: np.ndarray) -> np.ndarray:
    """The same of sum_i c_i k(x_i, x_i)."""
    if isinstance(kernel, LinearARD):
        return kernel.gamma * (c @ X**2)
    return np.zeros(np.size(kernel.gamma) if isinstance(kernel, RBF | ARD) else 0)


def _call(kernel, A, B) -> np.ndarray:
    """kernel(A, B), checked: a solver that met NaN would see nothing left to do."""
    K = np.asarray(kernel(A, B))
    if K.shape != (len(A), len(B)):
        raise ValueError(f"kernel returned shape {K.shape}, not {(len(A), len(B))}")
    if K.dtype.kind not in "fiu":
        raise TypeError(f"kernel must return real numbers, got dtype {K.dtype}")
    if not np.isfinite(K).all():
        raise ValueError("kernel values must be finite")
    return K


class Evaluator:
    """k(A, B) in tiles, with what can be shared between tiles computed once.

    Parameters
    ----------
    kernel : callable
    A, B : matrices of rows; for a Precomputed kernel A holds the values and B is
        the array of the columns of A that stand for B's rows.
    products : Products, optional
        Those of the rows of A, which is B, for an RBF kernel.
    """

    def __init__(
        self, kernel, A, B, n_threads: int = 1, products: "Products | None" = None
    ):
        if isinstance(kernel, Pearson):  # the linear kernel of rows made once
            kernel, same = Linear(), B is A
            A = z_scores(A)
            B = A if same else z_scores(B)
        self.kernel, self.A, self.B, self.n_threads = kernel, A, B, n_threads
        self._products = products
        self.shape = len(A), len(B)
        # a callable of the user's is called from one thread at a time
        self.concurrent = isinstance(kernel, tuple(NAMED.values()))
        if isinstance(kernel, RBF):
            self._aa = squared_norms(A) if products is None else products.norms
            self._bb = self._aa if B is A else squared_norms(B)
        elif not isinstance(kernel, Linear | Polynomial | Precomputed):
            if isinstance(A, CSR) or isinstance(B, CSR):
                raise TypeError(
                    "CSR rows go with the linear, polynomial and RBF kernels only"
                )

    def tile(self, rows, columns, out: np.ndarray, scratch=None) -> np.ndarray:
        """Fill out, float32 or float64, with k(A[rows], B[columns]).

        `scratch` is room for as many doubles; a new tile's memory costs more to fetch
        than its values to compute. It may be that of `out`.
        """
        if isinstance(self.kernel, RBF):  # in (0, 1]: nothing to check
            if self._products is not None and isinstance(rows, slice):
                products = self._products.tile(rows, columns)
            else:
                A, B = take(self.A, rows), take(self.B, columns)
                if scratch is not None:
                    scratch = scratch[: out.size].reshape(out.shape)
                products = inner_products(A, B, scratch)
            aa, bb = self._aa[rows], self._bb[columns]
            _kernel_values.rbf(products, aa, bb, float(self.kernel.gamma), out)
            return out
        with np.errstate(over="ignore"):  # seen by the check
            if isinstance(self.kernel, Precomputed):
                out[:] = take(self.A, rows)[:, self.B[columns]]
            else:
                out[:] = _call(self.kernel, take(self.A, rows), take(self.B, columns))
        if not np.isfinite(out).all():
            raise ValueError(f"kernel values exceed {out.dtype}; scale the features")
        return out

    def product(self, coef: np.ndarray) -> np.ndarray:
        """k(A, B) @ coef in double, never more than a tile of k a thread at once.

        coef is (len(B), p); the result is (len(A), p).
        """
        out = np.zeros((self.shape[0], coef.shape[1]))

        def strip(rows: slice) -> None:
            buffer = np.empty(_TILE * _TILE)
            for columns in strips(self.shape[1]):
                size = rows.stop - rows.start, columns.stop - columns.start
                tile = buffer[: size[0] * size[1]].reshape(size)
                out[rows] += self.tile(rows, columns, tile, buffer) @ coef[columns]

        self._each(strip, strips(self.shape[0]))
        return out

    def fill(self, out: np.ndarray) -> None:
        """Fill out with k(A, B)."""

        def strip(rows: slice) -> None:
            scratch = np.empty(_TILE * _TILE)
            for columns in strips(self.shape[1]):
                self.tile(rows, columns, out[rows, columns], scratch)

        self._each(strip, strips(self.shape[0]))

    def triangle(self, out: np.ndarray, mirror: bool) -> None:
        """Fill the upper triangle of k(A, A), and the lower one from it for `mirror`.

        Raises ValueError if a callable's tile on the diagonal is not symmetric.
        """

        def strip(rows: slice) -> None:
            scratch = np.empty(_TILE * _TILE)
            for columns in strips(self.shape[1], start=rows.start):
                tile = self.tile(rows, columns, out[rows, columns], scratch)
                if columns.start == rows.start and not self.concurrent:
                    _check_symmetry(tile)  # of a callable; ours are symmetric
                if mirror:
                    ends = rows.start, rows.stop, columns.start, columns.stop
                    _kernel_values.mirror(out, *ends)

        self._each(strip, strips(self.shape[0]))

    def _each(self, call, arguments) -> None:
        arguments = list(arguments)  # a thread costs more than a few small tiles
        n_threads = min(self.n_threads, len(arguments)) if self.concurrent else 1
        with Pool(n_threads) as pool:
            pool.run(call, arguments)


class Products:
    """Inner products of rows with each other, which are the same for every gamma.

    Tiles of the upper triangle as `Evaluator.triangle` asks for them, 4 n^2 bytes in
    all. Several threads may ask; at worst a tile is computed twice.
    """

    def __init__(self, X):
        self.X, self.norms = X, squared_norms(X)
        self._tiles: dict[tuple[int, int, int], np.ndarray] = {}

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        """<x_i, x_j> for i of rows and j of columns; not to be written to."""
        key = rows.start, columns.start, columns.stop
        if key not in self._tiles:
            self._tiles[key] = inner_products(take(self.X, rows), take(self.X, columns))
        return self._tiles[key]


def on_itself(kernel, X, n_threads: int, products: Products | None = None) -> Evaluator:
    """k(X, X) of the training rows X, or of a precomputed matrix X."""
    columns = np.arange(len(X)) if isinstance(kernel, Precomputed) else X
    return Evaluator(kernel, X, columns, n_threads, products)


def _check_symmetry(tile: np.ndarray) -> None:
    worst = float(np.abs(tile - tile.T).max())
    if worst > 1e-5 * float(np.abs(tile).max()):
        raise ValueError(
            f"kernel must be symmetric; k(a, b) and k(b, a) differ by {worst:.3g}"
        )


def strips(n: int, width: int = _TILE, start: int = 0):
    """Slices that cover range(start, n) in steps of a tile."""
    return (slice(i, min(i + width, n)) for i in range(start, n, width))


def check_precomputed(K) -> None:
    """Raise ValueError unless K is square and symmetric."""
    if isinstance(K, CSR):
        raise TypeError("X must be a dense matrix with kernel='precomputed'")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X must be square with kernel='precomputed', got shape {K.shape}"
        )
    scale = float(np.abs(K).max())
    for rows in strips(len(K)):
        asymmetry = np.abs(K[rows] - K[:, rows].T).max(axis=1)
        if asymmetry.max() > 1e-8 * scale:
            i = rows.start + int(asymmetry.argmax())
            raise ValueError(
                "X must be symmetric with kernel='precomputed'; row and column "
                f"{i} differ by {asymmetry.max():.3g}"
            )
