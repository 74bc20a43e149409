"""Searches that are killed and whose store is damaged end as if nothing had been.

Every search is killed (SIGKILL) at moments drawn evenly from the time that it takes,
then a part of the files of its store is damaged, and the same call is made again until
it ends. Its result must be that of a search that nobody has disturbed, to the last bit
of every score, and must count as many damaged entries as there were. In turn the
searches run in one process, on two threads and on two processes.

    python tools/reliability/killed_searches.py [--searches N] [--kills K]
                                                [--damaged SHARE] [--seed S]

Prints a table in Markdown: how often a search was killed, which part of its tasks was
in the store by then, how many files were damaged, how many the results counted, how
many unfinished files were left behind, and how many results were equal to the
undisturbed one. The exit code is 1 if one was not.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ordinal
from ordinal.model_selection import CoarseToFine, Nested, nested

WAYS = ("in turn", "threads", "processes")


def search(store: str, way: str) -> Nested:
    """The search: of two stages, on 3 hold-outs, in some 150 tasks."""
    X, y = ordinal.datasets.make_gaussians(60, rng=0)
    with ProcessPoolExecutor(2) if way == "processes" else nullcontext() as executor:
        return nested(
            ordinal.fit_svorim, X, y, search=CoarseToFine(), outer=3, cv=3, rng=1,
            store=store, executor=executor, n_threads=1 + (way == "threads"),
        )  # fmt: skip


def digest(result: Nested) -> str:
    """Return all that the result holds, except its time and what was damaged."""
    found = hashlib.blake2b(digest_size=16)
    for part in (result, *result.selections):
        for name in part.__dataclass_fields__:
            if name not in ("seconds", "damaged", "selections"):
                found.update(f"{name} {plain(getattr(part, name))}".encode())
    return found.hexdigest()


def plain(value: Any) -> Any:
    """Arrays as their dtype, shape and bytes."""
    if hasattr(value, "tobytes"):
        return str(value.dtype), value.shape, value.tobytes().hex()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def garbled(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content) - 20)
    return content[:start] + rng.randbytes(20) + content[start + 20 :]


def another_digit(content: bytes, rng: random.Random) -> bytes:
    places = [i for i, byte in enumerate(content) if chr(byte).isdigit()]
    while True:
        at = rng.choice(places)
        digit = rng.choice([b for b in b"0123456789" if b != content[at]])
        changed = content[:at] + bytes([digit]) + content[at + 1 :]
        try:
            if json.loads(changed) != json.loads(content):
                return changed  # else the number is the same in double
        except ValueError:
            return changed


def without_outcomes(content: bytes, rng: random.Random) -> bytes:
    entry = json.loads(content)
    entry["content"]["outcomes"] = []
    return json.dumps(entry).encode()


Damage = Callable[[bytes, random.Random], bytes]
DAMAGES: tuple[Damage, ...] = (
    lambda content, rng: b"", cut, garbled, another_digit, without_outcomes,
)  # fmt: skip


def damage(store: Path, share: float, rng: random.Random) -> int:
    """Damage a part of the files, at least one; how many that were."""
    entries = sorted(store.glob("*.json"))
    chosen = rng.sample(entries, min(len(entries), max(1, round(share * len(entries)))))
    for path in chosen:
        path.write_bytes(rng.choice(DAMAGES)(path.read_bytes(), rng))
    return len(chosen)


class Run:
    """The search in a process group of its own."""

    def __init__(self, folder: Path, way: str):
        (folder / "tmp").mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--child", way],
            stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder / "tmp")},
        )  # fmt: skip

    def killed(self, after: float) -> bool:
        """Return whether it was killed; it may have ended before."""
        try:
            self._process.wait(after)
            return False
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            return True

    def result(self) -> tuple[str, int]:
        """The digest of the result, and how many damaged entries it counts."""
        out, _ = self._process.communicate()
        if self._process.returncode:
            return "", 0
        told, damaged = out.split()
        return told, int(damaged)


@dataclass
class Row:
    """A line of the table."""

    way: str
    searches: int = 0
    kills: int = 0
    done: float = 0.0  # part of the tasks that were in the store, over the kills
    damaged: int = 0
    counted: int = 0
    left: int = 0
    equal: int = 0

    def __str__(self) -> str:
        done = self.done / max(1, self.kills)
        return (
            f"| {self.way} | {self.searches} | {self.kills} | {done:.0%} "
            f"| {self.damaged} | {self.counted} | {self.left} | {self.equal} |"
        )


def disturbed(row: Row, args: argparse.Namespace, rng: random.Random) -> None:
    """One search, entered into the row."""
    folder = Path(tempfile.mkdtemp(prefix="killed-"))
    store = folder / "store"
    for _ in range(args.kills):
        if Run(folder, row.way).killed(rng.uniform(0, args.seconds[row.way])):
            row.kills += 1
            row.done += len(list(store.glob("*.json"))) / args.tasks
    injected = damage(store, args.damaged, rng)
    told, counted = Run(folder, row.way).result()
    row.searches += 1
    row.damaged += injected
    row.counted += counted
    row.left += len(list(store.glob(".*")))
    row.equal += told == args.digest and counted == injected
    shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--kills", type=int, default=2, help="of each search")
    parser.add_argument("--damaged", type=float, default=0.1, help="part of the files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        result = search("store", args.child)
        print(digest(result), result.damaged)
        return 0
    rng = random.Random(args.seed)
    args.seconds = {}
    for way in WAYS:  # the undisturbed one, which must be the same everywhere
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            told = Run(Path(folder), way).result()
            args.seconds[way] = time.monotonic() - start
            args.tasks = len(list(Path(folder, "store").glob("*.json")))
        if told != (getattr(args, "digest", told[0]), 0) or not told[0]:
            raise SystemExit(f"undisturbed searches {way} differ from those in turn")
        args.digest = told[0]
    times = ", ".join(f"{s:.1f} s {way}" for way, s in args.seconds.items())
    print(f"{args.tasks} tasks: {times}\n")
    print("| runs | searches | kills | done | damaged | counted | left | equal |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    rows = [Row(way) for way in WAYS]
    for number in range(args.searches):
        disturbed(rows[number % len(rows)], args, rng)
    print(*rows, sep="\n")
    return int(any(row.equal < row.searches for row in rows))


if __name__ == "__main__":
    sys.exit(main())
