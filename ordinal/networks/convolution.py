"""CNNOR: a convolutional network that is trained on triplets of rows.

The same network, called tower, embeds every row. It is a convolution over neighbouring
features, followed by two layers:

    c(x) = tanh of F filters on each window of w neighbouring features, zeros beyond
    e(x) = V tanh(U'c(x) + a)

A triplet (l, x, h) at a threshold has a row l of the rank below it, a row h of the rank
above it, and any row x. It asks whether x is above the threshold:

    u = |e(x) - e(l)|^2 - |e(x) - e(h)|^2,     P(x is above) = 1 / (1 + exp(-u))     (T)

The loss of a triplet is the cross entropy of P. Every row passes through the tower once
per evaluation, however many triplets it is in, and its gradient by the embedding e is
the sum over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise as neighbours
from typing import Annotated

import numpy as np

from .._cumulative.likelihood import for_all_ranks
from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    Array,
    Length,
    Size,
)
from .._input.immutable import read_only
from .._input.problem import Problem
from .._input.types import RowsLike
from .._model.links import PartitionLink
from .._model.model import read_for
from .._model.preparation import Prepared
from .._model.support import finite_scores
from .._numerics.lbfgs import minimize
from .._numerics.rows import matmul, strips
from .._numerics.threads import in_order
from .._rows.sums import Parts, pairwise
from .._watch.cancellation import check_cancelled
from .._watch.convergence import Convergence
from .layers import LayerRows, log_odds
from .models import OrderedOutputs
from .training import Training

_LEAST = 1e-300  # least mean probability of a vote
_FAR = 1e100  # largest standardised value


@dataclass(frozen=True, slots=True, eq=False)
class Tower:
    """Weights of the network.

    Attributes
    ----------
    K : (w + 1, F) array
        Filters, the bias last.
    U : (d F + 1, h) array
        Weights of the hidden layer, the bias last.
    V : (h, q) array
        Weights of the embedding.
    """

    K: np.ndarray
    U: np.ndarray
    V: np.ndarray

    @classmethod
    def drawn(
        cls,
        d: int,
        width: int,
        filters: int,
        hidden: int,
        places: int,
        rng: np.random.Generator,
    ) -> Tower:
        """Draw a tower at random, with mean variances of at most 1 in every layer."""
        K = rng.standard_normal((width + 1, filters))
        # The arguments of tanh then have a variance of 1, where it is neither flat nor
        # linear.
        K[:-1] /= np.sqrt(min(width, d))
        U = rng.standard_normal((d * filters + 1, hidden))
        U[:-1] /= np.sqrt(d * filters)
        return cls(K, U, rng.standard_normal((hidden, places)) / np.sqrt(hidden))

    def packed(self) -> np.ndarray:
        """Return all weights in one vector."""
        return np.concatenate([self.K.ravel(), self.U.ravel(), self.V.ravel()])

    def like(self, x: np.ndarray) -> Tower:
        """Return a tower of these sizes, from the vector of its weights."""
        k, u = self.K.size, self.K.size + self.U.size
        return Tower(
            x[:k].reshape(self.K.shape),
            x[k:u].reshape(self.U.shape),
            x[u:].reshape(self.V.shape),
        )

    def decay(self) -> np.ndarray:
        """Return the vector of penalised weights, with 0 for biases."""
        K, U = self.K.copy(), self.U.copy()
        # Biases have no penalty, because a shift of the inputs must not change the fit.
        K[-1] = U[-1] = 0.0
        return Tower(K, U, self.V).packed()

    def layers(self, Z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return (windows, c, tanh(U'c + a), e) of standardised rows Z (n, d)."""
        W = windows(Z, len(self.K) - 1)
        C = np.tanh(matmul(W, self.K)).reshape(len(Z), -1)
        H = matmul(C, self.U[:-1])
        H += self.U[-1]
        np.tanh(H, out=H)
        return W, C, H, matmul(H, self.V)

    def places(self, Z: np.ndarray) -> np.ndarray:
        """Return e of standardised rows, (n, q)."""
        return self.layers(Z)[-1]

    def slopes(self, layers: tuple[np.ndarray, ...], by_e: np.ndarray) -> np.ndarray:
        """Return the packed gradient by all weights, from slopes by e (n, q)."""
        W, C, H, _ = layers
        by_V = H.T @ by_e
        by_h = (by_e @ self.V.T) * (1 - H * H)
        by_U = np.vstack([C.T @ by_h, by_h.sum(axis=0)])
        by_c = (by_h @ self.U[:-1].T) * (1 - C * C)
        by_K = W.T @ by_c.reshape(len(W), -1)
        return Tower(by_K, by_U, by_V).packed()


