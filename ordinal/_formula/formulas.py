"""Formulas in R's syntax, parsed by the package formulaic.

    Sat ~ Infl + Type * Cont          a column of labels, and terms of columns
    RankIntervals(a, b) ~ Infl        the first and the last possible label
    y ~ np.log(size) + I(age ** 2)    arithmetic (see `expressions`)
    y ~ C(floor) + offset(exposure)   codes as categories; a known part of the score
    y ~ ns(age, df=3) + mo(school)    splines (see `splines`), and monotone effects

formulaic expands a text to terms: it implements `+ - : * / ** %in% .` and brackets. The
factors of the terms are read here, and coded in `coding`, so that a model can store
them as data.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from .._input.checks import (
    as_real_array,
    listed,
    shortened,
    shown,
    similar_to,
    to_double,
)
from .._input.columns import feature_names, frame_columns, is_frame
from .._input.intervals import labels_of_formula, response_columns
from .._rows.source import has_blocks
from .coding import Contrasts, FormulaFactor
from .expressions import (
    as_text,
    called,
    canonical,
    column_name,
    columns_of,
    parsed,
    without_quoted,
)
from .splines import OPTIONS, Kind

_MOST_PRODUCTS = 300_000  # products of two terms, which take about a second
_POWERS = ("**", "^")
_PRODUCTS = ("*", "/", ":", "in", *_POWERS)
_CATEGORY = ("C", "factor")
_INCREMENTS: dict[str | None, Contrasts] = {"mo": "monotone", "fused": "fused"}
_INTERCEPT = ("1", "LITERAL")
_TREATMENT = ("Treatment", "treatment")  # the latter for `contr.treatment`


@dataclass(frozen=True, slots=True)
class ParsedFormula:
    """Formula whose names are columns of a table.

    Attributes
    ----------
    text : str
    response : tuple of str
        The column of the labels, or the columns of the ends of intervals.
    terms : tuple of tuples of FormulaFactor
        The terms without the intercept, which the thresholds replace.
    offsets : tuple of FormulaFactor
    beside : tuple of str
        The last terms, which have no location effect.
    named : mapping of str to str
        Names of the terms that the caller wrote otherwise, such as "ns(x,3)".
    """

    text: str
    response: tuple[str, ...]
    terms: tuple[tuple[FormulaFactor, ...], ...]
    offsets: tuple[FormulaFactor, ...]
    beside: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that terms and offsets read, each once."""
        factors = [f for term in (*self.terms, self.offsets) for f in term]
        return tuple(dict.fromkeys(name for f in factors for name in f.columns))


def read_formula(
    text: str, data: Any, by_row: Mapping[str, Any], beside: Sequence[str]
) -> tuple[ParsedFormula, Any, dict[str, Any]]:
    """Parse a formula for its data frame.

    Returns the formula, the labels, and the arguments `by_row`, which have an entry per
    row, with columns of the data frame instead of their names.
    """
    if has_blocks(data):
        raise TypeError(
            "X must not be a formula where rows are read in chunks: make its columns "
            "in the blocks, and pass the source as X and None as y"
        )
    if data is None or isinstance(data, str) or not is_frame(data):
        rows = "; if X names a file, pass its rows, as numpy.load reads them"
        remedy = "" if "~" in text else rows
        raise TypeError(
            "a formula needs its data frame: fit_pom('y ~ x1 + x2', data), got "
            f"{shown(data)}{remedy}"
        )
    names = feature_names(data)
    if names is None:
        raise TypeError("a formula needs a data frame whose columns have names")
    made = parse_formula(text, names, beside)
    found = {}
    for argument, value in by_row.items():
        if argument == "offset" and (chosen := _strings_of(value)):
            columns = [named_column(argument, name, data) for name in chosen]
            value = np.column_stack([as_real_array(c, argument) for c in columns])
        found[argument] = named_column(argument, value, data)
    return made, labels_of_formula(text, data), found


def named_column(argument: str, value: Any, table: Any) -> Any:
    """Return the column of a table that an argument names, or any other value."""
    if not isinstance(value, str):
        return value
    if value not in (feature_names(table) or ()):
        raise ValueError(
            f"{argument} names {shown(value)}, which is not a column of the table"
        )
    return frame_columns(table, [value])[0]


def _strings_of(value: Any) -> list[str]:
    """Return the names in a list of names, and none of any other value."""
    is_list = isinstance(value, list | tuple)
    return [*value] if is_list and all(isinstance(v, str) for v in value) else []


