"""A folder of finished tasks, in which a later search finds them.

The name of a file is a digest of all that its result depends on: data, rows, points,
function, options, scoring and version of the package. So a search finds what an earlier
one has done, and nothing else. Which of several metrics decided then does not matter:
scores are kept by name.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._solvers import _build_info
from .work import Outcome, Task, Work

_PLAIN = (str, bytes, int, float, bool, type(None))
# The fields of a work that outcomes depend on
_DECIDING = ("fit", "options", "X", "y", "classes", "weight", "standardize", "scorers")


class Store:
    """A folder of finished tasks. Files appear whole or not at all."""

    def __init__(self, folder: str | os.PathLike[str], work: Work):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.blake2b(_build_info.VERSION.encode(), digest_size=16)
        for name in _DECIDING:
            value = getattr(work, name)
            if name == "scorers":
                value = sorted(value, key=lambda scorer: scorer.name)
            _feed(digest, value, name)
        self._work = digest
        self._scores = [scorer.name for scorer in work.scorers]

    def get(self, task: Task) -> list[Outcome] | None:
        """What the task returned, if it has been done."""
        path = self._path(task)
        try:
            stored = json.loads(path.read_text(encoding="ascii"))
            return [
                Outcome(**o | {"scores": tuple(o["scores"][m] for m in self._scores)})
                for o in stored["outcomes"]
            ]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} is not what a search stores ({error}); delete it to have its "
                "task done again"
            ) from error

    def put(self, task: Task, outcomes: list[Outcome]) -> None:
        """Keep what the task returned."""
        path = self._path(task)
        points = [{k: _shown(v) for k, v in p.items()} for p in task.points]
        content = {
            "points": points,
            "outcomes": [
                asdict(o) | {"scores": dict(zip(self._scores, o.scores, strict=True))}
                for o in outcomes
            ],
        }
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        try:
            temporary.write_text(json.dumps(content, indent=1), encoding="ascii")
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _path(self, task: Task) -> Path:
        digest = self._work.copy()
        for f in fields(task):
            _feed(digest, getattr(task, f.name), f.name)
        return self._folder / f"{digest.hexdigest()}.json"


def _shown(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) else repr(value)


def _feed(digest: Any, value: Any, where: str) -> None:
    """Add a value to a digest, by what it holds and not by what it is called here."""
    if isinstance(value, np.generic):
        value = value.item()
    digest.update(f"\n{type(value).__name__} ".encode())
    if isinstance(value, _PLAIN):
        digest.update(repr(value).encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            _feed(digest, getattr(value, f.name), f"{where}.{f.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _feed(digest, key, where)
            _feed(digest, item, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple | range):
        for i, item in enumerate(value):
            _feed(digest, item, f"{where}[{i}]")
    elif isinstance(value, partial):
        for item in (value.func, value.args, value.keywords):
            _feed(digest, item, where)
    elif "<" not in getattr(value, "__qualname__", "<"):  # no lambda, nothing local
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    else:
        raise TypeError(
            f"{where} is {value!r}, which a store= cannot know again; take a function "
            "of a module, a number, a string or an array"
        )
