"""Every fit with its default threads against one thread, alone and on a busy machine.

    python tools/bench/busy.py [--rows 300 1000 5000] [--rounds 5] [--only svorim ...]
    python tools/bench/busy.py --part large together

There is no peer: the other side is the same fit on one thread. Three parts, on
simulated rows of 8 features in 5 ranks:

fits      each method by its default, and with one thread in a process whose BLAS has
          one thread as well; first alone, then beside --busy processes that never wait
large     8000 rows, C = 100, alone: what two threads gain
together  four fits in four processes at once, against the four in turn

The two sides are two processes that take turns, so that drifts of the machine's speed
meet both; a ratio is the median of those of the rounds. Environment variables that set
numbers of threads are removed from the processes of the default.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from unittest import mock

import numpy as np

THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "ORDINAL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT",
)  # fmt: skip
# Whether glibc gives freed memory back to the system after each fit, which then costs
# 3 ms a fit of 1000 rows, depends on addresses, that is on chance: here it never does.
KEEP_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
}
LEAST = 0.2  # seconds of fits of a side in a round: short fits are repeated
# Steps of fits that take longer than 20 s to converge, from this number of rows on.
STEPS = {
    "gpor-laplace": {1000: {"max_iter": 2}, 5000: {"max_iter": 1}},
    "gpor-ep": {1000: {"max_iter": 2}, 5000: {"max_iter": 1}},
    "cnnor": {1000: {"max_iter": 20}},
    "ofmhs": {5000: {"max_iter": 100}},
}
LARGE = {"svorim": {"C": 100.0}, "npsvor": {"C": 100.0, "C2": 100.0},
         "svorex": {"C": 100.0}}  # fmt: skip


def simulated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of 8 features in 5 ranks of equal size."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 8))
    f = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=n)
    return X, np.digitize(f, np.quantile(f, [0.2, 0.4, 0.6, 0.8]))


def variants() -> dict[str, partial]:
    """Return the fit of every name that the command knows."""
    from ordinal._model.registry import methods

    return {
        name: partial(method.fit, **fixed)
        for method in methods()
        for name, fixed in method.variants.items()
    }


def options_of(name: str, n: int) -> dict[str, int]:
    """Return the limit of steps that a fit of n rows has here, if any."""
    limits = [options for rows, options in STEPS.get(name, {}).items() if n >= rows]
    return limits[-1] if limits else {}


def timed(name: str, n: int, options: dict, least: float) -> float:
    """Return the median seconds of fits that take at least so many seconds together."""
    warnings.simplefilter("ignore")
    X, y = simulated(n)
    if name == "cnnor":
        X = np.tile(X, 8)  # which is read as 8 x 8 pixels
    fit = partial(variants()[name], **options)
    times: list[float] = []
    while not times or sum(times) < least:
        begin = time.perf_counter()
        fit(X, y)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


class Side:
    """A process that fits with the options given, in the environment given."""

    def __init__(self, options: dict, environment: dict[str, str]):
        self.options = options
        bare = {k: v for k, v in os.environ.items() if k not in THREADS}
        self.process = ProcessPoolExecutor(1, get_context("spawn"))
        with mock.patch.dict(os.environ, bare | KEEP_MEMORY | environment, clear=True):
            self.process.submit(variants).result()  # starts it

    def ask(self, name: str, n: int, options: dict, least: float = LEAST) -> Future:
        return self.process.submit(timed, name, n, options | self.options, least)

    def seconds(self, *asked) -> float:
        return self.ask(*asked).result()


def default() -> Side:
    return Side({}, {})


def single() -> Side:
    return Side({"n_threads": 1}, {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})


@contextmanager
def busy(count: int):
    """Run so many processes that never wait."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def ratio(sides, rounds: int, *asked) -> tuple[float, float, float]:
    """Return the default's seconds, those of one thread, and their ratio.

    All three are medians of the rounds. The ratio is the median of the ratios within
    rounds, which is not the ratio of the two medians before it.
    """
    times = []
    for i in range(rounds):
        order = sides if i % 2 else sides[::-1]
        took = {side: side.seconds(*asked) for side in order}
        times.append([took[side] for side in sides])
    a, b = zip(*times, strict=True)
    ratios = [x / y for x, y in times]
    return statistics.median(a), statistics.median(b), statistics.median(ratios)


def part_fits(args) -> None:
    sides = [default(), single()]
    columns = "default     one  ratio"
    print(f"{'':>14} {'rows':>5} | alone: {columns} | busy: {columns}")
    worst = 0.0
    for name in args.only or variants():
        for n in args.rows:
            asked = name, n, options_of(name, n)
            for side in sides:
                side.seconds(*asked, 0.0)  # the first fit of a process
            alone = ratio(sides, args.rounds, *asked)
            with busy(args.busy):
                beside = ratio(sides, args.rounds, *asked)
            worst = max(worst, beside[2])
            shown = [f"{x[0]:13.4f} {x[1]:8.4f} {x[2]:6.2f}" for x in (alone, beside)]
            print(f"{name:>14} {n:>5} | {' | '.join(shown)}", flush=True)
    print(f"largest ratio beside {args.busy} busy processes: {worst:.2f}")


def part_large(args) -> None:
    sides = [default(), single()]
    for name, options in LARGE.items():
        for side in sides:
            side.seconds(name, 8000, options, 0.0)
        found = ratio(sides, args.rounds, name, 8000, options)
        print(
            f"{name}, 8000 rows: {found[0]:.2f} s by default, {found[1]:.2f} s on one "
            f"thread, gain {1 / found[2]:.2f}",
            flush=True,
        )


def part_together(args) -> None:
    sides = [default() for _ in range(4)]
    for name in ("svorim", "npsvor", "tlssvor", "xofm", "gpor-laplace", "pom"):
        for n in args.rows:
            asked = name, n, options_of(name, n), 0.0
            for side in sides:
                side.seconds(*asked)
            ratios = []
            for _ in range(args.rounds):
                begin = time.perf_counter()
                for side in sides:
                    side.seconds(*asked)
                turns = time.perf_counter() - begin
                begin = time.perf_counter()
                for answer in [side.ask(*asked) for side in sides]:
                    answer.result()
                ratios.append((time.perf_counter() - begin) / turns)
            print(
                f"{name:>14} {n:>5}: four in turn {turns:.3f} s, at once "
                f"{statistics.median(ratios):.2f} times that",
                flush=True,
            )


PARTS = {"fits": part_fits, "large": part_large, "together": part_together}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", nargs="+", type=int, default=[300, 1000, 5000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", type=int, default=2, help="processes beside the fits")
    parser.add_argument("--only", nargs="+", help="some of the names of the command")
    args = parser.parse_args()
    for name in args.part:
        PARTS[name](args)


if __name__ == "__main__":
    main()
