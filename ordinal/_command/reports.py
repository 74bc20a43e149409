"""Reports of `ordinal compare`: tables in text and Markdown, CSV, and JSON.

Rows come as they are done, into a file too; JSON comes at the end.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._watch.convergence import Status
from .data import Data, Splits
from .methods import FOLDS, Learner, described, described_grid


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of one method on one data set, one per split.

    Attributes
    ----------
    mze, mae, seconds : (n_splits,) array
        Test errors, and the seconds of the fit, or of the search and the fit.
    status : list of str
    chosen : list of dict
        The point that the search has chosen; empty without a search.
    disordered : int
        Number of fits with thresholds out of order.
    """

    mze: np.ndarray
    mae: np.ndarray
    seconds: np.ndarray
    status: list[str]
    chosen: list[dict[str, Any]]
    disordered: int

    @property
    def failures(self) -> list[str]:
        """The status of each fit that did not converge."""
        return [s for s in self.status if s != Status.CONVERGED.value]

    @property
    def converged(self) -> str:
        good = len(self.status) - len(self.failures)
        return f"{good}/{len(self.status)}"


class Text:
    """A table to read, with what did not converge below it."""

    ITEM = ""

    def __init__(self, learners: Mapping[str, Learner], args: argparse.Namespace):
        self.learners, self.verbose = learners, args.verbose
        self.width = max(len(name) for name in ("method", *learners))
        self.unconverged: list[str] = []
        self.disordered: list[str] = []
        self.chosen: list[str] = []  # with --verbose, on the present set
        self.data: Data
        if args.verbose:
            self.items(
                [
                    f"{name} searches {described_grid(learner.grid)}: "
                    f"{learner.points} points in {FOLDS} folds"
                    for name, learner in learners.items()
                    if learner.grid
                ]
            )

    def begin(self, data: Data, splits: Splits) -> None:
        self.data = data
        _say(f"{heading(data, splits)}\n")
        self.head()

    def head(self) -> None:
        _say(
            f"{'method':<{self.width}}  {'MZE (sd)':<15}  {'MAE (sd)':<15}  "
            f"{'fit (s)':>8}  converged"
        )

    def add(self, name: str, scores: Scores) -> None:
        self.row(name, scores)
        if self.verbose:
            points = Counter(described(point) for point in scores.chosen if point)
            self.chosen += [
                f"{name} chose {point} {times} x"
                for point, times in points.most_common()
            ]
        if scores.failures:
            why = ", ".join(sorted(set(scores.failures)))
            self.unconverged.append(f"{name} on {self.data.name} ({why})")
        if scores.disordered:
            part = f"{scores.disordered}/{len(scores.status)}"
            self.disordered.append(f"{name} on {self.data.name} ({part})")

    def row(self, name: str, scores: Scores) -> None:
        _say(
            f"{name:<{self.width}}  {_mean_sd(scores.mze)}  {_mean_sd(scores.mae)}  "
            f"{scores.seconds.mean():8.4f}  {scores.converged:>9}"
        )

    def end(self) -> None:
        _say("")
        self.items(self.chosen)
        self.chosen = []

    def items(self, lines: list[str]) -> None:
        for line in lines:
            _say(f"{self.ITEM}{line}")
        if lines:
            _say("")

    def close(self) -> None:
        if self.unconverged:
            _say(f"Not converged in every split: {'; '.join(self.unconverged)}")
        if self.disordered:
            _say(f"Thresholds out of order: {'; '.join(self.disordered)}")


class Markdown(Text):
    """Report as a Markdown table."""

    ITEM = "* "

    def head(self) -> None:
        _say("| method | MZE (sd) | MAE (sd) | fit (s) | converged |")
        _say("|---|---|---|---|---|")

    def row(self, name: str, scores: Scores) -> None:
        cells = [
            name,
            _mean_sd(scores.mze).strip(),
            _mean_sd(scores.mae).strip(),
            f"{scores.seconds.mean():.4f}",
            scores.converged,
        ]
        _say(f"| {' | '.join(cells)} |")


class Csv:
    """A line a split, with what a search has chosen for it."""

    HEAD = ("data", "method", "split", "mze", "mae", "seconds", "status", "chosen")

    def __init__(self, learners: Mapping[str, Learner], args: argparse.Namespace):
        self.writer = csv.writer(sys.stdout, lineterminator="\n")
        self.writer.writerow(self.HEAD)
        self.data: Data

    def begin(self, data: Data, splits: Splits) -> None:
        self.data = data

    def add(self, name: str, scores: Scores) -> None:
        for k, point in enumerate(scores.chosen):
            errors = (float(a[k]) for a in (scores.mze, scores.mae, scores.seconds))
            end = scores.status[k], described(point)
            self.writer.writerow((self.data.name, name, k, *errors, *end))
        sys.stdout.flush()

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass


class Json:
    """Everything, for a program to read."""

    def __init__(self, learners: Mapping[str, Learner], args: argparse.Namespace):
        self.learners, self.seed = learners, args.seed or 0
        self.sets: list[dict[str, Any]] = []

    def begin(self, data: Data, splits: Splits) -> None:
        (n, d), (train_idx, test_idx) = data.X.shape, splits[0]
        self.sets.append(
            {
                "data": data.name,
                "rows": n,
                "features": d,
                "classes": data.classes.tolist(),
                "training_rows": train_idx.size,
                "test_rows": test_idx.size,
                "seed": self.seed,
                "methods": [],
            }
        )

    def add(self, name: str, scores: Scores) -> None:
        learner = self.learners[name]
        self.sets[-1]["methods"].append(
            {
                "method": name,
                "grid": learner.grid,
                "mze": scores.mze.tolist(),
                "mae": scores.mae.tolist(),
                "seconds": scores.seconds.tolist(),
                "status": scores.status,
                "chosen": scores.chosen,
                "disordered": scores.disordered,
            }
        )

    def end(self) -> None:
        pass

    def close(self) -> None:
        _say(json.dumps(self.sets, indent=1))


REPORTS: dict[str, type[Text | Csv | Json]] = {
    "text": Text,
    "markdown": Markdown,
    "csv": Csv,
    "json": Json,
}


def heading(data: Data, splits: Splits) -> str:
    train_idx, test_idx = splits[0]
    return (
        f"{data.name}: {data.described()}; "
        f"{len(splits)} x ({train_idx.size} training + {test_idx.size} test rows)"
    )


def _mean_sd(values: np.ndarray) -> str:
    """Mean and sample deviation, as the papers' tables give them."""
    sd = f"({values.std(ddof=1):.4f})" if values.size > 1 else ""
    return f"{values.mean():6.4f} {sd:<8}"


def _say(line: str) -> None:
    print(line, flush=True)
