"""Sums up what `run.sh` has counted, by package.

    python tools/coverage/summary.py OUT

Python's figures are those of coverage.py. Those of Cython and C are gcov's: of the
C code that Cython has made of a line, and branches where the line has a condition or a
loop; what Cython adds around it, to count references or to raise, is left out. A line
that is compiled for several vector widths has run if it has for any of them.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CONDITION = re.compile(r"\b(if|elif|else|while|for|and|or)\b|&&|\|\||\?")
MARK = re.compile(r'\s*/\* "(.+)":(\d+)$')  # Cython's, before the C code of a line
ADDED = re.compile(r"unlikely\(|__PYX_ERR|\bPy_|__Pyx_")  # what it adds around a line


class Lines(NamedTuple):
    """Coverage of one file: how often a line ran, and the branches of a line."""

    runs: dict[int, int]
    branches: dict[int, list[bool]]


def of_python(report: Path) -> Iterator[tuple[str, Lines]]:
    for path, found in json.loads(report.read_text())["files"].items():
        runs = dict.fromkeys(found["executed_lines"], 1)
        runs |= dict.fromkeys(found["missing_lines"], 0)
        branches = defaultdict(list)
        for key, taken in ("executed_branches", True), ("missing_branches", False):
            for line, _ in found[key]:
                branches[line].append(taken)
        yield path[path.rindex("ordinal/") :], Lines(runs, dict(branches))


def gcov(build: Path) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """Every file that was compiled, with its lines."""
    for counted in sorted(build.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", "--branch-probabilities"]
        said = subprocess.run(
            [*command, str(counted.absolute())],
            cwd=build, capture_output=True, check=True, text=True,
        )  # fmt: skip
        for part in said.stdout.splitlines():
            for found in json.loads(part)["files"]:
                yield build / found["file"], found["lines"]


def of_kernels(build: Path, source: Path) -> Iterator[tuple[str, Lines]]:
    """Every file of _solvers/ that was compiled, itself or through Cython."""
    every: dict[str, Lines] = defaultdict(lambda: Lines({}, {}))
    for path, lines in gcov(build):
        if path.suffix == ".c" and (source / f"{path.stem}.pyx").exists():
            origin = origins(path)
        elif path.suffix in (".c", ".h") and (source / path.name).exists():
            text = (source / path.name).read_text().splitlines()
            origin = {i: (path.name, i, code) for i, code in enumerate(text, 1)}
        else:
            continue
        # of one line of the source, in the order of the lines of C
        taken: dict[tuple[str, int], list[list[bool]]] = defaultdict(list)
        for line in merged_lines(lines):
            name, number, code = origin.get(line["line_number"], ("", 0, ""))
            if not name or not (source / name).exists():  # Cython's own
                continue
            runs, _ = every[f"ordinal/_solvers/{name}"]
            runs[number] = max(runs.get(number, 0), line["count"])
            if CONDITION.search(code) and not code.startswith('"""'):
                taken[name, number].append([b["count"] > 0 for b in line["branches"]])
        for (name, number), parts in taken.items():
            _, branches = every[f"ordinal/_solvers/{name}"]
            new = [branch for part in parts for branch in part]
            branches[number] = merged(branches.get(number, []), new)
    yield from every.items()


def merged_lines(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Read the coverage of a file; a function compiled for several vector widths has
    its lines thrice."""
    by_number: dict[int, dict[str, Any]] = {}
    for line in lines:
        known = by_number.setdefault(line["line_number"], line)
        if known is not line:
            known["count"] = max(known["count"], line["count"])
            pairs = zip(known["branches"], line["branches"], strict=False)
            known["branches"] = [max(pair, key=lambda b: b["count"]) for pair in pairs]
    yield from by_number.values()


def origins(path: Path) -> dict[int, tuple[str, int, str]]:
    """Map each line of C to the file of Cython, its line, and that line's text. Lines
    that Cython adds around it have none."""
    out: dict[int, tuple[str, int, str]] = {}
    here, comment, text = None, False, ""
    for i, code in enumerate(path.read_text().splitlines(), 1):
        if found := MARK.match(code):
            here, comment = (Path(found[1]).name, int(found[2])), True
        elif comment:
            if code.rstrip().endswith("# <<<<<<<<<<<<<<"):
                text = code.lstrip(" *").partition("#")[0]
            comment = not code.strip().endswith("*/")
        elif code.startswith(("}", "/* ")):
            here = None  # the end of a function
        elif here is not None and not ADDED.search(code):
            out[i] = *here, text
    return out


def merged(a: list[bool], b: list[bool]) -> list[bool]:
    """Merge the counts of a line that is compiled twice; if not alike, what more is
    known of."""
    if len(a) == len(b):
        return [x or y for x, y in zip(a, b, strict=True)]
    return max(a, b, key=sum)


def room_of(path: str) -> str:
    parts = Path(path).parts
    kind = {".pyx": " (Cython)", ".pxd": " (Cython)", ".c": " (C)", ".h": " (C)"}
    name = parts[1] if len(parts) > 2 else "modules at the top"
    return name + kind.get(Path(path).suffix, "")


def share(hit: int, of: int) -> str:
    return f"{hit:6d} of {of:6d} {100 * hit / of if of else 100:6.1f} %"


def main(out: Path) -> None:
    files = dict(of_python(out / "python.json"))
    files |= dict(of_kernels(out / "build", Path("ordinal/_solvers")))
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * 4)
    missing = []
    for path, (runs, branches) in sorted(files.items()):
        every = [taken for line in branches.values() for taken in line]
        counts = sum(n > 0 for n in runs.values()), len(runs), sum(every), len(every)
        for name in (room_of(path), "all") if runs else ():
            sums[name] = [a + b for a, b in zip(sums[name], counts, strict=True)]
        idle = sorted(line for line, n in runs.items() if n == 0)
        half = sorted(
            line for line, taken in branches.items()
            if not all(taken) and runs.get(line, 0) > 0
        )  # fmt: skip
        if idle or half:
            missing.append(f"{path}\n  lines {idle}\n  branches of lines {half}")
    table = [f"{'':24}{'lines':>25}   {'branches':>25}"]
    for name, (ran, lines, taken, branches_of) in sorted(sums.items()):
        table.append(f"{name:24}{share(ran, lines)}   {share(taken, branches_of)}")
    (out / "summary.txt").write_text("\n".join(table) + "\n")
    (out / "missing.txt").write_text("\n".join(missing) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
