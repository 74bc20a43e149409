"""Formulas as users of R write them, parsed by formulaic.

    Sat ~ Infl + Type * Cont          a column of labels, and terms of columns
    y ~ np.log(size) + I(age ** 2)    arithmetic (see `expressions`)
    y ~ C(floor) + offset(exposure)   codes as categories; a known part of the score
    y ~ ns(age, df=3) + mo(school)    splines (see `splines`), and monotone effects

formulaic says which terms a text has: `+ - : * / ** %in% .` and brackets are its own.
What the terms' columns hold is found here and in `contrasts`, so that a model can hold
it as data.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from .._input.checks import listed, shortened, shown
from .contrasts import Contrasts, Factor
from .expressions import (
    as_text,
    called,
    column_name,
    columns_of,
    parsed,
    without_quoted,
)
from .splines import OPTIONS, Kind

_MOST_PRODUCTS = 300_000  # products of two terms that are formed: about a second
_POWERS = ("**", "^")
_PRODUCTS = ("*", "/", ":", "in", *_POWERS)
_CATEGORY = ("C", "factor")
_INCREMENTS: dict[str | None, Contrasts] = {"mo": "monotone", "fused": "fused"}
_TREATMENT = ("Treatment", "treatment")  # `contr.treatment` is called so as well


@dataclass(frozen=True, slots=True)
class Parsed:
    """A formula, whose names are columns of the table that it was parsed for.

    Attributes
    ----------
    text : str
    response : str
        The column of the labels.
    terms : tuple of tuples of Factor
        Without that of the intercept, which the thresholds stand for; none of "y ~ 1".
    offsets : tuple of Factor
    beside : tuple of str
        The last terms, which are columns that have no location effect.
    """

    text: str
    response: str
    terms: tuple[tuple[Factor, ...], ...]
    offsets: tuple[Factor, ...]
    beside: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that terms and offsets read, each once."""
        factors = [f for term in (*self.terms, self.offsets) for f in term]
        return tuple(dict.fromkeys(name for f in factors for name in f.columns))


def parse_formula(
    text: str, names: Sequence[str], beside: Sequence[str] = ()
) -> Parsed:
    """Parse a formula for a table with these columns.

    Columns `beside` it, of nominal or scale effects, become its last terms.

    Raises
    ------
    ImportError
        Without formulaic.
    ValueError
        If the text is no formula with a column of labels on the left and terms on the
        right; if it names a column that there is not, leaves out the intercept, has
        what a model cannot keep, or multiplies too many terms.
    """
    found = _read(text, names)
    left, right = getattr(found, "lhs", None), getattr(found, "rhs", None)
    is_empty = not text.partition("~")[2].strip()
    if left is None or right is None or tuple in (type(left), type(right)) or is_empty:
        raise ValueError(
            f"a formula must be of the form 'y ~ x1 + x2', got {shown(text)}"
            f"{_hint(text)}"
        )
    response = _response([str(f.expr) for term in left for f in term.factors], names)
    terms: list[tuple[Factor, ...]] = []
    offsets: list[Factor] = []
    has_intercept = False
    for term in right:
        texts = [(str(f.expr), f.eval_method.name) for f in term.factors]
        if texts == [("1", "LITERAL")]:
            has_intercept = True
        elif len(texts) == 1 and texts[0][1] == "PYTHON" and _is_offset(texts[0][0]):
            offsets.append(_offset(texts[0][0], names))
        else:
            terms.append(tuple(_factor(*factor, names) for factor in texts))
    if not has_intercept:
        raise ValueError(
            f"leave out '- 1' and '0 +' in {shown(text)}: the thresholds are the "
            "intercepts"
        )
    own = {":".join(f.name for f in term) for term in terms}
    more = [name for name in dict.fromkeys(beside) if name in names and name not in own]
    for name in more:
        if name == response:
            raise ValueError(f"{shown(name)} holds the labels, which have no effect")
        if any(name in f.columns for term in terms for f in term if len(term) > 1):
            raise ValueError(
                f"nominal and scale effects of {shown(name)}, which is in an "
                f"interaction, need it in the formula: add '+ {name}'"
            )
        terms.append((Factor(name, None, (name,)),))
    return Parsed(text, response, tuple(terms), tuple(offsets), tuple(more))


