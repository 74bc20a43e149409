"""Whether the extension modules of wheels are as small as is promised.

    python tools/release/size.py WHEEL...

prints the size of what is compiled in each wheel, as it is installed and as it is
packed in the wheel, and that of the libraries that were brought along, which are not
counted. The exit code is 1 if the first is above the limit, or if a wheel holds nothing
compiled.
"""

import sys
import zipfile
from pathlib import Path

LIMIT = 800_000  # bytes
_COMPILED = ".so", ".pyd", ".dylib", ".dll"


def sizes(wheel: Path) -> tuple[int, int, int]:
    """Bytes of the compiled files within the package, the same packed, and of the
    compiled files beside it."""
    inside = packed = beside = 0
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.endswith(_COMPILED) or ".so." in member.filename:
                own = member.filename.startswith("ordinal/_solvers/")
                inside += member.file_size * own
                packed += member.compress_size * own
                beside += member.file_size * (not own)
    return inside, packed, beside


def main() -> None:
    wheels = [Path(name) for name in sys.argv[1:]]
    if not wheels:
        raise SystemExit(__doc__)
    fits = True
    for wheel in wheels:
        inside, packed, beside = sizes(wheel)
        fits &= 0 < inside <= LIMIT
        print(
            f"{wheel.name}: {wheel.stat().st_size} bytes; {inside} of extension "
            f"modules, at most {LIMIT} ({packed} packed); "
            f"{beside} of libraries beside them"
        )
    sys.exit(0 if fits else 1)


if __name__ == "__main__":
    main()
