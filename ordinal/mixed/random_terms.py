"""Random effects in the syntax of lme4, and the columns that they name.

(1 | g)         an intercept per level of g
(1 + x | g)     also a slope of x, correlated with the intercept; the same as (x | g)
(x || g)        both, but uncorrelated
(0 + x | g)     a slope without an intercept
(1 | a/b)       (1 | a) + (1 | a:b): levels of b within levels of a

A categorical x has an effect for every level but the reference beside an intercept, and
for every level without one, as in lme4. With || all these effects are uncorrelated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from .._input.checks import as_array, listed, shown
from .._input.columns import (
    coded_column,
    column_number,
    feature_names,
    frame_columns,
    is_frame,
    read_frame,
)
from .._input.fields import DISTINCT, FINITE, LABELS, Array
from .._input.frame import Frame
from .._input.labels import categories_of, is_missing, label_text
from .._model.storage import Storable
from .._rows.columns import column_units
from .elimination import RandomTerm

_TERM = re.compile(r"\(([^()|]*)\|(\|?)([^()|]*)\)")
_MARK = "\0"  # stands for a random effect that was cut out of a formula
_INTERCEPT = "(Intercept)"
_LEAST = 1e-150  # root mean square of a column with a slope
_MOST_COLUMNS = 20  # of nested groups, each level of which has all columns before it


class EffectsTerm(NamedTuple):
    """Effects of one term, which are uncorrelated with those of other terms.

    Attributes
    ----------
    names : tuple of str
        Columns with a slope; "" for the intercept.
    correlated : bool
        Whether they are correlated with one another.
    """

    names: tuple[str, ...]
    correlated: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class EffectsSpec:
    """Grouping factor and its effects, before the table is read.

    Attributes
    ----------
    columns : tuple of str
        Columns whose combinations are the levels.
    terms : tuple of EffectsTerm
    """

    columns: tuple[str, ...]
    terms: tuple[EffectsTerm, ...]

    @property
    def name(self) -> str:
        return ":".join(self.columns)

    @property
    def slope_names(self) -> list[str]:
        """Return the columns with a slope."""
        return [name for term in self.terms for name in term.names if name]

    def coded(self, frame: Frame, reference: Mapping[str, Any]) -> CodedEffects:
        """Return the effects, with those of the levels of categorical columns."""
        slopes: list[Slope] = []
        blocks = []  # places of correlated effects
        for names, correlated in self.terms:
            first, has_all = len(slopes), "" in names
            for name in names:
                labels = _labels_of(frame, name)
                if labels is None:
                    slopes.append(Slope(name))
                    continue
                # Without an intercept, one column has an effect for each level.
                left_out = reference.get(name, labels[0]) if has_all else None
                has_all = True
                slopes += [
                    Slope(name, labels, k)
                    for k, label in enumerate(labels.tolist())
                    if label != left_out
                ]
            if correlated:
                blocks.append(slice(first, len(slopes)))
        free = np.eye(len(slopes), dtype=bool)
        for block in blocks:
            free[block, block] |= np.tri(block.stop - block.start, dtype=bool)
        return CodedEffects(self.columns, tuple(slopes), free)


@dataclass(frozen=True, slots=True, eq=False)
class Slope(Storable):
    """Column that a random effect multiplies.

    Attributes
    ----------
    column : str
        Name of a column of the table; "" for the intercept.
    labels : array or None
        Levels of a categorical column; None for numbers.
    level : int
        Number of the level that has the effect; 0 for numbers.
    """

    column: str
    labels: Annotated[np.ndarray, Array(LABELS, "_"), FINITE, DISTINCT] | None = None
    level: int = 0

    def _check(self) -> None:
        if self.level not in range(1 if self.labels is None else self.labels.size):
            raise ValueError("level must number a level of the column")

    @property
    def name(self) -> str:
        """Return the name of the effect, such as "temp[warm]"."""
        if self.labels is not None:
            return f"{self.column}[{self.labels[self.level]}]"
        return self.column or _INTERCEPT

    def at(self, value: Any) -> float:
        """Return the number that the effect multiplies at a value of the column."""
        if self.labels is None:
            return float(value)
        return float(value == self.labels[self.level])

    def values(self, frame: Frame) -> np.ndarray:
        """Return the numbers that the effect multiplies, (n,); NaN where missing.

        Raises ValueError for a level that no training row has.
        """
        if not self.column:
            return np.ones(len(frame))
        column = coded_column(frame, frame.shown_names.index(self.column), self.labels)
        if self.labels is None:
            return column
        return np.where(np.isnan(column), np.nan, column == self.level)


def _labels_of(frame: Frame, name: str) -> np.ndarray | None:
    """Return the levels of a categorical column that rows have, or None."""
    if not name:
        return None
    column = frame.column(frame.shown_names.index(name))
    return None if column.labels is None else column.labels_present()


@dataclass(frozen=True, slots=True, eq=False)
class CodedEffects:
    """Grouping factor and the effects of its levels.

    Attributes
    ----------
    columns : tuple of str
        Columns whose combinations are the levels.
    slopes : tuple of (q,) Slope
    free : (q, q) bool array
        Entries of the lower triangle Lambda that are parameters.
    """

    columns: tuple[str, ...]
    slopes: tuple[Slope, ...]
    free: np.ndarray

    @property
    def name(self) -> str:
        return ":".join(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class RandomEffects(Storable):
    """Estimated effects of the levels of one factor.

    Attributes
    ----------
    name : str
        Name of the factor, such as "judge" or "batch:cask".
    columns : tuple of str
        Columns whose combinations are the levels.
    slopes : tuple of (q,) Slope
        Columns that the effects multiply.
    levels : (G,) array
        Labels of the levels: in the order of a categorical type, else increasing. They
        are strings for combinations of columns and for labels that are no numbers.
    factor : (q, q) array
        Lower triangular; the covariance of the effects is factor @ factor.T.
    modes : (G, q) array
        Most probable effects of the levels, given the data (`ranef` of lme4).
    variances : (G, q, q) array
        Covariances of the effects about these modes, at the estimates.
    """

    name: str
    columns: tuple[str, ...]
    slopes: tuple[Slope, ...]
    levels: Annotated[np.ndarray, Array(LABELS, "g"), DISTINCT]
    factor: Annotated[np.ndarray, Array("f8", "q q"), FINITE]
    modes: Annotated[np.ndarray, Array("f8", "g q"), FINITE]
    variances: Annotated[np.ndarray, Array("f8", "g q q"), FINITE]

    def _check(self) -> None:
        if len(self.slopes) != len(self.factor) or not self.columns:
            raise ValueError("factor must have a row per effect")

    @property
    def effects(self) -> tuple[str, ...]:
        """Names of the effects: "(Intercept)", columns, and levels of columns, (q,)."""
        return tuple(slope.name for slope in self.slopes)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Columns of labels, and those that the effects multiply."""
        return *self.columns, *(slope.column for slope in self.slopes if slope.column)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the effects, (q, q)."""
        return np.asarray(self.factor @ self.factor.T)


def split_formula(text: str) -> tuple[str, list[EffectsSpec]]:
    """Split a formula into its fixed part and its random effects.

    Raises ValueError for random effects in other forms than those above.
    """
    if not _TERM.search(text):
        raise ValueError(
            f"fit_clmm needs random effects such as (1 | g), got {shown(text)}; "
            "fit_pom fits models without"
        )
    rest = _TERM.sub(_MARK, text)
    if re.fullmatch(rf"[^~]*~[\s+{_MARK}]*", rest):  # random effects alone
        return f"{rest.partition('~')[0]}~ 1", _specs(text)
    # Random effects are cut out together with the + before or after them.
    rest = re.sub(r"\+\s*\0|\0\s*\+", "", rest)
    fixed = rest.partition("~")[2]
    if _MARK in rest or "|" in rest or not fixed.strip():
        raise ValueError(
            "a formula must be of the form 'y ~ x + (1 | g)', with random effects "
            f"that are added to the other terms, got {shown(text)}"
        )
    # a dot that is no part of a name or a number
    if re.search(r"(?<![\w.`)])\.(?![\w.(])", fixed):
        raise ValueError(
            f"name the columns in place of '.' in {shown(text)}: it stands for those "
            "of the groups as well"
        )
    return rest, _specs(text)


def read_random(text: Any) -> list[EffectsSpec]:
    """Read random effects such as "(1 | a) + (x | b)".

    Raises ValueError or TypeError for anything else.
    """
    if not isinstance(text, str):
        raise TypeError(f"random must be text such as '(1 | g)', got {shown(text)}")
    rest = _TERM.sub("", text)
    if len(_TERM.findall(text)) != rest.count("+") + 1 or rest.strip(" +"):
        raise ValueError(
            "random must be random effects with + between them, such as "
            f"'(1 | g) + (x | h)', got {shown(text)}"
        )
    return _specs(text)


def _specs(text: str) -> list[EffectsSpec]:
    """Return the random effects in a text, one entry per grouping factor."""
    return _merged([own for parts in _TERM.findall(text) for own in _parsed(*parts)])


def _parsed(left: str, second_bar: str, right: str) -> list[EffectsSpec]:
    """Parse a term (left | right) or, with a second bar, (left || right).

    It has one grouping factor, or one per level of nesting.
    """
    names, has_intercept = [], True
    for part in left.split("+"):
        name = part.strip().strip("`")
        if name in ("0", "-1"):
            has_intercept = False
        elif name not in ("1", ""):
            _check_name(name)
            names.append(name)
    names = [""] * has_intercept + names
    if not names or len({*names}) < len(names):
        raise ValueError(
            f"({left}|{right}) must name one or more effects, each of them once"
        )
    term = EffectsTerm(tuple(names), not second_bar)
    nested = [
        [name.strip().strip("`") for name in part.split(":")]
        for part in right.split("/")
    ]
    columns = [name for part in nested for name in part]
    if len(columns) > _MOST_COLUMNS or len({*columns}) < len(columns):
        raise ValueError(
            f"the groups of a random effect must be at most {_MOST_COLUMNS} different "
            f"columns, got {len(columns)} in {shown(right.strip())}"
        )
    for name in columns:
        _check_name(name)
    ends = np.cumsum([len(part) for part in nested]).tolist()
    return [EffectsSpec(tuple(columns[:end]), (term,)) for end in ends]


def _check_name(name: str) -> None:
    """Raise ValueError unless a random effect names a column."""
    if not name or not re.fullmatch(r"[^()+*/:|~^-]+", name):
        raise ValueError(
            f"random effects must be columns, not {shown(name)}: add it to the "
            "table as a column"
        )


def _merged(asked: list[EffectsSpec]) -> list[EffectsSpec]:
    """Join terms with the same factor, whose effects are uncorrelated between terms."""
    terms: dict[tuple[str, ...], list[EffectsTerm]] = {}
    for own in asked:
        terms.setdefault(own.columns, []).extend(own.terms)
    for columns, of in terms.items():
        names = Counter(name or _INTERCEPT for term in of for name in term.names)
        twice = sorted(name for name, times in names.items() if times > 1)
        if twice:
            group = ":".join(columns)
            raise ValueError(
                f"{group} has the effect {listed(twice)} twice: name it once"
            )
    return [EffectsSpec(columns, tuple(of)) for columns, of in terms.items()]


def check_names(asked: Sequence[EffectsSpec], names: Sequence[str]) -> None:
    """Raise ValueError if random effects name a column that a table does not have."""
    for own in asked:
        for name in (*own.columns, *own.slope_names):
            if name not in names:
                raise ValueError(
                    f"random effects name {shown(name)}, which is not among the "
                    f"columns of the table, {listed(names)}"
                )


def from_arrays(groups: Any, slopes: Any, names: Sequence[str]) -> list[EffectsSpec]:
    """Return the random effects for `groups` and `slopes`: an intercept per group, and
    correlated slopes of columns of X.
    """
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            "groups must map names to labels of the rows, such as "
            f"{{'judge': labels}}, got {shown(groups)}; or pass random='(1 | judge)' "
            "of a data frame, or a formula"
        )
    slopes = {} if slopes is None else slopes
    if not isinstance(slopes, Mapping) or not {*slopes} <= {*groups}:
        raise ValueError(
            f"slopes must map names of groups, {listed(list(groups))}, to columns of "
            f"X, got {shown(slopes)}"
        )
    out = []
    for name in groups:
        columns = slopes.get(name, ())
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise ValueError(
                f"slopes[{shown(name)}] must be a sequence of columns, got "
                f"{shown(columns)}"
            )
        own = [names[column_number(c, names, "slopes")] for c in columns]
        out.append(EffectsSpec((str(name),), (EffectsTerm(("", *own)),)))
    return out


class GroupLabels(NamedTuple):
    """Labels of rows in a column of a grouping factor.

    Attributes
    ----------
    labels : (g,) array
        Distinct labels in order, numbers or strings.
    code : (n,) int64
        Number of the label of each row; -1 for a missing one.
    """

    labels: np.ndarray
    code: np.ndarray

    @classmethod
    def from_column(cls, column: Any) -> GroupLabels:
        """Read labels, whose order is that of a categorical type, else increasing."""
        a = as_array(column, "groups")
        if a.ndim != 1:
            raise ValueError(f"groups must hold one label per row, got {a.shape}")
        if a.dtype.kind in "biufU":
            a, row = np.unique(a, return_inverse=True)
        else:  # objects need not be comparable
            row = np.arange(a.size)
        values = a.tolist()
        texts = [None if is_missing(v) else label_text(v) for v in values]
        # Labels with one text are one label, such as 1.0 and 1.
        seen = {t: v for t, v in zip(texts, values, strict=True) if t is not None}
        declared, labels = categories_of(column), _numbers_or_texts(seen)
        if declared is None:
            order = np.argsort(labels, kind="stable")
        else:
            known = map(label_text, as_array(declared, "groups").tolist())
            place = {text: k for k, text in enumerate(seen)}
            order = np.array([place[t] for t in known if t in seen], dtype=np.int64)
        place = {text: k for k, text in enumerate(np.array(list(seen))[order].tolist())}
        code = [-1 if text is None else place[text] for text in texts]
        return cls(labels[order], np.array(code, dtype=np.int64)[row])

    def rows(self, index: np.ndarray) -> GroupLabels:
        """Return the labels of some rows."""
        return GroupLabels(self.labels, self.code[index])

    @property
    def texts(self) -> list[str]:
        """Return the label of each row as text; rows have no missing label."""
        names = [label_text(label) for label in self.labels.tolist()]
        return [names[k] for k in self.code.tolist()]


def _numbers_or_texts(seen: Mapping[str, Any]) -> np.ndarray:
    """Return labels, by text, as numbers if all are numbers, and as strings if not."""
    kinds = {type(label) for label in seen.values()}
    is_whole = all(text.lstrip("-").isdecimal() for text in seen)
    if kinds and kinds <= {int, float}:
        numbers = np.array([int(t) for t in seen] if is_whole else [*seen.values()])
        if numbers.dtype.kind in "if":  # whole numbers beyond int64 stay texts
            return numbers
    return np.array(list(seen), dtype=str)


def read_groups(asked: Sequence[Any], groups: Any, X: Any) -> list[list[GroupLabels]]:
    """Return the labels of the rows for each column of each factor `asked`.

    They are taken from the mapping `groups` or from a table X.
    """
    out = []
    for own in asked:
        if groups is not None:
            absent = [name for name in own.columns if name not in groups]
            if absent:
                raise ValueError(f"groups lacks {listed(absent)}")
            labels = [groups[name] for name in own.columns]
        elif is_frame(X):
            labels = frame_columns(X, own.columns)
        else:
            raise ValueError(
                f"groups must hold the labels of {shown(own.name)}, because X is "
                "not a data frame"
            )
        out.append([GroupLabels.from_column(label) for label in labels])
    return out


def read_slopes(names: Sequence[str], X: Any) -> Frame:
    """Return the columns of a table, or of a matrix, that random effects multiply."""
    if is_frame(X) and feature_names(X):
        return read_frame(X, tuple(dict.fromkeys(names)), empty=True)
    if not names:
        return Frame(np.empty((len(X), 0)), (), (), ())
    return read_frame(X, empty=True)


def effect_columns(slopes: Sequence[Slope], frame: Frame) -> np.ndarray:
    """Return the numbers that effects multiply, (n, q)."""
    return np.column_stack([slope.values(frame) for slope in slopes])


def incomplete(labels: list[list[GroupLabels]], Z: list[np.ndarray], n: int) -> Any:
    """Return whether each row lacks a label or a value of a slope, (n,)."""
    absent = np.zeros(n, dtype=bool)
    for columns in labels:
        for _, code in columns:
            if code.size != n:
                raise ValueError(
                    f"groups must have a label per row: X has {n} rows, got {code.size}"
                )
            absent |= code < 0
    for columns_z in Z:
        absent |= np.isnan(columns_z).any(axis=1)
    return absent


def find_levels(columns: list[GroupLabels]) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels in order, and the number of the level of each row.

    A level is a label, or a combination of labels in several columns, that occurs in
    the rows. No label is missing.
    """
    if len(columns) == 1:
        ((labels, code),) = columns
        used, codes = np.unique(code, return_inverse=True)
        return labels[used], codes.ravel().astype(np.int64)
    codes = np.zeros(columns[0].code.size, dtype=np.int64)
    texts: list[list[str]] = [[]]
    for labels, code in columns:
        # Numbering the combinations that occur keeps their number at most n.
        used, codes = np.unique(codes * labels.size + code, return_inverse=True)
        codes = codes.ravel().astype(np.int64)
        own = [label_text(label) for label in labels.tolist()]
        texts = [[*texts[k // len(own)], own[k % len(own)]] for k in used.tolist()]
    return np.array([level_name(t) for t in texts], dtype=str), codes


def level_name(labels: Sequence[str]) -> str:
    """Return the name of a combination of labels, such as "school:class"."""
    if len(labels) == 1:
        return str(labels[0])
    # Otherwise, ("a:b", "c") and ("a", "b:c") would be the same level.
    escaped = (label.replace("\\", r"\\").replace(":", r"\:") for label in labels)
    return ":".join(escaped)


def term_of(
    own: CodedEffects, labels: list[GroupLabels], Z: np.ndarray
) -> tuple[RandomTerm, np.ndarray, np.ndarray]:
    """Return the term of a fit, whose columns have mean square 1, with the units (q,)
    of these columns and the levels.
    """
    levels, code = find_levels(labels)
    whole = column_units(Z)  # so that squares neither overflow nor vanish
    unit = whole * np.sqrt(((Z / whole) ** 2).mean(axis=0))
    # Variances of effects are in units of the column.
    bad = np.flatnonzero((unit < _LEAST) | (unit > 1 / _LEAST))
    if bad.size:
        raise ValueError(
            f"columns with a slope by {own.name} must have root mean squares between "
            f"{_LEAST:g} and {1 / _LEAST:g}, got {unit[bad[0]]:g} for "
            f"{shown(own.slopes[bad[0]].name)}: pass it in another unit"
        )
    return RandomTerm(code, levels.size, Z / unit, own.free.copy()), unit, levels
