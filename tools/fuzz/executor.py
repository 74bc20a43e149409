"""Calls made in a process of their own, which may crash or hang."""

import faulthandler
import os
import resource
import tempfile
import time
import warnings
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from call import Call, Outcome

_START = 120.0  # seconds that the imports of a child may take on a busy machine
_FRESH = get_context("spawn")  # processes that share no memory with this one


def serve(channel: Connection, folder: str, megabytes: int) -> None:
    """Make the calls that come through the channel, in a folder, with no more memory
    than that (0: as much as there is). A crash ends this process alone."""
    # Before numpy is imported: many children, each with a thread a processor, would
    # spend their time on waiting for one another.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("ORDINAL_NUM_THREADS", "1")
    os.environ.setdefault("MPLBACKEND", "agg")
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(f"{folder}.errors", os.O_WRONLY | os.O_CREAT)
    for descriptor, file in enumerate((nothing, nothing, errors)):
        os.dup2(file, descriptor)
    faulthandler.enable()
    if megabytes:
        limit = megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from judge import judge

    warnings.simplefilter("ignore")
    channel.send("ready")
    while True:
        channel.send(judge(channel.recv()))


class Executor:
    """A child process, started when needed; `judge` never raises what a call does."""

    def __init__(self, limit: float, megabytes: int) -> None:
        self._limit, self._megabytes = limit, megabytes
        self._running = False

    def judge(self, call: Call) -> Outcome:
        """Make the call; a child that crashed or hangs is replaced for the next one."""
        if not self._running:
            self._start()
        start = time.monotonic()
        try:
            self._channel.send(call)
            if self._channel.poll(self._limit):
                seconds = time.monotonic() - start
                return replace(self._channel.recv(), seconds=seconds)
            kind, detail = "slow", f"no answer within {self._limit:g} s"
        except (EOFError, ConnectionError):
            self._child.join()
            said, code = self._said()[-3000:], self._child.exitcode
            kind, detail = "crash", f"the interpreter ended with code {code}\n{said}"
        seconds = time.monotonic() - start
        self.close()
        return Outcome(kind, True, detail, call.function, seconds=seconds)

    def close(self) -> None:
        if self._running:
            self._child.kill()
            self._child.join()
            self._channel.close()
            self._folder.cleanup()
            self._running = False

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        self._work = Path(self._folder.name, "calls")
        self._work.mkdir()
        self._channel, theirs = _FRESH.Pipe()
        given = theirs, str(self._work), self._megabytes
        self._child = _FRESH.Process(target=serve, args=given, daemon=True)
        self._child.start()
        self._running = True
        theirs.close()
        try:
            ready = self._channel.poll(_START) and self._channel.recv()
        except EOFError:
            ready = False
        if not ready:
            raise RuntimeError(f"a child did not start:\n{self._said()}")

    def _said(self) -> str:
        """Return what the child has written to its standard error."""
        return Path(f"{self._work}.errors").read_text(errors="replace")


def shrink(executor: Executor, call: Call, outcome: Outcome) -> tuple[Call, bool]:
    """The shortest call that still fails in the same way: arguments are dropped one by
    one. False if the failure does not come again in a fresh process."""
    executor.close()
    if executor.judge(call).key != outcome.key:
        return call, False
    shorter = True
    while shorter:
        shorter = False
        for candidate in call.shorter():
            if executor.judge(candidate).key == outcome.key:
                call, shorter = candidate, True
                break
    return call, True
