"""Real data sets, read from files of the package, and artificial ones, drawn anew."""

from __future__ import annotations  # numpy.random is slow to import

from importlib.resources import files
from typing import Any, Literal, overload

import numpy as np

from .._input.checks import (
    check_count,
    check_flag,
    check_nonnegative,
    resolve_rng,
    with_suggestions,
)


@with_suggestions
def make_gaussians(
    n_per_rank: int = 100, *, rng: int | np.random.Generator = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Generate three bivariate Gaussian clusters whose means are not on a line.

    Ranks 1, 2, 3 have the means (10, 10), (15, 15), (20, 10) and the variance 5 in each
    coordinate, so that parallel hyperplanes cannot be close to all three.

    Parameters
    ----------
    n_per_rank : int, default 100
        Number of rows per rank; the default is that of the paper.
    rng : int or numpy.random.Generator, default 0
        Source of random numbers. The same seed gives the same rows.

    Returns
    -------
    X : (3 * n_per_rank, 2) float64, sorted by rank
    y : (3 * n_per_rank,) int64, values 1..3

    Raises
    ------
    ValueError
        If `n_per_rank` is not a positive integer.

    See Also
    --------
    make_tlssvor : Generate five uniform features and four ranks of a noisy smooth
        function.
    load_election : Load the party identification of 944 citizens of the USA in 1996.

    References
    ----------
    The NPSVOR paper, Figure 2; it trains on 25 rows of each rank and tests on 75.

    Examples
    --------
    >>> X, y = make_gaussians(2)
    >>> X.shape, y.tolist()
    ((6, 2), [1, 1, 2, 2, 3, 3])
    """
    n_per_rank = check_count("n_per_rank", n_per_rank)
    mean = np.array([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    y = np.repeat(np.arange(1, 4), n_per_rank)
    X = mean[y - 1] + np.sqrt(5.0) * resolve_rng(rng).standard_normal((y.size, 2))
    return X, y


@with_suggestions
def make_tlssvor(
    n: int = 300, *, noise: float = 0.026, rng: int | np.random.Generator = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Generate five uniform features and four ranks of a noisy smooth function.

        y = i  where  b_i <= f(x) + e < b_{i+1},   e ~ N(0, noise^2),            (7)
        f(x) = exp(-1/5 sum_i (x_i - 0.5)^2),   x ~ uniform on [0, 1]^5,         (8)
        b = (-inf, 0.905, 0.925, 0.945, inf)

    Parameters
    ----------
    n : int, default 300
        Number of rows; the default is that of the paper.
    noise : float, default 0.026
        Standard deviation of e. The paper calls 0.026 the variance, but the shares of
        the ranks would then be 0.46, 0.05, 0.05 and 0.44, whereas its counts 65, 86, 71
        and 78 of 300 rows are shares of 0.22, 0.29, 0.24 and 0.26. As standard
        deviation 0.026 gives 0.35, 0.19, 0.19 and 0.28, which is closer.
    rng : int or numpy.random.Generator, default 0
        Source of random numbers. The same seed gives the same rows.

    Returns
    -------
    X : (n, 5) float64
    y : (n,) int64, values 1..4 (a small `n` need not hold all of them)

    Raises
    ------
    ValueError
        If `n` is not a positive integer, or `noise` is negative or not finite.

    See Also
    --------
    make_gaussians : Generate three bivariate Gaussian clusters whose means are not on a
        line.
    ordinal.fit_tlssvor : Fit TLS-SVOR: truncated squared losses, robust against wrong
        labels.

    References
    ----------
    The TLS-SVOR paper, formulas (7) and (8).

    Examples
    --------
    >>> X, y = make_tlssvor()
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 5), [1, 2, 3, 4])
    """
    n = check_count("n", n)
    noise = check_nonnegative("noise", noise)
    rng = resolve_rng(rng)
    X = rng.uniform(size=(n, 5))
    with np.errstate(over="ignore"):  # the outer ranks reach to infinity
        e = noise * rng.standard_normal(n)
    score = np.exp(-((X - 0.5) ** 2).sum(axis=1) / 5) + e
    return X, 1 + np.searchsorted([0.905, 0.925, 0.945], score, side="right")


CONDITIONS = (
    "poor", "below average", "average", "above average", "good", "very good",
)  # fmt: skip

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
    """Load the party identification of 944 citizens of the USA in 1996.

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
        Whether to return X as a pandas data frame with named columns.

    Returns
    -------
    X : (944, 9) float64 array or data frame
    y : (944,) int64, values 0..6

    Raises
    ------
    ValueError
        If `as_frame` is not True or False.
    ImportError
        If `as_frame` is True and pandas is not installed.

    See Also
    --------
    load_houses : Load the condition of 989 houses in Ames, Iowa, as an assessor rates
        it.
    load_wine : Load 72 ratings of the bitterness of white wines by nine judges.
    make_gaussians : Generate three bivariate Gaussian clusters whose means are not on a
        line.

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
    text = files(__package__).joinpath("election.csv").read_text(encoding="utf-8")
    head, *lines = text.splitlines()
    names = head.split(",")
    values = np.array([line.split(",") for line in lines], dtype=np.float64)
    X, y = values[:, :-1], values[:, -1].astype(np.int64)
    if not as_frame:
        return np.ascontiguousarray(X), y
    import pandas

    return pandas.DataFrame(X, columns=names[:-1]), y


@with_suggestions
def load_houses() -> tuple[Any, Any]:
    """Load the condition of 989 houses in Ames, Iowa, as an assessor rates it.

    The ranks are poor, below average, average, above average, good and very good. The
    ten features are the `neighborhood` (26), the `price` in dollars, the `living_area`
    and `lot_area` in square feet, the `frontage` to the street in feet, which is
    missing for 169 houses, the years in which the house was `built` and `remodelled`,
    the `foundation`, central `air` conditioning and the kind of `garage`. They count
    together: a low price tells little unless the size, age and place are known.

    Returns
    -------
    X : (989, 10) data frame of pandas
    y : (989,) series of pandas
        An ordered categorical.

    Raises
    ------
    ImportError
        If pandas is not installed. The command needs none: ``ordinal compare``.

    See Also
    --------
    load_election : Load the party identification of 944 citizens of the USA in 1996.
    ordinal.compare : Compare methods by cross-validation.

    References
    ----------
    D. De Cock, "Ames, Iowa: alternative to the Boston housing data as an end of
    semester regression project", Journal of Statistics Education 19(3), 2011. The rows
    are the houses sold in 2009 and 2010 of the data set `ames` of R's package
    modeldata, which has the MIT licence. The ranks poor and very good pool the three
    lowest and the two highest grades of its scale.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_houses()
    >>> X.shape, y.value_counts(sort=False).tolist()
    ((989, 10), [30, 32, 553, 178, 130, 66])
    """
    import pandas

    table = pandas.read_csv(houses_file())
    y = table.pop("condition")
    return table, y.astype(pandas.CategoricalDtype(CONDITIONS, ordered=True))


def houses_file() -> str:
    """Return the path of the table of houses, whose last column is the condition."""
    return str(files(__package__).joinpath("houses.csv"))


@with_suggestions
def load_wine(*, as_frame: bool = False) -> tuple[Any, np.ndarray]:
    """Load 72 ratings of the bitterness of white wines by nine judges.

    The ranks are 1 (least bitter) to 5. The grapes were cold or warm when they were
    crushed (`temp`), with the skins in contact with the juice or not (`contact`); there
    are two bottles of each of the four wines, and every judge tasted each of the eight.
    Ratings by the same judge resemble each other.

    Parameters
    ----------
    as_frame : bool, default False
        Whether to return X as a pandas data frame with named categories.

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
        If `as_frame` is True and pandas is not installed.

    See Also
    --------
    load_election : Load the party identification of 944 citizens of the USA in 1996.
    ordinal.fit_clmm : Fit a cumulative link mixed model, with random effects of groups.

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
