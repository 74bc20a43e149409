"""Compiles and links every extension for other systems, by zig's clang.

    python tools/platforms/cross.py --cpython SOURCES [--targets NAME ...] [--jobs N]
                                    [--quick] [--keep FOLDER] [--setup=-Dx=y ...]

SOURCES is an unpacked source tree of CPython, whose headers Windows' targets take;
without it they are left out. Other targets take the headers of the Python that runs
this, whose sizes of types they share. Needs `pip install ziglang meson ninja Cython`.

Meson configures a build with zig as the compiler, and the files and options of that
build are then compiled again for each target, without OpenMP, which zig does not have.
Shared objects are linked but not run: symbols of Python are looked up when they are
loaded, and on Windows in an import library made of the names that they lack. --quick
optimises nothing but the vector loops.

Prints a table of targets and extensions, the distinct warnings of every target, and
the levels of vector code in each. A loop marked `omp simd` that clang does not
vectorise is a warning.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ZIG = [sys.executable, "-m", "ziglang"]
TARGETS = (
    "x86_64-linux-gnu.2.17",
    "aarch64-linux-gnu.2.17",
    "x86_64-linux-musl",
    "aarch64-linux-musl",
    "x86_64-macos",
    "aarch64-macos",
    "x86_64-windows-gnu",
    "aarch64-windows-gnu",
)
MESSAGE = r"[^/\n]*(?:warning|error): .*$"
LOOPS = "simd.c"  # the file that --quick leaves as it is


@dataclass
class Unit:
    """One file to compile: its source, its options, and the extension it is part of."""

    extension: str
    source: Path
    args: list[str]


@dataclass
class Result:
    objects: dict[str, Path | None] = field(default_factory=dict)  # by source
    linked: dict[str, bool] = field(default_factory=dict)  # by extension
    messages: list[str] = field(default_factory=list)
    levels: str = "-"


def configure(folder: Path, options: list[str]) -> list[Unit]:
    """Meson's files and options with zig as the compiler; Cython writes its C."""
    env = {**os.environ, "CC": shlex.join([*ZIG, "cc"])}
    setup = ["meson", "setup", str(folder), str(ROOT), "-Dopenmp=disabled", *options]
    subprocess.run(setup, check=True, env=env, stdout=subprocess.DEVNULL)
    commands = json.loads((folder / "compile_commands.json").read_text())
    units = []
    for command in commands:
        source = folder / command["file"]
        if source.suffix != ".c":
            continue
        words = shlex.split(command["command"])
        start = words.index("cc") + 1
        part_of = Path(command["output"]).parent.name
        units.append(Unit(part_of.split(".")[0], source, compiler_args(words[start:])))
    generated = [u.source for u in units if not u.source.resolve().exists()]
    names = [os.path.relpath(s, folder) for s in generated]
    subprocess.run(
        ["ninja", "-C", str(folder), *names], check=True, stdout=subprocess.DEVNULL
    )
    return units


