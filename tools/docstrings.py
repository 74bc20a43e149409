"""Write what docstrings share into all of them: parameters, and related functions.

    python tools/docstrings.py           print the sources whose text is not current
    python tools/docstrings.py --write   write it into the sources

The text of a parameter that several `fit_*` functions share is written once, in the
function that `INHERITED` names; `help`, editors and the site then show plain
docstrings. A function states what it lists as its own, and whatever the other function
does not have. The functions that a section "See Also" names are described by the first
lines of their own docstrings.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stubs import update

from ordinal._model.public import MODULES
from ordinal._model.registry import parameters

# function: where its other parameters are described, then those it describes itself
INHERITED = {
    "fit_svorex": "fit_svorim C cost",
    "companions.fit_shashua_levin": "fit_svorim C tol cost",
    "companions.fit_redsvm": "fit_svorim cost",
    "fit_npsvor": "fit_svorim tol cost classes basis max_iter max_time",
    "fit_npsvor_path": "fit_npsvor",
    "companions.fit_svc": "fit_svorim tol basis max_iter",
    "companions.fit_svr": "companions.fit_svc cost",
    "companions.fit_cssvc": "companions.fit_svc cost",
    "companions.fit_svmop": "companions.fit_svc cost",
    "companions.fit_opbe": "fit_svorim tol basis rng max_iter",
    "companions.fit_kdlor": "fit_svorim C basis tol sample_weight class_weight rng "
    "max_iter max_time callback",
    "fit_tlssvor": "fit_svorim X C basis tol sample_weight probability rng cache_mb "
    "max_iter max_time callback",
    "fit_gpor": "fit_svorim X kernel basis start tol max_iter max_time sample_weight "
    "classes cache_mb rng callback",
    "fit_xofm": "fit_svorim X cache_mb sample_weight probability rng tol max_iter "
    "max_time callback",
    "companions.fit_nnor": "fit_svorim X y tol rng max_iter max_time callback",
    "companions.fit_nnpom": "companions.fit_nnor l2",
    "companions.fit_elmor": "companions.fit_nnor n_hidden tol probability rng "
    "max_iter max_time callback",
    "companions.fit_cnnor": "companions.fit_nnor X n_hidden l2 tol sample_weight rng "
    "max_iter",
    "companions.fit_lit": "fit_svorim X tol preprocess probability rng max_iter "
    "max_time callback",
    "companions.fit_lat": "companions.fit_lit",
    "companions.fit_ofmhs": "companions.fit_lit X y preprocess tol max_iter",
    "fit_boosting": "fit_xofm X y learning_rate monotone sample_weight rng n_threads "
    "tol max_iter max_time callback",
    "fit_pom": "fit_svorim X y sample_weight class_weight preprocess tol max_iter "
    "max_time callback",
    "fit_pom_path": "fit_pom X y link threshold offset tol max_iter max_time",
    "fit_clmm": "fit_pom X y link offset sample_weight missing tol max_iter max_time",
}
_RELATED = re.compile(r"(?<=^See Also\n--------\n)(?:.+(?:\n|$))+", re.MULTILINE)
_WIDTH = 84  # of the lines of a docstring, which the source indents by 4


def public_functions() -> Iterator[str]:
    """Yield the names of public functions, such as "metrics.mae"."""
    seen = set()
    for module in ("", *MODULES, "sklearn"):
        of = import_module(f"ordinal.{module}".rstrip("."))
        for name in dir(of):
            function = getattr(of, name)
            if inspect.isfunction(function) and function not in seen:
                seen.add(function)
                yield f"{module}.{name}".lstrip(".")


def function_of(name: str) -> Any:
    """Return the function of such a name, without its decorators."""
    module, _, attribute = f"ordinal.{name}".rpartition(".")
    return inspect.unwrap(getattr(import_module(module), attribute))


@cache
def written(path: Path) -> dict[str, str]:
    """Return the docstrings of the functions of a source; escapes are not resolved."""
    source = path.read_text()
    return {
        node.name: (ast.get_source_segment(source, node.body[0]) or "")[3:-3]
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
    }


def docstring_of(name: str) -> str:
    """Return the docstring of a function as its source has it, without indentation."""
    function = function_of(name)
    path = Path(inspect.getsourcefile(function) or "")
    return inspect.cleandoc(written(path)[function.__name__])


def entries_of(name: str) -> list[str]:
    """Return the entries of a function's parameters in the order of its signature."""
    entries = parameters(docstring_of(name))
    if name in INHERITED:
        other, *own = INHERITED[name].split()
        shared = {entry.partition(" : ")[0]: entry for entry in entries_of(other)}
        entries |= {key: entry for key, entry in shared.items() if key not in own}
    by_name = {arg: entry for key, entry in entries.items() for arg in key.split(", ")}
    given = inspect.signature(function_of(name)).parameters
    missing = [arg for arg in given if arg not in by_name]
    if missing:
        raise SystemExit(f"{name} does not describe {', '.join(missing)}")
    return list(dict.fromkeys(by_name[arg] for arg in given))


def with_parameters(docstring: str, name: str) -> str:
    """Return the docstring of a `fit_*` function with current shared parameters."""
    begin = docstring.index("Parameters\n----------\n")
    end = docstring.index("\n\nReturns\n")
    entries = "\n".join(entries_of(name))
    return f"{docstring[:begin]}Parameters\n----------\n{entries}{docstring[end:]}"


def with_summaries(docstring: str, name: str) -> str:
    """Return a docstring with current descriptions of the functions related to it."""
    module = name.rpartition(".")[0]

    def described(section: re.Match[str]) -> str:
        lines = []
        for related in re.findall(r"^[\w.]+", section[0], re.MULTILINE):
            full = f"{module}.{related}".lstrip(".")
            if related.startswith("ordinal."):
                full = related.removeprefix("ordinal.")
            summary = docstring_of(full).split("\n\n")[0]
            entry = f"{related} : {' '.join(summary.split())}"
            lines += textwrap.wrap(entry, _WIDTH, subsequent_indent="    ")
        return "\n".join([*lines, ""])

    return _RELATED.sub(described, docstring)


def current() -> Iterator[tuple[Path, str]]:
    """Yield every source of public functions, and what it should be."""
    sources: dict[Path, str] = {}
    for name in public_functions():
        path = Path(inspect.getsourcefile(function_of(name)) or "")
        docstring = docstring_of(name)
        if name in INHERITED:
            docstring = with_parameters(docstring, name)
        docstring = with_summaries(docstring, name)
        indented = textwrap.indent(docstring, "    ").strip() + "\n    "
        old = written(path)[function_of(name).__name__]
        text = sources.get(path, path.read_text())
        sources[path] = text.replace(f'"""{old}"""', f'"""{indented}"""', 1)
    yield from sources.items()


if __name__ == "__main__":
    update(current, __doc__)
