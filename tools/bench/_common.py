"""What the benchmarks share: data from a folder, clean timing, a header."""

import argparse
import gzip
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import ordinal


def parser(doc: str) -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data(out)
    out.add_argument("--repeat", type=int, default=3, help="the least time counts")
    out.add_argument("--peak", nargs=2, help="(used by the memory part)")
    return out


def add_data(parser: argparse.ArgumentParser) -> None:
    """The option --data of a script that reads tables."""
    parser.add_argument(
        "--data",
        default=os.environ.get("ORDINAL_DATA"),
        help="folder of the data tables (default: the environment's ORDINAL_DATA)",
    )


def table(folder: str | None, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target of NAME.csv.gz."""
    if folder is None:
        raise SystemExit("no data: give --data FOLDER or set ORDINAL_DATA")
    with gzip.open(Path(folder) / f"{name}.csv.gz", "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def standardized(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return (X - X[train].mean(axis=0)) / X[train].std(axis=0)


def california(folder: str | None, n: int, bins: int = 5):
    """(X, y, X_rest, y_rest): n rows of the official 5000-row partition, or beyond
    5000 rows of the whole table; official labels, standardised by the n rows."""
    X, _ = table(folder, "california_housing")
    splits = Path(folder or "") / "splits/california_housing"
    stored = np.load(splits / "npsvor_large_equalfreq.npz")
    train, y = stored["train_idx_5"][0], stored["y5"]
    if bins != 5:
        stored = np.load(splits / "orreview_equalfreq.npz")
        y = stored[f"y{bins}"]
    if n > train.size:
        train = np.arange(len(X))
    train = np.random.default_rng(0).permutation(train)[:n]
    rest = np.setdiff1d(np.arange(len(X)), train)
    X = standardized(X, train)
    return X[train], y[train], X[rest], y[rest]


def best_time(repeat: int, call, *args, **kwargs):
    """(CPU seconds of this process, wall seconds, result) of the quickest run."""
    best = (np.inf, np.inf, None)
    for _ in range(repeat):
        cpu, wall = time.process_time(), time.perf_counter()
        result = call(*args, **kwargs)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if cpu < best[0]:
            best = (cpu, wall, result)
    return best


def in_a_process_of_its_own(script: str, args, *of_peak: str) -> None:
    """Run the script for its peak memory, which no fit before it may have raised."""
    command = [sys.executable, script, "--peak", *of_peak, "--data", args.data]
    subprocess.run(command, check=True)


def peak(fit, args, gamma: float, C: float) -> None:
    """Print this process's peak memory over a fit, less what it held before."""
    n, cache_mb = int(args.peak[0]), float(args.peak[1])
    X, y, *_ = california(args.data, n)
    fit(X[:200], y[:200], gamma, C)
    before = resident("VmRSS")
    c = fit(X, y, gamma, C, cache_mb=cache_mb).convergence
    print(
        f"n {n}, cache_mb {cache_mb:g}: {resident('VmHWM'):.0f} MB in all, "
        f"{before:.0f} MB of them before the fit; {c.status.value}, "
        f"violation {np.max(c.violation):.1e}, {c.seconds:.2f} s"
    )


def resident(field: str) -> float:
    """VmRSS or VmHWM, its peak, of this process in 10^6 bytes; Linux."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("peak memory is read from /proc/self/status")


def header(*versions) -> str:
    """Modules, or words, and the machine's settings, as a comment."""
    names = (
        v if isinstance(v, str) else f"{v.__name__} {v.__version__}"
        for v in (np, *versions)
    )
    blas = os.environ.get("OPENBLAS_NUM_THREADS")
    return (
        f"# {', '.join(names)}, Python {platform.python_version()}, "
        f"{platform.machine()} {ordinal.show_config()['simd']}, "
        f"OPENBLAS_NUM_THREADS={blas}"
    )
