"""Count what a reader of the package meets, and compare it with the limits set for it.

    python tools/design.py [--check]

Sources are read from the tree that holds this file; what fits and models show is
counted in the package that Python imports, in a process of its own. A function or
class is met if the second fit of 300 rows calls it or one of its methods. With
`--check` a broken limit ends with status 1.
"""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
FITTED = """
import inspect, json, re, sys
from pathlib import Path
import numpy as np
import ordinal
from ordinal.kernels import RBF

def met(fit):
    room = str(Path(ordinal.__file__).parent)
    found = {"files": set(), "functions": set(), "classes": set()}
    def look(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(room):
            found["files"].add(code.co_filename)
            if not code.co_name.startswith("<") or code.co_name == "<lambda>":
                found["functions"].add(code)
            if code.co_varnames[:1] == ("self",):
                found["classes"].add(type(frame.f_locals["self"]))
    sys.setprofile(look)
    fit(X, y, n_threads=1)
    sys.setprofile(None)
    return found

def public(item):
    return [name for name in dir(item) if not name.startswith("_")]

def below(known):
    return [k for c in known.__subclasses__() for k in [c, *below(c)]]

def only_raises(member):
    # with something for each argument, of which a refusal takes no notice
    needed = [p for p in inspect.signature(member).parameters.values()
              if p.default is p.empty and p.kind in (0, 1)]
    try:
        member(*["x"] * len(needed))
    except Exception as error:
        return bool(re.search("not available|is for models of fit_", str(error)))

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
y = np.digitize(X @ rng.normal(size=5) + rng.normal(size=300), [-1, 0, 1])
pom = ordinal.fit_pom(X, y)
ordinal.fit_svorim(X, y)
mixed = ordinal.fit_clmm(X, y, groups={"g": np.arange(300) % 10})
members = [getattr(mixed, name) for name in public(mixed)]
kernels = below(next(c for c in RBF.__mro__ if c.__name__ == "KernelFunction"))
counted = {
    "classes in the resolution order of PomModel": len(type(pom).__mro__),
    "public names of PomModel": len(public(pom)),
    "names of the mixed model that only raise": sum(
        bool(only_raises(m)) for m in members if callable(m)),
    "names at the top level": len(public(ordinal)),
    "kernels": [k.__name__ for k in kernels],
    "leaves": [k.__name__ for k in kernels if not k.__subclasses__()],
}
for fit in (ordinal.fit_pom, ordinal.fit_svorim):
    counted |= {f"{k} met by {fit.__name__}": len(v) for k, v in met(fit).items()}
print(json.dumps(counted))
"""
TEXTS = {path: path.read_text() for path in (ROOT / "ordinal").rglob("*.py")}
TREES = {path: ast.parse(text) for path, text in TEXTS.items()}
LIMITS = [6, 40, 0, 45, 28, 160, 10, 26, 225, 15]  # of what FITTED counts
# of models: elsewhere hasattr asks about objects of other packages
BASES = ("linear", "inference", "mixed", "formula", "_model")


def fitted() -> dict[str, Any]:
    """Count what fits and models show, in a folder in which methods may write."""
    command = [sys.executable, "-W", "ignore", "-c", FITTED]
    with TemporaryDirectory() as folder:
        return json.loads(subprocess.check_output(command, cwd=folder))


def names_in(node: ast.AST) -> set[str]:
    """Return the names, attributes, classes and imports in a part of a module."""
    kinds = ("id", "attr", "name")
    return {getattr(inner, k, None) for inner in ast.walk(node) for k in kinds} - {None}


