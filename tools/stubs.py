"""Write the stubs of the compiled kernels from their sources.

    python tools/stubs.py [--write]

Parameters have the types that the source declares, and functions the return type of
their annotation, or None. Without --write the stubs that are out of date are listed,
and the exit status is 1 if there are any; a test calls it so. The same holds for other
tools that write files, which share `update`.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOLVERS = ROOT / "ordinal/_solvers"
SCALARS = {
    "double": "float",
    "float": "float",
    "bint": "bool",
    "list": "list[Any]",
    "dict": "dict[Any, Any]",
    "str": "str",
    "bytes": "bytes",
    "object": "Any",
}  # all other types are integers, or classes of the module itself
ENTRIES = {  # all others are fused types
    "double": "np.float64",
    "float": "np.float32",
    "bint": "np.bool_",
    "uint8_t": "np.uint8",
    "int8_t": "np.int8",
    "int32_t": "np.int32",
    "int64_t": "np.int64",
    "uint64_t": "np.uint64",
}
HEAD = re.compile(r"^( *)(?:def|cpdef \w+) (\w+)\(", re.MULTILINE)
CONSTANT = re.compile(r"^([A-Z][A-Z_]*) = (.*?)(?:  #.*)?$", re.MULTILINE)


def type_of(declared: str, classes: set[str]) -> str:
    """Return the type of a parameter from its declaration in Cython."""
    declared = declared.removeprefix("const ")
    if "[" in declared:
        entry = declared.partition("[")[0]
        return f"NDArray[{ENTRIES.get(entry, 'Any')}]"
    if not declared:
        return "Any"
    return SCALARS.get(declared, declared if declared in classes else "int")


def parameter(text: str, classes: set[str]) -> str:
    """Return a parameter as a stub has it: name, type, and whether it has a default."""
    declared, _, default = text.partition("=")
    declared = declared.replace(" not None", "").strip()
    if declared in ("self", "*"):
        return declared
    kind, _, name = declared.rpartition(" ")
    made = f"{name}: {type_of(kind.strip(), classes)}"
    return f"{made} = ..." if default else made


def split(inside: str) -> list[str]:
    """Split parameters at the commas that are in no brackets."""
    parts = re.split(r",(?![^\[]*\])", inside)
    return [part.strip() for part in parts if part.strip()]


def wrapped(parts: list[str], indent: str) -> str:
    """Return parameters in lines that break between two of them only."""
    text = ", ".join(part.replace(" ", "\0") for part in parts)
    lines = textwrap.wrap(
        text, initial_indent=indent, subsequent_indent=indent, width=88,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines).replace("\0", " ")


def constant_type(value: str) -> str:
    """Return the type of a constant from the expression that makes it."""
    if value.startswith("("):
        return "tuple[str, ...]"
    if value.startswith("bool("):
        return "bool"
    if ".decode()" in value:
        return "str"
    return "float" if re.match(r"\d*\.\d", value) else "int"


def enums(stem: str) -> list[str]:
    """Return the enumerations that the .pxd file beside a module exports."""
    path = SOLVERS / f"{stem}.pxd"
    text = path.read_text() if path.exists() else ""
    made = []
    for name, body in re.findall(r"^cpdef enum (\w+):\n((?:    .*\n)+)", text, re.M):
        members = re.findall(r"^    (\w+)", body, re.M)
        lines = [f"    {member} = {k}" for k, member in enumerate(members)]
        made.append("\n".join([f"class {name}(IntFlag):", *lines]))
    return made


def stub(path: Path) -> str:
    """Return the stub of a .pyx file."""
    text = re.sub(r"#[^\n]*", "", path.read_text())
    classes = set(re.findall(r"^cdef class (\w+)", text, re.M))
    items: list[tuple[int, str]] = []
    for found in CONSTANT.finditer(text):
        line = f"{found[1]}: {constant_type(found[2])}"
        items.append((found.start(), line))
    for found in re.finditer(r"^cdef class (\w+)", text, re.M):
        items.append((found.start(), f"class {found[1]}:"))
    for found in re.finditer(r"^    cdef readonly (\w+) (\w+)", text, re.M):
        items.append((found.start(), f"    {found[2]}: {type_of(found[1], classes)}"))
    for found in HEAD.finditer(text):
        name = found[2].replace("__cinit__", "__init__")
        if name == "__dealloc__":
            continue
        end = text.index(":\n", found.end())
        inside, _, after = text[found.end() : end].rpartition(")")
        parameters = [parameter(part, classes) for part in split(inside)]
        parts = ", ".join(parameters)
        returned = after.partition("->")[2].strip()
        if not returned:
            cpdef = re.match(r" *cpdef (\w+)", text[found.start() :])
            returned = type_of(cpdef[1], classes) if cpdef else "None"
        before = text[: found.start()].rstrip("\n").rpartition("\n")[2]
        is_property = re.fullmatch(r" *@(property|\w+\.setter)", before)
        decorator = f"{before}\n" if is_property else ""
        line = f"{found[1]}def {name}({parts}) -> {returned}: ..."
        if len(line) > 88:
            inside = wrapped(parameters, f"{found[1]}    ")
            line = f"{found[1]}def {name}(\n{inside}\n{found[1]}) -> {returned}: ..."
        items.append((found.start(), decorator + line))
    body = "\n".join([*enums(path.stem), *(line for _, line in sorted(items))])
    heads = []
    if "IntFlag" in body:
        heads.append("from enum import IntFlag")
    if "Any" in body:
        heads.append("from typing import Any")
    if "np." in body or "NDArray" in body:
        heads.append("import numpy as np\nfrom numpy.typing import NDArray")
    return "\n".join(['"""Written by tools/stubs.py."""', *heads, body]) + "\n"


def current() -> Iterator[tuple[Path, str]]:
    """Yield the stub of every module of kernels, and what it should be."""
    for path in sorted(SOLVERS.glob("_[a-z]*.pyx")):
        yield path.with_suffix(".pyi"), stub(path)


def update(current: Callable[[], Iterable[tuple[Path, str]]], doc: str | None) -> None:
    """Write the files that are not current, or list them and exit without --write."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the files")
    write = parser.parse_args().write
    stale = [
        (path, text)
        for path, text in current()
        if not path.exists() or path.read_text() != text
    ]
    for path, text in stale:
        print(path.relative_to(ROOT))
        if write:
            path.write_text(text)
    if stale and not write:
        sys.exit(f"out of date: run {sys.argv[0]} --write")


if __name__ == "__main__":
    update(current, __doc__)
