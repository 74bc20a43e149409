"""Declarations of fields: what they accept, what they refuse, and in what words."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from strategies import raises

from ordinal._input.fields import (
    DISTINCT,
    FINITE,
    INCREASING,
    LABELS,
    NONNEGATIVE,
    NOT_NAN,
    POSITIVE,
    RISING,
    SHARED,
    THRESHOLDS,
    Array,
    Length,
    Size,
    check_fields,
    finite_or,
)

INF, NAN = np.inf, np.nan


@dataclass(frozen=True)
class Link:
    offsets: Annotated[np.ndarray, Array("f8", "r-1")]


@dataclass(frozen=True)
class Example:
    coef: Annotated[np.ndarray, Array("f8", "m r"), FINITE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1")]
    ends: Annotated[np.ndarray, Array("i4", "m+1")]
    classes: Annotated[np.ndarray, Array(LABELS, "r")]
    width: Annotated[int, Size("d")]
    names: Annotated[tuple[str, ...], Length("d")] | None
    parts: tuple[Annotated[np.ndarray, Array("f8", "_")] | None, ...]
    splits: list[tuple[np.ndarray, np.ndarray]]
    others: dict[str, Annotated[np.ndarray, Array("f8", "r")]]
    link: Annotated[Link, SHARED] | None
    kind: Literal["a", 1]
    rate: Annotated[float, POSITIVE]
    kernel: Callable[..., Any]
    exact: bool = True
    anything: Any = None


GOOD = Example(
    coef=np.zeros((4, 3)), thresholds=np.zeros(2), ends=np.zeros(5, np.int32),
    classes=np.array(["x", "y", "z"]), width=2, names=("a", "b"),
    parts=(np.zeros(1), None, np.zeros(0)), splits=[(np.zeros(1), np.zeros(2))],
    others={"s": np.zeros(3)}, link=Link(np.zeros(2)), kind="a", rate=0.5, kernel=len,
)  # fmt: skip


def check(**changes):
    check_fields(Example, vars(replace(GOOD, **changes)))


@pytest.mark.parametrize(("changes", "message"), [
    ({"coef": np.zeros((5, 3))}, r"ends has the shape \(5,\), .* m 4, elsewhere 5$"),
    ({"coef": np.zeros((4, 4))}, r"thresholds .* makes r 3, elsewhere 4$"),
    ({"coef": np.zeros(4)}, r"coef must have the shape \(m, r\), got \(4,\)"),
    ({"coef": np.zeros((4, 3), "f4")}, "coef must have dtype 'f8', got float32"),
    ({"coef": np.full((4, 3), NAN)}, r"Example\.coef must be finite$"),
    ({"ends": np.zeros(0, np.int32)}, "makes m -1"),
    ({"classes": np.zeros(3, "S1")}, r"dtype a kind in 'biufU', got \|S1"),
    ({"width": 3}, r"names has 2 items, which makes d 2, elsewhere 3"),
    ({"width": -1, "names": None}, "width is -1, which makes d -1"),
    ({"parts": (np.zeros((1, 1)),)}, r"parts\[0\] must have the shape"),
    ({"splits": [(np.zeros(1),)]}, r"splits\[0\] must have 2 items, got 1"),
    ({"others": {"s": np.zeros(2)}}, r"others\['s'\] has the shape"),
    ({"link": Link(np.zeros(3))}, r"Link\.offsets has the shape \(3,\)"),
    ({"rate": 0.0}, r"Example\.rate must be positive, got 0\.0"),
    ({"rate": NAN}, r"Example\.rate must be positive, got nan"),
])  # fmt: skip
def test_values_of_another_size_or_kind_are_refused(changes, message):
    raises(ValueError, message, check, **changes)


@pytest.mark.parametrize(("name", "value"), [
    ("coef", [[0.0]]), ("coef", None), ("width", True), ("width", 2.0),
    ("names", ["a", "b"]), ("names", ("a", 1)), ("parts", ("a",)),
    ("splits", ((np.zeros(1), np.zeros(2)),)), ("others", {"s": 1.0}),
    ("link", np.zeros(2)), ("kind", "b"), ("kind", True), ("rate", "1"), ("rate", True),
    ("rate", 10**400), ("kernel", "rbf"), ("exact", 1),
])  # fmt: skip
def test_values_of_another_type_are_refused(name, value):
    raises(TypeError, rf"Example\.{name}.* cannot be of type", check, **{name: value})


@pytest.mark.parametrize(("rule", "good", "bad"), [
    (FINITE, [[], [1.0], ["a"], [True]], [[NAN], [0.0, INF]]),
    (NOT_NAN, [[], [INF]], [[0.0, NAN]]),
    (POSITIVE, [[], [5e-324], [INF]], [[0.0], [-1.0], [NAN]]),
    (NONNEGATIVE, [[], [0.0], [-0.0]], [[-5e-324], [NAN]]),
    (RISING, [[], [1.0], [1.0, 1.0, 2.0]], [[1.0, 0.0], [NAN, 0.0]]),
    (INCREASING, [[], [1.0], [1.0, 2.0]], [[1.0, 1.0], [0.0, NAN]]),
    (DISTINCT, [[], [1, 2], ["a", "b"]], [[1, 1], ["a", "a"]]),
    (THRESHOLDS, [[0.0], [2.0, 1.0], [-INF, 0.0, INF], [-INF, -INF, 0.0]],
     [[], [INF], [-INF, INF], [INF, 0.0], [0.0, -INF], [0.0, NAN],
      [0.0, INF, 1.0], [-INF, 0.0, -INF, 1.0]]),
    (finite_or(INF), [[0.0], [INF, 0.0]], [[], [INF], [0.0, -INF], [0.0, NAN]]),
])  # fmt: skip
def test_rules(rule, good, bad):
    for values in good:
        assert np.all(rule.holds(np.array(values)))
    for values in bad:
        assert not np.all(rule.holds(np.array(values)))
