"""Sections of docstrings in numpy style."""

from collections.abc import Iterator


def parameters(docstring: str) -> dict[str, str]:
    """Return the entries of the section "Parameters" by the names that they begin with.

    An entry is a line such as "C : float > 0" with the indented lines below it; its
    name is what stands before the colon, which may be several names.
    """
    section = docstring.partition("Parameters\n----------\n")[2]
    section = section.partition("\n\nReturns\n")[0]
    return {prepared.partition(" : ")[0]: prepared for prepared in _entries(section)}


def _entries(section: str) -> Iterator[str]:
    """Yield the entries of a section without indentation."""
    prepared: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" ") and prepared:
            yield "\n".join(prepared)
            prepared = []
        prepared.append(line)
    yield "\n".join(prepared)
