"""Python in another process, where the folder of the sources is not found first."""

import subprocess
import sys


def printed(code: str, *words: str, warnings: str = "error") -> str:
    """Return what this prints in a process that has imported nothing; it may have
    nothing to complain of. `warnings` is what becomes of them, as with `python -W`."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", warnings, "-c", code, *words],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
