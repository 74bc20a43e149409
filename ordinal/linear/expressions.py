"""Arithmetic of columns, kept as text: what a formula computes before a fit.

A factor of a formula such as `np.log(size)` or `I(age > 50)` must be computed again at
prediction, and a model file holds no code. Its text is therefore read as Python is, but
evaluated here: numbers, columns, arithmetic, one comparison, and functions of a list.
Each is a function of one row alone, so no rows of training need be remembered, and a
text from a hostile file can do nothing else. Columns whose names are not Python's stand
between backquotes.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._input.checks import shown, to_double

_LONGEST = 500  # characters of a text
_DEEPEST = 200  # levels of its tree; each takes a frame of Python's stack
_QUOTED = re.compile("`([^`]*)`")
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
    """Return the tree of a text as Python reads it, and the names that it has in
    backquotes, by whose numbers placeholders stand for them;

    ValueError for no expression.
    """
    quoted = tuple(_QUOTED.findall(text))
    numbers = iter(range(len(quoted)))
    plain = _QUOTED.sub(lambda _: f"{_PLACEHOLDER}{next(numbers)}", text)
    if len(text) > _LONGEST:
        raise ValueError(f"{shown(text)} is longer than {_LONGEST} characters")
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:  # ValueError: of a zero byte
        raise ValueError(f"{shown(text)} is not an expression: {error}") from error
    except (RecursionError, MemoryError):  # the parser's own stack is full
        raise _too_deep(text) from None
    if _depth(tree) > _DEEPEST:
        raise _too_deep(text)
    return tree, quoted


def without_quoted(text: str) -> str:
    """Return a text without the names that it has in backquotes."""
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
    """Return the column that a node stands for, None for all other nodes."""
    if not isinstance(node, ast.Name):
        return None
    number = node.id.removeprefix(_PLACEHOLDER)
    is_quoted = number != node.id and number.isdecimal() and int(number) < len(quoted)
    return quoted[int(number)] if is_quoted else node.id


def as_text(node: ast.expr, quoted: tuple[str, ...]) -> str:
    """Return the text of a part of a tree, with names in backquotes."""
    text = ast.unparse(node)
    for k in reversed(range(len(quoted))):  # 11 before 1
        text = text.replace(f"{_PLACEHOLDER}{k}", f"`{quoted[k]}`")
    return text


def called(node: ast.expr) -> str | None:
    """Return the name of the function that a node calls, that of a module left out."""
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if function.value.id in ("np", "numpy") else None
    return function.id if isinstance(function, ast.Name) else None


def compares(text: str) -> bool:
    """Return whether an expression has a comparison, at which its value jumps."""
    return any(isinstance(node, ast.Compare) for node in ast.walk(parsed(text)[0]))


def columns_of(text: str) -> tuple[str, ...]:
    """Return the columns that a text reads, each once, in its order.

    Raises
    ------
    ValueError
        For a text that is not such arithmetic.
    """
    tree, quoted = parsed(text)
    names: dict[str, None] = {}
    _walk(tree, quoted, text, names)
    return tuple(names)


def evaluate(text: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (n,) float64: the text, computed row by row; NaN where a column is
    missing.

    Raises
    ------
    ValueError
        As `columns_of`; and for a row whose columns are numbers and whose result is not
        finite, such as the logarithm of 0.
    """
    tree, quoted = parsed(text)
    columns_of(text)
    with np.errstate(all="ignore"):  # reported below
        found = _value(tree, quoted, columns)
    n = len(next(iter(columns.values())))
    values = np.array(np.broadcast_to(found, n), dtype=np.float64)
    known = np.ones(n, dtype=bool)
    for column in columns.values():
        known &= ~np.isnan(column)
    bad = known & ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"{shown(text)} is {values[row]} in row {row} of X")
    values[~known] = np.nan  # of a comparison with what is missing, which is False
    return values


def _walk(
    node: ast.expr, quoted: tuple[str, ...], text: str, names: dict[str, None]
) -> None:
    """Note the columns below a node; ValueError for what is no arithmetic."""
    name = column_name(node, quoted)
    if name is not None:
        names[name] = None
    elif _is_number(node):
        pass
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _walk(node.left, quoted, text, names)
        _walk(node.right, quoted, text, names)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        _walk(node.operand, quoted, text, names)
    elif isinstance(node, ast.Compare) and _is_single(node):
        _walk(node.left, quoted, text, names)
        _walk(node.comparators[0], quoted, text, names)
    elif isinstance(node, ast.Call) and called(node) in FUNCTIONS and _is_unary(node):
        _walk(node.args[0], quoted, text, names)
    else:
        raise ValueError(
            f"{shown(text)} cannot be stored in a model: a formula may use "
            "arithmetic of columns (a power is **), comparisons, and "
            f"{', '.join(sorted(FUNCTIONS))} of one argument. Compute everything "
            "else as a column before the fit, such as values that depend on other "
            "rows"
        )


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_single(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS


def _is_unary(node: ast.Call) -> bool:
    return (
        len(node.args) == 1
        and not node.keywords
        and not isinstance(node.args[0], ast.Starred)
    )


def _value(
    node: Any, quoted: tuple[str, ...], columns: Mapping[str, np.ndarray]
) -> Any:
    """Return the value of a node that `_walk` has let pass: a vector or a number."""
    match node:
        case ast.Name():
            return columns[str(column_name(node, quoted))]
        case ast.Constant():
            return np.float64(to_double(node.value))  # whose powers do not hang
        case ast.BinOp():
            left = _value(node.left, quoted, columns)
            return _OPERATORS[type(node.op)](left, _value(node.right, quoted, columns))
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](_value(node.operand, quoted, columns))
        case ast.Compare():
            left = _value(node.left, quoted, columns)
            right = _value(node.comparators[0], quoted, columns)
            return np.float64(1) * _OPERATORS[type(node.ops[0])](left, right)
        case _:
            return FUNCTIONS[str(called(node))](_value(node.args[0], quoted, columns))
