"""Python in another process, and a stream that says it is a terminal."""

import io
import subprocess
import sys


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(code: str, *words: str, warnings: str = "error") -> str:
    """Return what this prints in a process that has imported nothing; it may have
    nothing to complain of. `warnings` is what becomes of them, as with `python -W`. The
    folder of the sources is not found first."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", warnings, "-c", code, *words],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
