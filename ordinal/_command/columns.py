"""Columns of a table as `ordinal show` lists them."""

import numpy as np

from .._files.readers import as_numbers
from .._files.table import Table
from .._input.checks import enumerated
from .._input.columns import disguise_of, identify_rows
from .._input.labels import by_number, in_halves
from .._model.printing import Table as Printed
from .data import MAX_RANKS

_MOST_SHOWN = 10  # whole numbers that are listed; more are a range
_WHOLE, _ORDERED, _CATEGORIES = "whole numbers", "ordered categories", "categories"


def columns_of(table: Table) -> tuple[Printed, list[str]]:
    """Return a row per column, and notes about those that may hold the ranks."""
    rows = []
    ranks: dict[str, list[str]] = {_WHOLE: [], _ORDERED: [], _CATEGORIES: []}
    for name in table.names:
        kind, n_missing, values, text = _column(table, name)
        rows.append((name, kind, n_missing, text))
        if in_halves(values):  # as ratings by stars, which are ranks like 1, 2, 3
            kind = _WHOLE
        if kind in ranks and 1 < values.size <= MAX_RANKS:
            ranks[kind].append(name)
    ready, worded = ranks[_WHOLE] + ranks[_ORDERED], ranks[_CATEGORIES]
    notes = [
        f"{len(table)} rows and {len(table.names)} columns; the ranks are those of "
        f"{enumerated(table.names[-1:])} unless --target names another column"
    ]
    if ready:
        notes.append(f"columns that may hold the ranks: {enumerated(ready)}")
    if worded:
        notes.append(
            f"columns that may hold the ranks if --classes states their order: "
            f"{enumerated(worded)}"
        )
    head = "column", "taken as", "missing", "values"
    return Printed.from_rows(head, rows), notes


def _column(table: Table, name: str) -> tuple[str, int, np.ndarray, str]:
    """Return the kind of a column, its missing cells, and its values, also as text."""
    column = table.column(name)
    if not isinstance(column, list):
        missing = np.isnan(column)
        values = np.unique(column[~missing])
        whole = bool((values == np.rint(values)).all()) and values.size > 0
        few = whole and values.size <= _MOST_SHOWN
        shown = [
            f"{v:.6g}" for v in (values if few else values[[0, -1][: values.size]])
        ]
        text = (", " if few else " to ").join(shown)
        return _WHOLE if whole else "numbers", int(missing.sum()), values, text
    known = [cell for cell in column if not table.is_missing(name, cell)]
    values = by_number(np.unique(known))
    slips = [v for v in values.tolist() if as_numbers([v], table.layout) is None]
    kind = _CATEGORIES
    if (disguise := disguise_of(values.tolist())) is not None:
        kind = f"{disguise[0]} as text"
    elif 2 * len(slips) < values.size:
        kind, values = "numbers, and text", np.array(slips)
    elif name in table.orders:
        kind, values = _ORDERED, np.array(table.orders[name])
    elif identify_rows(known):
        kind = "names or other text"
    text = f"{values.size}: {enumerated(values, at_most=4)}"
    return kind, len(column) - len(known), values, text
