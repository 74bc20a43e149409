"""Kernel that an argument means, and the abilities of kernels."""

import numpy as np

from .._input.checks import check_choice, check_positive, shown
from .._input.problem import Problem
from .._input.sparse import CSR
from .._input.types import Kernel, Matrix
from .._numerics.rows import squared_norms, strips
from .._rows.first_pass import ChunkedProblem
from .._rows.moments import Moments
from .._rows.source import CHUNK
from .functions import ARD, RBF, Linear, LinearARD, Pearson, Polynomial, Precomputed

LARGEST = 1e100  # value of a kernel: solvers take squares and products of it
_NO_SPREAD = 1e-300  # a variance below the square of what doubles hold with precision
NAMED: dict[str, type] = {
    cls.__name__: cls
    for cls in (Linear, Polynomial, RBF, ARD, LinearARD, Pearson, Precomputed)
}


def takes_missing(kernel: object) -> bool:
    """Return whether a kernel takes rows with NaN, entries that are not known."""
    return isinstance(kernel, Pearson)


def is_linear(kernel: object) -> bool:
    """Return whether k(x, z) is a product of features, which are a basis themselves."""
    return isinstance(kernel, Linear | LinearARD)


def on_basis(basis: object, kernel: object) -> bool:
    """Return whether a fit may use a basis, from arguments as they were given."""
    linear = kernel == "linear" if isinstance(kernel, str) else is_linear(kernel)
    return basis is not None or linear


def compares_units(kernel: object) -> bool:
    """Return whether the kernel adds up features as they are, in whatever units.

    Kernels with a weight per feature bring their own scales, the Pearson kernel
    compares rows, and what a function of the caller's does is not known.
    """
    if isinstance(kernel, str):
        return kernel in ("rbf", "linear", "polynomial")
    return isinstance(kernel, RBF | Linear | Polynomial)


def make_kernel(kernel: str | Kernel, gamma: str | float, problem: Problem) -> Kernel:
    """Return the kernel object that a `fit_*` function's `kernel` and `gamma` ask for.

    gamma = "scale" is 1 / (d variance of all entries of X), "auto" is 1 / d. The
    variance takes sample weights into account: weight 2 is the row written twice.
    """
    if isinstance(kernel, str):
        check_choice("kernel", kernel, ("rbf", "linear", "polynomial", "precomputed"))
    elif isinstance(kernel, type) or not callable(kernel):
        raise TypeError(
            f"kernel must be a name or a callable k(A, B), got {shown(kernel)}"
        )
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "auto"))
    else:
        gamma = check_positive("gamma", gamma)
    if not (isinstance(kernel, str) and kernel in ("rbf", "polynomial")):
        if gamma != "scale":
            raise ValueError(
                f"gamma={shown(gamma)} has no effect on kernel={shown(kernel)}: only "
                "the named kernels 'rbf' and 'polynomial' take it"
            )
        if isinstance(kernel, str):
            return Linear() if kernel == "linear" else Precomputed()
        return kernel
    if not isinstance(gamma, str):
        number = gamma
    elif gamma == "scale":
        number = gamma_scale(problem)
    else:
        number = 1 / problem.n_features
    return RBF(number) if kernel == "rbf" else Polynomial(gamma=number)


def gamma_scale(problem: Problem) -> float:
    """gamma="scale" of the features of a problem.

    Raises ValueError if rows are so long that their squares overflow.
    """
    d = problem.n_features
    mean, var = column_moments(problem)
    absent = d - mean.size  # columns of zeros
    level = mean.sum() / d
    between = ((mean - level) ** 2).sum() + absent * level**2
    total = float(var.sum() / d + between / d)  # variance of all entries
    # constant features leave a variance of rounding errors, and no scale
    rounding = (4e-16 * problem.n_samples * float(np.abs(mean).max())) ** 2
    return 1 / (d * total) if total > max(rounding, _NO_SPREAD) else 1.0


def column_moments(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the columns by the weights of samples, the same wherever the
    rows are; of sparse ones those of the columns that hold anything.
    """
    X, w = problem.X, problem.sample_weight
    if not isinstance(problem, ChunkedProblem):
        squared_norms(X)  # bounds all sums of the caller
        if isinstance(X, CSR):
            held = np.unique(X.indices)  # all columns could be too many for a vector
            return X.of_columns(held).mean_and_var(w / w.sum())
    moments = dense_moments(problem)
    if moments is None:
        raise ValueError("gamma must be a number where sparse rows come in chunks")
    return moments.mean_and_variance()


def dense_moments(problem: Problem) -> Moments | None:
    """Return the moments of the columns by the weights of samples; None if X is sparse.

    Those of rows in chunks were measured in the first pass.
    """
    if isinstance(problem, ChunkedProblem):
        return problem.moments
    X, w = problem.X, problem.sample_weight
    if isinstance(X, CSR):
        return None
    return Moments.of_parts((X[rows], w[rows]) for rows in strips(len(X), CHUNK))


def check_values(K: np.ndarray, most: float = LARGEST) -> None:
    """Raise ValueError unless all values of a kernel are finite and so small."""
    if K.size == 0:
        return
    worst = max(float(K.max()), -float(K.min()))
    if not worst <= most:
        raise ValueError(
            f"kernel values must be finite and at most {most:.3g}, got {worst:.3g}: "
            "scale the features of X"
        )


def check_precomputed(K: Matrix) -> None:
    """Raise ValueError unless K is square and symmetric."""
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