def windows(Z: np.ndarray, width: int) -> np.ndarray:
    """Return the neighbours of every feature, and a one: (n d, width + 1)."""
    n, d = Z.shape
    before = (width - 1) // 2
    # Zeros are the means of standardised features.
    padded = np.zeros((n, d + width - 1))
    padded[:, before : before + d] = Z
    out = np.ones((n, d, width + 1))
    out[:, :, :-1] = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    return out.reshape(n * d, width + 1)


def standardized(rows: LayerRows, some: slice) -> np.ndarray:
    """Return standardised rows, clipped, without the column of ones."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(rows[some][:, :-1], -_FAR, _FAR))


@dataclass(frozen=True, slots=True, eq=False)
class Triplets:
    """Triplets (l, x, h) of rows, N of them.

    Attributes
    ----------
    low, asked, high : (N,) int arrays
        Numbers of the rows l, x and h.
    above : (N,) bool array
        Whether x is above the threshold.
    weight : (N,) array
    """

    low: np.ndarray
    asked: np.ndarray
    high: np.ndarray
    above: np.ndarray
    weight: np.ndarray

    @classmethod
    def drawn(
        cls, rank: np.ndarray, share: np.ndarray, n: int, rng: np.random.Generator
    ) -> Triplets:
        """Draw about n triplets, at most ten per row and threshold.

        At each threshold the number of triplets with x of a rank is proportional to the
        rows of the rank, and at least 1; their weight is that of these rows. l and h
        are drawn by weight, and differ from x unless the rank has no other row.
        """
        m = int(rank.max())
        # With few rows more triplets would repeat the same comparisons.
        each = min(n / (rank.size * m), 10.0)  # triplets per row and threshold
        of_rank = [np.flatnonzero(rank == k) for k in range(m + 1)]
        parts = []
        for k in range(m):
            for c, rows in enumerate(of_rank):
                size = max(1, round(each * rows.size))
                # Permutations, not independent draws, so that each row is x equally
                # often.
                draws = [rng.permutation(rows) for _ in range(-(-size // rows.size))]
                asked = np.concatenate(draws)[:size]
                low = side(of_rank[k], share, asked, rng)
                high = side(of_rank[k + 1], share, asked, rng)
                mass = share[asked] / share[asked].sum() * share[rows].sum() / m
                parts.append((low, asked, high, np.full(size, c > k), mass))
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def side(
    rows: np.ndarray, share: np.ndarray, asked: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw a row by weight for each entry of `asked`, different from it if possible."""
    ends = np.cumsum(share[rows])
    drawn = np.searchsorted(ends, rng.random(asked.size) * ends[-1], side="right")
    drawn = np.minimum(drawn, rows.size - 1)  # rounding may exceed the last sum
    same = rows[drawn] == asked
    drawn[same] = (drawn[same] + 1) % rows.size
    return np.asarray(rows[drawn])


class Relations:
    """(P) of `fit_cnnor`: the mean loss of triplets, plus the penalty of the weights.

    Parameters
    ----------
    rows : LayerRows
    triplets : Triplets
    start : Tower
        A tower of the sizes of all others.
    l2 : float
    n_threads : int
        The result does not depend on it: chunks of rows are added in a fixed tree.
    """

    def __init__(
        self,
        rows: LayerRows,
        triplets: Triplets,
        start: Tower,
        l2: float,
        n_threads: int,
    ):
        self.rows, self.triplets, self.start, self.l2 = rows, triplets, start, l2
        self.n_threads = min(n_threads, sum(1 for _ in rows.chunks()))

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient of (P)."""
        tower = self.start.like(x)

        def forward(rows: slice) -> tuple[np.ndarray, ...]:
            with np.errstate(all="ignore"):
                return tower.layers(standardized(self.rows, rows))

        # The layers of all rows are kept, because triplets join rows of any chunks.
        parts = list(in_order(forward, self.rows.chunks(), self.n_threads))
        E = np.concatenate([part[-1] for part in parts])
        with np.errstate(all="ignore"):
            value, by_e = self._terms(E)

        def backward(numbered: tuple[int, slice]) -> Parts:
            with np.errstate(all="ignore"):
                return (tower.slopes(parts[numbered[0]], by_e[numbered[1]]),)

        chunks = enumerate(self.rows.chunks())
        (slopes,) = pairwise(in_order(backward, chunks, self.n_threads))
        decay = tower.decay()
        with np.errstate(all="ignore"):
            value += 0.5 * self.l2 * float(decay @ decay)
            return value, slopes + self.l2 * decay

    def _terms(self, E: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean loss, and its slopes by the embeddings E, (n, q)."""
        T = self.triplets
        low, x, high = E[T.low], E[T.asked], E[T.high]
        u = relation(low, x, high)
        # One formula for both labels: u > 0 where x is on the wrong side.
        np.negative(u, out=u, where=T.above)
        wrong, _ = log_odds(u)
        # log(1 + e^u) that neither overflows nor loses digits.
        value = T.weight @ (np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u))))
        slope = 2 * T.weight * wrong
        np.negative(slope, out=slope, where=T.above)
        slope = slope[:, None]
        parts = (
            (T.low, slope * (low - x)),
            (T.asked, slope * (high - low)),
            (T.high, slope * (x - high)),
        )
        by_e = np.empty_like(E)
        for a in range(E.shape[1]):
            # A row is in many triplets; bincount adds these in their order.
            by_e[:, a] = sum(np.bincount(at, g[:, a], len(E)) for at, g in parts)
        return float(value), by_e


