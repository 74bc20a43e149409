"""Measures the costs by which fits choose between SMO, Newton steps and pivots.

`_solvers/_smo_costs.pyx` counts nanoseconds by the constants NS_..., and
`_quadratic/driver.py` has one more. For every kind of work this prints what is counted
and what it takes on this machine, and single constants where they can be measured
alone.
What decides is the ratio of the kinds to each other, which differs little between
machines that do nothing else. Change a constant only if tools/bench/compare.py
says that fits become faster.

    python tools/measure_costs.py
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
import timeit

import numpy as np

from ordinal import fit_npsvor, fit_svorim, kernels
from ordinal._quadratic import driver
from ordinal._quadratic.newton import clamped_step
from ordinal._quadratic.program import Gram
from ordinal._solvers import _kernel_values
from ordinal._solvers._active_set import ActiveSet
from ordinal._solvers._pair_smo import Smo, Workspace, advance
from ordinal._solvers._smo_costs import block_cost, newton_cost, pivot_cost

ROW = "{:24} {:>12} {:>12} {:>7}"


def nanoseconds(call, repeat: int = 7) -> float:
    """The quickest of several runs."""
    return 1e9 * min(timeit.repeat(call, repeat=repeat, number=1))


def row(what: str, counted: float, taken: float) -> None:
    print(
        ROW.format(what, f"{counted:.3g}", f"{taken:.3g}", f"{taken / counted:.2f}"),
        flush=True,
    )


class Svc:
    """A C-SVC on two overlapping classes, and SMO on it in blocks of q."""

    def __init__(self, n: int, C: float):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 8))
        sign = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
        self.n, self.gram = n, Gram(kernels.RBF(0.1), X, 4000.0, 1, n)
        self.lo, self.hi = np.minimum(C * sign, 0), np.maximum(C * sign, 0)
        self.slope = -sign

    def run(self, q: int, most: int, seconds: float, space: Workspace) -> Smo:
        n, gram, slope = self.n, self.gram, self.slope
        task = Smo(
            gram.K, gram.slot, gram.diagonal, self.lo, self.hi, slope, slope,
            np.zeros(1), False, np.zeros(n), np.zeros(2), np.zeros(n),
            np.array([[0, n]], np.int32), q, 1e-3, most, 1e9,
        )  # fmt: skip
        advance([task], space, seconds, 1)
        return task


def blocks() -> None:
    """All blocks of a fit by SMO alone; and the copy of one block."""
    for n in (1000, 2000, 4000):
        for C in (0.1, 1.0, 10.0):
            svc, q = Svc(n, C), 512
            space = Workspace(n, 1, q, 1)
            counted = svc.run(q, 10**9, 60.0, space).work
            taken = nanoseconds(lambda: svc.run(q, 10**9, 60.0, space), 4)  # noqa: B023
            row(f"SMO of {n}, C = {C:g}", counted, taken)
        m = svc.run(q, 1, 0.0, space).needed().size
        taken = nanoseconds(lambda: svc.run(q, 1, 0.0, space))  # noqa: B023
        row(f"copy of a block of {m}", block_cost(m, 0, 1), taken)
        rows, change = np.arange(m, dtype=np.int32), np.full(m, 1e-9)
        f, K = np.zeros(n), svc.gram.K
        taken = nanoseconds(lambda: _kernel_values.add_rows(K, rows, change, f))  # noqa: B023
        row(f"sweep of {m} rows", block_cost(m, n, 0) - block_cost(m, 0, 0), taken)


def newton_steps() -> None:
    for free in (128, 256, 512, 1024, 2048):
        gram, slope = Svc(free, 1.0).gram, np.random.default_rng(1).normal(size=free)
        box, all_rows = np.full(free, 1e9), np.arange(free)

        def step(gram=gram, slope=slope, box=box, rows=all_rows):
            M = gram.block(rows)
            clamped_step(M, slope, 0 * box, -box, box, np.ones((rows.size, 1)))

        row(f"Newton step {free}", newton_cost(free, free), nanoseconds(step, 4))


def pivots() -> None:
    """The pivots of a fit, fifty at a time, as F grows."""
    for n in (500, 1000, 2000):
        svc = Svc(n, 1.0)
        active = ActiveSet(svc.gram.in_double(), np.zeros(1), 513)
        g, f = np.zeros(n), np.zeros(n)
        seen: dict[int, list[float]] = {}
        while True:
            start = time.perf_counter_ns()
            problem = svc.lo, svc.hi, svc.slope, svc.slope
            if active.minimise(g, f, *problem, 1e-3, 50) < 50:
                break
            taken, m = (time.perf_counter_ns() - start) / 50, active.size
            seen.setdefault(m // 50 * 50, []).append(taken / pivot_cost(m, n))
        for m, ratios in sorted(seen.items()):
            counted = pivot_cost(m + 25, n)
            row(f"pivot {m}.. of {n}", counted, counted * float(np.median(ratios)))


def double() -> None:
    n = 2000
    X = np.random.default_rng(0).normal(size=(n, 8))
    single = nanoseconds(lambda: Gram(kernels.RBF(0.1), X, 4000.0, 1, n), 4)
    both = nanoseconds(lambda: Gram(kernels.RBF(0.1), X, 4000.0, 1, n).in_double(), 4)
    row("entry of K in double", driver.NS_DOUBLE, (both - single) / n**2)


def block_sizes() -> None:
    """SMO alone to 1e-3; _quadratic/driver.py chooses the size for each n."""
    for n in (1000, 2000, 4000):
        svc = Svc(n, 10.0)
        for q in (128, 256, 512, 1024, 1536):
            space = Workspace(n, 1, q, 1)
            taken = nanoseconds(lambda: svc.run(q, 10**9, 60.0, space), 3)  # noqa: B023
            print(f"n={n:5d}  block of {q:5d} {1e-6 * taken:8.1f} ms", flush=True)


def patience() -> None:
    """Whole fits, with SMO left to it for so many times the cost of a Newton step."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8))
    score = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=2000)
    y = np.searchsorted(np.quantile(score, [0.2, 0.4, 0.6, 0.8]), score)
    chosen = driver._PATIENCE
    fits = (fit_svorim, {"C": 100.0}), (fit_npsvor, {"C": 100.0})
    for fit, costs in fits:
        for driver._PATIENCE in (0.125, 0.25, 0.5, 1.0, 2.0):
            taken = nanoseconds(lambda: fit(X, y, n_threads=1, **costs), 3)  # noqa: B023
            name = f"{fit.__name__}, patience of {driver._PATIENCE:g}"
            print(f"{name:34} {1e-6 * taken:8.1f} ms", flush=True)
    driver._PATIENCE = chosen


if __name__ == "__main__":
    print(ROW.format("", "counted ns", "taken ns", "ratio"))
    blocks()
    newton_steps()
    pivots()
    double()
    print()
    block_sizes()
    print()
    patience()
