"""Columns that depend linearly on earlier columns and a constant.

Without a penalty the coefficients of such columns are not identified. The later column
is left out, as R's `lm` does. A column counts as dependent if the residual of its
regression on the earlier ones is at most 1e-7 of its standard deviation, over the rows
of positive weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from .._input.checks import enumerated, shown
from .._input.warning import warn
from .._numerics.rows import cancellable_slices, strips
from .._rows.columns import block, product, rmatvec, sparse_moments
from .._rows.sums import Parts
from ..exceptions import CollinearColumnsWarning
from .design import HESSIAN_COLUMNS, Design
from .matrices import columns_of

_RESIDUAL = 1e-7  # of a dependent column, in deviations; the tolerance of R's `lm`
_DOUBTFUL = 1e-6  # squared residual below which the columns themselves are regressed
_INVOLVED = 1e-6  # size of a coefficient that counts, relative to the largest one
_FAR = 300.0  # largest mean, in deviations, that may be subtracted from products
_ROWS = 8192  # rows that are processed at a time
_NAMED = 5  # most columns in a message


def dependencies(design: Design, columns: Sequence[int]) -> dict[int, list[int]]:
    """Find the columns that depend linearly on earlier ones of the sequence.

    The result maps each of them to the earlier columns of which it is a combination;
    a constant column depends on none. The cost is O(n d^2 + d^3). With more than
    `HESSIAN_COLUMNS` columns the result is empty.
    """
    which = np.array(columns, dtype=np.int64)
    if not 0 < which.size <= HESSIAN_COLUMNS:
        return {}
    # Nearly all designs are regular, which the coarse correlations can show, too.
    coarse = _coarse_correlations(design, which)
    if coarse is not None and _is_regular(coarse):
        return {}
    mean, spread = _moments(design, which)
    (gram,) = design.summed(partial(_correlations, which, mean, spread))
    return {} if _is_regular(gram) else _eliminated(design, which, gram)


def identified(design: Design, names: Sequence[str], is_penalised: bool) -> Design:
    """Return the design without columns of the location that depend on others.

    Raises
    ------
    ValueError
        Columns of nominal or scale effects, which the caller has named, are dependent;
        or there is no penalty, and X has at least as many columns as rows, and more
        than `HESSIAN_COLUMNS`, among which dependent ones are not sought.

    Warns
    -----
    CollinearColumnsWarning
        Names the columns that are left out.
    """
    location = [] if is_penalised else design.location.tolist()
    nominal, scale = design.nominal.tolist(), design.scale.tolist()
    n = int(np.count_nonzero(design.weight))
    if len(location) >= max(n, HESSIAN_COLUMNS + 1):
        raise ValueError(
            f"X has {len(location)} columns and {n} rows of positive weight, which do "
            "not determine as many coefficients: pass l2 > 0, or fewer columns"
        )
    found = dependencies(design, nominal + location)
    refused = {"nominal": {j: found.pop(j) for j in nominal if j in found}}
    refused["scale"] = dependencies(design, scale)
    for argument, columns in refused.items():
        if columns:
            raise ValueError(
                f"{argument} must name columns whose effects can be told apart: "
                f"{_described(columns, names)}"
            )
    if not found:
        return design
    warn(
        f"left out of the model: {_described(found, names)}; "
        "with l2 > 0 all columns stay",
        CollinearColumnsWarning,
    )
    return replace(design, location=np.setdiff1d(design.location, list(found)))


def _described(found: dict[int, list[int]], names: Sequence[str]) -> str:
    """Describe the result of `dependencies` for a message."""
    parts = []
    for j, earlier in islice(found.items(), _NAMED):
        combined = enumerated([names[k] for k in earlier])
        what = f"a combination of {combined}" if earlier else "constant"
        parts.append(f"{shown(names[j])} is {what}")
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(parts) + more


def _is_regular(gram: np.ndarray) -> bool:
    """Return whether a correlation matrix has only clearly independent columns."""
    try:
        return bool((np.diagonal(np.linalg.cholesky(gram)) ** 2 > _DOUBTFUL).all())
    except np.linalg.LinAlgError:
        return False


def _coarse_correlations(D: Design, which: np.ndarray) -> np.ndarray | None:
    """Return the correlations from products of the uncentred columns.

    This takes a third of the time of `_correlations`. Return None if a mean is so large
    that subtracting it from the products would lose digits.
    """
    mean, spread = _moments(D, which)
    ratio = mean / spread
    if np.abs(ratio).max() > _FAR:
        return None
    with np.errstate(all="ignore"):  # columns that overflow are not regular
        scaled = _gram(D, which) / D.total / np.outer(spread, spread)
        return np.asarray(scaled - np.outer(ratio, ratio))


def _gram(D: Design, which: np.ndarray) -> np.ndarray:
    """Return the weighted inner products of the uncentred columns, (k, k)."""
    if D.is_chunked:
        return D.summed(partial(_gram_of, which))[0]
    if D.is_sparse:
        every = columns_of(D.X, D.centre, np.ones(D.X.shape[1]), 1)
        return every.chosen(which).gram(D.weight)
    equal = bool((D.weight == D.weight[0]).all())
    # A copy of nearly all columns costs more than products that are not needed.
    few = 2 * which.size <= D.X.shape[1]
    d = which.size if few else D.X.shape[1]
    gram = np.zeros((d, d))
    for part in cancellable_slices(D.X.shape[0], gram.size):
        for rows in strips(part.stop, _ROWS, part.start):
            X = D.X[rows, which] if few else D.X[rows]
            # X'X is half of the work of another product
            gram += X.T @ (X if equal else X * D.weight[rows, None])
    if equal:
        gram *= D.weight[0]
    return np.asarray(gram if few else gram[np.ix_(which, which)])


def _gram_of(which: np.ndarray, D: Design) -> Parts:
    """Return the inner products of a chunk."""
    return (_gram(D, which),)


def _correlations(
    which: np.ndarray, mean: np.ndarray, spread: np.ndarray, D: Design
) -> Parts:
    """Return the share of a chunk in the correlations, 0 for constant columns."""
    Z = (block(D.X, slice(0, D.n_samples), which) - mean) / spread
    return (Z.T @ (Z * (D.weight[:, None] / D.total)),)


def _moments(D: Design, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and deviations of columns, with deviation 1 if constant."""
    if not D.is_sparse:
        return D.centre[which], D.spread[which]
    # The design does not centre sparse columns, and its spreads are about 0.
    mean, variance, unit = sparse_moments(D.X, D.weight)
    mean, spread = mean * unit, np.sqrt(variance) * unit
    is_constant = spread <= 16 * np.finfo(float).eps * np.abs(mean)
    return mean[which], np.where(is_constant, 1.0, spread)[which]