def relation(low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return u of (T) for embeddings, (..., q)."""
    return np.asarray((np.square(x - low) - np.square(x - high)).sum(axis=-1))


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the tower, and numbers of triplets and of rows to compare with."""

    width: int
    filters: int
    hidden: int
    places: int
    triplets: int
    compared: int


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """Fitted tower, with the rows that votes compare with.

    Attributes
    ----------
    rows : LayerRows
    tower : Tower
    low, high : (m, s, q) arrays
        Embeddings of rows below and above each threshold.
    slopes, offsets : (m,) arrays
        Logistic function of the votes at each threshold.
    convergence : Convergence
    """

    rows: LayerRows
    tower: Tower
    low: np.ndarray
    high: np.ndarray
    slopes: np.ndarray
    offsets: np.ndarray
    convergence: Convergence


def fit_relations(
    prepared: Prepared, sizes: Sizes, l2: float, max_iter: int
) -> Related:
    """Train a tower by L-BFGS, and draw pairs of rows to compare with."""
    training = Training.from_problem(prepared.problem)
    rows, rank, share = training.rows, training.rank, training.share
    rng, monitor = prepared.rng, prepared.monitor
    start = Tower.drawn(
        rows.X.shape[1], sizes.width, sizes.filters, sizes.hidden, sizes.places, rng
    )
    triplets = Triplets.drawn(rank, share, sizes.triplets, rng)
    none = np.full(sizes.compared, -1)
    of_rank = [np.flatnonzero(rank == k) for k in range(int(rank.max()) + 1)]
    pairs = [
        (side(low, share, none, rng), side(high, share, none, rng))
        for low, high in neighbours(of_rank)
    ]
    objective = Relations(rows, triplets, start, l2, prepared.n_threads)
    with monitor.limited(monitor.GRACE):
        found = minimize(
            objective,
            start.packed(),
            tol=monitor.tol,
            max_iter=max_iter,
            monitor=monitor,
        )
    tower = start.like(found.x)
    E = np.concatenate(
        [tower.places(standardized(rows, part)) for part in rows.chunks()]
    )
    record = monitor.record(found.status, found.n_iter, found.violation, found.value)
    low, high = (E[np.stack(at)] for at in zip(*pairs, strict=True))
    z, weight = votes(E, low, high), share * share.size
    link = PartitionLink.fit(z, rank, weight, 1 + len(low))
    return Related(rows, tower, low, high, link.slopes, link.offsets, record)


def votes(E: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the votes at each threshold, (n, m): log odds of the mean P of (T).

    The mean is over the pairs of the threshold; E holds the embeddings of x, (n, q).
    """
    # u of (T) is linear in e(x), so that one product serves all pairs.
    between = high - low
    slopes = 2 * between.reshape(-1, E.shape[1]).T
    level = (between * (high + low)).sum(axis=2).ravel()
    z = np.empty((len(E), len(low)))
    for some in strips(len(E)):
        check_cancelled()
        u = matmul(E[some], slopes)
        u -= level
        sides = log_odds(u.reshape(-1, *low.shape[:2]))
        above, below = (np.maximum(p.mean(axis=2), _LEAST) for p in sides)
        z[some] = np.log(above) - np.log(below)
    return z


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CnnorModel(OrderedOutputs):
    """Convolutional network, and embeddings of training rows for comparison.

    Attributes
    ----------
    mean, scale : (n_features,) arrays
        Means and standard deviations of the training rows; a deviation is infinite for
        a constant column, which has no effect.
    width : int
        Number w of features per filter.
    filters : (w, F) array
        Filters on w neighbouring features.
    filter_bias : (F,) array
    hidden_weights : (n_features F, h) array
        Weights of the outputs of the filters; the outputs at one feature are
        consecutive.
    hidden_bias : (h,) array
    output_weights : (h, q) array
        Weights of the embedding e(x).
    low, high : (m, s, q) arrays
        Embeddings of pairs of training rows of the ranks below and above each
        threshold.
    slopes, offsets : (m,) arrays
        Logistic functions of the votes: the log odds of y > k are slopes[k] z_k -
        offsets[k], where z_k are those of the mean vote.
    observed : (r,) bool array
        Which ranks have training rows of positive weight; m is one less.
    l2 : float
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit. Its `primal` is (P) of `fit_cnnor`. There is no dual.
    """

    mean: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    scale: Annotated[np.ndarray, Array("f8", "d"), POSITIVE]
    width: Annotated[int, Size("w")]
    filters: Annotated[np.ndarray, Array("f8", "w f"), FINITE]
    filter_bias: Annotated[np.ndarray, Array("f8", "f"), FINITE]
    hidden_weights: Annotated[np.ndarray, Array("f8", "c h"), FINITE]
    hidden_bias: Annotated[np.ndarray, Array("f8", "h"), FINITE]
    output_weights: Annotated[np.ndarray, Array("f8", "h q"), FINITE]
    low: Annotated[np.ndarray, Array("f8", "m s q"), FINITE]
    high: Annotated[np.ndarray, Array("f8", "m s q"), FINITE]
    slopes: Annotated[np.ndarray, Array("f8", "m"), FINITE, NONNEGATIVE]
    offsets: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    observed: Annotated[np.ndarray, Array("b1", "r")]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    convergence: Convergence

    def _check(self) -> None:
        m = len(self.low)
        if m < 1 or np.count_nonzero(self.observed) != m + 1:
            raise ValueError("observed must name one rank more than there are pairs")
        if len(self.hidden_weights) != self.n_features * self.filter_bias.size:
            raise ValueError("hidden_weights must have one row per feature and filter")
        if not (self.low.size and len(self.filters)):
            raise ValueError("low and filters must not be empty")

    def places(self, X: RowsLike) -> np.ndarray:
        """Return the embeddings e(x), (n, q); rows of similar ranks are near one
        another.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns, or if the values
            of a row are so large that its embedding overflows.
        """
        rows = LayerRows(read_for(self, X), self.mean, self.scale)
        tower = Tower(
            np.vstack([self.filters, self.filter_bias]),
            np.vstack([self.hidden_weights, self.hidden_bias]),
            self.output_weights,
        )
        out = np.empty((rows.X.shape[0], self.output_weights.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            for part in rows.chunks():
                out[part] = tower.places(standardized(rows, part))
        return finite_scores(out)

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the log odds of y > k, (n, r - 1), by the votes at each threshold.

        A vote is the mean of the probabilities (T) that the row is nearer to the higher
        row of a pair than to the lower one, corrected by a logistic function per
        threshold. The log odds are not constrained to decrease with k. They are inf or
        -inf where no training rows lie beyond the threshold, and equal on both sides of
        an inner rank without training rows.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Raises
        ------
        ValueError, TypeError
            As in `places`.
        """
        E = self.places(X)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            z = self.slopes * votes(E, self.low, self.high) - self.offsets
        return for_all_ranks(self.observed, finite_scores(z), np.inf, -np.inf)


def cnnor_model(problem: Problem, found: Related, l2: float) -> CnnorModel:
    """Return the model that `fit_cnnor` returns."""
    tower = found.tower
    return CnnorModel(
        mean=read_only(found.rows.mean),
        scale=read_only(found.rows.scale),
        width=len(tower.K) - 1,
        filters=read_only(tower.K[:-1].copy()),
        filter_bias=read_only(tower.K[-1].copy()),
        hidden_weights=read_only(tower.U[:-1].copy()),
        hidden_bias=read_only(tower.U[-1].copy()),
        output_weights=read_only(tower.V.copy()),
        low=read_only(found.low),
        high=read_only(found.high),
        slopes=read_only(found.slopes),
        offsets=read_only(found.offsets),
        observed=read_only(problem.present),
        l2=l2,
        **problem.model_fields(),
        convergence=found.convergence,
    )
