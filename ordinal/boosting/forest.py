"""Trees as plain arrays: read once from LightGBM's text, and then without LightGBM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np

from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, RISING, Array, Rule
from .._input.immutable import read_only
from .._input.types import Matrix
from .._model.storage import Storable
from .._numerics.rows import dense_strips, strips
from .._solvers import _trees

DEEPEST: int = _trees.DEEPEST  # levels of a tree, which bound the work of a forged one
# Seconds of a row at one level of a tree, and of its contributions for each pair of
# nodes above a leaf, both measured where they are largest (2026-11-28: paths of 63
# nodes on distinct features); and of a call between two looks for Ctrl-C.
_STEP, _PAIR, _CALL = 4e-9, 1e-8, 0.08
_LARGEST = 1e300  # sum of leaf values, one per tree: scores and their sums are finite
_CATEGORICAL, _DEFAULT_LEFT, _MISSING = 1, 2, 12  # bits of LightGBM's decision types
_OF_NODES = (
    "split_feature", "threshold", "decision_type", "left_child", "right_child",
    "split_gain", "internal_count",
)  # fmt: skip
_KEYS = (*_OF_NODES, "leaf_value", "leaf_count", "cat_boundaries", "cat_threshold")
_FROM_0 = Rule("start at 0", lambda a: a[0] == 0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trees(Storable):
    """Trees of one or several scores, one after the other.

    Tree t has the nodes first[t] to first[t + 1] - 1, and its leaves begin at
    first[t] + t, for it has one leaf more than nodes.

    Attributes
    ----------
    first : (T + 1,) array
    feature : (N,) array
        Column by which a node splits.
    threshold : (N,) array
        A row goes left if its value is at most this; 0 at a node of categories.
    missing_left : (N,) bool array
        Whether a missing value goes left; not at a node of categories, where it goes
        right, as categories do that are not in the set of the node.
    category_set : (N,) array
        Number of the set of categories that go left; -1 at a node of numbers.
    left, right : (N,) arrays
        Children: a node by its number within the tree, or ~leaf.
    gain : (N,) array
        Fall of the loss by the split, to second order, times 2.
    node_rows, leaf_rows : (N,), (N + T,) arrays
        Training rows, as LightGBM estimates them.
    value : (N + T,) array
        Of the leaves.
    set_start : (sets + 1,) array
        Where the words of each set begin.
    words : array
        Bits of the sets, 32 categories each.
    """

    first: Annotated[np.ndarray, Array("i8", "T+1"), _FROM_0, RISING]
    feature: Annotated[np.ndarray, Array("i4", "N"), NONNEGATIVE]
    threshold: Annotated[np.ndarray, Array("f8", "N"), FINITE]
    missing_left: Annotated[np.ndarray, Array("b", "N")]
    category_set: Annotated[np.ndarray, Array("i4", "N")]
    left: Annotated[np.ndarray, Array("i4", "N")]
    right: Annotated[np.ndarray, Array("i4", "N")]
    gain: Annotated[np.ndarray, Array("f8", "N"), FINITE, NONNEGATIVE]
    node_rows: Annotated[np.ndarray, Array("i8", "N"), POSITIVE]
    value: Annotated[np.ndarray, Array("f8", "L"), FINITE]
    leaf_rows: Annotated[np.ndarray, Array("i8", "L"), POSITIVE]
    set_start: Annotated[np.ndarray, Array("i8", "S+1"), _FROM_0, RISING]
    words: Annotated[np.ndarray, Array("u4", "W")]

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> Self:
        """Read the trees of one or more boosters from their `model_to_string`."""
        found, nodes, sets = _lines(texts)
        kind = _numbers(found["decision_type"], np.int32)
        # infinite where a split parts missing values from all others
        largest = np.finfo(float).max
        threshold = np.clip(_numbers(found["threshold"], np.float64), -largest, largest)
        categorical = kind & _CATEGORICAL > 0
        # the sets of a tree are numbered from 0
        before = np.repeat(np.append(0, np.cumsum(sets))[:-1], nodes)
        bounds = [np.array(line.split(), np.int64) for line in found["cat_boundaries"]]
        words = np.concatenate([np.zeros(1, np.int64), *map(np.diff, bounds)])
        # NaN is 0 for LightGBM where training rows had none
        from_0 = (kind & _MISSING == 0) & (threshold >= 0)
        defaults = (kind & _MISSING > 0) & (kind & _DEFAULT_LEFT > 0)
        parts = {
            "first": np.append(0, np.cumsum(nodes)),
            "feature": _numbers(found["split_feature"], np.int32),
            "threshold": np.where(categorical, 0.0, threshold),
            "missing_left": ~categorical & (from_0 | defaults),
            "category_set": np.where(categorical, threshold + before, -1),
            "left": _numbers(found["left_child"], np.int32),
            "right": _numbers(found["right_child"], np.int32),
            "gain": np.maximum(_numbers(found["split_gain"], np.float64), 0.0),
            "node_rows": np.maximum(_numbers(found["internal_count"], np.int64), 1),
            "value": _numbers(found["leaf_value"], np.float64),
            "leaf_rows": np.maximum(_numbers(found["leaf_count"], np.int64), 1),
            "set_start": np.cumsum(words),
            "words": _numbers(found["cat_threshold"], np.uint32),
        }
        parts["category_set"] = parts["category_set"].astype(np.int32)
        parts["first"] = parts["first"].astype(np.int64)
        return cls(**{name: read_only(a) for name, a in parts.items()})

    def subset(self, held: np.ndarray) -> Self:
        """Return the trees where `held`, (T,) bool, is true."""
        if held.all():
            return self
        nodes = np.diff(self.first)
        node, leaf = np.repeat(held, nodes), np.repeat(held, nodes + 1)
        own = self.category_set[node]
        used = np.unique(own[own >= 0])
        words = np.diff(self.set_start)
        word = np.repeat(np.isin(np.arange(words.size), used), words)
        parts = {
            name: getattr(self, name)[node]
            for name in ("feature", "threshold", "missing_left", "left", "right",
                         "gain", "node_rows")
        }  # fmt: skip
        parts |= {
            "first": np.append(0, np.cumsum(nodes[held])),
            "category_set": np.where(own < 0, -1, np.searchsorted(used, own)),
            "value": self.value[leaf],
            "leaf_rows": self.leaf_rows[leaf],
            "set_start": np.append(0, np.cumsum(words[used])),
            "words": self.words[word],
        }
        parts["category_set"] = parts["category_set"].astype(np.int32)
        return type(self)(**{name: read_only(a) for name, a in parts.items()})

    def __len__(self) -> int:
        return len(self.first) - 1

    def _arrays(self) -> tuple[np.ndarray, ...]:
        return (
            self.first, self.feature, self.threshold, self.missing_left.view(np.uint8),
            self.category_set, self.left, self.right, self.node_rows, self.value,
            self.leaf_rows, self.set_start, self.words,
        )  # fmt: skip

    def scores(self, X: Matrix, begin: int, end: int, n_threads: int) -> np.ndarray:
        """Return the sum of the trees from `begin` to `end` for each row, (n,)."""
        out = np.zeros(len(X))
        leaves = np.diff(self.first[begin : end + 1]) + 1
        seconds = _STEP * np.minimum(leaves, DEEPEST)
        for strip, Z in dense_strips(X):
            for rows, trees in _pieces(len(Z), begin, seconds, n_threads):
                _trees.scores(
                    Z[rows], trees.start, trees.stop, out[strip][rows], n_threads,
                    *self._arrays(),
                )  # fmt: skip
        return out

    def contributions(
        self, X: Matrix, begin: int, end: int, n_threads: int
    ) -> tuple[float, np.ndarray]:
        """Return the mean of the sum of some trees over the training rows, and what
        each feature adds to it in each row, (n, d): Shapley values.
        """
        out = np.zeros(X.shape)
        leaves = np.diff(self.first[begin : end + 1]) + 1
        pairs = leaves * np.minimum(leaves, DEEPEST) ** 2.0  # at most
        if len(X) * pairs.sum() * _PAIR > _CALL:
            pairs = self._path_pairs()[begin:end]
        for strip, Z in dense_strips(X):
            for rows, trees in _pieces(len(Z), begin, _PAIR * pairs, n_threads):
                _trees.contributions(
                    Z[rows], trees.start, trees.stop, out[strip][rows], n_threads,
                    *self._arrays(),
                )  # fmt: skip
        return sum(self._mean(t) for t in range(begin, end)), out

    def _path_pairs(self) -> np.ndarray:
        """Return the number of pairs of nodes above the leaves of each tree, (T,)."""
        pairs = np.zeros(len(self))
        tree = np.repeat(np.arange(len(self)), np.diff(self.first))
        for depth, (level, children) in enumerate(self._levels(tree), 1):
            leaves = np.bincount(tree[level], children < 0, len(self))
            pairs += depth**2 * leaves
        return pairs

    def _mean(self, t: int) -> float:
        leaves = slice(self.first[t] + t, self.first[t + 1] + t + 1)
        nodes = slice(self.first[t], self.first[t + 1])
        rows = self.node_rows[nodes][:1] if nodes.stop > nodes.start else 1
        return float((self.leaf_rows[leaves] / rows) @ self.value[leaves])

    def gain_by_feature(self, d: int) -> np.ndarray:
        """Return the sum of the gains of the splits on each feature, (d,)."""
        return np.bincount(self.feature, self.gain, d)

    def _check(self) -> None:
        T, N = len(self), self.feature.size
        if self.first[-1] != N or self.value.size != N + T:
            raise ValueError("first must count the nodes, and one leaf more per tree")
        n_sets = self.set_start.size - 1
        if ((self.category_set < -1) | (self.category_set >= n_sets)).any():
            raise ValueError("category_set must number the sets")
        if self.set_start[-1] != self.words.size:
            raise ValueError("set_start must count the words")
        tree = np.repeat(np.arange(T), np.diff(self.first))
        self._check_children(tree)
        self._check_depth(tree)
        most = np.zeros(T)
        leaf_tree = np.repeat(np.arange(T), np.diff(self.first) + 1)
        np.maximum.at(most, leaf_tree, np.abs(self.value))
        with np.errstate(over="ignore"):  # seen by the check
            if not most.sum() <= _LARGEST:
                raise ValueError(f"value must make scores of at most {_LARGEST:g}")

    def _check_children(self, tree: np.ndarray) -> None:
        """Raise ValueError unless the nodes of each tree make one tree."""
        own = np.arange(tree.size) - self.first[tree]
        count = np.diff(self.first)[tree]
        seen_nodes = np.zeros(tree.size, int)
        seen_leaves = np.zeros(self.value.size, int)
        for child in (self.left.astype(np.int64), self.right.astype(np.int64)):
            inner = child >= 0
            if (child[inner] <= own[inner]).any() or (child >= count).any():
                raise ValueError("children must be later nodes of the same tree")
            if (~child[~inner] > count[~inner]).any():
                raise ValueError("children must be leaves of the same tree")
            np.add.at(seen_nodes, (self.first[tree] + child)[inner], 1)
            np.add.at(seen_leaves, (self.first[tree] + tree + ~child)[~inner], 1)
        alone = np.zeros(self.value.size, int)  # leaves of trees without nodes
        lone = np.flatnonzero(np.diff(self.first) == 0)
        alone[self.first[lone] + lone] = 1
        if (seen_nodes != (own > 0)).any() or (seen_leaves + alone != 1).any():
            raise ValueError("every node and leaf must be the child of one node")

    def _check_depth(self, tree: np.ndarray) -> None:
        """Raise ValueError for a tree of too many levels."""
        for depth, (_, children) in enumerate(self._levels(tree), 1):
            if depth == DEEPEST and (children >= 0).any():
                raise ValueError(f"trees must have at most {DEEPEST} levels")

    def _levels(self, tree: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the nodes of each level, twice, and their children.

        `tree` is that of each node. Children are later nodes, so the levels end.
        """
        level = self.first[:-1][np.diff(self.first) > 0]
        while level.size:
            children = np.concatenate([self.left[level], self.right[level]])
            level = np.tile(level, 2)
            yield level, children
            inner = children >= 0
            level = (self.first[tree[level]] + children)[inner]


