"""Two builds of the package side by side: which rows of the benchmarks became slower?

    OPENBLAS_NUM_THREADS=1 python tools/bench/compare.py --old PYTHON --new PYTHON \\
        --data FOLDER [--pairs 5] [--parts programs linear ...]

PYTHON is the interpreter of an environment in which a build is installed. Both run the
parts of `own.py` with --json, in turn, so that what else the machine does
meets both; which of the two is first changes from pair to pair. For every row the ratio
new / old of each pair of runs is taken, and printed are the mean of the ratios (of
their logarithms) with its 95 % interval by Student's t. A row whose whole interval lies
above --limit is marked, and the exit status is then 1.

A row is CPU seconds of the quickest of --repeat runs within one process, except those
of two threads, which are wall seconds.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
PARTS = ("programs", "searches", "processes", "xofm", "linear")
# the 0.975 quantile of Student's t with 1, 2, ... degrees of freedom
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def measure(python: str, part: str, args) -> dict[str, float]:
    """Seconds by row, of one run of a part."""
    command = [python, str(FOLDER / "own.py"), "--json", "--only", part]
    command += ["--repeat", str(args.repeat), "--data", args.data]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = map(json.loads, run.stdout.splitlines())
    return {row["row"]: row["seconds"] for row in rows}


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The geometric mean of the ratios and the ends of its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    half = T[len(logs) - 2] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", required=True, metavar="PYTHON")
    parser.add_argument("--new", required=True, metavar="PYTHON")
    parser.add_argument(
        "--data",
        default=os.environ.get("ORDINAL_DATA"),
        required=("ORDINAL_DATA" not in os.environ),
        help="folder of the data tables",
    )
    parser.add_argument("--pairs", type=int, default=5, choices=range(2, 11))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeat", type=int, default=2, help="in one run of a part")
    parser.add_argument("--limit", type=float, default=1.05)
    args = parser.parse_args()

    seconds: dict[str, dict[str, list[float]]] = {}
    began = time.perf_counter()
    for pair, part in ((p, s) for p in range(args.pairs) for s in args.parts):
        sides = ("old", "new") if pair % 2 == 0 else ("new", "old")
        for side in sides:
            for row, value in measure(getattr(args, side), part, args).items():
                seconds.setdefault(row, {}).setdefault(side, []).append(value)
        elapsed = time.perf_counter() - began
        print(f"# pair {pair + 1} {part}: {elapsed:.0f} s", file=sys.stderr)

    slower = 0
    print(f"{'old':>8} {'new':>8}  {'new/old':>7}  {'95 % interval':14}  row")
    for row, sides in seconds.items():
        old, new = sides.get("old", []), sides.get("new", [])
        if len(old) != len(new):
            print(f"{'':41}  {row}: not in both builds")
            continue
        pairs = zip(new, old, strict=True)
        ratio, low, high = interval([a / b for a, b in pairs])
        slower += low > args.limit
        print(
            f"{statistics.fmean(old):8.3f} {statistics.fmean(new):8.3f}  {ratio:7.3f}  "
            f"{low:.3f} to {high:.3f}  {row}{'  SLOWER' * (low > args.limit)}"
        )
    print(f"# {slower} of {len(seconds)} rows are slower by more than {args.limit:g}")
    sys.exit(slower > 0)


if __name__ == "__main__":
    main()
