"""Training rows from a table or a formula, with or without missing values.

Columns of categories become contrasts (see `contrasts`), and rows that lack a value are
refused or left out, of everything that has rows alike.

Formulas as users of R write them, parsed by formulaic.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast, get_args

import numpy as np

from .._input.checks import (
    as_array,
    as_real_array,
    check_choice,
    listed,
    shortened,
    shown,
)
from .._input.columns import (
    as_objects,
    feature_names,
    frame_columns,
    is_frame,
    read_frame,
)
from .._input.features import read_dense, read_features
from .._input.frame import Frame, default_names
from .._input.labels import declared_categories, is_missing
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._rows.chunks import read_in_chunks
from .._rows.source import has_blocks
from .contrasts import Coding, Contrasts, FormulaFactor
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
    terms: tuple[tuple[FormulaFactor, ...], ...]
    offsets: tuple[FormulaFactor, ...]
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
    terms: list[tuple[FormulaFactor, ...]] = []
    offsets: list[FormulaFactor] = []
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
            raise ValueError(
                f"{shown(name)} holds the labels and cannot be a term: leave it out on "
                "the right side"
            )
        if any(name in f.columns for term in terms for f in term if len(term) > 1):
            raise ValueError(
                f"nominal and scale effects of {shown(name)}, which is in an "
                f"interaction, need it in the formula: add '+ {name}'"
            )
        terms.append((FormulaFactor(name, None, (name,)),))
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
            f"{shown(text)} is not a formula: {shortened(reason)}{_hint(text)}"
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
                f"{shown(self._text)} expands to more than {_MOST_PRODUCTS} "
                "products of terms: write out the required ones, such as x:z, and "
                "use no power above the number of terms"
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


def _factor(text: str, kind: str, names: Sequence[str]) -> FormulaFactor:
    """Return one factor of a term: a column, a column as a category, or arithmetic."""
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
    """Return the term C(x), or C(x, Treatment("b")) in the syntax of any package."""
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
            f"Treatment('level')), got {shown(text)}: other contrasts are not "
            "available"
        )
    return FormulaFactor(f"C({name})", None, (_known(name, names),), True, reference)


def _increments(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> FormulaFactor:
    """Return mo(x) or fused(x), where x is a column."""
    name = column_name(node.args[0], quoted) if len(node.args) == 1 else None
    if name is None or node.keywords:
        kind = called(node)
        raise ValueError(
            f"{kind} must be applied to one column, {kind}(x), got {shown(text)}"
        )
    contrasts = _INCREMENTS[called(node)]
    shown_text = text.replace("`", "")
    return FormulaFactor(
        shown_text, None, (_known(name, names),), True, None, contrasts
    )


def _smooth(
    text: str, node: Any, quoted: tuple[str, ...], names: Sequence[str]
) -> FormulaFactor:
    """Return a spline or polynomial: its column or arithmetic, and the options."""
    kind = cast(Kind, called(node))
    allowed, (first, *rest) = OPTIONS[kind], node.args or [None]
    given = dict(zip(allowed, rest, strict=False))
    given |= {k.arg: k.value for k in node.keywords}
    expected = len(rest) + len(node.keywords)
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


def _offset(text: str, names: Sequence[str]) -> FormulaFactor:
    """Return offset(x), where x is a column or arithmetic."""
    node, _ = parsed(text)
    assert isinstance(node, ast.Call)
    inner = text[text.index("(") + 1 : text.rindex(")")]
    columns = tuple(_known(name, names) for name in columns_of(inner))
    return FormulaFactor(text.replace("`", ""), inner, columns)


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise ValueError(
            f"the formula names {shown(name)}, which is not among the columns of the "
            f"table, {listed(names)}"
        )
    return name


Missing = Literal["error", "drop"]
_NAMED = 10  # columns with gaps that a message names


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTable:
    """Rows of a fit, none of which lacks a value that the fit reads.

    Attributes
    ----------
    rows : Problem, or rows in chunks as the caller gave them
        Where there is a coding, of the columns that it makes.
    y : (n,) labels as the caller gave them, or as the table of a formula has them
    offset, cluster : (n,) arrays or None
    coding : Coding or None
        How a table became X; None where X is as it was given.
    n_missing : int
        Rows that were left out as they lacked a value.
    frame : Frame or None
        The table that the coding made X of.
    beside : tuple of str
        Terms that nominal or scale effects name and the formula does not.
    """

    rows: Any
    y: Any
    offset: Any
    cluster: Any
    coding: Coding | None
    n_missing: int
    frame: Frame | None
    beside: tuple[str, ...] = ()


def read_training(
    X: Any,
    y: Any,
    *,
    classes: Any = None,
    missing: Missing = "error",
    reference: Mapping[str, Any] | None = None,
    by_row: Mapping[str, Any],
    class_weight: Any = None,
    chunks: bool = False,
    beside: Sequence[str] = (),
) -> TrainingTable:
    """Read what a fit is given.

    Parameters
    ----------
    X : table, matrix, source of blocks, or formula
        If `chunks`, rows that are not in memory are left as they are.
    y : labels, or the data frame that a formula is about
    beside : sequence of str
        Columns with nominal or scale effects, which a formula need not name.
    by_row : mapping
        Of "sample_weight", "offset" and "cluster" to (n,) array-like, the name of a
        column of the table of a formula, or None.

    Raises
    ------
    ValueError, TypeError
        If a formula, a reference or a column is unusable; if rows lack values and
        `missing` is "error". All that needs no table is left to those who use it.
    ImportError
        For a formula without formulaic.
    """
    check_choice("missing", missing, get_args(Missing))
    offset, cluster = by_row["offset"], by_row["cluster"]
    rules = {
        "missing must be 'error'": (missing, missing == "drop"),
        "reference must be None": (reference, reference is not None),
        "cluster must be None": (cluster, cluster is not None),
    }
    if chunks and read_in_chunks(X, rules):
        return TrainingTable(
            X, y, offset, cluster, coding=None, n_missing=0, frame=None
        )
    parsed: Parsed | None = None
    given = dict(by_row)
    if isinstance(X, str) and has_blocks(y):
        raise TypeError(
            "X must not be a formula where rows are read in chunks: make its columns "
            "in the blocks, and pass the source as X and None as y"
        )
    if isinstance(X, str):
        parsed, X, y, given = _of_formula(X, y, given, beside)
    table = _read_table(X, parsed, reference)
    if classes is None:
        classes = declared_categories(y)
    keep, n_missing = _complete(table, parsed, y, given, missing)
    coded = isinstance(table, Frame) and not (parsed is None and table.is_of_numbers)
    if reference is not None and not coded:
        raise ValueError(
            "reference is for categorical columns, and X has none: leave it out"
        )
    if coded:
        keep = _without_weight_0(keep, given["sample_weight"])
    if not keep.all():
        table = table.rows(keep) if isinstance(table, Frame) else table[keep]
        y = _rows_of(y, keep)
        given = {k: v if v is None else _rows_of(v, keep) for k, v in given.items()}
    coding, frame = None, table if coded else None
    if coded:
        coding = _coding(parsed, table, reference)
        given["offset"] = coding.offset(table, given["offset"])
        table = Frame.of_numbers(coding.transform(table), coding.column_names)
    if (coded and table.shape[1]) or is_sparse(table):  # log(x) may be infinite
        values: Any = read_features(table)
    else:  # finite, as `read_dense`, `read_frame` and `_complete` have found
        values = np.require(getattr(table, "values", table), np.float64, ["C", "A"])
    weights = given.pop("sample_weight"), class_weight
    problem = Problem.from_features(values, feature_names(table), y, classes, *weights)
    return TrainingTable(
        *(problem, y),
        coding=coding,
        n_missing=n_missing,
        frame=frame,
        beside=() if parsed is None else parsed.beside,
        **given,
    )


def _read_table(
    X: Any, parsed: Parsed | None, reference: Mapping[str, Any] | None
) -> Any:
    """Return X with its missing values: a Frame, a matrix, or a sparse X as it is."""
    if is_sparse(X):
        return X
    if _is_dense(X):
        return read_dense(X, missing=True)
    columns = None if parsed is None else parsed.columns
    return read_frame(X, columns, kept=tuple(reference or ()))


def _is_dense(X: Any) -> bool:
    """Return whether X has one kind of columns."""
    if is_frame(X):
        return False
    return (isinstance(X, np.ndarray) and X.dtype.kind != "O") or (
        as_objects(X).dtype.kind != "O"
    )


def _coding(
    parsed: Parsed | None, table: Frame, reference: Mapping[str, Any] | None
) -> Coding:
    if parsed is None:
        return Coding.of_columns(table, reference)
    text, terms, offsets = parsed.text, parsed.terms, parsed.offsets
    return Coding.of_terms(text, table, terms, offsets, reference)


def _of_formula(
    text: str, data: Any, given: dict[str, Any], beside: Sequence[str]
) -> tuple[Parsed, Any, Any, dict[str, Any]]:
    """Return a formula, its table, the labels, and other columns of the table."""
    if data is None or isinstance(data, str) or not is_frame(data):
        raise TypeError(
            "a formula needs its data frame: fit_pom('y ~ x1 + x2', data), got "
            f"{shown(data)}"
        )
    names = feature_names(data)
    if names is None:
        raise TypeError("a formula needs a data frame whose columns have names")
    parsed = parse_formula(text, names, beside)
    found = {}
    for argument, value in given.items():
        chosen = [value] if isinstance(value, str) else []
        if argument == "offset":
            chosen = chosen or _strings_of(value)
        for name in chosen:
            if name not in names:
                raise ValueError(
                    f"{argument} names {shown(name)}, which is not a column of the "
                    "table"
                )
        if isinstance(value, str):
            value = frame_columns(data, chosen)[0]
        elif chosen:  # a column per threshold
            columns = frame_columns(data, chosen)
            value = np.column_stack([as_real_array(c, argument) for c in columns])
        found[argument] = value
    return parsed, data, frame_columns(data, [parsed.response])[0], found


def _strings_of(value: Any) -> list[str]:
    """Return the names in a list of names, and none of any other value."""
    is_list = isinstance(value, list | tuple)
    return [*value] if is_list and all(isinstance(v, str) for v in value) else []


def _complete(
    table: Any,
    parsed: Parsed | None,
    y: Any,
    given: Mapping[str, Any],
    missing: Missing,
) -> tuple[np.ndarray, int]:
    """Return the complete rows, (n,) bool, and the number of incomplete ones.

    Features, labels and the `given` arguments with one entry per row count. ValueError
    if incomplete rows are an error, or all rows are incomplete.
    """
    n = table.shape[0]
    # The argument that holds the table, and the name of the labels in it.
    of_table, label = "X", "y"
    if parsed is not None:
        of_table, label = "y, the table of the formula", parsed.response
    gaps: list[tuple[str, np.ndarray]] = []  # a column may be called "offset"
    if isinstance(table, Frame | np.ndarray):
        values = np.asarray(table.values if isinstance(table, Frame) else table)
        if values.size and np.isnan(values.min()):  # which takes no memory
            names = getattr(table, "names", None) or default_names(values.shape[1])
            columns = zip(names, np.isnan(values).T, strict=True)
            gaps = [(name, lacking) for name, lacking in columns if lacking.any()]
    arguments = [of_table] if gaps else []
    n_columns = len(gaps)
    vectors = [(label, "y" if parsed is None else of_table, y)]
    vectors += [(k, k, v) for k, v in given.items() if v is not None]
    for name, argument, vector in vectors:
        lacking = _missing_entries(as_array(vector, argument))
        if lacking.size == n and lacking.any():  # another length is refused later
            gaps.append((name, lacking))
            arguments.append(argument)
    any_gap = np.zeros(n, dtype=bool)
    for _, lacking in gaps:
        any_gap |= lacking
    n_missing = int(np.count_nonzero(any_gap))
    if n_missing and (missing == "error" or n_missing == n):
        counts = [f"{shown(name)} {np.count_nonzero(g)}" for name, g in gaps]
        more = ", ..." if len(counts) > _NAMED else ""
        remedy = "pass missing='drop' to leave these rows out"
        if n_columns:  # nothing can be filled in for labels, weights and the like
            these = "them" if n_columns == len(gaps) else "those of features"
            remedy = (
                f"fill {these} in, as ordinal.preprocessing.TablePreprocessor does, or "
                f"{remedy}"
            )
        if n_missing == n:
            remedy = "no row is left"
        shown_counts = f"{', '.join(counts[:_NAMED])}{more}"
        raise ValueError(
            f"{', '.join(dict.fromkeys(arguments))}: {n_missing} of {n} rows lack "
            f"values ({shown_counts}), the first in row {any_gap.argmax()}: {remedy}"
        )
    return ~any_gap, n_missing


def _missing_entries(a: np.ndarray) -> np.ndarray:
    """Return the missing entries of a vector; none for an array of another shape."""
    if a.ndim == 2 and a.dtype.kind == "f":  # offsets by threshold
        return np.asarray(np.isnan(a).any(axis=1))
    if a.ndim != 1:
        return np.zeros(0, dtype=bool)
    if a.dtype.kind == "f":
        return np.asarray(np.isnan(a))
    if a.dtype.kind in "OT":
        return np.array([is_missing(value) for value in a.tolist()], dtype=bool)
    return np.zeros(a.size, dtype=bool)


def _without_weight_0(keep: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Return the rows to keep but for those of weight 0, whose levels the model must
    not know: weight 0 is the row left out.
    """
    if sample_weight is None:
        return keep
    weight = as_real_array(sample_weight, "sample_weight", (keep.size,), " as X")
    counted = keep & (weight != 0)
    return counted if counted.any() else keep  # without any, it is refused later


def _rows_of(vector: Any, keep: np.ndarray) -> Any:
    """Return some rows of an array; one of another length is returned as it is."""
    a = as_array(vector, "a column")
    if a.shape[:1] != keep.shape:
        return vector
    kept = a[keep]
    return kept.tolist() if kept.dtype.kind == "O" else kept
