"""Sums over chunks of rows, added in a tree that depends on the number of chunks alone.

The bytes of a sum then do not depend on who computes which chunk, or when.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

Parts = tuple[np.ndarray, ...]


class Node(NamedTuple):
    """The sum of 2^level chunks that begin at a multiple of as many: one of the sums
    that are made on the way to that of all chunks."""

    first: int
    level: int
    parts: Parts


def merged(nodes: Iterable[Node], n: int | None = None) -> list[Node]:
    """Nodes in the order of their chunks, two halves of a larger one made that. What is
    added may be overwritten. Of adjacent ones at most log2 of their number are held.

    Where it is known that there are n chunks, a node that ends with the last of them is
    that of as many chunks as it were with those that are missing, which adds nothing:
    so few nodes are left of the last chunks, too.
    """
    held: list[Node] = []
    for node in nodes:
        held.append(node)
        while True:
            second, other, more = held[-1]
            size = 1 << other
            if n is not None and second and second + size >= n:
                if second % (2 * size) == 0:
                    held[-1] = Node(second, other + 1, more)
                    continue
            if len(held) == 1:
                break
            first, level, total = held[-2]
            if level != other or first + size != second or first % (2 * size):
                break
            held[-2:] = [Node(first, level + 1, _added(total, more))]
    return held


def whole(nodes: list[Node]) -> Parts:
    """The sum of all chunks from what `merged` gives of them."""
    total = nodes.pop().parts
    while nodes:
        total = _added(nodes.pop().parts, total)
    return total


def pairwise(parts: Iterable[Parts]) -> Parts:
    """The sum of tuples of arrays, in a tree that depends on their number alone: the
    first and the second, the third and the fourth, ..., and so on for these sums."""
    return whole(merged(Node(i, 0, part) for i, part in enumerate(parts)))


def _added(total: Parts, more: Parts) -> Parts:
    for a, b in zip(total, more, strict=True):
        a += b
    return total
