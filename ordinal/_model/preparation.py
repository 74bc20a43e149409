"""Preparation of a fit: arguments and rows that all methods check and read alike."""

from __future__ import annotations  # numpy.random is slow to import

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Required, TypedDict, TypeVar, Unpack, cast

import numpy as np

from .._input.checks import (
    by_standardizer,
    check_choice,
    check_flag,
    check_positive,
    check_verbosity,
    enumerated,
    listed,
    resolve_rng,
    shown,
)
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._input.types import (
    ArrayLike,
    Blocks,
    ClassWeight,
    Gamma,
    Kernel,
    Labels,
    MatrixLike,
    Rng,
)
from .._input.warning import warn
from .._numerics.rows import squared_norms, strips
from .._numerics.threads import resolve_n_threads
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import Reading, read_problem
from .._rows.source import CHUNK
from .._rows.sums import Moments
from .._watch.monitor import Monitor, State
from .._watch.progress import Line
from ..exceptions import UnscaledFeaturesWarning
from ..kernels.functions import (
    KernelFunction,
    KernelName,
    as_kernel,
    check_precomputed,
    kernel_class,
    kernel_names,
    named_with_gamma,
)

Callback = Callable[[State], object]
READING = Reading()  # all rows in memory

# Names of columns that number the rows: id, customer_id, rownames, Unnamed: 0
IDENTIFIER = re.compile(
    r"(.*[ _.-])?(id|uuid|guid)|index|row[ _.-]?(names?|number|nr|num)|unnamed: 0",
    re.IGNORECASE,
)
_NO_SPREAD = 1e-300  # variance below which doubles lose precision
_APART = 30.0  # multiple of the median spread of the features beyond which fits warn


class Common(TypedDict, total=False):
    """Arguments that all methods take, as a `fit_*` function passes them on."""

    tol: Required[float]
    sample_weight: ArrayLike | None
    class_weight: ClassWeight | None
    classes: Sequence[Any] | None
    rng: Rng
    n_threads: int | None
    max_time: float | None
    callback: Callback | None
    verbose: bool


class KernelCommon(Common, total=False):
    """Arguments of `Common`, and of methods with a kernel and a calibrated link."""

    kernel: KernelName | Kernel
    gamma: Gamma
    probability: bool


_Arguments = TypeVar("_Arguments", bound=Mapping[str, object])


