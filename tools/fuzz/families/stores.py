"""Searches whose store somebody has damaged before they run again."""

import functools
import hashlib
import json
import os
import random
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import subjects
from call import Call
from saved import places

import ordinal
from ordinal.model_selection import Grid, nested, select

# In the place of any value of an entry, as JSON.
VALUES = (
    "null", "true", "17", "-1", "1e400", "NaN", "-Infinity", "0.25", "0", '""', '"x"',
    '"failed"', '"fitted"', '"converged"', "[]", "{}", "[[]]", '{"mae": 0.5}',
    "1" * 4000, "1" * 5000, "[" * 9000 + "]" * 9000, '"' + "x" * 100_000 + '"',
    '"\\ud800"', '"\\u0000"',
)  # fmt: skip
# In the place of a whole entry.
TEXTS = (
    b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", b"\0" * 5000, b"PK", b"9" * 5000,
    b"[" * 200_000, b'{"checksum": 1, "content": {}}',
    b'{"checksum": "", "content": []}',
)  # fmt: skip

SMALL = 1 << 23  # bytes of a file that is changed once more

Change = Callable[[Path, random.Random], object]


def files_of(folder: Path) -> list[Path]:
    """Return the files that can be read, in a moment."""
    return [
        p for p in sorted(folder.iterdir()) if p.is_file() and p.stat().st_size < SMALL
    ]


def cut(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size + 1))


def garble(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 30) if content else 0):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)


def replace(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice(TEXTS))


def insert(path: Path, rng: random.Random) -> None:
    """A piece of the file, or of another one, somewhere else in it."""
    content = path.read_bytes()
    other = rng.choice(files_of(path.parent)).read_bytes()
    a, b, c = sorted(rng.choices(range(len(other) + 1), k=3))
    path.write_bytes(
        content[:a] + other[b:c] + content[a if rng.random() < 0.5 else b :]
    )


def swap(path: Path, rng: random.Random) -> None:
    """Two entries under one another's names."""
    other = rng.choice(files_of(path.parent))
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def change_value(path: Path, rng: random.Random, sealed: bool = False) -> None:
    """Another value, one less or one more, somewhere in the JSON; if it is `sealed`,
    under a checksum that fits again."""
    entry = json.loads(path.read_bytes())
    node, key = rng.choice([*places(entry["content"] if sealed else entry)])
    mark, value = "a place for the value", rng.choice(VALUES)
    kind = rng.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node["one more"] = mark
    elif kind == 1:
        node.append(mark)
    elif kind == 2 and isinstance(node[key], float):
        node[key] = rng.choice([0.0, -node[key], node[key] * 1e300, node[key] + 1.0])
    else:
        node[key] = mark
    if sealed:
        content = json.dumps(entry["content"]).replace(f'"{mark}"', value)
        digest = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
        path.write_text(f'{{"checksum": "{digest}", "content": {content}}}')
    else:
        path.write_text(json.dumps(entry).replace(f'"{mark}"', value))


def change_sealed(path: Path, rng: random.Random) -> None:
    change_value(path, rng, sealed=True)


def special(path: Path, rng: random.Random) -> None:
    """Something that is no file in the place of one."""
    path.unlink()
    kind = rng.randrange(5)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(
            rng.choice(["/dev/zero", "nowhere", path.name, "/dev/tty", "."])
        )
    elif kind == 3:
        path.symlink_to(rng.choice(files_of(path.parent) or ["x"]))
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))


def grow(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.choice([1 << 20, 1 << 26, 1 << 40]))


def rename(path: Path, rng: random.Random) -> None:
    path.rename(path.with_name(rng.choice(["x.json", ".json", f"{path.name}.tmp"])))


def remove(path: Path, rng: random.Random) -> None:
    path.unlink()


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (
        cut, garble, replace, insert, swap, change_value, change_sealed, special, grow,
        rename, remove,
    )
}  # fmt: skip


def found(way: str, store: Path) -> Any:
    """Return what a search finds, as text, and the number of damaged entries."""
    X, y, grid = subjects.rows(), subjects.ranks(), Grid(C=[1.0, 2.0], gamma=[0.1, 1.0])
    given: dict[str, Any] = {"search": grid, "cv": 2, "store": store, "n_threads": 1}
    if way == "nested":
        result: Any = nested(ordinal.fit_npsvor, X, y, outer=2, **given)
        parts = [result, *result.selections]
    else:
        fit = ordinal.fit_svorim if way == "select" else fit_badly
        scoring = ("mae", "kappa") if way == "select" else "mze"
        result = select(fit, X, y, refit=False, scoring=scoring, **given)
        parts = [result]
    names = ("points", "scores", "others", "status", "reasons", "best", "params")
    told = [[repr(getattr(p, name, None)) for name in names] for p in parts]
    return told, result.damaged


def fit_badly(X: Any, y: Any, *, C: float, gamma: float) -> Any:
    """A fit that fails at one of the points."""
    if C == 2.0 and gamma == 1.0:
        raise RuntimeError("not this one")
    return ordinal.fit_svorim(X, y, C=C, gamma=gamma)


@functools.cache
def undisturbed(way: str) -> tuple[Any, dict[str, bytes]]:
    """Return what the search finds alone, and the files of its store."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        told, _ = found(way, Path(folder))
        return told, {p.name: p.read_bytes() for p in Path(folder).iterdir()}


def searched(way: str, seed: int = 0, **changes: str) -> None:
    """Search twice with a store to which these changes were made. AssertionError if it
    does not find what it found, unless a false entry was sealed with a checksum, or if
    the second search still has something to count that could have been replaced."""
    told, files = undisturbed(way)
    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp(dir="."))
    try:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        for change in changes.values():
            if entries := files_of(folder):
                # an earlier change may have left nothing to change, or a tie of links
                with suppress(ValueError, LookupError, TypeError, RecursionError):
                    CHANGES[change](rng.choice(entries), rng)
        sealed = "change_sealed" in changes.values()
        others = "special" in changes.values()
        for again in (False, True):
            now, damaged = found(way, folder)
            if not sealed:
                assert now == told, "another result"
            assert damaged <= len(files), "more than there are"
            assert others or not (again and damaged), "not replaced"
    finally:
        shutil.rmtree(folder)


class Stores:
    """A search of a small table, after up to four changes to entries of its store."""

    name = "stores"

    def draw(self, rng: random.Random) -> Call:
        way = rng.choice(["select", "nested", "failing"])
        given = {"way": repr(way), "seed": str(rng.randrange(10**6))}
        for i in range(rng.randrange(1, 5)):
            given[f"change_{i}"] = repr(rng.choice(list(CHANGES)))
        prelude = "from families.stores import searched"
        return Call("searched", given, prelude, kept=("way",))
