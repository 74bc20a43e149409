"""Count packages, modules, imports and levels of the import graph.

    python tools/import_graph.py [--root FOLDER] [--edges]

Modules are the Python files of `ordinal/`, without the compiled kernels, which import
no Python module of ours. An import is counted once for each pair of modules, wherever
in the file it stands; a package's __init__.py counts as the package. The level of a
module is one more than the highest level of what it imports, and modules that import
one another in a circle share a level. An import is upwards if the layers in
pyproject.toml put the importer below what it imports. A package is a folder of
`ordinal/` or a module at its top; the levels of packages are counted as those of
modules. Left out are the imports that pyproject.toml lets import-linter ignore, and the
packages that `import ordinal` finds by the table of `_model/public.py` when one of
their names is used.
"""

import argparse
import ast
import tomllib
from pathlib import Path


def name_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(root: Path) -> dict[str, set[str]]:
    """Return, for each module, the names of the modules that it imports."""
    files = {name_of(p, root): p for p in sorted((root / "ordinal").rglob("*.py"))}
    graph: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & files.keys()
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = package.split(".")[: package.count(".") + 2 - node.level]
                    base = ".".join(above + ([node.module] if node.module else []))
                for alias in node.names:  # a module, or a name of one
                    target = f"{base}.{alias.name}"
                    graph[name].add(target if target in files else base)
        graph[name] = (graph[name] & files.keys()) - {name}
    for ignored in contract(root).get("ignore_imports", []):
        importer, _, imported = ignored.partition(" -> ")
        graph[importer].discard(imported)
    return graph


def reached(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return, for each module, all that it imports directly or through others."""
    out = {}
    for name in graph:
        found, todo = set(), [name]
        while todo:
            new = graph[todo.pop()] - found
            found |= new
            todo += new
        out[name] = found
    return out


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    below = reached(graph)
    # what a module stands on without standing on it in turn
    ground = {a: {b for b in below[a] if a not in below[b]} for a in graph}
    out: dict[str, int] = {}
    for name in sorted(graph, key=lambda name: len(ground[name])):
        out[name] = 1 + max((out[other] for other in ground[name]), default=0)
    return out


def contract(root: Path) -> dict[str, list[str]]:
    """Return the first contract of import-linter, which states the layers."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    contracts = project["tool"].get("importlinter", {}).get("contracts", [])
    return next((c for c in contracts if c["type"] == "layers"), {})


def layers(root: Path) -> list[set[str]]:
    """Return the layers, the highest first."""
    rows = contract(root).get("layers", [])
    return [{name.strip() for name in row.split("|")} for row in rows]


def package_of(module: str) -> str:
    """Return the package, or the module at the top, in which a module lies."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else module


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--edges", action="store_true", help="every import as well")
    args = parser.parse_args()

    graph = imports(args.root)
    edges = [(a, b) for a in sorted(graph) for b in sorted(graph[a])]
    rank = {name: -i for i, names in enumerate(layers(args.root)) for name in names}
    upwards = []
    for a, b in edges:
        above, below = package_of(a), package_of(b)
        if {above, below} <= rank.keys() and rank[above] < rank[below]:
            upwards.append((a, b))
    print(f"{len(graph)} modules, {len(edges)} imports, {len(upwards)} of them upwards")
    level = levels(graph)
    circle = sorted(a for a, below in reached(graph).items() if a in below)
    print(f"{max(level.values())} levels, {len(circle)} modules in circles", *circle)

    packages: dict[str, set[str]] = {package_of(a): set() for a in graph}
    for a, b in edges:
        packages[package_of(a)] |= {package_of(b)} - {package_of(a)}
    level = levels(packages)
    count = sum(map(len, packages.values()))
    print(f"{len(packages)} packages, {count} imports between them, on", end=" ")
    print(f"{max(level.values())} levels")
    for i in range(max(level.values()), 0, -1):
        print(f"{i:3}  {' '.join(sorted(m for m in level if level[m] == i))}")
    for a, b in edges if args.edges else upwards:
        print(f"{a} -> {b}")


if __name__ == "__main__":
    main()
