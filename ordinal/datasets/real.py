"""Real data sets that come with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal, overload

import numpy as np

from .._input.checks import check_flag, with_suggestions
from .._input.frame import Frame

# How bitter each of nine judges found the eight bottles, in the order of the bottles
_RATINGS = "233444551213235423325544323232532343333332322454112223232223333412323244"


@overload
def load_election(
    *, as_frame: Literal[False] = False
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def load_election(*, as_frame: Literal[True]) -> tuple[Any, np.ndarray]: ...
@with_suggestions
def load_election(*, as_frame: bool = False) -> tuple[Any, np.ndarray]:
    """Return which party 944 citizens of the USA identified with in 1996.

    The ranks are 0 strong Democrat, 1 weak Democrat, 2 independent Democrat,
    3 independent, 4 independent Republican, 5 weak Republican, 6 strong Republican. The
    nine features are `population` of the place (in thousands), `tv_news` (days a week),
    the political positions of the person (`self`), of Bill Clinton (`clinton`) and of
    Bob Dole (`dole`) as the person sees them, from 1 extremely liberal to 7 extremely
    conservative, `age`, `education` (1 to 7), `income` (24 classes) and the expected
    `vote` (0 Clinton, 1 Dole).

    Parameters
    ----------
    as_frame : bool, default False
        Return a pandas data frame, which has the names of the columns.

    Returns
    -------
    X : (944, 9) float64 array or data frame
    y : (944,) int64, values 0..6

    Raises
    ------
    ValueError
        If `as_frame` is not True or False.
    ImportError
        With `as_frame`, if pandas is not installed.

    References
    ----------
    American National Election Studies, 1996, https://electionstudies.org; the subset
    of 944 rows comes from statsmodels (`statsmodels.datasets.anes96`). It is in the
    public domain.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_election()
    >>> X.shape, y[:5].tolist()
    ((944, 9), [6, 1, 1, 1, 0])
    """
    as_frame = check_flag("as_frame", as_frame)
    names, values = election()
    X, y = values[:, :-1], values[:, -1].astype(np.int64)
    if not as_frame:
        return np.ascontiguousarray(X), y
    import pandas

    return pandas.DataFrame(X, columns=names[:-1]), y


def election() -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the columns and the table, the party last."""
    text = files(__package__).joinpath("election.csv").read_text(encoding="utf-8")
    head, *lines = text.splitlines()
    values = np.array([line.split(",") for line in lines], dtype=np.float64)
    return tuple(head.split(",")), values


def election_frame() -> tuple[Frame, np.ndarray]:
    """Return the same as the command reads tables."""
    names, values = election()
    X = np.ascontiguousarray(values[:, :-1])
    return Frame.of_numbers(X, names[:-1]), values[:, -1].astype(np.int64)


@with_suggestions
def load_wine(*, as_frame: bool = False) -> tuple[Any, np.ndarray]:
    """Return how bitter nine judges found white wines of eight bottles.

    The ranks are 1 (least bitter) to 5. The grapes were cold or warm when they were
    crushed (`temp`), with the skins in contact with the juice or not (`contact`); there
    are two bottles of each of the four wines, and every judge tasted each of the eight.
    Ratings by the same judge resemble each other.

    Parameters
    ----------
    as_frame : bool, default False
        Return a pandas data frame with the categories by their names.

    Returns
    -------
    X : (72, 4) float64 array or data frame
        `temp` (0 cold, 1 warm), `contact` (0 no, 1 yes), `bottle` (1 to 8) and `judge`
        (1 to 9).
    y : (72,) int64, values 1..5

    Raises
    ------
    ValueError
        If `as_frame` is not True or False.
    ImportError
        With `as_frame`, if pandas is not installed.

    References
    ----------
    J. H. Randall, "The analysis of sensory data by generalized linear model",
    Biometrical Journal 31(7):781-793, 1989, Table 1. The ratings are facts of a
    published experiment; R's package ordinal has the same rows as `wine`.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> ordinal.fit_pom(X[:, :2], y).coef.round(3)
    array([2.503, 1.528])
    """
    as_frame = check_flag("as_frame", as_frame)
    y = np.array([int(digit) for digit in _RATINGS])
    row = np.arange(y.size)
    bottle = row % 8
    X = np.column_stack([bottle >= 4, bottle % 4 >= 2, bottle + 1, row // 8 + 1])
    if not as_frame:
        return X.astype(np.float64), y
    import pandas

    words = {"temp": ("cold", "warm"), "contact": ("no", "yes")}
    columns = {
        name: pandas.Categorical.from_codes(X[:, j], labels)
        for j, (name, labels) in enumerate(words.items())
    }
    columns |= {
        name: pandas.Categorical(X[:, j].astype(str))
        for j, name in enumerate(("bottle", "judge"), 2)
    }
    return pandas.DataFrame(columns), y