def parse_formula(
    text: str, names: Sequence[str], beside: Sequence[str] = ()
) -> ParsedFormula:
    """Parse a formula for a table with these columns.

    Terms `beside` it, which have nominal or scale effects, become its last terms. They
    are those of the formula if they are the same expressions, whatever the text.

    Raises
    ------
    ImportError
        Without formulaic.
    ValueError
        If the text has not a column of labels on the left side and terms on the right;
        if it names an unknown column, leaves out the intercept, uses a function that a
        model cannot store, or multiplies too many terms.
    """
    found = _expand(text, names)
    left, right = getattr(found, "lhs", None), getattr(found, "rhs", None)
    is_empty = not text.partition("~")[2].strip()
    if left is None or right is None or tuple in (type(left), type(right)) or is_empty:
        raise ValueError(
            f"a formula must be of the form 'y ~ x1 + x2', got {shown(text)}"
            f"{_hint(text, names)}"
        )
    response = _response(text, names)
    terms: list[tuple[FormulaFactor, ...]] = []
    offsets: list[FormulaFactor] = []
    has_intercept = False
    for term in right:
        texts = [(str(f.expr), f.eval_method.name) for f in term.factors]
        if texts == [_INTERCEPT]:
            has_intercept = True
        elif len(texts) == 1 and texts[0][1] == "PYTHON" and _is_offset(texts[0][0]):
            offsets.append(_offset(texts[0][0], names))
        else:
            terms.append(tuple(_factor(*factor, names) for factor in texts))
    # formulaic adds the intercept unless the text removes it.
    if not has_intercept:
        raise ValueError(
            f"leave out '- 1' and '0 +' in {shown(text)}: the thresholds are the "
            "intercepts"
        )
    more, named = _beside(terms, beside, names)
    every = [*terms, *more.values(), offsets]
    read = {name for term in every for factor in term for name in factor.columns}
    if both := read.intersection(response):
        raise ValueError(
            f"{shown(min(both))} holds the labels and cannot be a term: leave it out "
            "on the right side"
        )
    terms += more.values()
    return ParsedFormula(
        text, response, tuple(terms), tuple(offsets), tuple(more), named
    )


def _beside(
    terms: Sequence[tuple[FormulaFactor, ...]],
    beside: Sequence[str],
    names: Sequence[str],
) -> tuple[dict[str, tuple[FormulaFactor, ...]], dict[str, str]]:
    """Return the terms with nominal or scale effects that a formula does not have, by
    name, and the name of the term of each text.
    """
    own = {_meaning(term): _name(term) for term in terms}
    joint = [factor for term in terms if len(term) > 1 for factor in term]
    more: dict[str, tuple[FormulaFactor, ...]] = {}
    named = {}
    for text in beside:
        if (term := _term_beside(text, names)) is None:
            continue
        named[text] = own.setdefault(_meaning(term), _name(term))
        if named[text] in map(_name, terms):
            continue
        read = {column for factor in term for column in factor.columns}
        if any(not read.isdisjoint(factor.columns) for factor in joint):
            raise ValueError(
                f"nominal and scale effects of {shown(text)}, which is in an "
                f"interaction, need it in the formula: add '+ {text}'"
            )
        more[named[text]] = term
    return more, named


def _name(term: Sequence[FormulaFactor]) -> str:
    """Return the name of a term."""
    return ":".join(factor.name for factor in term)


def _meaning(term: Sequence[FormulaFactor]) -> frozenset[FormulaFactor]:
    """Return what a term computes, equal for all texts of one expression."""
    return frozenset(
        factor._replace(
            name="", source=None if factor.source is None else canonical(factor.source)
        )
        for factor in term
    )


def _term_beside(text: str, names: Sequence[str]) -> tuple[FormulaFactor, ...] | None:
    """Return the term that a text in `nominal` or `scale` states.

    A column's name needs no backquotes. The result is None for a text that is no term,
    such as the name of a coefficient.
    """
    if text in names:
        return (FormulaFactor(text, None, (text,)),)
    try:
        right = getattr(_expand(f"1 ~ {text}", names), "rhs", ())
        if isinstance(right, tuple):  # several parts
            return None
        terms = [[(str(f.expr), f.eval_method.name) for f in t.factors] for t in right]
        (factors,) = [term for term in terms if term != [_INTERCEPT]]
        return tuple(_factor(*factor, names) for factor in factors)
    except ValueError:
        return None


