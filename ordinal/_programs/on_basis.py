"""Solve the programs of a family among functions of some basis rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from .._basis.features import Features
from .._basis.fitting import (
    TRIAL_GAP,
    BasisFit,
    chosen,
    enough_rows,
    features_among,
    record,
)
from .._basis.proximal import Solution
from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._model.support import read_only_matrix
from .._rows.rows import map_rows
from .._watch.convergence import Convergence
from ..kernels import Precomputed
from ..kernels.tiles import Evaluator, Products
from .family import Family, KernelOptions, M, P, Solved

_NEWTON_STEPS = 200  # for each sample of the rows; some 20 are usual


class BasisSolution(Solved):
    """Solutions on a basis."""

    def __init__(
        self, options: KernelOptions, features: Features, solutions: Sequence[Solution]
    ):
        self.options, self.solutions = options, solutions
        self.support = read_only_matrix(features.support)
        self._w = np.stack([s.w for s in solutions], axis=1)
        self.coef = features.coefficients(self._w)
        self.b = [s.b for s in solutions]

    def squared_norms(self) -> np.ndarray:
        """Return |w|^2 of every problem, (P,)."""
        return np.asarray((self._w * self._w).sum(axis=0))

    def records(self) -> list[Convergence]:
        """Return the record of every problem."""
        return [record(self.options.monitor, s) for s in self.solutions]

    def scores(self, problem: Problem) -> np.ndarray:
        """Return the scores of the only problem at the training rows, (n,)."""

        def scores_of(rows: Any) -> np.ndarray:
            kernel, n_threads = self.options.kernel, self.options.n_threads
            values = Evaluator(kernel, rows, self.support, n_threads)
            return np.asarray(values.product(self.coef)[:, 0] - self.b[0][0])

        return map_rows(scores_of, problem.X)


@dataclass(frozen=True, slots=True)
class OnBasis(Generic[P, M]):
    """Solver of a family on the features of a basis."""

    family: Family[P, M]
    options: KernelOptions
    features: Features

    @classmethod
    def choose(
        cls,
        family: Family[P, M],
        options: KernelOptions,
        choice: BasisChoice,
        problem: Problem,
        point: P,
    ) -> OnBasis[P, M]:
        """Choose the basis rows.

        Their number, if it is to be found, by models of this point on parts of the
        problem.
        """
        kernel = options.kernel
        if choice.way == "auto":
            monitor = options.monitor
            coarse = replace(
                options, monitor=monitor.to_tol(max(TRIAL_GAP, monitor.tol))
            )

            def fit(part: Problem, tried: BasisChoice) -> M:
                here = cls.choose(family, coarse, tried, part, point)
                return here.fit([point], part)[0][0]

            choice = enough_rows(problem, kernel, fit, options.seed)
        features = chosen(choice, kernel, problem, options.seed, options.n_threads)
        return cls(family, options, features)

    def restricted_to(self, problem: Problem, rows: np.ndarray) -> OnBasis[P, M]:
        """Return the solver for a problem of these training rows, as in a fold."""
        options = self.options
        features = features_among(
            self.features, options.kernel, problem.X, rows, options.n_threads
        )
        return replace(self, features=features)

    def fit(
        self,
        points: Sequence[P],
        problem: Problem,
        start: Any = None,
        products: Products | None = None,
    ) -> tuple[list[M], None]:
        """Return one model per point; all of them have the basis rows as support."""
        family, options, features = self.family, self.options, self.features
        losses = [family.losses(point, problem) for point in points]
        starts = family.begin_on_basis(start, losses[0], problem, features)
        fits = BasisFit(
            features,
            problem.X,
            family.rank(problem),
            problem.weight,
            options.cache_mb,
            options.n_threads,
            np.random.default_rng(options.seed),
            options.monitor,
        )
        with closing(fits):
            found = fits.path(
                losses,
                starts,
                tol=options.monitor.tol,
                # rows of a precomputed kernel may have other numbers in a fold
                warm=start is not None and not isinstance(options.kernel, Precomputed),
                max_iter=options.max_iter or _NEWTON_STEPS,
            )
        models = [
            family.model(point, problem, BasisSolution(options, features, of))
            for point, of in zip(points, found, strict=True)
        ]
        return models, None