def shared_arguments(
    kind: type[_Arguments], given: Mapping[str, Any], **fixed: Any
) -> _Arguments:
    """Return the arguments that `kind`, such as `Common`, names.

    `given` is `locals()` of a `fit_*` function, whose signature thus needs no second
    copy in its body; `fixed` are values that the function does not take from its
    caller. A test compares the annotations of the signature with those of `kind`.
    """
    every = {**given, **fixed}
    # A set of the names would be in another order in every process.
    named = {k: every[k] for k in kind.__annotations__ if k in every}
    return cast(_Arguments, named)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Checked arguments of all methods.

    Attributes
    ----------
    problem : Problem
    n_threads : int
    rng : numpy.random.Generator
    monitor : Monitor
        Monitor of the `fit_*` function with its `tol`, whose clock has started. A fit
        runs `with` it, and concludes with its models.
    moments : Moments or None
        Those of the columns, if predictions depend on the units of dense features.
    """

    problem: Problem
    n_threads: int
    rng: np.random.Generator
    monitor: Monitor
    moments: Moments | None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedWithKernel(Prepared):
    """Checked arguments of a method with a kernel, and perhaps a calibrated link."""

    kernel: KernelFunction
    probability: bool


def prepare(
    name: str,
    X: MatrixLike | Blocks,
    y: Labels | None,
    reading: Reading = READING,
    *,
    by_scale: bool = False,
    watch: type[Monitor] = Monitor,
    **common: Unpack[Common],
) -> Prepared:
    """Check and read the arguments that all methods share.

    Parameters
    ----------
    name : str
        Name of the `fit_*` function, for messages.
    X, y, common : arguments of the `fit_*` function
    reading : Reading, optional
        Settings by which rows are read.
    by_scale : bool
        Whether predictions depend on the units of the features. The fit then warns of
        features that dominate the others.
    watch : type of Monitor

    Raises
    ------
    ValueError, TypeError
        For the first argument that is unusable.

    Warns
    -----
    UnscaledFeaturesWarning
        As described at `warn_of_scales`.
    """
    tol = check_positive("tol", common["tol"])
    threads = resolve_n_threads(common.get("n_threads"))
    generator = resolve_rng(common.get("rng", 0))
    verbose = check_verbosity("verbose", common.get("verbose", False))
    line = Line() if verbose else None
    monitor = watch(name, tol, common.get("callback"), common.get("max_time"), line)
    labels = {k: common.get(k) for k in ("classes", "sample_weight", "class_weight")}
    if isinstance(X, Problem) and not isinstance(X, ChunkedProblem):
        problem = X  # of a fit that reads labels and weights together with its table
    else:
        problem = read_problem(name, X, y, reading, **labels)
    if isinstance(problem, ChunkedProblem):
        # A pass of a basis of columns stops within the source, which may hold a file.
        monitor.at_end(problem.close)
    problem.check_spans()
    if problem.feature_names is not None and isinstance(problem.X, np.ndarray):
        kinds = reading.categories or (None,) * problem.n_features
        warn_of_identifiers(problem.X, problem.shown_names, kinds)
    moments = dense_moments(problem) if by_scale else None
    if moments is not None:
        warn_of_scales(name, problem, moments)
    return Prepared(problem, threads, generator, monitor, moments)


def warn_of_identifiers(
    X: np.ndarray, names: Sequence[str], kinds: Sequence[np.ndarray | None]
) -> None:
    """Warn of columns whose names and distinct values say that they number the rows.

    Categories that identify rows are an error of the reader, unless the caller declares
    them; numbers may be features.
    """
    found = [
        column
        for j, (column, kind) in enumerate(zip(names, kinds, strict=True))
        if kind is None
        and IDENTIFIER.fullmatch(column)
        and np.unique(X[:, j]).size == len(X) > 2
    ]
    if found:
        s, verb, feature, them = ("", "seems", "a feature", "it")
        if len(found) > 1:
            s, verb, feature, them = ("s", "seem", "features", "them")
        warn(
            f"column{s} {enumerated(found)} of X {verb} to identify the rows, but will "
            f"be used as {feature}: leave {them} out, as "
            f"X.drop(columns={listed(found)}) does, or rename {them} to keep {them}",
            UserWarning,
        )


def warn_of_scales(name: str, problem: Problem, moments: Moments) -> None:
    """Warn of features that dominate the others by their scale, from their moments.

    Their standard deviation is over 30 times the (lower) median of those features that
    are not constant. A feature with two values, such as an indicator, counts with half
    the distance between them. Sparse features are not checked, because standardising
    would make them dense.
    """
    spread = moments.spread()
    varies = np.sort(spread[spread > 0])
    if not varies.size:
        return
    median = varies[(varies.size - 1) // 2]
    large = np.flatnonzero(spread / _APART > median)
    if large.size:
        names = [problem.shown_names[j] for j in large]
        warn(
            f"{name}: X has features in much larger units than the others, which "
            f"hardly count beside them: {enumerated(names)} (standard deviation up to "
            f"{spread.max():.3g}, the median one is {median:.3g}); "
            f"{by_standardizer()}, or standardise X by other means",
            UnscaledFeaturesWarning,
        )


def prepare_with_kernel(
    name: str,
    X: MatrixLike | Blocks,
    y: Labels | None,
    reading: Reading = READING,
    *,
    kernel: KernelName | Kernel = "rbf",
    gamma: Gamma = "scale",
    probability: bool = False,
    **common: Unpack[Common],
) -> PreparedWithKernel:
    """Check and read the arguments of a method with a kernel.

    `make_kernel` lists the further errors.
    """
    probability = check_flag("probability", probability)
    known = kernel_class(kernel)
    missing = known.takes_missing
    in_place = reading.in_place and not (missing or known.by_number)
    prepared = prepare(
        name,
        X,
        y,
        replace(reading, missing=missing, in_place=in_place),
        by_scale=known.compares_units,
        **common,
    )
    made = make_kernel(kernel, gamma, prepared.problem, prepared.moments)
    if isinstance(prepared.problem, ChunkedProblem):
        if made.by_number:
            raise ValueError(
                "kernel must not be 'precomputed' where X is read in chunks: pass "
                "features and the name of a kernel"
            )
    elif made.by_number:
        check_precomputed(prepared.problem.X)
    return PreparedWithKernel(
        prepared.problem,
        prepared.n_threads,
        prepared.rng,
        prepared.monitor,
        prepared.moments,
        made,
        probability,
    )


def make_kernel(
    kernel: str | Kernel,
    gamma: str | float,
    problem: Problem,
    moments: Moments | None = None,
) -> KernelFunction:
    """Return the kernel object for the arguments `kernel` and `gamma` of a fit.

    `moments` are those of the columns, if they are known.

    gamma = "scale" is 1 / (d variance of all entries of X), "auto" is 1 / d. The
    variance takes sample weights into account: weight 2 is the row written twice.
    """
    known = kernel_class(kernel)
    if isinstance(kernel, str):
        check_choice("kernel", kernel, kernel_names())
    elif isinstance(kernel, type) or not callable(kernel):
        raise TypeError(
            f"kernel must be a name or a callable k(A, B), got {shown(kernel)}"
        )
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "auto"))
    else:
        gamma = check_positive("gamma", gamma)
    if not named_with_gamma(kernel):
        if gamma != "scale":
            named = [name for name in kernel_names() if named_with_gamma(name)]
            raise ValueError(
                f"gamma={shown(gamma)} has no effect on kernel={shown(kernel)}: only "
                f"the named kernels {listed(named)} take it"
            )
        if isinstance(kernel, str):
            return known.from_argument(kernel, None)
        return as_kernel(kernel)
    if isinstance(gamma, str):
        by_spread = gamma == "scale"
        scale = gamma_scale(problem, moments) if by_spread else 1 / problem.n_features
        gamma = known.gamma_of_scale(scale)
    return known.from_argument(kernel, gamma)


def gamma_scale(problem: Problem, moments: Moments | None = None) -> float:
    """Return the value of gamma="scale" for the features of a problem.

    Raises ValueError if rows are so long that their squares overflow.
    """
    d = problem.n_features
    mean, var = column_moments(problem, moments)
    absent = d - mean.size  # columns of zeros
    level = mean.sum() / d
    between = ((mean - level) ** 2).sum() + absent * level**2
    total = float(var.sum() / d + between / d)  # variance of all entries
    # For constant features, the variance is rounding error.
    rounding = (4e-16 * problem.n_samples * float(np.abs(mean).max())) ** 2
    return 1 / (d * total) if total > max(rounding, _NO_SPREAD) else 1.0


def column_moments(
    problem: Problem, moments: Moments | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted means and variances of the columns, (d,) each.

    They have the same bytes wherever the rows are. Of sparse rows in memory, only
    columns with entries are included.
    """
    X: Any = problem.X
    w = problem.sample_weight
    if not isinstance(problem, ChunkedProblem):
        squared_norms(X)  # raises for rows that are too long for the sums below
        if is_sparse(X):
            held = np.unique(X.indices)  # all columns could be too many for a vector
            mean, variance = X.of_columns(held).mean_and_var(w / w.sum())
            return mean, variance
    moments = moments or dense_moments(problem)
    if moments is None:
        raise ValueError(
            "gamma must be a number where X is sparse and read in chunks, because no "
            "variance of its columns is known"
        )
    return moments.mean_and_variance()


def dense_moments(problem: Problem) -> Moments | None:
    """Return the moments of the columns by sample weights, or None if X is sparse.

    The first pass over rows in chunks has computed them.
    """
    if isinstance(problem, ChunkedProblem):
        return problem.moments
    X: Any = problem.X
    w = problem.sample_weight
    if is_sparse(X):
        return None
    return Moments.of_parts((X[rows], w[rows]) for rows in strips(len(X), CHUNK))
