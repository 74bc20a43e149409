"""Calls made in a process of their own, which may crash or hang."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from call import Call, Outcome

_START = 120.0  # seconds that the imports of a child may take on a busy machine


class Executor:
    """A child process, started when needed; `judge` never raises what a call does."""

    def __init__(self, limit: float, megabytes: int) -> None:
        self._limit, self._megabytes = limit, megabytes
        self._child: subprocess.Popen[str] | None = None

    def judge(self, call: Call) -> Outcome:
        """Make the call; a child that crashed or hangs is replaced for the next one."""
        child = self._child or self._start()
        assert child.stdin is not None
        start = time.monotonic()
        try:
            child.stdin.write(json.dumps(call.as_dict()) + "\n")
            child.stdin.flush()
            line = self._line(self._limit)
        except BrokenPipeError:
            line = ""
        seconds = time.monotonic() - start
        if line:
            return Outcome(**{**json.loads(line), "seconds": seconds})
        if line is None:
            self.close()
            detail = f"no answer within {self._limit:g} s"
            return Outcome("slow", True, detail, call.function, seconds=seconds)
        code = child.wait()
        self._errors.seek(0)
        said = self._errors.read()[-3000:]
        self.close()
        detail = f"the interpreter ended with code {code}\n{said}"
        return Outcome("crash", True, detail, call.function, seconds=seconds)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            assert self._child.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # what it had not read yet
                self._child.stdin.close()
            os.close(self._answers)
            self._errors.close()
            self._folder.cleanup()
            self._child = None

    def _start(self) -> "subprocess.Popen[str]":
        self._answers, channel = os.pipe()
        self._errors = tempfile.TemporaryFile("w+", errors="replace")
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        self._pending = b""
        program = Path(__file__).resolve().with_name("child.py")
        self._child = subprocess.Popen(
            [sys.executable, str(program), str(channel), str(self._megabytes)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors,
            pass_fds=[channel], text=True, cwd=self._folder.name,
        )  # fmt: skip
        os.close(channel)
        if self._line(_START) != "ready":
            self._errors.seek(0)
            raise RuntimeError(f"a child did not start:\n{self._errors.read()}")
        return self._child

    def _line(self, seconds: float) -> str | None:
        """The next line; "" at the end of the child, None if it takes too long."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._pending:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([self._answers], [], [], wait)[0]:
                return None
            read = os.read(self._answers, 1 << 16)
            if not read:
                return ""
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode()
