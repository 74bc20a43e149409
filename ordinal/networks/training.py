"""The least loss of a network, by L-BFGS from several random hidden layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._input.problem import Problem
from .._numerics.lbfgs import Minimum, minimize
from .._numerics.pool import in_order
from .._numerics.rows import take
from .._rows.sums import Parts, pairwise
from .._solvers import _hidden_layer
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor
from .layers import ROWS, LayerRows, Loss, Spaces, random_layer

_SPACE = 2_000_000  # doubles that a thread works in, of as many rows as have room
_FEWEST = 32  # rows that it takes anyhow
# Multiplications of a chunk, and those that its tanh counts for: with fewer, which take
# less than half a millisecond, threads wait for each other and for the interpreter
# (tools/bench/busy.py)
_WORTH_A_THREAD, _TANH = 4_000_000, 20


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Weights of a network.

    U (d + 1, h) belongs to the hidden layer, the bias last, V (n_outputs, h) to the
    outputs, and t are the free parameters of the loss.
    """

    U: np.ndarray
    V: np.ndarray
    t: np.ndarray

    def packed(self) -> np.ndarray:
        return np.concatenate([self.U.ravel(), self.V.ravel(), self.t])

    def like(self, x: np.ndarray) -> Network:
        """Return one of these sizes, from the vector of all its weights."""
        u, v = self.U.size, self.U.size + self.V.size
        return Network(x[:u].reshape(self.U.shape), x[u:v].reshape(self.V.shape), x[v:])


class Objective:
    """The loss of the training rows, and l2/2 of the squared weights without biases.

    Parameters
    ----------
    rows : Rows
    loss : Loss
        Of these rows.
    start : Network
        That all others are of the size of.
    l2 : float
    n_threads : int
        Which changes no bit: chunks of rows are added in one tree.
    """

    def __init__(
        self, rows: LayerRows, loss: Loss, start: Network, l2: float, n_threads: int
    ):
        self.rows, self.loss, self.start = rows, loss, start
        U, V = np.full_like(start.U, l2), np.full_like(start.V, l2)
        U[-1] = 0.0
        self._price = Network(U, V, np.zeros_like(start.t)).packed()
        width = start.U.shape[1] + loss.n_outputs
        n = rows.X.shape[0]
        # Chunks whose outputs stay in the cache; a matter of sizes alone, so that the
        # sum has the same bytes on every machine.
        self.size = min(n, ROWS, max(_FEWEST, _SPACE // width))  # of a chunk
        work = self.size * start.U.shape[1] * (len(start.U) + loss.n_outputs + _TANH)
        several = n > self.size and work >= _WORTH_A_THREAD
        self.n_threads = n_threads if several else 1
        self._spaces = Spaces(self.size * width)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient, in O(n h (d + n_outputs)).

        What is beyond the range of double is no number, and the search goes no further.
        """
        net = self.start.like(x)

        def of_chunk(rows: slice) -> Parts:
            with np.errstate(all="ignore"), self._spaces.one() as space:
                return (self._of_chunk(net, rows, space),)

        chunks = self.rows.chunks(self.size)
        # Value and gradient are one vector: one tree adds both.
        (total,) = pairwise(in_order(of_chunk, chunks, self.n_threads))
        with np.errstate(over="ignore", invalid="ignore"):
            penalty = self._price * x
            return float(total[0] + 0.5 * (x @ penalty)), total[1:] + penalty

    def _of_chunk(self, net: Network, rows: slice, space: np.ndarray) -> np.ndarray:
        """Return the loss of some rows, and behind it its gradient."""
        Z, h, m = self.rows[rows], net.U.shape[1], self.loss.n_outputs
        both = space[: (h + m) * len(Z)].reshape(h + m, len(Z))
        H, S = both[:h], both[h:]
        # Units first, rows last: kernels run over the rows of one unit.
        np.tanh(np.matmul(net.U.T, Z.T, out=H), out=H)
        value, by_t = self.loss.terms(np.matmul(net.V, H, out=S), net.t, rows)
        by_V = S @ H.T
        _hidden_layer.bend(H, net.V, S)
        return np.concatenate([[value], (Z.T @ H.T).ravel(), by_V.ravel(), by_t])


@dataclass(frozen=True, slots=True, eq=False)
class TrainedNetwork:
    """The best of all starts."""

    rows: LayerRows
    network: Network
    convergence: Convergence


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Rows of positive weight, and how they are trained on.

    `share` are their weights, the sum of which is 1, and `rank` their ranks among those
    that such rows have.
    """

    rows: LayerRows
    rank: np.ndarray
    share: np.ndarray

    @classmethod
    def from_problem(cls, problem: Problem) -> Training:
        held = problem.weight > 0
        every = bool(held.all())
        # Rows of weight 0 would cost as much as the others, and change nothing.
        X = problem.X if every else take(problem.X, held)
        weight, rank = problem.weight[held], problem.rank_among_present[held]
        # Divided by the largest first: the sum of huge weights may overflow.
        share = weight / weight.max()
        return cls(LayerRows.of_training(X, weight), rank, share / share.sum())

    def best(
        self,
        loss: Loss,
        *,
        n_hidden: int,
        n_starts: int,
        l2: float,
        max_iter: int,
        n_threads: int,
        rng: np.random.Generator,
        monitor: Monitor,
    ) -> TrainedNetwork:
        """Return the network of the least objective among what the starts lead to.

        All outputs begin at 0: so the first steps of mirrored ranks are mirrored, and
        the hidden layer alone needs to be random.
        """
        d = self.rows.X.shape[1]
        best: Minimum | None = None
        cut_short: Status | None = None
        n_iter = 0
        for i in range(n_starts):
            if best is not None:
                # The first start is always run, for there is no network before it.
                cut_short = monitor.after(n_iter).stop(0, best.violation)
                if cut_short is not None:
                    break
            start = Network(
                random_layer(d, n_hidden, rng),
                np.zeros((loss.n_outputs, n_hidden)),
                loss.start(),
            )
            objective = Objective(self.rows, loss, start, l2, n_threads)
            with monitor.numbered("start", i, n_starts), monitor.limited(monitor.GRACE):
                found = minimize(
                    objective,
                    start.packed(),
                    tol=monitor.tol,
                    max_iter=max_iter,
                    monitor=monitor.after(n_iter),
                )
            n_iter += found.n_iter
            if best is None or found.value < best.value:
                best = found
            if monitor.ended:
                cut_short = found.status
                break
        assert best is not None
        return TrainedNetwork(
            self.rows,
            start.like(best.x),
            monitor.record(
                cut_short or best.status, n_iter, best.violation, best.value
            ),
        )
