"""Calls of everything public with what nobody expects, from a seed.

    python tools/fuzz [--seconds N] [--calls N] [--family F ...] [--seed S]
                      [--processes P] [--only I] [--limit SECONDS] [--memory MB]

Prints for each family how many calls came to what, and for each failure the shortest
call that still fails, as a program. The exit code is 1 if there was a failure. The call
number I of a family and a seed is always the same one; `--only I` makes it alone.

A failure is a crash of the interpreter (calls are made in other processes), a call of
more than 10 s, an exception other than ValueError, TypeError, MemoryError, OSError,
those of the package and one that names what to install, NaN from a model that was
fitted, a warning that is not the package's own, or a message of more than 500
characters. How a family is written is said in call.py.

No fuzzer off the shelf: `hypothesis write` draws arguments from annotations, and 4 of
1000 calls of `metrics.mze` were not refused. Atheris is guided by lines of Python,
where most of the code is compiled; 10 000 of its runs on tables of the command found
nothing.
"""

import argparse
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from call import Call, Family, Outcome, drawn
from executor import Executor, shrink
from families import FAMILIES

_SHOWN = 40  # failures of a family that are made shorter and printed


@dataclass
class Report:
    """Results of the calls of one family."""

    family: str
    kinds: Counter[str] = field(default_factory=Counter)
    incidental: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    failures: dict[tuple[str, str], tuple[int, Call, Outcome]] = field(
        default_factory=dict
    )
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")

    def add(self, number: int, call: Call, outcome: Outcome) -> None:
        self.kinds[outcome.kind] += 1
        self.slowest = max(self.slowest, (outcome.seconds, call.source))
        if outcome.failed:
            self.failures.setdefault(outcome.key, (number, call, outcome))
            self.counts[outcome.key] += 1
        elif outcome.incidental:
            self.incidental[outcome.kind, outcome.place, outcome.detail[:120]] += 1


def run(family: Family, args: argparse.Namespace, seconds: float | None) -> Report:
    """Calls of one family in `args.processes` processes, until enough were made."""
    report, lock, numbers = Report(family.name), threading.Lock(), iter(calls(args))
    end = None if seconds is None else time.monotonic() + seconds

    def work() -> None:
        executor = Executor(args.limit, args.memory)
        while end is None or time.monotonic() < end:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            call = drawn(family, args.seed, number)
            outcome = executor.judge(call)
            with lock:
                report.add(number, call, outcome)
        executor.close()

    threads = [threading.Thread(target=work) for _ in range(args.processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report


def calls(args: argparse.Namespace) -> range:
    if args.only is not None:
        return range(args.only, args.only + 1)
    return range(args.calls or sys.maxsize // 2)


def show(report: Report, args: argparse.Namespace, seconds: float) -> None:
    total = sum(report.kinds.values())
    figures = ", ".join(f"{kind} {n}" for kind, n in report.kinds.most_common())
    print(f"{report.family}: {total} calls in {seconds:.0f} s: {figures}")
    print(f"  slowest {report.slowest[0]:.1f} s: {report.slowest[1][:200]}")
    print(f"  messages of others: {sum(report.incidental.values())}")
    if args.incidental:
        for (kind, place, detail), n in report.incidental.most_common():
            print(f"  {n} {kind} at {place}: {detail!r}")
    executor = Executor(args.limit, args.memory)
    for key, (number, call, outcome) in list(report.failures.items())[:_SHOWN]:
        short, again = shrink(executor, call, outcome)
        times = "" if report.counts[key] == 1 else f" ({report.counts[key]} times)"
        print(f"\n-- {outcome.kind}{times}: call {number} of {report.family}", end="")
        print(f", at {outcome.place}" if again else ", did not fail a second time")
        print(short.script)
        print(outcome.detail.rstrip())
    executor.close()
    if len(report.failures) > _SHOWN:
        print(f"\nand {len(report.failures) - _SHOWN} other failures")
    print(flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, help="for all families together")
    parser.add_argument("--calls", type=int, help="of each family")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="I", help="call number I alone")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of a call")
    parser.add_argument("--memory", type=int, default=4000, help="MB, 0 for no limit")
    parser.add_argument(
        "--incidental", action="store_true",
        help="show allowed exceptions that were not raised by a line of the package",
    )  # fmt: skip
    args = parser.parse_args()
    if args.seconds is None and args.calls is None and args.only is None:
        args.seconds = 60.0
    share = None if args.seconds is None else args.seconds / len(args.family)
    failed = False
    for name in args.family:
        start = time.monotonic()
        report = run(FAMILIES[name], args, share)
        show(report, args, time.monotonic() - start)
        failed = failed or bool(report.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
