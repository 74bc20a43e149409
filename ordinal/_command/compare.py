"""`ordinal compare`: test errors of methods over repeated hold-outs."""

import argparse
import io
import time
import warnings
from contextlib import redirect_stdout
from functools import partial

import numpy as np

from .._files.writing import check_target, writing
from .._input.checks import shortened
from .._watch.convergence import filter_held
from .._watch.monitor import State
from .._watch.progress import Line, duration
from ..metrics import mae, mze
from .data import Data, Splits, read_task
from .figure import check_figure, save_figure
from .methods import Learner, learner_of, on_terminal
from .reports import REPORTS, Scores


def compare(args: argparse.Namespace) -> None:
    """Report errors for every set of data, and what did not converge."""
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
    learners = _chosen_methods(args)
    if args.plot is not None:
        if len(learners) < 2:
            raise ValueError("--plot compares two methods or more")
        check_target(args.plot)
        check_figure(args.plot)
    tasks = read_task(args)
    report = REPORTS[args.format](learners, args)
    line = Line() if on_terminal() else None
    errors = {}
    for data, splits in tasks:
        report.begin(data, splits)
        rows = []
        for name, learner in learners.items():
            scores = _evaluate(name, learner, data, splits, args, line)
            rows.append(scores.mae)
            if line is not None:
                line.wipe()
            report.add(name, scores)
        errors[data.name] = np.column_stack(rows)
        report.end()
    report.close()
    if args.plot is not None:
        save_figure(args.plot, errors, list(learners))


def _chosen_methods(args: argparse.Namespace) -> dict[str, Learner]:
    """Return the methods to compare, with their --set METHOD.ARG=VALUE."""
    settings: dict[str, list[str]] = {name: [] for name in args.methods}
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
            learners[name] = learner_of(name, given, args)
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError("; ".join(wrong))
    return learners


def _evaluate(
    name: str,
    learner: Learner,
    data: Data,
    splits: Splits,
    args: argparse.Namespace,
    line: Line | None,
) -> Scores:
    """Evaluate a method on the splits.

    The folds of a search follow from the seed and the number of the split, and are the
    same for every method.
    """
    errors, status, chosen, disordered = [], [], [], 0
    begun = time.perf_counter()
    for k, (train_idx, test_idx) in enumerate(splits):
        watch = None
        if line is not None:
            left = (time.perf_counter() - begun) / max(k, 1) * (len(splits) - k)
            wait = f", {duration(left)} left" if k else ""
            where = f"{name}: split {k + 1} of {len(splits)}{wait}"
            line.show(where)
            watch = partial(_tell, line, where)
        rng = np.random.default_rng([args.seed or 0, k])
        with warnings.catch_warnings():
            filter_held("ignore")  # as they are counted
            start = time.perf_counter()
            model, point = learner.learn(
                data.X.rows(train_idx),
                data.y[train_idx],
                rng,
                callback=watch,
                **data.params,
            )
            elapsed = time.perf_counter() - start
        status.append(model.convergence.status.value)
        chosen.append(point)
        disordered += bool(getattr(model, "disorder", ()))
        rows = data.y[test_idx], model.predict(data.X.rows(test_idx))
        errors.append([m(*rows, labels=data.classes) for m in (mze, mae)] + [elapsed])
    zero_one, absolute, seconds = np.array(errors).T
    return Scores(zero_one, absolute, seconds, status, chosen, disordered)


def _tell(line: Line, where: str, state: State) -> bool:
    """Return a callback that shows how far a fit is, and does not stop it."""
    line.show(f"{where}; {state.n_iter} steps")
    return False
