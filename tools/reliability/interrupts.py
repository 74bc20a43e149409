"""Measure how long Ctrl-C waits in every long call, and how long one blocks Python.

Every call of long_calls.py runs in a process of its own. In a first run, of at most
`--seconds`, a timer asks for the interpreter a hundred times a second: the longest time
for which it did not answer bounds the wait of a Ctrl-C at any moment of the run. Then
SIGINT is sent at moments drawn evenly from it, `--times` times. The table, in Markdown,
has in seconds

    takes    the first run, "..." if it was cut short
    holds    the longest time without an answer there
    waits    the longest time from SIGINT until KeyboardInterrupt left the call; of a
             command, until its process ended
    threads  the longest time from then until the threads that the call began had ended

and `--where` prints what the interpreter was at after the longest holds. On a machine
that is busy with other work `--cpu` tells more: it measures holds in processor seconds
of the main thread, and presses nothing.

    python tools/reliability/interrupts.py [--times N] [--seconds S] [--only TEXT]
                                           [--where] [--cpu]
"""

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from long_calls import CALLS, COMMANDS

from ordinal._numerics.pool import at_work

TICK = 0.01  # seconds between two questions to the interpreter
ALLOWED = 0.3  # seconds that a Ctrl-C may wait
HELD = 0.1  # a hold of more seconds than this is worth a line of --where
FIRST = 20  # draws before a call that ends too early is given up


class Watch:
    """The longest times for which the interpreter answered no signal."""

    def __init__(self, seconds: float, cpu: bool):
        self.clock = time.thread_time if cpu else time.monotonic
        self.begun = self.last = self.clock()
        self.end = self.begun + seconds
        self.longest = 0.0
        self.held: dict[str, float] = {}  # by where they ended

    def __enter__(self) -> "Watch":
        self.before = signal.signal(signal.SIGALRM, self.answer)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        return self

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.answer()
        signal.signal(signal.SIGALRM, self.before)

    def answer(self, number: int = 0, frame: object = None) -> None:
        now = self.clock()
        gap, self.last = now - self.last, now
        self.longest = max(self.longest, gap)
        if gap > HELD:
            where = " < ".join(
                f"{Path(f.filename).stem}:{f.lineno}"
                for f in reversed(traceback.extract_stack(frame)[-4:])  # type: ignore
            )
            self.held[where] = max(gap, self.held.get(where, 0.0))
        if number and now > self.end:
            self.end = float("inf")
            raise KeyboardInterrupt


def ended(threads: int) -> float:
    """Seconds until there are no more threads than this, and none of a pool."""
    begun = time.monotonic()
    while (at_work or threading.active_count() > threads) and (
        time.monotonic() < begun + 60
    ):
        time.sleep(0.005)
    return time.monotonic() - begun


def child(name: str) -> None:
    """Make the call for every line on stdin: "watch SECONDS CPU" or "press"."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    call = CALLS[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        threads = threading.active_count()
        if line.startswith("watch"):
            _, seconds, cpu = line.split()
            watch = Watch(float(seconds), cpu == "True")
            cut = ""
            try:
                with watch:
                    call()
            except KeyboardInterrupt:
                cut = "..."
            ended(threads)
            taken = watch.last - watch.begun
            print(f"{taken}\t{cut}\t{watch.longest}\t{watch.held}", flush=True)
            continue
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print("begun", flush=True)
            call()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("over", flush=True)
        except KeyboardInterrupt:
            now = time.monotonic()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print(f"{now}\t{ended(threads)}", flush=True)


@dataclass
class Row:
    """A line of the table."""

    name: str
    takes: float
    cut: str
    holds: float
    waits: float
    threads: float

    def __str__(self) -> str:
        mark = " (!)" if self.waits > ALLOWED else ""
        takes = f"{self.takes:.1f}{self.cut}"
        return (
            f"| {self.name} | {takes} | {self.holds:.2f} | {self.waits:.2f}{mark} "
            f"| {self.threads:.2f} |"
        )


def measured(name: str, times: int, seconds: float, where: bool, cpu: bool) -> Row:
    """Return the row of a call in the report."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--child", name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(line: str) -> None:
        print(line, file=process.stdin, flush=True)

    def answer() -> str:
        assert process.stdout is not None
        text = process.stdout.readline()
        if not text:
            raise RuntimeError(f"{name}: the process has ended")
        return text

    answer()
    ask(f"watch {seconds} {cpu}")
    taken, cut, holds, held = answer().split("\t")
    if where:
        for place, gap in sorted(eval(held).items(), key=lambda item: -item[1])[:5]:
            print(f"    {gap:.2f} s  {place}", file=sys.stderr)
    row = Row(name, float(taken), cut, float(holds), 0.0, 0.0)
    pressed = drawn = 0
    while pressed < times and drawn < times + FIRST:
        drawn += 1
        ask("press")
        assert answer() == "begun\n"
        delay = random.uniform(0, row.takes)
        if select.select([process.stdout], [], [], delay)[0]:
            answer()  # over before the moment came
            continue
        now = time.monotonic()
        process.send_signal(signal.SIGINT)
        if (text := answer()) == "over\n":
            continue
        pressed += 1
        left, threads = map(float, text.split())
        row.waits = max(row.waits, left - now)
        row.threads = max(row.threads, threads)
    process.stdin.close()
    process.wait()
    return row


def of_command(name: str, times: int, seconds: float) -> Row:
    """The row of a command, whose runs begin with the start of Python."""
    command = [sys.executable, "-m", "ordinal", *COMMANDS[name]()]

    def run(limit: float) -> tuple[float, float]:
        """(how long it ran, how long it waited for its end)."""
        begun = time.monotonic()
        # the folder keeps Python from importing a source tree that is not compiled
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),
        )  # fmt: skip
        try:
            process.wait(limit)
            return time.monotonic() - begun, 0.0
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.wait()
            return now - begun, time.monotonic() - now

    takes, waits = run(seconds)
    for _ in range(times):
        waits = max(waits, run(random.uniform(0, takes))[1])
    return Row(name, takes, "..." if takes >= seconds else "", 0.0, waits, 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=10, help="Ctrl-C a call")
    parser.add_argument("--seconds", type=float, default=60.0, help="of a run at most")
    parser.add_argument("--only", default="", help="calls whose name has this")
    parser.add_argument("--where", action="store_true", help="print the longest holds")
    parser.add_argument("--cpu", action="store_true", help="processor seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return 0
    random.seed(args.seed)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    columns = "call", "takes", "holds", "waits", "threads"
    print(f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}")
    late = 0
    names = [*CALLS] if args.cpu else [*CALLS, *COMMANDS]
    for name in (name for name in names if args.only in name):
        if name in CALLS:
            times = 0 if args.cpu else args.times
            row = measured(name, times, args.seconds, args.where, args.cpu)
        else:
            row = of_command(name, args.times, args.seconds)
        print(row, flush=True)
        late += row.waits > ALLOWED
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