def _expand(text: str, names: Sequence[str]) -> Any:
    """Return formulaic's `Formula` of a text; ValueError for errors in its syntax."""
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser, DefaultOperatorResolver
    except ImportError:
        raise ImportError(
            "formulas need the package formulaic: pip install "
            "'ordinal-regression[formula]'"
        ) from None
    limit = _WorkLimit(text)

    class LimitedOperators(DefaultOperatorResolver):  # type: ignore[misc, unused-ignore]
        @property
        def operators(self) -> list[Any]:
            found: list[Any] = super().operators
            for operator in found:
                if operator.symbol in _PRODUCTS:
                    is_power = operator.symbol in _POWERS
                    operator.to_terms = partial(
                        limit.multiplied, is_power, operator.to_terms
                    )
            return found

    try:
        return Formula(
            text,
            _parser=DefaultFormulaParser(operator_resolver=LimitedOperators()),
            # `.` stands for all columns that the left side does not name.
            _context={"__formulaic_variables_available__": names},
        )
    except (FormulaicError, SyntaxError, RecursionError, MemoryError) as error:
        # The second line of formulaic's messages is the text, in colours.
        if isinstance(error, SyntaxError):
            reason = error.msg
        elif isinstance(error, RecursionError | MemoryError):  # of Python's parser
            reason = "it is nested too deeply"
        else:
            reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{shown(text)} is not a formula: {shortened(reason)}{_hint(text, names)}"
        ) from error


class _WorkLimit:
    """Limit on the products of terms that a formula forms.

    formulaic forms all n^k products of the power k of n terms before it drops
    duplicates, so a short text could take hours.
    """

    def __init__(self, text: str):
        self._text, self._products = text, 0.0

    def multiplied(
        self,
        is_power: bool,
        to_terms: Callable[..., Any],
        *sets: Any,
        context: Any = None,
    ) -> Any:
        """Return to_terms(*sets), the terms of a product, within the limit."""
        n, other = map(len, sets)
        if is_power:
            k = _exponent(sets[1])
            # n^k may overflow: its logarithm is cut off first.
            self._products += math.exp(min(k * math.log(n or 1), 50.0)) * k
        else:
            self._products += n * other
        if self._products > _MOST_PRODUCTS:
            raise ValueError(
                f"{shown(self._text)} expands to more than {_MOST_PRODUCTS} "
                "products of terms: write out the required ones, such as x:z, and "
                "use no power above the number of terms"
            )
        return to_terms(*sets, context=context)


def _exponent(terms: Any) -> float:
    """Return the exponent of a power, at most 1e9; 1 if formulaic will refuse it."""
    text = str(next(iter(terms), ""))
    return min(float(text), 1e9) if text.isdecimal() else 1.0


def _hint(text: str, names: Sequence[str]) -> str:
    """Return advice about the syntax of a formula, as text; "" if none is known."""
    bare = without_quoted(text)
    needy = [name for name in names if not name.isidentifier() and name in bare]
    if needy:
        return f"; {_in_backquotes(max(needy, key=len))}"
    if called := re.search(r"[A-Za-z]\w*(?:\.\w+)+(?=\()", bare):
        return (
            f"; {called[0]} of R is not available: C(g) makes categories of a column, "
            "and ranks are ordered by classes= or an ordered categorical column"
        )
    if "|" not in bare:
        return ""
    return (
        "; fit_clmm fits random effects such as (1 | g), and cluster= of fit_pom gives "
        "errors that are robust to dependence within groups"
    )


def _in_backquotes(name: str) -> str:
    """Return the advice to put the name of a column into backquotes."""
    return f"backticks enclose a name with spaces or signs, such as `{shortened(name)}`"


