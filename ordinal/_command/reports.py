"""Reports of `ordinal compare`: tables in text and Markdown, CSV, and JSON."""

import argparse
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..comparison import Comparison
from ..comparison.learner import FOLDS, Learner
from .data import Data
from .methods import described, described_grid

Report: TypeAlias = Callable[
    [Data, Comparison, Mapping[str, Learner], argparse.Namespace], str
]


def text(
    data: Data,
    result: Comparison,
    learners: Mapping[str, Learner],
    args: argparse.Namespace,
) -> str:
    """Return a plain table, the best method first, and notes below it."""
    lines = [_heading(data, result), "", repr(result)]
    if args.verbose:
        lines += ["", *_searched(result, learners)]
    return "\n".join(lines)


def markdown(
    data: Data,
    result: Comparison,
    learners: Mapping[str, Learner],
    args: argparse.Namespace,
) -> str:
    """Return the same as Markdown."""
    head, cells = result.rows()
    rows = [head, ["---"] * len(head), *cells]
    lines = [_heading(data, result), "", *(f"| {' | '.join(row)} |" for row in rows)]
    notes = result.notes() + (_searched(result, learners) if args.verbose else [])
    return "\n".join([*lines, "", *(f"* {note}" for note in notes)])


def as_csv(
    data: Data,
    result: Comparison,
    learners: Mapping[str, Learner],
    args: argparse.Namespace,
) -> str:
    """Return one line per split, with the hyperparameters that a search has chosen."""
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    scores = list(result.scores)
    writer.writerow(("data", "method", "split", *scores, "seconds", "status", "chosen"))
    for i, name in enumerate(result.methods):
        for k, point in enumerate(result.params[i]):
            values = [*(result.scores[s][i, k] for s in scores), result.seconds[i, k]]
            end = result.status[i, k], described(point)
            writer.writerow((data.name, name, k, *map(float, values), *end))
    return content.getvalue().rstrip("\n")


def as_json(
    data: Data,
    result: Comparison,
    learners: Mapping[str, Learner],
    args: argparse.Namespace,
) -> str:
    """Return all results as JSON for programs; null stands for a missing score."""
    (n, d), (train, test) = data.X.shape, result.splits[0]
    return json.dumps(
        {
            "data": data.name,
            "rows": n,
            "features": d,
            "classes": data.classes.tolist(),
            "training_rows": train.size,
            "test_rows": test.size,
            "seed": args.seed or 0,
            "verdict": result.verdict,
            "methods": [
                {
                    "method": name,
                    "grid": learners[name].grid,
                    **{
                        score: [x if x == x else None for x in values[i].tolist()]
                        for score, values in result.scores.items()
                    },
                    "seconds": result.seconds[i].tolist(),
                    "status": result.status[i].tolist(),
                    "chosen": result.params[i],
                    "disordered": int(result.disordered[i]),
                    "failed": result.reasons.get(name),
                }
                for i, name in enumerate(result.methods)
            ],
        },
        indent=1,
    )


REPORTS: dict[str, Report] = {
    "text": text,
    "markdown": markdown,
    "csv": as_csv,
    "json": as_json,
}


def _heading(data: Data, result: Comparison) -> str:
    train, test = result.splits[0]
    return (
        f"{data.name}: {data.described()}; mean ± standard error over "
        f"{len(result.splits)} splits of {train.size} training + {test.size} test rows"
    )


def _searched(result: Comparison, learners: Mapping[str, Learner]) -> list[str]:
    """Return the grids that were searched, and how often each point was chosen."""
    lines = []
    for name, points in zip(result.methods, result.params, strict=True):
        learner = learners[name]
        if not learner.grid:
            continue
        lines.append(
            f"{name} searches {described_grid(learner.grid)}: {learner.points} points "
            f"in {FOLDS} folds"
        )
        times = Counter(described(point) for point in points if point)
        lines += [f"{name} chose {point} {n} x" for point, n in times.most_common()]
    return lines
