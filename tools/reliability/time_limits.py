"""Measure by how much fits exceed `max_time`, in every method and stage.

Every fit of long_calls.py runs in a process of its own, once with each of `--limits`,
so that time is up in its kernel matrix, its factor, its steps and its folds in turn.
The table, in Markdown, has for each limit the seconds over it, "-" for a fit that had
ended before, and "(!)" where they are more than `--allowed`.

    python tools/reliability/time_limits.py [--limits S S ...] [--only TEXT]
"""

import argparse
import os
import subprocess
import sys
import time
import warnings

from long_calls import CALLS

STATUS = "max_time"


def child(name: str, limits: list[float]) -> None:
    """Print what every limit came to: seconds over it, and the status of the model."""
    warnings.simplefilter("ignore")
    call = CALLS[name]()
    for limit in limits:
        begun = time.monotonic()
        model = call(max_time=limit)  # type: ignore[call-arg]
        over = time.monotonic() - begun - limit
        status = model.convergence.status.value  # type: ignore[attr-defined]
        print(f"{over}\t{status}", flush=True)


def row_of(name: str, limits: list[float], allowed: float) -> tuple[str, bool]:
    """The line of a call, and whether all fits of it kept the time."""
    command = [sys.executable, __file__, "--child", name, "--limits", *map(str, limits)]
    lines = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    cells, kept = [], True
    for line in lines:
        over, status = line.split("\t")
        late = float(over) > allowed
        kept = kept and not late
        ended = float(over) < 0 and status != STATUS
        cells.append("-" if ended else f"{float(over):.2f}{' (!)' * late}")
    return f"| {name} | {' | '.join(cells)} |", kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--limits", type=float, nargs="+", default=[0.01, 0.3, 1.0, 2.0, 4.0, 8.0]
    )
    parser.add_argument("--allowed", type=float, default=1.0)
    parser.add_argument("--only", default="", help="calls whose name has this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.limits)
        return 0
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    heads = [f"{limit:g} s" for limit in args.limits]
    print(f"| fit | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}")
    all_kept = True
    names = [name for name in CALLS if name.startswith("fit_") and args.only in name]
    for name in names:
        line, kept = row_of(name, args.limits, args.allowed)
        print(line, flush=True)
        all_kept = all_kept and kept
    return 0 if all_kept else 1


if __name__ == "__main__":
    sys.exit(main())