def _eliminated(D: Design, which: np.ndarray, gram: np.ndarray) -> dict[int, list[int]]:
    """Find dependent columns by a Cholesky factorisation that skips them.

    `gram` holds the correlations of the columns; the result is that of `dependencies`.
    """
    most = int(np.count_nonzero(D.weight)) - 1  # the rank of centred columns
    factor = np.empty((which.size, min(which.size, most)))
    kept: list[int] = []
    found: dict[int, list[int]] = {}
    for j in range(which.size):
        if gram[j, j] < 0.5:  # 0 for a constant column, and 1 for others
            found[int(which[j])] = []
            continue
        if len(kept) == most:
            found[int(which[j])] = which[kept].tolist()
            continue
        known = factor[:, : len(kept)]
        residual = gram[j, j] - known[j] @ known[j]
        if residual <= _DOUBTFUL:
            coef, residual = _regressed(D, which, gram, kept, j)
            if residual <= _RESIDUAL**2:
                involved = np.abs(coef) > _INVOLVED * np.abs(coef).max()
                found[int(which[j])] = which[kept][involved].tolist()
                continue
        factor[:, len(kept)] = (gram[:, j] - known @ known[j]) / np.sqrt(residual)
        kept.append(j)
    return found


def _regressed(
    D: Design, which: np.ndarray, gram: np.ndarray, kept: list[int], j: int
) -> tuple[np.ndarray, float]:
    """Regress column j on the kept ones.

    Return the coefficients, of columns in units of their deviations, and the mean
    squared residual. The residual is computed from the rows, because products of
    columns have half of the digits.
    """
    _, spread = _moments(D, which)
    G = gram[np.ix_(kept, kept)]
    coef, square = np.linalg.solve(G, gram[kept, j]), np.zeros(())
    for _ in range(2):  # the second time is iterative refinement
        v = np.zeros(D.X.shape[1])  # the residual is X v less its mean
        v[which[j]] = 1 / spread[j]
        v[which[kept]] = -coef / spread[kept]
        (mean,) = D.summed(partial(_mean_of, v))
        products, square = D.summed(partial(_residuals_of, v, mean))
        coef = coef + np.linalg.solve(G, products[which[kept]] / spread[kept])
    return coef, float(square)


def _mean_of(v: np.ndarray, D: Design) -> Parts:
    """Return the contribution of a chunk to the mean of X v."""
    return (np.array(D.weight / D.total @ product(D.X, v)),)


def _residuals_of(v: np.ndarray, mean: np.ndarray, D: Design) -> Parts:
    """Return the contributions of a chunk to X'(X v - mean) and to |X v - mean|^2."""
    weight, residual = D.weight / D.total, product(D.X, v) - mean
    return rmatvec(D.X, weight * residual), np.array(weight @ residual**2)
