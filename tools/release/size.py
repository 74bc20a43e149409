"""Check that the extension modules of wheels are as small as is promised.

    python tools/release/size.py WHEEL...

prints the size of what is compiled in each wheel, as it is packed there and as it is
installed, and that of the libraries that were brought along, which are not counted. The
exit code is 1 if the first is above the limit, or if a wheel holds nothing compiled.
"""

import sys
import zipfile
from pathlib import Path

LIMIT = 800_000  # bytes
_COMPILED = ".so", ".pyd", ".dylib", ".dll"


def sizes(wheel: Path) -> tuple[int, int, int]:
    """Bytes of the compiled files within the package, packed and installed, and of the
    compiled files beside it."""
    packed = inside = beside = 0
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.endswith(_COMPILED) or ".so." in member.filename:
                own = member.filename.startswith("ordinal/_solvers/")
                inside += member.file_size * own
                packed += member.compress_size * own
                beside += member.file_size * (not own)
    return packed, inside, beside


def main() -> None:
    wheels = [Path(name) for name in sys.argv[1:]]
    if not wheels:
        raise SystemExit(__doc__)
    fits = True
    for wheel in wheels:
        packed, inside, beside = sizes(wheel)
        fits &= 0 < packed <= LIMIT
        print(
            f"{wheel.name}: {wheel.stat().st_size} bytes; {packed} of extension "
            f"modules, at most {LIMIT} ({inside} installed); "
            f"{beside} of libraries beside them"
        )
    sys.exit(0 if fits else 1)


if __name__ == "__main__":
    main()
