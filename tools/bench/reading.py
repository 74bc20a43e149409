"""Seconds to read a table of numbers by every library, and by our own reader.

    python tools/bench/reading.py [--rows N] [--columns D]

Each runs in a process of its own, as the command does; the first number holds the
import of the library. Seconds of the processor are those of all threads together.
"to own" is `again` over that of our own
reader. Columns must be the same to the last bit.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ordinal._files import readers
from ordinal._files.table import read_table


def write(path: Path, n: int, d: int) -> None:
    rows = np.random.default_rng(0).normal(size=(n, d)).tolist()
    names = ",".join(f"x{j}" for j in range(d))
    lines = (",".join(map(repr, row)) for row in rows)
    path.write_text("\n".join([names, *lines]) + "\n")


def measure(path: str, name: str) -> None:
    """Print three times, and what the numbers add up to."""
    only = {key: read for key, read in readers.CSV_READERS.items() if key == name}
    readers.CSV_READERS = only
    seconds = []
    for _ in range(2):
        start = time.perf_counter(), time.process_time()
        table = read_table(path)
        X = table.numbers(table.names)
        end = time.perf_counter(), time.process_time()
        seconds.append(np.subtract(end, start))
    (first, _), (again, cpu) = seconds
    print(first, again, cpu, X.sum().hex())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(*args.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write(path, args.rows, args.columns)
        print(
            f"{args.rows} x {args.columns}, {path.stat().st_size / 1e6:.0f} MB",
            flush=True,
        )
        print("reader     first   again  processor  to own  sum", flush=True)
        own = None
        for name in ("own", *readers.CSV_READERS):
            command = [sys.executable, __file__, "--measure", str(path), name]
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True
            )
            *seconds, total = done.stdout.split()
            first, again, cpu = map(float, seconds)
            own = own or again
            print(
                f"{name:<8}  {first:6.2f}  {again:6.2f}  {cpu:9.2f}  {again / own:6.2f}"
                f"  {total}", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
