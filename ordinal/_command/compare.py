"""`ordinal compare`: test errors of methods by `ordinal.comparison`, and a figure."""

import argparse
import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from .._files.writing import check_target, writing
from .._input.checks import shortened, shown
from .._watch.progress import Line
from ..comparison.learner import CONSTANTS, Learner
from ..comparison.methods import Study, chosen_fits, compared
from ..model_selection.scoring import Scoring, scorers_of
from .data import read_task
from .methods import learner_of, on_terminal
from .reports import REPORTS

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
    study = Study(data.X, data.y, data.classes, None, learners, (args.seed or 0,))
    line = Line() if on_terminal() else None
    result = compared(study, splits, scorers_of(_SCORING, None), line)
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
                f"--set {shortened(setting)}: expected METHOD.ARG=VALUE with a "
                f"method among {', '.join(settings)}"
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
