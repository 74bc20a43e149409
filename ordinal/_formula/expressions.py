"""Arithmetic of columns, stored as text: what a formula computes before a fit.

A factor of a formula such as `np.log(size)` or `I(age > 50)` must be computed again at
prediction, but a model file holds no code. Its text is therefore parsed by Python's
`ast` and interpreted here: numbers, columns, arithmetic, single comparisons, and the
functions in `FUNCTIONS`. All of them work row by row, so no training rows have to be
stored, and the text of a hostile model file can do nothing else. Column names that are
not Python identifiers stand between backquotes.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._input.checks import shown, to_double

_LONGEST = 500  # characters of a text
_DEEPEST = 200  # levels of a syntax tree; each takes a frame of Python's stack
_QUOTED = re.compile("`([^`]*)`")
# A quoted name is no Python identifier: the parser sees this prefix and a number.
_PLACEHOLDER = "_quoted_column_"

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "I": lambda values: values,
    "abs": np.abs,
    "cos": np.cos,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def parsed(text: str) -> tuple[ast.expr, tuple[str, ...]]:
    """Return the syntax tree of an expression, and its column names in backquotes.

    In the tree, placeholders with the numbers of the names stand for these names.
    Raises ValueError for a text that is no expression, or too long or too deep a one.
    """
    quoted = tuple(_QUOTED.findall(text))
    numbers = iter(range(len(quoted)))
    plain = _QUOTED.sub(lambda _: f"{_PLACEHOLDER}{next(numbers)}", text)
    if len(text) > _LONGEST:
        raise ValueError(f"{shown(text)} is longer than {_LONGEST} characters")
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:  # ValueError for a zero byte
        raise ValueError(f"{shown(text)} is not an expression: {error}") from error
    except (RecursionError, MemoryError):  # the parser's own stack is full
        raise _too_deep(text) from None
    if _depth(tree) > _DEEPEST:
        raise _too_deep(text)
    return tree, quoted


def without_quoted(text: str) -> str:
    """Return a text without its column names in backquotes."""
    return _QUOTED.sub("", text)


def _depth(tree: ast.expr) -> int:
    """Count the levels of a tree, without recursion."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _too_deep(text: str) -> ValueError:
    return ValueError(
        f"{shown(text)} is nested too deeply: at most {_DEEPEST} levels; make a column "
        "of it before the fit"
    )


def column_name(node: ast.expr, quoted: tuple[str, ...]) -> str | None:
    """Return the column that a node names, or None for any other node."""
    if not isinstance(node, ast.Name):
        return None
    number = node.id.removeprefix(_PLACEHOLDER)
    is_quoted = number != node.id and number.isdecimal() and int(number) < len(quoted)
    return quoted[int(number)] if is_quoted else node.id


def as_text(node: ast.expr, quoted: tuple[str, ...]) -> str:
    """Return a syntax tree as text again, with its column names in backquotes."""
    text = ast.unparse(node)
    for k in reversed(range(len(quoted))):  # 11 before 1
        text = text.replace(f"{_PLACEHOLDER}{k}", f"`{quoted[k]}`")
    return text


def canonical(text: str) -> str:
    """Return one text for all texts of an expression: spaces and `np.` do not count."""
    tree, quoted = parsed(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := called(node)):
            node.func = ast.Name(name, ast.Load())
    return as_text(tree, quoted)


def called(node: ast.expr) -> str | None:
    """Return the function that a node calls, without `np.`, or None for other nodes."""
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if function.value.id in ("np", "numpy") else None
    return function.id if isinstance(function, ast.Name) else None


def compares(text: str) -> bool:
    """Return whether an expression contains a comparison, whose value jumps."""
    return any(isinstance(node, ast.Compare) for node in ast.walk(parsed(text)[0]))


def columns_of(text: str) -> tuple[str, ...]:
    """Return the columns that an expression reads, each once, in order of appearance.

    Raises
    ------
    ValueError
        If the text is not arithmetic that can be stored in a model.
    """
    names: dict[str, None] = {}

    def note(name: str) -> np.float64:
        names[name] = None
        return np.float64(1)

    _interpret(text, note)
    return tuple(names)


def evaluate(text: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Evaluate an expression row by row, (n,) float64; NaN where a column is missing.

    Raises
    ------
    ValueError
        As `columns_of`; also if the result is not finite in a row without missing
        values, such as the logarithm of 0.
    """
    found = _interpret(text, columns.__getitem__)
    n = len(next(iter(columns.values())))
    values = np.array(np.broadcast_to(found, n), dtype=np.float64)
    known = np.ones(n, dtype=bool)
    for column in columns.values():
        known &= ~np.isnan(column)
    bad = known & ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"{shown(text)} is {values[row]} in row {row} of X")
    values[~known] = np.nan  # a comparison with a missing value has given 0
    return values


def _interpret(text: str, read: Callable[[str], Any]) -> Any:
    """Return the value of an expression, of columns that `read` returns by name.

    Raises ValueError for a node that is not allowed, instead of computing it: the text
    may come from a hostile file.
    """
    tree, quoted = parsed(text)

    def value(node: ast.expr) -> Any:
        name = column_name(node, quoted)
        if name is not None:
            return read(name)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            # Powers of Python's integers could take hours, those of doubles cannot.
            return np.float64(to_double(node.value))
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = value(node.left), value(node.right)
            return _OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.operand))
        if isinstance(node, ast.Compare) and _is_single(node):
            left, right = value(node.left), value(node.comparators[0])
            return np.float64(1) * _OPERATORS[type(node.ops[0])](left, right)
        if isinstance(node, ast.Call) and called(node) in FUNCTIONS and _is_unary(node):
            return FUNCTIONS[str(called(node))](value(node.args[0]))
        raise ValueError(
            f"{shown(text)} cannot be stored in a model: a formula may use "
            "arithmetic of columns (a power is **), comparisons, and "
            f"{', '.join(sorted(FUNCTIONS))} of one argument. Splines and polynomials "
            "of a column are ns, bs, cr, rcs and poly, such as ns(x, df=3). Compute "
            "everything else as a column before the fit, such as values that depend on "
            "other rows"
        )

    with np.errstate(all="ignore"):  # `evaluate` reports results that are not finite
        return value(tree)


def _is_single(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS


def _is_unary(node: ast.Call) -> bool:
    return (
        len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    )
