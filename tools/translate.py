"""Run Cython on several modules at once, for the build (ordinal/_solvers/meson.build).

    python tools/translate.py FOLDER CYTHON [OPTION ...] MODULE.pyx ...

Most of the time of a Cython process is its start, so one process translates all
modules. C files that stay the same keep their time stamps, so that they are not
compiled again.
"""

import filecmp
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def main() -> int:
    """Translate into a new folder, and copy the C files that changed."""
    folder, *command = sys.argv[1:]
    with TemporaryDirectory() as new:
        status = subprocess.run([*command, "-o", new]).returncode
        if status:
            return status
        for file in Path(new).iterdir():
            old = Path(folder, file.name)
            if not old.exists() or not filecmp.cmp(file, old, shallow=False):
                shutil.copyfile(file, old)
    return 0


if __name__ == "__main__":
    sys.exit(main())
