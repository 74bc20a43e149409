"""`ordinal compare`: test errors of methods over repeated hold-outs."""

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import shortened
from .._model.convergence import filter_held
from ..metrics import mae, mze
from ..preprocessing import Standardizer
from .data import Data, Splits, read_task
from .methods import Fit, method_of


class _Scores(NamedTuple):
    mze: np.ndarray  # (n_splits,)
    mae: np.ndarray
    seconds: np.ndarray  # of the fit alone
    failures: list[str]  # status of each fit that did not converge
    disordered: int  # number of fits with thresholds out of order


def compare(args: argparse.Namespace) -> None:
    """Print a table of errors for every set of data, and what did not converge."""
    methods = _chosen_methods(args)
    tasks = read_task(args)
    width = max(len(name) for name in ("method", *methods))
    unconverged, disordered = [], []
    for data, splits in tasks:
        _print_heading(data, splits, width)
        for name, (fit, params) in methods.items():
            scores = _evaluate(fit, params, data, splits)
            good = len(splits) - len(scores.failures)
            print(
                f"{name:<{width}}  {_mean_sd(scores.mze)}  {_mean_sd(scores.mae)}  "
                f"{scores.seconds.mean():8.4f}  {f'{good}/{len(splits)}':>9}",
                flush=True,  # rows come as they are done, into a file too
            )
            if scores.failures:
                why = ", ".join(sorted(set(scores.failures)))
                unconverged.append(f"{name} on {data.name} ({why})")
            if scores.disordered:
                part = f"{scores.disordered}/{len(splits)}"
                disordered.append(f"{name} on {data.name} ({part})")
        print()
    if unconverged:
        print(f"Not converged in every split: {'; '.join(unconverged)}")
    if disordered:
        print(f"Thresholds out of order: {'; '.join(disordered)}")


def _chosen_methods(args: argparse.Namespace) -> dict[str, tuple[Fit, dict[str, Any]]]:
    """The entries of METHODS to compare, with their --set METHOD.ARG=VALUE."""
    settings: dict[str, list[str]] = {name: [] for name in args.methods}
    for setting in args.set:
        name, dot, rest = setting.partition(".")
        if not dot or name not in settings:
            raise ValueError(
                f"--set {shortened(setting)}: expected METHOD.ARG=VALUE with a "
                f"method among {', '.join(settings)}"
            )
        settings[name].append(rest)
    return {name: method_of(name, given, args) for name, given in settings.items()}


def _print_heading(data: Data, splits: Splits, width: int) -> None:
    (n, d), (train_idx, test_idx) = data.X.shape, splits[0]
    print(
        f"{data.name}: {n} rows, {d} features, {data.classes.size} ranks; "
        f"{len(splits)} x ({train_idx.size} training + {test_idx.size} test rows)\n\n"
        f"{'method':<{width}}  {'MZE (sd)':<15}  {'MAE (sd)':<15}  {'fit (s)':>8}  "
        "converged",
        flush=True,
    )


def _evaluate(fit: Fit, params: dict[str, Any], data: Data, splits: Splits) -> _Scores:
    errors, failures, disordered = [], [], 0
    for train_idx, test_idx in splits:
        standardizer = Standardizer.fit(data.X[train_idx])
        X = standardizer.transform(data.X[train_idx])
        with warnings.catch_warnings():
            filter_held("ignore")  # as they are counted
            start = time.perf_counter()
            model = fit(X, data.y[train_idx], **data.params, **params)
            elapsed = time.perf_counter() - start
        if not model.convergence.converged:
            failures.append(model.convergence.status.value)
        disordered += bool(getattr(model, "disorder", ()))
        predicted = model.predict(standardizer.transform(data.X[test_idx]))
        rows = data.y[test_idx], predicted
        errors.append([m(*rows, labels=data.classes) for m in (mze, mae)] + [elapsed])
    zero_one, absolute, seconds = np.array(errors).T
    return _Scores(zero_one, absolute, seconds, failures, disordered)


def _mean_sd(values: np.ndarray) -> str:
    """Mean and sample deviation, as the papers' tables give them."""
    sd = f"({values.std(ddof=1):.4f})" if values.size > 1 else ""
    return f"{values.mean():6.4f} {sd:<8}"
