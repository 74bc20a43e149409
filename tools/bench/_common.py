"""Helpers of the benchmarks: data from a folder, clean timing, tables of rows.

Every script of this folder prints tables. With --json it prints one JSON object for
each row in their place, {"row": what it is, "seconds": ours}, as `compare.py` reads it.
"""

import argparse
import gzip
import importlib
import json
import multiprocessing
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np

import ordinal

sys.path.append(str(Path(__file__).parents[1]))  # for pictures.py


def parser(doc: str, parts) -> argparse.ArgumentParser:
    """The options of every benchmark; `parts` are the names of its tables."""
    out = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data(out)
    out.add_argument("--repeat", type=int, default=3, help="the least time counts")
    out.add_argument(
        "--only", nargs="+", choices=list(parts), metavar="PART",
        help=f"some of {', '.join(parts)}; all by default",
    )  # fmt: skip
    out.add_argument("--json", action="store_true", help="a JSON object for each row")
    return out


def run(args, parts, *versions) -> None:
    """Print the header and run the parts that are asked for, all of them by default."""
    if not args.json:
        print(header(*versions))
    for name in args.only or parts:
        args.part = name
        parts[name](args)
        sys.stdout.flush()


class Table:
    """Rows as text under a heading, or with --json as objects.

    Columns are "name:format"; a value of None is printed as "-". What stands left of
    the column `ours`, which is our seconds, names the row.
    """

    def __init__(self, args, title: str, *columns: str):
        split = [column.rsplit(":", 1) for column in columns]
        self.names, self.formats = zip(*split, strict=True)
        self.widths = [
            max(len(name), len(format(1 if "d" in spec else 1.0, spec)))
            for name, spec in split
        ]
        self.json, self.part = args.json, f"{Path(sys.argv[0]).stem} {args.part}"
        if not self.json:
            print(f"\n## {title}")
            print("  ".join(map(str.rjust, self.names, self.widths)), flush=True)

    def row(self, *values) -> None:
        cells = [
            "-" if value is None else value if isinstance(value, str)
            else format(value, spec)
            for value, spec in zip(values, self.formats, strict=True)
        ]  # fmt: skip
        if not self.json:
            print("  ".join(map(str.rjust, cells, self.widths)), flush=True)
        elif "ours" in self.names:
            ours = self.names.index("ours")
            label = " ".join(
                f"{name} {cell.strip()}"
                for name, cell in zip(self.names[:ours], cells, strict=False)
            )
            row = {"row": f"{self.part}: {label}", "seconds": values[ours]}
            print(json.dumps(row), flush=True)

    def note(self, text: str) -> None:
        """A line below the table, which is not a row."""
        if not self.json:
            print(text, flush=True)


def fit_of(name: str):
    """Return the fit of a method from where this build, or an older one, has it."""
    homes = ("ordinal", "ordinal.linear", "ordinal.companions")
    modules = (importlib.import_module(home) for home in homes)
    return next(getattr(m, f"fit_{name}") for m in modules if hasattr(m, f"fit_{name}"))


def add_data(parser: argparse.ArgumentParser) -> None:
    """The option --data of a script that reads tables."""
    parser.add_argument(
        "--data",
        default=os.environ.get("ORDINAL_DATA"),
        help="folder of the data tables (default: the environment's ORDINAL_DATA)",
    )


NO_DATA = (
    "no data: give --data FOLDER or set ORDINAL_DATA; docs/data_sets.md says what the "
    "folder holds and where it comes from"
)


def table(folder: str | None, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target of NAME.csv.gz."""
    if folder is None:
        raise SystemExit(NO_DATA)
    file = Path(folder) / f"{name}.csv.gz"
    if not file.exists():
        raise SystemExit(f"no {file}: docs/data_sets.md says where it comes from")
    with gzip.open(file, "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def stored_splits(folder: str | None, name: str, kind: str):
    """Row numbers and labels of splits/NAME/KIND.npz."""
    if folder is None:
        raise SystemExit(NO_DATA)
    file = Path(folder) / "splits" / name / f"{kind}.npz"
    if not file.exists():
        raise SystemExit(f"no {file}: docs/data_sets.md says what the folder holds")
    return np.load(file)


def standardized(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return (X - X[train].mean(axis=0)) / X[train].std(axis=0)


def california(folder: str | None, n: int, bins: int = 5):
    """(X, y, X_rest, y_rest): n rows of the official 5000-row partition, or beyond
    5000 rows of the whole table; official labels, standardised by the n rows."""
    X, _ = table(folder, "california_housing")
    stored = stored_splits(folder, "california_housing", "npsvor_large_equalfreq")
    train, y = stored["train_idx_5"][0], stored["y5"]
    if bins != 5:
        stored = stored_splits(folder, "california_housing", "orreview_equalfreq")
        y = stored[f"y{bins}"]
    if n > train.size:
        train = np.arange(len(X))
    train = np.random.default_rng(0).permutation(train)[:n]
    rest = np.setdiff1d(np.arange(len(X)), train)
    X = standardized(X, train)
    return X[train], y[train], X[rest], y[rest]


def best_time(repeat: int, call, *args, **kwargs):
    """(CPU seconds of this process, wall seconds, result) of the quickest run, of
    `repeat` or, where they take less than half a second in all, of up to ten."""
    best, spent, runs = (np.inf, np.inf, None), 0.0, 0
    while runs < repeat or (repeat > 1 and spent < 0.5 and runs < 10):
        cpu, wall = time.process_time(), time.perf_counter()
        result = call(*args, **kwargs)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if cpu < best[0]:
            best = (cpu, wall, result)
        spent, runs = spent + wall, runs + 1
    return best


def limited(limit: float | None, call, *args):
    """call(*args) in a fork of this process; (limit, None) if it takes longer."""
    with multiprocessing.get_context("fork").Pool(1) as pool:  # leaving it ends it
        try:
            return pool.apply_async(call, args).get(limit)
        except multiprocessing.TimeoutError:
            return limit, None


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