def _read(text: str, names: Sequence[str]) -> Any:
    """Parse the text by formulaic; ValueError for what it refuses."""
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser, DefaultOperatorResolver
    except ImportError:
        raise ImportError(
            "formulas need the package formulaic: pip install "
            "'ordinal-regression[formula]'"
        ) from None
    check = _WorkLimit(text).check

    class Bounded(DefaultOperatorResolver):  # type: ignore[misc, unused-ignore]
        @property
        def operators(self) -> list[Any]:
            found: list[Any] = super().operators
            for operator in found:
                if operator.symbol in _PRODUCTS:
                    operator.to_terms = partial(
                        check, operator.symbol in _POWERS, operator.to_terms
                    )
            return found

    try:
        return Formula(
            text,
            _parser=DefaultFormulaParser(operator_resolver=Bounded()),
            # of `.`, which stands for all columns that the left side does not name
            _context={"__formulaic_variables_available__": names},
        )
    except (FormulaicError, SyntaxError, RecursionError) as error:
        # the second line is the text, coloured
        reason = str(error).splitlines()[0].rstrip(".")
        if isinstance(error, SyntaxError):
            reason = error.msg
        elif isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        raise ValueError(
            f"{shown(text)} is no formula: {shortened(reason)}{_hint(text)}"
        ) from error


class _WorkLimit:
    """Count of the products of terms that a formula asks for, with an upper limit.

    formulaic forms all n^k products of a power k of n terms before it drops equal ones.
    """

    def __init__(self, text: str):
        self._text, self._products = text, 0.0

    def check(
        self,
        is_power: bool,
        to_terms: Callable[..., Any],
        *sets: Any,
        context: Any = None,
    ) -> Any:
        """Return to_terms(*sets); ValueError if that is too much work."""
        n, other = map(len, sets)
        if is_power:
            k = _exponent(sets[1])
            # by logarithms, because n^k may be too large for a double
            self._products += math.exp(min(k * math.log(n or 1), 50.0)) * k
        else:
            self._products += n * other
        if self._products > _MOST_PRODUCTS:
            raise ValueError(
                f"{shown(self._text)} asks for more than {_MOST_PRODUCTS} products of "
                "terms: write out those that are meant, such as x:z, and no power "
                "above the number of terms"
            )
        return to_terms(*sets, context=context)


def _exponent(terms: Any) -> float:
    """Return the right side of a power, cut at 1e9; 1 for what formulaic refuses."""
    text = str(next(iter(terms), ""))
    return min(float(text), 1e9) if text.isdecimal() else 1.0


def _hint(text: str) -> str:
    """Say what to use instead of the random effects of other packages."""
    if "|" not in without_quoted(text):
        return ""
    return (
        "; fit_clmm fits random effects such as (1 | g), and cluster= of fit_pom gives "
        "errors that are robust to dependence within groups"
    )


def _response(left: list[str], names: Sequence[str]) -> str:
    if len(left) != 1 or left[0] not in names:
        shown_left = " + ".join(left)
        raise ValueError(
            f"the left side of a formula must name a column of the table, "
            f"{listed(names)}, got {shown(shown_left)}"
        )
    return left[0]


def _factor(text: str, kind: str, names: Sequence[str]) -> Factor:
    """One factor of a term: a column, a column as a category, or arithmetic."""
    if kind == "LITERAL":
        raise ValueError(
            f"a term is of columns, not of numbers such as {text}: write I({text} * x)"
        )
    if kind == "LOOKUP":
        return Factor(text, None, (_known(text, names),))
    node, quoted = parsed(text)
    if called(node) in _CATEGORY:
        return _category(text, node, quoted, names)
    if called(node) in _INCREMENTS:
        return _increments(text, node, quoted, names)
    if called(node) in OPTIONS:
        return _smooth(text, node, quoted, names)
    columns = tuple(_known(name, names) for name in columns_of(text))
    if not columns:
        raise ValueError(f"a term is of columns, got {shown(text)}")
    return Factor(text.replace("`", ""), text, columns)