def compiler_args(words: list[str]) -> list[str]:
    """Without files, headers of Python, dependencies and the target's own options."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MQ", "-c"):
            skip = True
        elif not (
            word in ("-MD", "-fPIC", "-fdiagnostics-color=always")
            or "include/python" in word
            or word.endswith(".c")
        ):
            kept.append(word)
    return kept


def headers(target: str, cpython: Path | None, folder: Path) -> list[str]:
    if "windows" not in target:
        return ["-fPIC", "-I", sysconfig.get_path("include")]
    config = folder / "pyconfig.h"
    template = cpython / "PC" / "pyconfig.h"
    if not template.exists():  # since 3.13 it is made of this one
        template = template.with_suffix(".h.in")
    config.write_text(template.read_text())
    # its own tests look for Microsoft's compiler
    return ["-DMS_WIN64", "-I", str(folder), "-I", str(cpython / "Include")]


def compile_one(
    unit: Unit, target: str, extra: list[str], out: Path, build: Path, quick: bool
) -> tuple[Path | None, str]:
    args = unit.args
    if quick and unit.source.name != LOOPS:
        args = ["-O0" if a == "-O3" else a for a in args]
    call = [*ZIG, "cc", "-target", target, *args, *extra, "-c", str(unit.source)]
    done = subprocess.run(
        [*call, "-o", str(out)], cwd=build, capture_output=True, text=True
    )
    return (out if done.returncode == 0 else None), done.stderr


def link_args(target: str, objects: list[Path], folder: Path) -> list[str]:
    if "macos" in target:
        return ["-undefined", "dynamic_lookup"]
    if "windows" not in target:
        return ["-lm"]
    found: set[str] = set()
    for path in objects:
        names = re.findall(
            rb"(?<![A-Za-z0-9_])(?:__imp_)?(_?Py[A-Z_]\w+)", path.read_bytes()
        )
        found.update(name.decode() for name in names)
    definition, library = folder / "python.def", folder / "libpython.a"
    definition.write_text("LIBRARY python3.dll\nEXPORTS\n" + "\n".join(sorted(found)))
    machine = "arm64" if "aarch64" in target else "i386:x86-64"
    subprocess.run(
        [*ZIG, "dlltool", "-m", machine, "-d", str(definition), "-l", str(library)],
        check=True,
    )
    return [str(library)]


def build_target(
    target: str, units: list[Unit], args: argparse.Namespace, build: Path, folder: Path
) -> Result:
    folder.mkdir(parents=True, exist_ok=True)
    extra, result = headers(target, args.cpython, folder), Result()

    def compile_at(k: int) -> tuple[Path | None, str]:
        out = folder / f"{k}.o"
        return compile_one(units[k], target, extra, out, build, args.quick)

    with ThreadPoolExecutor(args.jobs) as pool:
        compiled = list(pool.map(compile_at, range(len(units))))
    parts: dict[str, list[Path | None]] = {}
    for unit, (path, said) in zip(units, compiled, strict=True):
        parts.setdefault(unit.extension, []).append(path)
        result.messages += re.findall(MESSAGE, said, re.M)
        if unit.source.name == LOOPS and path is not None:
            text = path.read_bytes()
            names = [
                n
                for n in ("avx512", "avx2", "baseline")
                if f"loops_{n}".encode() in text
            ]
            result.levels = " ".join(names)
    result.objects = {
        unit.source.name: path for unit, (path, _) in zip(units, compiled, strict=True)
    }
    loops = parts.pop("libsimd", [])
    for name, objects in parts.items():
        result.linked[name] = None not in objects + loops and link(
            target, name, [p for p in objects + loops if p], folder, result
        )
    return result


def link(
    target: str, name: str, objects: list[Path], folder: Path, result: Result
) -> bool:
    suffix = ".pyd" if "windows" in target else ".so"
    call = [*ZIG, "cc", "-target", target, "-shared", *map(str, objects)]
    call += link_args(target, objects, folder)
    done = subprocess.run(
        [*call, "-o", str(folder / (name + suffix))], capture_output=True, text=True
    )
    result.messages += re.findall(MESSAGE, done.stderr, re.M)
    return done.returncode == 0


def tell(results: dict[str, Result], units: list[Unit]) -> None:
    extensions = sorted({u.extension for u in units} - {"libsimd"})
    print("extensions:", " ".join(extensions))
    print("files:", len(units), "\n")
    print("| target | compiled | linked | warnings | vector code |")
    print("|---|---|---|---|---|")
    for target, r in results.items():
        compiled = sum(path is not None for path in r.objects.values())
        linked = sum(r.linked.values())
        print(
            f"| {target} | {compiled} of {len(r.objects)} "
            f"| {linked} of {len(r.linked)} | {len(set(r.messages))} | {r.levels} |"
        )
    for target, r in results.items():
        lacking = [s for s, path in r.objects.items() if path is None]
        lacking += [name for name, ok in r.linked.items() if not ok]
        if lacking:
            print(f"\n{target}: not made: {' '.join(lacking)}")
        for message in sorted(set(r.messages)):
            print(f"{target}: {message}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpython", type=Path)
    parser.add_argument("--targets", nargs="+", default=TARGETS, choices=TARGETS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--setup", action="append", default=[])
    args = parser.parse_args()
    args.cpython = args.cpython.resolve() if args.cpython else None
    targets = [t for t in args.targets if args.cpython or "windows" not in t]
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep.resolve() if args.keep else Path(scratch)
        build = folder / "build"
        units = configure(build, args.setup)
        results = {t: build_target(t, units, args, build, folder / t) for t in targets}
    tell(results, units)
    whole = all(
        None not in r.objects.values() and all(r.linked.values())
        for r in results.values()
    )
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