def _response(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the labels, on the left side of a formula."""
    columns = response_columns(text)
    if not {*columns} <= {*names}:
        left = text.partition("~")[0].strip()
        raise ValueError(
            "the left side of a formula must name a column of the table, or two as "
            f"RankIntervals(lower, upper), of {listed(names)}, got {shown(left)}"
            f"{_hint(left, names)}"
        )
    return columns


def _factor(text: str, kind: str, names: Sequence[str]) -> FormulaFactor:
    """Return one factor of a term; `kind` is formulaic's classification of its text."""
    if kind == "LITERAL":
        raise ValueError(
            f"a term must contain a column, not a number alone, got {text}: write "
            f"I({text} * x)"
        )
    if kind == "LOOKUP":
        return FormulaFactor(text, None, (_known(text, names),))
    node, quoted = parsed(text)
    if called(node) in _CATEGORY:
        return _category(text, node, quoted, names)
    if called(node) in _INCREMENTS:
        return _increments(text, node, quoted, names)
    if called(node) in OPTIONS:
        return _smooth(text, node, quoted, names)
    columns = tuple(_known(name, names) for name in columns_of(text))
    if not columns:
        raise ValueError(f"a term must contain a column, got {shown(text)}")
    return FormulaFactor(text.replace("`", ""), text, columns)


def _category(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> FormulaFactor:
    """Return the factor C(x), or C(x, Treatment("b")) in the syntax of any package."""
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    name = column_name(arguments[0], quoted) if arguments else None
    reference = _reference(arguments[1]) if len(arguments) == 2 else None
    if (
        name is None
        or len(arguments) > 2
        or (len(arguments) == 2 and reference is None)
    ):
        raise ValueError(
            "a categorical term must be C(column) or C(column, "
            f"Treatment('level')), got {shown(text)}: other contrasts, which would "
            "not change fitted probabilities, are not available; "
            "ordinal.inference.contrasts and wald_test compare any levels"
        )
    return FormulaFactor(f"C({name})", None, (_known(name, names),), True, reference)


def _increments(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> FormulaFactor:
    """Return the factor mo(x) or fused(x), where x is a column."""
    name = column_name(node.args[0], quoted) if len(node.args) == 1 else None
    if name is None or node.keywords:
        kind = called(node)
        raise ValueError(
            f"{kind} must be applied to one column, {kind}(x), got {shown(text)}"
        )
    return FormulaFactor(
        text.replace("`", ""),
        None,
        (_known(name, names),),
        is_category=True,
        contrasts=_INCREMENTS[called(node)],
    )


def _smooth(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> FormulaFactor:
    """Return a spline or polynomial of a column or of arithmetic, with its options."""
    kind = cast(Kind, called(node))
    allowed, (first, *rest) = OPTIONS[kind], node.args or [None]
    given = dict(zip(allowed, rest, strict=False))
    given |= {k.arg: k.value for k in node.keywords}
    expected = len(rest) + len(node.keywords)
    # There are fewer if an option is passed by position and by name, or one too many.
    if first is None or len(given) < expected or not {*given} <= {*allowed}:
        raise ValueError(
            f"{kind} must be given a column and the options {listed(allowed)}, got "
            f"{shown(text)}"
        )
    options = {k: _literal(k, value, text) for k, value in given.items()}
    name, source = column_name(first, quoted), as_text(first, quoted)
    read = columns_of(source) if name is None else (name,)
    columns = tuple(_known(column, names) for column in read)
    if not columns:
        raise ValueError(f"{kind} must be applied to a column, got {shown(text)}")
    return FormulaFactor(
        text.replace("`", ""),
        source if name is None else None,
        columns,
        smooth=(kind, repr(options)),
    )


def _literal(option: str, node: Any, text: str) -> Any:
    """Return the value of an option of a spline: a number or, for knots, a list."""
    if called(node) == "c" and not node.keywords:  # R's c(1, 2) is a list
        node = ast.List(node.args, ast.Load())
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):  # TypeError for an unhashable key of a dict
        value = None
    value = list(value) if isinstance(value, tuple) else value
    numbers = value if isinstance(value, list) else [value]
    if not all(map(_is_number, numbers)) or (
        isinstance(value, list) and option != "knots"
    ):
        raise ValueError(
            f"{option} of {shown(text)} must be a number"
            f"{' or a list of numbers' * (option == 'knots')}"
        )
    return value


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number; 1e400 is infinite."""
    return type(value) in (int, float) and math.isfinite(to_double(value))


def _reference(node: ast.expr) -> Any:
    """Return the level in `Treatment(level)`, or None for any other node."""
    if not isinstance(node, ast.Call):
        return None
    name = getattr(node.func, "id", getattr(node.func, "attr", None))
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if name not in _TREATMENT or len(arguments) != 1:
        return None
    level = arguments[0]
    return level.value if isinstance(level, ast.Constant) else None


def _is_offset(text: str) -> bool:
    """Return whether a factor is offset(x)."""
    return called(parsed(text)[0]) == "offset"


def _offset(text: str, names: Sequence[str]) -> FormulaFactor:
    """Return the factor offset(x), where x is a column or arithmetic."""
    inner = text[text.index("(") + 1 : text.rindex(")")]
    columns = tuple(_known(name, names) for name in columns_of(inner))
    return FormulaFactor(text.replace("`", ""), inner, columns)


def _known(name: str, names: Sequence[str]) -> str:
    """Return the name of a column; ValueError if the table has no such column."""
    if name not in names:
        # "blood-pressure" states a difference of two names, neither of which exists.
        parts = {known: re.split(r"\W", known) for known in names if known != name}
        whole = [known for known, words in parts.items() if name in words]
        similar = similar_to(name, names)
        advice = f"; {_in_backquotes(whole[0])}" if whole else similar
        raise ValueError(
            f"the formula names {shown(name)}, which is not among the columns of the "
            f"table, {listed(names)}{advice}"
        )
    return name
