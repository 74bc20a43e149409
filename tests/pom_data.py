"""Small sets on which cumulative models are held against R: typed, or made by a rule.

`REFERENCE` holds the fits that tests/reference/pom.R has printed.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

REFERENCE = json.loads(
    (Path(__file__).parent / "data" / "pom_reference.json").read_text()
)


class Set(NamedTuple):
    """Rows of numbers; levels of a category but the first are columns of 0 and 1."""

    X: np.ndarray
    y: np.ndarray  # ranks 0..r-1
    terms: dict[str, list[str]]  # R's variables, and the columns that each became
    weight: np.ndarray
    offset: np.ndarray

    @property
    def names(self):
        return [name for term in self.terms.values() for name in term]

    def columns(self, variables):
        """Numbers of the columns of some of R's variables."""
        named = [name for v in variables for name in self.terms[v]]
        return [self.names.index(name) for name in named]


def wine():
    """ordinal::wine: how bitter 9 judges found 8 bottles (Randall 1989)."""
    rating = """
        23344455 12132354 23325544 32323253 23433333 32322454 11222323 22233334 12323244
    """
    y = np.array([int(digit) - 1 for digit in "".join(rating.split())])
    bottle = np.arange(72) % 8
    X = np.column_stack([bottle >= 4, bottle % 4 >= 2]).astype(float)
    terms = {"temp": ["temp[warm]"], "contact": ["contact[yes]"]}
    return Set(X, y, terms, np.ones(72), np.zeros(72))


def housing():
    """MASS::housing: 1681 householders of Copenhagen by satisfaction (Madsen 1976)."""
    freq = """
        21 21 28 34 22 36 10 11 36   61 23 17 43 35 40 26 18 54
        13  9 10  8  8 12  6  7  9   18  6  7 15 13 13  7  5 11
        14 19 37 17 23 40  3  5 23   78 46 43 48 45 86 15 25 62
        20 23 20 10 22 24  7 10 21   57 23 13 31 21 13  5  6 13
    """
    row = np.arange(72)
    influence, kind, contact = row // 3 % 3, row // 9 % 4, row // 36
    columns = [influence == 1, influence == 2, kind == 1, kind == 2, kind == 3, contact]
    terms = {
        "Infl": ["Infl[Medium]", "Infl[High]"],
        "Type": ["Type[Apartment]", "Type[Atrium]", "Type[Terrace]"],
        "Cont": ["Cont[High]"],
    }
    X = np.column_stack(columns).astype(float)
    return Set(X, row % 3, terms, np.array(freq.split(), float), np.zeros(72))


def housing_table():
    """Return the features of `housing` as its users have them: categories."""
    levels = {
        "Infl": ["Low", "Medium", "High"],
        "Type": ["Tower", "Apartment", "Atrium", "Terrace"],
        "Cont": ["Low", "High"],
    }
    row = np.arange(72)
    place = {"Infl": row // 3 % 3, "Type": row // 9 % 4, "Cont": row // 36}
    return pd.DataFrame(
        {k: pd.Categorical.from_codes(place[k], words) for k, words in levels.items()}
    )


def made():
    """120 weighted rows with offsets by Lehmer's generator, as pom.R makes them."""
    state = 20051

    def draw():
        nonlocal state
        state = 16807 * state % 2147483647
        return state / 2147483647

    rows, y = [], []
    for _ in range(120):
        x1 = np.floor(9 * draw()) / 2 - 2
        x2 = np.floor(5 * draw()) - 2
        x3 = np.floor(2 * draw())
        weight = 1 + np.floor(3 * draw())
        offset = np.floor(5 * draw()) / 4 - 0.5
        u = draw()
        score = 0.6 * x1 - 0.3 * x2 + 0.5 * x3 + offset + 0.9 * np.log(u / (1 - u))
        rows.append([x1, x2, x3, weight, offset])
        y.append(sum(score > edge for edge in (-1.5, 0.25, 1.75)))
    X, weight, offset = np.split(np.array(rows), [3, 4], axis=1)
    terms = {name: [name] for name in ("x1", "x2", "x3")}
    return Set(X, np.array(y), terms, weight[:, 0], offset[:, 0])


SETS = {"wine": wine(), "housing": housing(), "made": made()}


def spread_without_bounds():
    """(X, y, weight) with a group of rows in the second column: there the first one
    says next to nothing, and a scale of the group without bounds, at which both ranks
    have a half, is as good."""
    counts = [[16, 4], [10, 10], [4, 16], [11, 9], [10, 10], [9, 11]]
    x, group = np.tile([-1.0, 0.0, 1.0], 2), np.repeat([0.0, 1.0], 3)
    X = np.repeat(np.column_stack([x, group]), 2, axis=0)
    return X, np.tile([0, 1], 6), np.ravel(counts)


def two_rows_per_rank(ranks=1000):
    """(X, y): rows of many ranks, as `rms::orm` has them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * ranks, 5))
    score = X @ [1.0, 0.5, 0.0, -0.5, -1.0] + rng.logistic(size=2 * ranks)
    return X, np.argsort(np.argsort(score)) // 2