def calls(*names: str) -> Iterator[tuple[Path, ast.Call]]:
    """Yield the calls of functions or methods of these names, or all calls."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                named = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if not names or named in names:
                    yield path, node


def knowing_kernels(known: set[str]) -> int:
    """Count the files that define, import or use one of these classes."""
    files = (p for p in TREES if p.parts[-2:] != ("kernels", "__init__.py"))
    users = re.compile(r"import .*\bkernels\b|kernels\S* import")
    named = (p for p in files if names_in(TREES[p]) & known)
    return sum("kernels" in p.parts or bool(users.search(TEXTS[p])) for p in named)


def instances(classes: set[str]) -> int:
    asked = (call for _, call in calls("isinstance", "issubclass"))
    return sum(bool(names_in(call.args[1]) & classes) for call in asked)


def by_string() -> int:
    """Count the calls that find another module of ours by a string, but for tables."""
    count = sum(ast.unparse(c.args[0]) != "name" for _, c in calls("find_public"))
    named = [c.args[0] for _, c in calls("import_module", "__import__") if c.args]
    texts = [str(getattr(name, "value", "")) for name in named]
    return count + sum(text.startswith(("ordinal", ".")) for text in texts)


def importers_of_dask() -> int:
    """Count the modules outside the dask package that import from it."""
    wanted = r"(?:dask|\bremote\b|\btransport\b)"  # by its folder, or where it was
    outside = [p for p in TREES if not re.search(wanted, str(p.relative_to(ROOT)))]
    imports = rf"(?m)^ *from \.\S*{wanted}|^ *from \.\S* import .*{wanted}"
    imports += rf"|import_module\(\s*\"[._]\S*{wanted}"
    return sum(bool(re.search(imports, TEXTS[p])) for p in outside)


def by_position() -> int:
    """Count the calls with above 8 positional arguments, but those of kernels."""
    stubs = "".join(p.read_text() for p in (ROOT / "ordinal/_solvers").glob("*.pyi"))
    compiled = {*re.findall(r"(?:def|class) (\w+)", stubs)}
    many = (call for _, call in calls() if len(call.args) > 8)
    return sum(ast.unparse(c.func).rpartition(".")[2] not in compiled for c in many)


def code_lines(path: Path) -> int:
    """Count the lines that are not blank, comment or docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(TEXTS[path]).readline):
        if token.string.strip() and token.type != tokenize.COMMENT:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return len(lines)


def table() -> Iterator[tuple[str, int, int]]:
    """Yield what is counted, the count and the limit."""
    seen = fitted()
    classes, leaves = {*seen.pop("kernels"), "KernelFunction"}, {*seen.pop("leaves")}
    yield from ((*row, limit) for row, limit in zip(seen.items(), LIMITS, strict=True))
    yield "isinstance on kernel classes", instances(classes), 6
    yield "isinstance on CSR", instances({"CSR", "NamedCSR"}), 15
    yield "files that know a kernel", knowing_kernels(leaves), 1
    yield "upward calls by string", by_string(), 0
    text = "".join(TEXTS.values())
    yield "frames whose variables are read", text.count("f_locals"), 0
    yield "asynchronous exceptions", text.count("SetAsyncExc"), 0
    bases = "".join(TEXTS[p] for p in TEXTS if {*p.parts} & {*BASES})
    asked = re.findall(r"hasattr\((?:self\.)?model, \"(?!predict)", bases)
    yield "hasattr(model, ...) in bases", len(asked), 0
    yield "importers of the dask package", importers_of_dask(), 1
    yield "calls with above 8 arguments by position", by_position(), 0
    yield "lines of CHANGELOG", (ROOT / "CHANGELOG.md").read_text().count("\n"), 120
    words = len((ROOT / "docs/decisions.md").read_text().split())
    yield "words of docs/decisions.md", words, 5000
    tools = {p for p in (ROOT / "tools").rglob("*.*") if p.suffix != ".pyc"}
    yield "lines of tools/", sum(p.read_bytes().count(b"\n") for p in tools), 10_000
    yield "code lines of ordinal/**/*.py", sum(map(code_lines, TREES)), 39_899


def main() -> int:
    broken = 0
    print(f"{'':50}{'now':>7}{'at most':>9}")
    for name, count, limit in table():
        broken += count > limit
        print(f"{name:50}{count:7}{limit:9}{'  broken' * (count > limit)}")
    return int(broken > 0 and "--check" in sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
