"""How a caller's values stand in messages."""

import numpy as np
import pytest

from ordinal._input.checks import check_positive, listed, shown


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        ("a'b", '"a\'b"'),
        ("x" * 78, f"'{'x' * 78}'"),
        ("x" * 79, f"'{'x' * 76}..."),
        (10**400, f"1{'0' * 76}..."),
        (10**5000, "<int>"),  # Python does not print that many digits
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
        (Unprintable(), "<Unprintable>"),
    ],
    ids=["float", "quotes", "80", "81", "int", "huge int", "lines", "error"],
)
def test_a_value_is_shown_on_one_line_of_80_characters(value, text):
    assert shown(value) == text
    assert len(text) <= 80
    with pytest.raises(ValueError, match="C must be a positive") as caught:
        check_positive("C", [value])
    rule = "C must be a positive finite number, got "
    assert len(str(caught.value)) <= len(rule) + 80


def test_lists_are_cut_short():
    assert listed([]) == "[]"
    assert listed(range(11)) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]"
    assert listed(["a" * 99, "b"]) == f"['{'a' * 76}..., 'b']"
    assert len(listed([str(k) * 99 for k in range(9)])) <= 260
