"""Checked arguments of a fit of the cumulative link model, and its design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Required, Unpack, cast, get_args

import numpy as np

from .._cumulative.collinear import identified
from .._cumulative.design import (
    Design,
    Threshold,
    check_columns,
    check_offset_columns,
    read_offset,
)
from .._cumulative.fitting import likelihood_of
from .._cumulative.likelihood import Link
from .._cumulative.rowwise import RowwiseLikelihood
from .._input.checks import check_choice, check_entries, listed, shown
from .._input.columns import column_number
from .._input.immutable import read_only
from .._input.problem import Problem
from .._input.types import ArrayLike, Blocks, Labels, MatrixLike
from .._model.preparation import Common, prepare
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import Reading, check_in_memory
from .._rows.rows import Rows
from .._watch.blas import OneThread
from .._watch.monitor import Monitor
from ..preprocessing.base import Preprocess
from ..preprocessing.tables import unit_of_chunks
from .estimates import fields_of_design
from .training import Missing, TrainingTable, read_training

# Offsets in standard deviations of the noise: fits converge to 1000, but not to 1e6.
_OFFSET = 1e4
_HOPELESS = 1e100  # mean loss above which curvatures overflow


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPom:
    """Checked arguments and design of a fit."""

    training: TrainingTable
    problem: Problem
    design: Design
    link: Link
    threshold: Threshold
    n_threads: int
    monitor: Monitor

    @property
    def rowwise(self) -> RowwiseLikelihood:
        """Loss without penalty that needs memory for vectors only."""
        return RowwiseLikelihood(self.design, self.link, 0.0, self.n_threads)

    def fields(
        self, design: Design, x: np.ndarray, *, in_order: bool = True
    ) -> dict[str, Any]:
        """Return the fields of a model that the data and the design determine."""
        problem, coding = self.problem, self.training.coding
        table = problem if coding is None else coding
        return {
            "classes": read_only(problem.classes),
            "n_features": table.n_features,
            "feature_names": table.feature_names,
            "coding": coding,
            "column_names": problem.shown_names,
            "link": self.link,
            "threshold": self.threshold,
            "observed": read_only(problem.present),
            "n_obs": design.total,
            "n_missing": self.training.n_missing,
            **fields_of_design(design, problem.present, x, in_order=in_order),
        }


class PomArguments(Common, total=False):
    """Arguments of `Common`, and of fits of linear models."""

    link: Required[Link]
    threshold: Required[Threshold]
    nominal: Required[Sequence[str | int]]
    scale: Required[Sequence[str | int]]
    offset: ArrayLike | None
    reference: Mapping[str, Any] | None
    missing: Missing
    cluster: ArrayLike | None
    preprocess: Preprocess | None


_BY_ROW = "sample_weight", "offset", "cluster"


def prepare_pom(
    name: str,
    X: MatrixLike | Blocks | str,
    y: Labels | None,
    is_penalised: bool,
    *,
    chunks: bool = False,
    monotone: bool = False,
    shifted: bool = False,
    **given: Unpack[PomArguments],
) -> PreparedPom:
    """Check and read the arguments that the fits share.

    Parameters
    ----------
    name : str
        Name of the fit, for messages.
    is_penalised : bool
        Whether a penalty makes the coefficients of collinear columns unique.
    chunks, monotone, shifted : bool
        Whether the fit accepts rows in chunks, terms mo(x), and offsets by threshold.
    """
    link, threshold = given["link"], given["threshold"]
    nominal, scale = given["nominal"], given["scale"]
    check_choice("link", link, get_args(Link))
    check_choice("threshold", threshold, get_args(Threshold))
    if not chunks:
        check_in_memory(name, X)
    training = read_training(
        X,
        y,
        classes=given.get("classes"),
        missing=given.get("missing", "error"),
        reference=given.get("reference"),
        by_row={argument: given.get(argument) for argument in _BY_ROW},
        class_weight=given.get("class_weight"),
        chunks=chunks,
        beside=[*_strings(nominal), *_strings(scale)],
        preprocess=given.get("preprocess"),
    )
    if training.coding is not None and training.coding.monotone and not monotone:
        raise ValueError(
            f"{name} does not fit monotone effects: use fused(x) instead of mo(x), "
            "which has no constraint, or fit_pom without l1"
        )
    # If rows are in memory, y, `classes` and the weights are in the Problem.
    common = {k: v for k, v in given.items() if k in Common.__annotations__}
    prepared = prepare(name, training.rows, y, Reading(chunks), **cast(Common, common))
    problem = prepared.problem
    check_columns(name, problem.n_features)
    if isinstance(problem, ChunkedProblem) and given.get("preprocess") is not None:
        training = replace(training, unit=unit_of_chunks(problem))
    with closing(problem):
        design = _design(training, problem, nominal, scale, threshold)
        with OneThread():  # threads of BLAS spin on a busy machine
            design = identified(design, problem.shown_names, is_penalised)
        if design.is_shifted and not shifted:
            raise ValueError(
                f"offset must have shape ({design.n_samples},) here: offsets by "
                "threshold are for fit_ratio, and fit_pom without l1 and in_order"
            )
        if design.offset is not None:
            _check_start(design, link, prepared.n_threads)
    return PreparedPom(
        training, problem, design, link, threshold, prepared.n_threads, prepared.monitor
    )


def _check_start(design: Design, link: Link, n_threads: int) -> None:
    """Raise ValueError if an offset contradicts the ranks by so much that no descent
    can start.
    """
    none = np.zeros(0, np.int64)
    plain = replace(design, location=none, nominal=none, scale=none)
    loss = likelihood_of(plain, link, 0.0, n_threads)
    if not (value := loss.at(loss.start()).value) < _HOPELESS:
        raise ValueError(
            f"offset must not contradict the ranks: with link={shown(link)} and no "
            f"features the mean loss is {value:.3g}; its unit is that of the latent "
            "noise: divide the offset by its scale"
        )


def check_concave(penalty: str, link: Any, scale: Any) -> None:
    """Raise ValueError for a model whose loss is not convex, and name the argument."""
    if link == "cauchit" or (isinstance(scale, Sequence) and len(scale)):
        got = "link='cauchit'" if link == "cauchit" else f"scale={shown(scale)}"
        raise ValueError(
            f"{penalty} is for models with a convex loss, which those with the link "
            f"cauchit or with scale effects have not, got {got}"
        )


def _design(
    training: TrainingTable,
    problem: Problem,
    nominal: Any,
    scale: Any,
    threshold: Threshold,
) -> Design:
    """Return the design that the arguments describe."""
    coding = training.coding
    nominal = _chosen("nominal", nominal, problem, training)
    scale = _chosen("scale", scale, problem, training)
    terms = {} if coding is None else coding.columns_of_terms
    beside = [j for term in training.beside for j in terms[term]]
    # All other columns have a location effect.
    location = np.setdiff1d(np.arange(problem.n_features), [*nominal, *beside])
    monotone = {} if coding is None else coding.monotone
    increments = [j for _, columns in monotone.values() for j in columns]
    # The sign constraint is one on coefficients of the location.
    if np.isin(increments, np.union1d(nominal, scale)).any():
        raise ValueError(
            "monotone effects must not be in nominal or scale: use fused(x), or the "
            "column itself"
        )
    known = training.offset
    if known is not None:
        known = read_offset(known, problem.n_samples)
        if known.ndim == 2:
            _check_thresholds_of(known, problem)
        fits = (np.abs(known).T <= _OFFSET) | (problem.weight == 0)
        check_entries(
            "offset",
            known,
            fits.T,
            f"lie between {-_OFFSET:g} and {_OFFSET:g}, because its unit is that of "
            "the latent noise: subtract its mean, or divide it by its scale",
        )
    return Design.from_problem(
        problem, location, nominal, scale, known, threshold, training.unit
    )


def _check_thresholds_of(offset: np.ndarray, problem: Problem) -> None:
    """Raise ValueError unless offsets by threshold fit the ranks and the rows."""
    check_offset_columns(offset, problem.present.size - 1)
    if not problem.present.all() or isinstance(problem.X, Rows):
        where = "of all ranks" if not problem.present.all() else "in memory"
        raise ValueError(f"offset by threshold needs rows {where}")


def _strings(names: Any) -> list[str]:
    """Return the strings in `nominal` or `scale`, which `_chosen` checks later."""
    every = names if isinstance(names, Sequence) and not isinstance(names, str) else ()
    return [name for name in every if isinstance(name, str)]


def _chosen(
    argument: str, columns: Any, problem: Problem, training: TrainingTable
) -> np.ndarray:
    """Return the numbers of the columns that an argument names, increasing."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        meant = ""
        if isinstance(columns, str):  # perhaps a formula, as R's clm accepts
            names = [name.strip() for name in columns.lstrip("~ ").split("+")]
            meant = f"; for these columns pass {argument}={listed(names)}"
        raise ValueError(
            f"{argument} must be a sequence of columns by name or number, got "
            f"{shown(columns)}{meant}"
        )
    terms = {} if training.coding is None else training.coding.columns_of_terms
    numbers: list[int] = []
    for name in columns:
        name = training.named.get(name, name) if isinstance(name, str) else name
        if isinstance(name, str) and name in terms:
            numbers += terms[name]
        else:
            numbers.append(column_number(name, problem.shown_names, argument))
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{argument} must name a column once, got {listed(columns)}")
    return np.array(sorted(numbers), dtype=np.int64)
