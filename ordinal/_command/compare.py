"""`ordinal compare`: test errors of methods by `ordinal.comparison`, and a figure.

Its reports are tables in text and Markdown, CSV, and JSON.
"""

import argparse
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from .._files.writing import check_target, writing
from .._input.checks import shortened, shown
from .._watch.progress import Line
from ..comparison import Comparison
from ..comparison.learner import CONSTANTS, FOLDS, Learner, chosen_fits
from ..comparison.methods import Study, compared
from ..model_selection.data import SearchData
from ..model_selection.scoring import Scoring, scorers_of
from .data import Data, read_task
from .methods import described, described_grid, learner_of

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
        lines += [
            f"{name} chose {point} in {n} split{'s' * (n > 1)}"
            for point, n in times.most_common()
        ]
    return lines


_SUFFIXES = (".pdf", ".png", ".svg")


def check_figure(path: str) -> None:
    """Raise ValueError unless the suffix of the file is that of a picture."""
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise ValueError(
            f"--plot {shown(path)}: the name must end with {', '.join(_SUFFIXES)}"
        )
    _plot()


def save_figure(path: str, errors: dict[str, np.ndarray], methods: list[str]) -> None:
    """Draw mean absolute errors, (n_splits, k), with one panel per data set."""
    axes = _plot().errors_by_method(errors, methods)
    content = io.BytesIO()
    suffix = Path(path).suffix.lower().removeprefix(".")
    axes[0].figure.savefig(content, format=suffix, dpi=200)
    with writing(path) as file:
        file.write(content.getvalue())


def _plot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ValueError(
            "--plot needs matplotlib: pip install 'ordinal-regression[plot]'"
        ) from None
    matplotlib.use("agg", force=False)
    from .. import plot

    return plot


_SCORING: Sequence[Scoring] = ("mae", "accuracy", "rps")


def compare(args: argparse.Namespace) -> None:
    """Print the errors of every method, and the fits that did not converge."""
    if args.out is None:
        _compare(args)
        return
    check_target(args.out)  # better now than after the fits
    content = io.StringIO()
    with redirect_stdout(content):
        _compare(args)
    with writing(args.out) as file:
        file.write(content.getvalue().encode("utf-8"))


def _compare(args: argparse.Namespace) -> None:
    if args.plot is not None:
        if args.methods is not None and len(args.methods) < 2:
            raise ValueError(
                "--plot compares two methods or more: name at least two by --methods, "
                "or leave --plot out"
            )
        check_target(args.plot)
        check_figure(args.plot)
    data, splits = read_task(args)
    names = "all" if args.methods and "all" in args.methods else args.methods
    names = list(chosen_fits(names, min(train.size for train, _ in splits)))
    learners = _learners(names, args)
    rows, seed = SearchData(data.X, None, data.y, data.classes), args.seed or 0
    study = Study(rows, learners, scorers_of(_SCORING, None), args.rule, (seed,))
    result = compared(study, splits, Line())
    print(REPORTS[args.format](data, result, learners, args), flush=True)
    if args.plot is not None:
        scored = [name for name in result.methods if name not in result.reasons]
        save_figure(
            args.plot, {data.name: result.scores["mae"][: len(scored)].T}, scored
        )


def _learners(names: list[str], args: argparse.Namespace) -> dict[str, Learner]:
    """Return the methods to compare, with their --set METHOD.ARG=VALUE."""
    settings: dict[str, list[str]] = {name: [] for name in names}
    for setting in args.set:
        name, dot, rest = setting.partition(".")
        if not dot or name not in settings:
            raise ValueError(
                f"--set {shortened(setting)}: expected METHOD.ARG=VALUE, where METHOD "
                f"is one that is compared: {', '.join(settings)}"
            )
        settings[name].append(rest)
    learners, wrong = {}, []
    for name, given in settings.items():
        try:
            if name in CONSTANTS:
                if given:
                    raise ValueError(f"--set: {name} has no arguments")
                learners[name] = Learner(CONSTANTS[name], {})
            else:
                learners[name] = learner_of(name, given, args)
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError("; ".join(wrong))
    return learners
