"""Check that the result of a fit is a function of its arguments alone.

    python tools/reliability/determinism.py                     all, for hours
    python tools/reliability/determinism.py --fits 5 --only npsvor svorim
    python tools/reliability/determinism.py --list

Every configuration is fitted many times with 1, 2, 3 and 8 threads: each number of
threads in a process of its own, half of the fits one after the other and half of them
two at once, with arrays of random sizes made and dropped in between, so that memory
lies elsewhere each time. Meanwhile other processes compute and sleep for random times,
one a processor, so that threads of the fits are held up at random moments.

Prints a row of a Markdown table for every configuration: how many fits there were, and
how many different hashes of all that a model holds, but for the seconds of its fit,
and of what it says of the training rows. With several numbers after --blas all of that
is done with each as the number of threads of numpy's BLAS; the last column says how
many hashes there are among all of these. The exit code is 1 unless there is one hash
for every number of threads of BLAS.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import random
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

THREADS = (1, 2, 3, 8)
BLAS = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"


class Fits(NamedTuple):
    """`fit_<method>` of n rows of d features with options."""

    method: str
    n: int
    options: dict[str, Any]
    d: int = 6


def of_duals(method: str, C: str) -> dict[str, Fits]:
    """With all of K in memory, where Newton steps and pivots end a fit; with few of its
    rows; and with links, which five more fits come before."""
    few = {C: 10.0, "cache_mb": 0.3}
    return {
        method: Fits(method, 900, {C: 100.0}),
        f"{method}, few rows": Fits(method, 600, few),
        f"{method}, probability": Fits(method, 400, {C: 100.0, "probability": True}),
        f"{method}, few rows, probability": Fits(
            method, 400, {C: 3.0, "cache_mb": 0.2, "probability": True}
        ),
    }


def npsvor() -> dict[str, Fits]:
    admm = {"solver": "admm"}
    return {
        **of_duals("npsvor", "C"),
        "npsvor, 1500 rows": Fits("npsvor", 1500, {"C": 100.0}),
        "npsvor, tol 1e-8": Fits("npsvor", 500, {"C": 10.0, "tol": 1e-8}),
        # pivots of one rank beside Newton steps of others; sums of many terms, whose
        # rounding differs most from product to product
        "npsvor, pivots and Newton steps": Fits(
            "npsvor", 1000, {"C": 100.0, "gamma": 0.1}, 10
        ),
        "npsvor, linear, few rows": Fits(
            "npsvor", 600, {"C": 1e-3, "cache_mb": 0.3, "kernel": "linear"}, 1000
        ),
        "npsvor, ADMM": Fits("npsvor", 600, {**admm, "C": 10.0}),
        "npsvor, ADMM, dense": Fits("npsvor", 400, {**admm, "gamma": 3.0}),
        "npsvor, ADMM, polish": Fits(
            "npsvor", 400, {**admm, "C": 10.0, "polish": True}
        ),
        "npsvor, ADMM, basis": Fits("npsvor", 600, {**admm, "basis": 60}),
        "npsvor, ADMM, probability": Fits("npsvor", 300, {**admm, "probability": True}),
    }


def tlssvor() -> dict[str, Fits]:
    return {
        "tlssvor": Fits("tlssvor", 250, {"u": 1.5}),
        "tlssvor, probability": Fits("tlssvor", 150, {"u": 1.5, "probability": True}),
        "tlssvor, basis": Fits("tlssvor", 2500, {"u": 1.5, "basis": 40}),
        "tlssvor, basis, probability": Fits(
            "tlssvor", 2500, {"basis": 20, "probability": True}
        ),
    }


def gpor() -> dict[str, Fits]:
    laplace, once = {"inference": "laplace"}, {"optimize": False}
    on_basis = {"basis": 20, "max_iter": 4}
    return {
        "gpor, EP": Fits("gpor", 80, {}),
        "gpor, EP, 1100 rows": Fits("gpor", 1100, once),
        "gpor, EP, basis": Fits("gpor", 1100, on_basis),
        "gpor, Laplace": Fits("gpor", 150, laplace),
        "gpor, Laplace, 1100 rows": Fits("gpor", 1100, {**laplace, **once}),
        "gpor, Laplace, basis": Fits("gpor", 1100, {**laplace, **on_basis}),
    }


def xofm() -> dict[str, Fits]:
    sgd = {"solver": "sgd", "n_epochs": 0.02}
    return {
        "xofm": Fits("xofm", 5000, {"max_iter": 40}),
        "xofm, early stopping": Fits(
            "xofm", 5000, {"early_stopping": 0.2, "max_iter": 40}
        ),
        "xofm, SGD": Fits("xofm", 5000, {**sgd, "batch_size": 600}),
        "xofm, SGD, early stopping": Fits("xofm", 5000, {**sgd, "early_stopping": 0.2}),
    }


def networks() -> dict[str, Fits]:
    return {
        "nnor": Fits("nnor", 900, {"max_iter": 40}),
        "nnpom": Fits("nnpom", 900, {"max_iter": 40}),
        "elmor": Fits("elmor", 1500, {"n_hidden": 100}),
        "cnnor": Fits("cnnor", 300, {"max_iter": 3}),
    }


CONFIGURATIONS = {
    **npsvor(),
    **of_duals("svorim", "C"),
    "svorim, tol 1e-8": Fits("svorim", 500, {"C": 10.0, "tol": 1e-8}),
    "svorim, linear, few rows": Fits(
        "svorim", 600, {"C": 1.0, "cache_mb": 0.3, "kernel": "linear"}
    ),
    **of_duals("svorex", "C"),
    **of_duals("shashua_levin", "C"),
    **of_duals("redsvm", "C"),
    **of_duals("svc", "C"),
    **of_duals("svr", "C"),
    **of_duals("svmop", "C"),
    **tlssvor(),
    **gpor(),
    **xofm(),
    "opbe": Fits("opbe", 500, {"C": 10.0}),
    "opbe, probability": Fits("opbe", 250, {"C": 10.0, "probability": True}),
    "kdlor": Fits("kdlor", 700, {}),
    "kdlor, basis": Fits("kdlor", 2500, {"basis": 60}),
    **networks(),
    "ofmhs": Fits("ofmhs", 1500, {"l1": 3e-3}),
    "boosting": Fits("boosting", 5000, {"max_iter": 20}),
    "boosting, scores": Fits("boosting", 2000, {"n_rounds": 9, "structure": "scores"}),
}


def main() -> int:
    args = arguments()
    if args.busy is not None:
        return compute_and_sleep(random.Random(args.busy))
    if args.child is not None:
        name, n_threads = args.child
        print(json.dumps(count(CONFIGURATIONS[name], int(n_threads), args.fits)))
        return 0
    names = [n for n in CONFIGURATIONS if n.startswith(tuple(args.only))]
    if args.list:
        print(*names, sep="\n")
        return 0
    command = sys.executable, __file__, "--busy"
    busy = [subprocess.Popen([*command, str(i)]) for i in range(args.beside)]
    blas = [f"hashes, BLAS {n}" for n in args.blas]
    print("|", " | ".join(["fit", "fits", *blas, "seconds", "in all"]), "|")
    print("|---" * (4 + len(blas)) + "|")
    try:
        return int(not all([print_row(name, args) for name in names]))
    finally:
        for process in busy:
            process.kill()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--fits", type=int, default=200, help="of each with each number of threads"
    )
    parser.add_argument("--only", nargs="+", default=[""], help="how names begin")
    parser.add_argument(
        "--blas", type=int, nargs="+", default=[1], help="numbers of threads of BLAS"
    )
    parser.add_argument("--beside", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--list", action="store_true", help="the names, and no fits")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--busy", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def print_row(name: str, args: argparse.Namespace) -> bool:
    """Print the row of a configuration; whether it has one hash for each BLAS."""
    start = time.perf_counter()
    found = [hashes(name, n, args.fits) for n in args.blas]
    fits, each = sum(f.total() for f in found), [len(f) for f in found]
    seconds = round(time.perf_counter() - start)
    row = name, fits, *each, seconds, len(set().union(*found))
    print("|", " | ".join(map(str, row)), "|", flush=True)
    return each == [1] * len(each)


def hashes(name: str, blas: int, fits: int) -> Counter[str]:
    """Count how often each hash was found with so many threads of BLAS."""
    environment = os.environ | dict.fromkeys(BLAS, str(blas))
    # threads of OpenMP that spin while they wait take fifty times as long beside others
    environment |= {"OMP_WAIT_POLICY": "PASSIVE"}
    found: Counter[str] = Counter()
    for n_threads in THREADS:
        command = [sys.executable, __file__, "--fits", str(fits), "--child", name]
        done = subprocess.run(
            [*command, str(n_threads)],
            env=environment, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        found.update(json.loads(done.stdout))
    return found


def count(fits: Fits, n_threads: int, times: int) -> Counter[str]:
    """Count how often each hash was found in so many fits, in this process."""
    import numpy as np  # after the environment is set

    import ordinal
    from ordinal._model.registry import resolve_fit

    rng = np.random.default_rng(0)
    X = rng.standard_normal((fits.n, fits.d))
    score = X[:, :4] @ [1.0, -0.5, 0.3, 0.2] + np.sin(2 * X[:, 4])
    score += 0.5 * rng.standard_normal(fits.n)
    y = np.digitize(score, [-1.2, -0.4, 0.4, 1.2])
    chance = random.Random(n_threads)
    fit = resolve_fit(fits.method)
    kept: list[Any] = []

    def one(_: int) -> str:
        kept.append(np.empty(chance.randrange(1, 1 << chance.randrange(4, 20))))
        del kept[: -chance.randrange(1, 30)]
        model = fit(X, y, n_threads=n_threads, **fits.options)
        numbers = [model.predict(X)]
        for method in ("decision_function", "predict_latent", "predict_proba"):
            can = method != "predict_proba" or getattr(model, "link", True) is not None
            if can and hasattr(model, method):
                numbers.append(getattr(model, method)(X))
        return digest([model, numbers])

    alone = times // 2
    with warnings.catch_warnings():  # some end at the limit of their iterations
        warnings.simplefilter("ignore", ordinal.exceptions.ConvergenceWarning)
        warnings.simplefilter("ignore", ordinal.exceptions.DisorderedThresholdsWarning)
        found = Counter(map(one, range(alone)))
        with ThreadPoolExecutor(2) as pool:
            found.update(pool.map(one, range(alone, times)))
    return found


def digest(value: Any) -> str:
    """A hash of all that it holds but the seconds of a fit."""
    out = hashlib.blake2b(digest_size=16)

    def add(value: Any) -> None:
        if hasattr(value, "tobytes"):
            out.update(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.name != "seconds":
                    add(getattr(value, field.name))
        elif isinstance(value, tuple | list):
            for item in value:
                add(item)
        else:
            out.update(f"{value!r};".encode())

    add(value)
    return out.hexdigest()


def compute_and_sleep(chance: random.Random) -> int:
    parent = os.getppid()
    while os.getppid() == parent:
        until = time.perf_counter() + chance.uniform(0, 0.03)
        while time.perf_counter() < until:
            pass
        time.sleep(chance.uniform(0, 0.02))
    return 0


if __name__ == "__main__":
    sys.exit(main())
