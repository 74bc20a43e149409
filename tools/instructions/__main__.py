"""Instructions that the kernels take for small fits, beside the last recorded ones.

    python tools/instructions [--record] [--strict] [--only CASE ...]

Counts are by callgrind, of one thread with the vector code of AVX2. They are the same
from run to run to some thousandths, whatever else the machine does, so that a kernel
which takes 5 % more than `recorded.txt` says is a failure: the change is mended, or is
worth it, and then recorded with --record. Other code comes out of another compiler, so
there is a record for each release of gcc or clang; without one, or without valgrind,
nothing is compared, which is said, and with --strict is a failure as well.

Kernels with fewer than 100 000 instructions in a case are left out of it, as calls from
Python cost some thousands; a kernel that is left out everywhere is named. Needs
valgrind and its headers, gcc, and scipy for sparse rows.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import kernels
import numpy as np
from cases import CASES

import ordinal

FOLDER = Path(__file__).parent
RECORD = FOLDER / "recorded.txt"
LEVEL, LIMIT, LEAST = "avx2", 1.05, 100_000
Counts = dict[tuple[str, str], int]  # by case and kernel


def compiler() -> str:
    """Return the compiler of the package, by its first number: "gcc 12"."""
    name, _, version = str(ordinal.show_config()["compiler"]).partition(" ")
    return f"{name} {version.partition('.')[0]}"


def measured(scratch: Path, cases: list[str]) -> Counts:
    library, out = scratch / "slots.so", scratch / "counts"
    slots = " ".join(f"SLOT({kernels.slot_of(name)})" for name in kernels.names())
    include = sysconfig.get_path("include")
    flags = "-O1", "-shared", "-fPIC", f"-I{include}", f"-DSLOTS={slots}"
    subprocess.run(["gcc", *flags, FOLDER / "slots.c", "-o", library], check=True)
    options = (
        "--tool=callgrind", "--instr-atstart=no", "--compress-strings=no",
        "--compress-pos=no", f"--callgrind-out-file={out}",
    )  # fmt: skip
    program = sys.executable, FOLDER / "count.py", library, *cases
    fixed = {
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ORDINAL_SIMD": LEVEL,
        "LD_BIND_NOW": "1", "PYTHONHASHSEED": "0",
    }  # fmt: skip
    subprocess.run(
        ["valgrind", "-q", *options, *program], env=os.environ | fixed, check=True
    )
    return {
        key: count
        for part in scratch.glob("counts.*")
        for key, count in counts_of(part.read_text()).items()
        if count >= LEAST
    }


def counts_of(text: str) -> Counts:
    """Read the counts of one case from callgrind's file: a line of a function is its
    own cost, or behind "calls=" that of a call; together they are all that the function
    takes."""
    case, kernel = "", ""
    slots = {kernels.slot_of(name): name for name in kernels.names()}
    out: Counts = {}
    for line in text.splitlines():
        if line.startswith("desc: Trigger: Client Request: "):
            case = line.rpartition(": ")[2]
        elif line.startswith("fn="):
            kernel = slots.get(line[3:], "")
        elif kernel and line[:1].isdigit():
            key = case, kernel
            out[key] = out.get(key, 0) + int(line.split()[1])
    return out


def records() -> dict[str, str]:
    """Return the parts of the record by compiler: a head, and a line per count."""
    parts = re.split(r"^(?=== )", RECORD.read_text(), flags=re.MULTILINE)[1:]
    return {part[3:].partition(":")[0]: part for part in parts}


def recorded() -> Counts:
    """Return the counts that were recorded with this compiler."""
    lines = records()[compiler()].splitlines()[1:]
    rows = (line.split(maxsplit=2) for line in lines)
    return {(case, kernel): int(count) for count, kernel, case in rows}


def record(counts: Counts) -> None:
    head = (
        f"== {compiler()}: {platform.machine()} {LEVEL}, "
        f"Python {platform.python_version()}, numpy {np.__version__}, "
        f"{' '.join(platform.libc_ver())}"
    )
    rows = [f"{n:10d}  {kernel:34}  {case}" for (case, kernel), n in counts.items()]
    parts = records() | {compiler(): "\n".join([head, *rows, ""])}
    RECORD.write_text("".join(parts[name] for name in sorted(parts)))


def report(old: Counts, new: Counts) -> list[str]:
    """Print every count beside the old one; what is wrong."""
    wrong = []
    for key in sorted(old.keys() | new.keys()):
        case, kernel = key
        before, now = old.get(key), new.get(key)
        if before is None or now is None:
            said = "not recorded" if before is None else "no longer counted"
            wrong.append(f"{case}, {kernel}: {said}; --record if that is meant")
        else:
            said = f"{now / before - 1:+8.2%}"
            if now > LIMIT * before:
                wrong.append(f"{case}, {kernel}: {before} became {now}, {said.strip()}")
        print(f"{now or 0:10d}  {said:>12}  {kernel:34}  {case}")
    return wrong


def impossible() -> str:
    """Why nothing can be counted here, or nothing."""
    if shutil.which("valgrind") is None:
        return "there is no valgrind"
    levels = ordinal.show_config()["simd_levels"]
    return "" if LEVEL in levels else f"this build or processor has no {LEVEL}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded.txt")
    parser.add_argument("--strict", action="store_true", help="comparing is a must")
    parser.add_argument("--only", nargs="+", choices=list(CASES), metavar="CASE")
    args = parser.parse_args()
    if args.record and args.only:
        parser.error("--record takes all cases")
    why = impossible()
    if not why and not args.record and compiler() not in records():
        why = f"recorded with {', '.join(records())}, this is {compiler()}"
    if why:
        print(f"NOT COMPARED: {why}")
        return 2 if args.strict or args.record else 0
    with tempfile.TemporaryDirectory() as scratch:
        new = measured(Path(scratch), args.only or [])
    idle = set(kernels.names()) - {kernel for _, kernel in new}
    if not args.only:
        print(f"not counted anywhere: {', '.join(sorted(idle)) or 'none'}")
    if args.record:
        record(dict(sorted(new.items())))
        print(f"recorded {len(new)} counts with {compiler()}")
        return 0
    only = args.only or CASES
    wrong = report({k: n for k, n in recorded().items() if k[0] in only}, new)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
