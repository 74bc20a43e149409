"""Training of a network by L-BFGS from several random hidden layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._input.problem import Problem
from .._model.preparation import Prepared
from .._numerics.lbfgs import Minimum, minimize
from .._numerics.rows import take
from .._numerics.threads import in_order
from .._rows.sums import Parts, pairwise
from .._solvers import _hidden_layer
from .._watch.convergence import Convergence, Status
from .layers import ROWS, LayerRows, Loss, Spaces, random_layer

_SPACE = 2_000_000  # most doubles of the work array of a thread
_FEWEST = 32  # least rows of a chunk, even if they need more
# Multiplications of a chunk that are worth a thread, and the number that a tanh counts
# for. Fewer take less than half a millisecond, so that threads wait for each other and
# for the interpreter (tools/bench/busy.py).
_WORTH_A_THREAD, _TANH = 4_000_000, 20


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Parameters of a network.

    Attributes
    ----------
    U : (d + 1, h) array
        Weights of the hidden layer, the bias last.
    V : (n_outputs, h) array
        Weights of the outputs.
    t : array
        Free parameters of the loss.
    """

    U: np.ndarray
    V: np.ndarray
    t: np.ndarray

    def packed(self) -> np.ndarray:
        """Return all parameters in one vector."""
        return np.concatenate([self.U.ravel(), self.V.ravel(), self.t])

    def like(self, x: np.ndarray) -> Network:
        """Return a network of these sizes, from the vector of its parameters."""
        u, v = self.U.size, self.U.size + self.V.size
        return Network(x[:u].reshape(self.U.shape), x[u:v].reshape(self.V.shape), x[v:])


class Objective:
    """(P) of `ordinal.networks`: the loss, plus l2/2 times the squared weights.

    Parameters
    ----------
    rows : LayerRows
    loss : Loss
        Loss of these rows.
    start : Network
        A network of the sizes of all others.
    l2 : float
    n_threads : int
        The result does not depend on it: chunks of rows are added in a fixed tree.
    """

    def __init__(
        self, rows: LayerRows, loss: Loss, start: Network, l2: float, n_threads: int
    ):
        self.rows, self.loss, self.start = rows, loss, start
        U, V = np.full_like(start.U, l2), np.full_like(start.V, l2)
        U[-1] = 0.0
        self._penalties = Network(U, V, np.zeros_like(start.t)).packed()
        width = start.U.shape[1] + loss.n_outputs
        n = rows.X.shape[0]
        # The outputs of a chunk stay in the cache. Its number of rows depends on sizes
        # only, so that sums have the same bytes on every machine.
        self.size = min(n, ROWS, max(_FEWEST, _SPACE // width))
        work = self.size * start.U.shape[1] * (len(start.U) + loss.n_outputs + _TANH)
        several = n > self.size and work >= _WORTH_A_THREAD
        self.n_threads = n_threads if several else 1
        self._spaces = Spaces(self.size * width)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient, in O(n h (d + n_outputs)).

        They may be inf or NaN, from which the line search steps back.
        """
        net = self.start.like(x)

        def of_chunk(rows: slice) -> Parts:
            with np.errstate(all="ignore"), self._spaces.one() as space:
                return (self._of_chunk(net, rows, space),)

        chunks = self.rows.chunks(self.size)
        # Value and gradient are one vector, so that one tree adds both.
        (total,) = pairwise(in_order(of_chunk, chunks, self.n_threads))
        with np.errstate(over="ignore", invalid="ignore"):
            ridge = self._penalties * x
            return float(total[0] + 0.5 * (x @ ridge)), total[1:] + ridge

    def _of_chunk(self, net: Network, rows: slice, space: np.ndarray) -> np.ndarray:
        """Return the loss of some rows, followed by its gradient, in one vector."""
        Z, h, m = self.rows[rows], net.U.shape[1], self.loss.n_outputs
        both = space[: (h + m) * len(Z)].reshape(h + m, len(Z))
        H, S = both[:h], both[h:]
        # Units are the first axis, because kernels run over the rows of one unit.
        np.tanh(np.matmul(net.U.T, Z.T, out=H), out=H)
        value, by_t = self.loss.terms(np.matmul(net.V, H, out=S), net.t, rows)
        by_V = S @ H.T
        _hidden_layer.bend(H, net.V, S)
        return np.concatenate([[value], (Z.T @ H.T).ravel(), by_V.ravel(), by_t])


@dataclass(frozen=True, slots=True, eq=False)
class TrainedNetwork:
    """The best network of all starts, with the rows that it is trained on."""

    rows: LayerRows
    network: Network
    convergence: Convergence


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Training rows of positive weight.

    Attributes
    ----------
    rows : LayerRows
    rank : (n,) array
        Ranks, numbered among those of these rows.
    share : (n,) array
        Weights, whose sum is 1.
    """

    rows: LayerRows
    rank: np.ndarray
    share: np.ndarray

    @classmethod
    def from_problem(cls, problem: Problem) -> Training:
        """Leave out the rows of weight 0, which would cost as much as others."""
        used = problem.weight > 0
        X = problem.X if used.all() else take(problem.X, used)
        weight, rank = problem.weight[used], problem.rank_among_present[used]
        # Divided by the largest first, because the sum of huge weights may overflow.
        share = weight / weight.max()
        return cls(LayerRows.of_training(X, weight), rank, share / share.sum())

    def best(
        self,
        prepared: Prepared,
        loss: Loss,
        n_hidden: int,
        n_starts: int,
        l2: float,
        max_iter: int,
    ) -> TrainedNetwork:
        """Return the network with the least objective from several random starts.

        Only the hidden layer is random. Outputs begin at 0, so that a fit with reversed
        ranks takes the mirrored steps.
        """
        d, monitor = self.rows.X.shape[1], prepared.monitor
        best: Minimum | None = None
        cut_short: Status | None = None
        n_iter = 0
        for i in range(n_starts):
            if best is not None:
                # The first start is always run, because a fit returns a network.
                cut_short = monitor.after(n_iter).stop(0, best.violation)
                if cut_short is not None:
                    break
            start = Network(
                random_layer(d, n_hidden, prepared.rng),
                np.zeros((loss.n_outputs, n_hidden)),
                loss.start(),
            )
            objective = Objective(self.rows, loss, start, l2, prepared.n_threads)
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
