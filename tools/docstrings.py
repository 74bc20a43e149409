"""Write the parameters that several `fit_*` functions share into all their docstrings.

    python tools/docstrings.py           print the functions whose text is not current
    python tools/docstrings.py --write   write it into the sources

The text of a shared parameter is written once, in the function that `INHERITED` names;
`help`, editors and the site then show plain docstrings. A function states what it lists
as its own, and whatever the other function does not have.
"""

import argparse
import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ordinal._model.registry import parameters

# function: where its other parameters are described, and those that it describes itself
INHERITED: dict[str, tuple[str, str]] = {
    "fit_svorex": ("fit_svorim", "cost"),
    "fit_shashua_levin": ("fit_svorim", "cost"),
    "fit_redsvm": ("fit_svorim", "cost"),
    "fit_npsvor": ("fit_svorim", "tol cost classes basis max_iter max_time"),
    "fit_npsvor_path": ("fit_npsvor", ""),
    "fit_svc": ("fit_svorim", "tol basis max_iter"),
    "fit_svr": ("fit_svc", "cost"),
    "fit_cssvc": ("fit_svc", "cost"),
    "fit_svmop": ("fit_svc", "cost"),
    "fit_opbe": ("fit_svorim", "tol basis rng max_iter"),
    "fit_kdlor": (
        "fit_svorim",
        "C basis tol sample_weight class_weight rng max_iter max_time callback",
    ),
    "fit_tlssvor": (
        "fit_svorim",
        "X C basis tol sample_weight probability rng cache_mb max_iter max_time "
        "callback",
    ),
    "fit_gpor": (
        "fit_svorim",
        "X kernel basis start tol max_iter max_time sample_weight classes cache_mb rng "
        "callback",
    ),
    "fit_xofm": (
        "fit_svorim",
        "X cache_mb sample_weight probability rng tol max_iter max_time callback",
    ),
    "fit_nnor": ("fit_svorim", "X y tol rng max_iter max_time callback"),
    "fit_nnpom": ("fit_nnor", "l2"),
    "fit_elmor": (
        "fit_nnor",
        "X y n_hidden tol probability rng max_iter max_time callback",
    ),
    "fit_cnnor": ("fit_nnor", "X n_hidden l2 tol sample_weight rng max_iter"),
    "fit_lit": ("fit_svorim", "X tol probability rng max_iter max_time callback"),
    "fit_lat": ("fit_lit", ""),
    "fit_ofmhs": ("fit_lit", "X y tol max_iter"),
    "fit_boosting": (
        "fit_xofm",
        "X y learning_rate monotone sample_weight rng n_threads tol max_iter max_time "
        "callback",
    ),
    "fit_pom": (
        "fit_svorim",
        "X y sample_weight class_weight tol max_iter max_time callback",
    ),
    "fit_pom_path": ("fit_pom", "link tol max_iter max_time"),
    "fit_clmm": (
        "fit_pom",
        "X y link offset sample_weight missing tol max_iter max_time",
    ),
}
ROOT = Path(__file__).parents[1]
SOURCES = [
    *sorted(ROOT.glob("ordinal/[a-z]*/fit.py")),
    ROOT / "ordinal/linear/mixed_fit.py",
]


def functions(source: str) -> Iterator[ast.FunctionDef]:
    """Yield every `fit_*` function of a source."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("fit_"):
            yield node


def docstring_of(node: ast.FunctionDef) -> str:
    """Return the docstring without indentation."""
    return inspect.cleandoc(ast.get_docstring(node) or "")


def entries_of(name: str, nodes: dict[str, ast.FunctionDef]) -> list[str]:
    """Return the entries of a function's parameters in the order of its signature."""
    node, found = nodes[name], parameters(docstring_of(nodes[name]))
    other, own = INHERITED.get(name, ("", ""))
    if other:
        shared = {
            key: entry
            for entry in entries_of(other, nodes)
            if (key := entry.partition(" : ")[0]) not in own.split()
        }
        found = {**found, **shared}
    by_name = {arg: entry for key, entry in found.items() for arg in key.split(", ")}
    given = [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]
    missing = [arg for arg in given if arg not in by_name]
    if missing:
        raise SystemExit(f"{name} does not describe {', '.join(missing)}")
    return list(dict.fromkeys(by_name[arg] for arg in given))


def current(text: str, nodes: dict[str, ast.FunctionDef]) -> str:
    """Return a source with all docstrings current."""
    for node in functions(text):
        written = ast.get_docstring(node, clean=False) or ""
        docstring = docstring_of(node)
        begin = docstring.index("Parameters\n----------\n")
        end = docstring.index("\n\nReturns\n")
        entries = "\n".join(entries_of(node.name, nodes))
        docstring = (
            f"{docstring[:begin]}Parameters\n----------\n{entries}{docstring[end:]}"
        )
        indented = textwrap.indent(docstring, "    ").lstrip() + "\n    "
        if written != indented:
            text = text.replace(f'"""{written}"""', f'"""{indented}"""', 1)
    return text


def main() -> None:
    """Compare the sources with what they should be, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the sources")
    args = parser.parse_args()
    sources = {path: path.read_text() for path in SOURCES}
    nodes = {node.name: node for text in sources.values() for node in functions(text)}
    stale = []
    for path, text in sources.items():
        if (new := current(text, nodes)) == text:
            continue
        stale.append(path)
        print(path.relative_to(ROOT))
        if args.write:
            path.write_text(new)
    if stale and not args.write:
        raise SystemExit("run python tools/docstrings.py --write")


if __name__ == "__main__":
    main()