def _category(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> Factor:
    """C(x), or C(x, Treatment("b")) and the ways that formulaic and R write it."""
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    name = column_name(arguments[0], quoted) if arguments else None
    reference = _reference(arguments[1]) if len(arguments) == 2 else None
    if (
        name is None
        or len(arguments) > 2
        or (len(arguments) == 2 and reference is None)
    ):
        raise ValueError(
            f"a category is C(column) or C(column, Treatment('level')), got "
            f"{shown(text)}; other contrasts there are not"
        )
    return Factor(f"C({name})", None, (_known(name, names),), True, reference)


def _increments(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> Factor:
    """mo(x) or fused(x), where x is a column."""
    name = column_name(node.args[0], quoted) if len(node.args) == 1 else None
    if name is None or node.keywords:
        kind = called(node)
        raise ValueError(f"{kind} is of one column, {kind}(x), got {shown(text)}")
    contrasts = _INCREMENTS[called(node)]
    shown_text = text.replace("`", "")
    return Factor(shown_text, None, (_known(name, names),), True, None, contrasts)


def _smooth(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> Factor:
    """Return a spline or polynomial: its column or arithmetic, and the options."""
    kind = cast(Kind, called(node))
    allowed, (first, *rest) = OPTIONS[kind], node.args or [None]
    given = dict(zip(allowed, rest, strict=False))
    given |= {k.arg: k.value for k in node.keywords}
    expected = len(rest) + len(node.keywords)
    if first is None or len(given) < expected or not {*given} <= {*allowed}:
        raise ValueError(
            f"{kind} is of a column and the options {listed(allowed)}, got "
            f"{shown(text)}"
        )
    options = {k: _literal(k, value, text) for k, value in given.items()}
    name, source = column_name(first, quoted), as_text(first, quoted)
    read = columns_of(source) if name is None else (name,)
    columns = tuple(_known(column, names) for column in read)
    if not columns:
        raise ValueError(f"{kind} is of a column, got {shown(text)}")
    return Factor(
        text.replace("`", ""),
        source if name is None else None,
        columns,
        smooth=(kind, repr(options)),
    )


def _literal(option: str, node: Any, text: str) -> Any:
    """Return the number, or list of numbers, that an option of a spline states."""
    if called(node) == "c":  # as R has lists
        node = ast.List(node.args, ast.Load())
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = None
    value = list(value) if isinstance(value, tuple) else value
    numbers = value if isinstance(value, list) else [value]
    if any(type(v) not in (int, float) for v in numbers) or (
        isinstance(value, list) and option != "knots"
    ):
        raise ValueError(
            f"{option} of {shown(text)} must be a number"
            f"{' or a list of numbers' * (option == 'knots')}"
        )
    return value


def _reference(node: ast.expr) -> Any:
    """Return the level that `Treatment(level)` names, or None for what does not."""
    if not isinstance(node, ast.Call) or not isinstance(
        node.func, ast.Name | ast.Attribute
    ):
        return None
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if name not in _TREATMENT or len(arguments) != 1:
        return None
    level = arguments[0]
    return level.value if isinstance(level, ast.Constant) else None


def _is_offset(text: str) -> bool:
    return called(parsed(text)[0]) == "offset"


def _offset(text: str, names: Sequence[str]) -> Factor:
    """offset(x), where x is a column or arithmetic."""
    node, _ = parsed(text)
    assert isinstance(node, ast.Call)
    inner = text[text.index("(") + 1 : text.rindex(")")]
    columns = tuple(_known(name, names) for name in columns_of(inner))
    return Factor(text.replace("`", ""), inner, columns)


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise ValueError(
            f"the formula names {shown(name)}, which is not among the columns of the "
            f"table, {listed(names)}"
        )
    return name
