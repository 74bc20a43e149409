"""Sums over chunks of rows, added in a tree that depends on the number of chunks alone.

The bytes of a sum do not depend on who computes which chunk, or when.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

Parts = tuple[np.ndarray, ...]


class Node(NamedTuple):
    """Sum of 2^level chunks, the first of which is a multiple of 2^level."""

    first: int
    level: int
    parts: Parts


def merged(nodes: Iterable[Node], n: int | None = None) -> list[Node]:
    """Add neighbouring nodes as far as the tree allows.

    At most log2 of the number of adjacent nodes are held at a time. The arrays of the
    nodes may be overwritten.

    Parameters
    ----------
    nodes : iterable of Node
        In the order of their chunks.
    n : int, optional
        Number of chunks, if known. A node that ends with the last chunk is then raised
        to the level that it would have with the missing chunks, which add nothing, so
        that few nodes remain of the last chunks.
    """
    held: list[Node] = []
    for node in nodes:
        held.append(node)
        while True:
            second, other, more = held[-1]
            size = 1 << other
            is_last = n is not None and second > 0 and second + size >= n
            if is_last and second % (2 * size) == 0:
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
    """Return the sum of all chunks from the nodes that `merged` returns."""
    total = nodes.pop().parts
    while nodes:
        total = _added(nodes.pop().parts, total)
    return total


def pairwise(parts: Iterable[Parts]) -> Parts:
    """Sum tuples of arrays in pairs, pairs of pairs, and so on."""
    return whole(merged(Node(i, 0, part) for i, part in enumerate(parts)))


def _added(total: Parts, more: Parts) -> Parts:
    for a, b in zip(total, more, strict=True):
        a += b
    return total
