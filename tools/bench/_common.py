"""What the benchmarks share: data from a folder, clean timing, a header."""

import argparse
import gzip
import os
import platform
import time
from pathlib import Path

import numpy as np


def parser(doc: str) -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    out.add_argument(
        "--data",
        default=os.environ.get("ORDINAL_DATA"),
        help="folder of the data tables (default: the environment's ORDINAL_DATA)",
    )
    out.add_argument("--repeat", type=int, default=3, help="the least time counts")
    return out


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


def header(*modules) -> str:
    versions = ", ".join(f"{m.__name__} {m.__version__}" for m in (np, *modules))
    return f"# {versions}, Python {platform.python_version()}, {platform.machine()}"