def _pieces(
    n: int, begin: int, seconds: np.ndarray, n_threads: int
) -> Iterator[tuple[slice, slice]]:
    """Yield rows and trees for one call of a kernel each, in the order of the trees.

    The interpreter looks for Ctrl-C between the calls. `seconds` bounds the time that
    each tree from `begin` on takes per row.
    """
    before = np.cumsum(seconds) - seconds
    # As many trees as one row may take in a call, then as many rows per thread.
    starts = np.flatnonzero(np.diff(before // _CALL, prepend=-1.0)).tolist()
    for start, stop in pairwise([*starts, len(seconds)]):
        cost = max(float(seconds[start:stop].sum()), 1e-9)
        for rows in strips(n, n_threads * max(1, int(_CALL / cost))):
            yield rows, slice(begin + start, begin + stop)


def _lines(texts: Sequence[str]) -> tuple[dict[str, list[str]], Any, Any]:
    """Return the lines of all trees by their names, and how many nodes and sets of
    categories each tree has.
    """
    found: dict[str, list[str]] = {key: [] for key in _KEYS}
    nodes, sets = [], []
    for text in texts:
        for line in text.partition("end of trees")[0].splitlines():
            key, _, rest = line.partition("=")
            if key in found:
                found[key].append(rest)
            elif key == "num_leaves":
                nodes.append(int(rest) - 1)
            elif key == "num_cat":
                sets.append(int(rest))
    return found, np.array(nodes, np.int64), np.array(sets, np.int64)


def _numbers(lines: Sequence[str], dtype: Any) -> np.ndarray:
    """Return the numbers of all lines; 17 digits make the same double again."""
    return np.array(" ".join(lines).split(), dtype)
