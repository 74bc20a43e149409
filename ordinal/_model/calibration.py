"""Links from scores that their model was not fitted to, for every method alike."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from .._input.problem import Problem
from .._numerics.rows import take
from .._watch.convergence import Status, worse
from .._watch.monitor import Monitor
from .folds import N_FOLDS, FewFolds, Shares, never_scored, out_of_fold


def calibrate(
    models: Sequence[Any],
    problem: Problem,
    share: Shares | None,
    fit: Callable[[Problem, np.ndarray], Sequence[Any]],
    monitor: Monitor,
) -> list[Any]:
    """Return the models with links fitted to out-of-fold scores.

    As they are without folds.

    Where time is up the link makes do with the folds so far, if they score every rank.
    Where a few are enough, which is so of very many rows, it always does.

    Parameters
    ----------
    models : one a point of a path, of one class
        Its `link_input(X, like)` gives, of rows, what its link takes, in the unit of
        the model `like`; `link_type` fits the link.
    problem : that they were fitted to
    share : (n, N_FOLDS) array, FewFolds, or None
        From `fold_shares` or `few_folds`.
    fit : callable
        Makes the models of a part of the problem that holds the rows it is told.
    monitor : that of the fit
    """
    if share is None:
        return list(models)
    few = isinstance(share, FewFolds)
    single, weight_of_single = never_scored(problem, share)
    values: list[list[np.ndarray]] = [[] for _ in models]
    if single.size:
        X = take(problem.X, single)
        values = [[model.link_input(X, model)] for model in models]
    rows, weight = [single], [weight_of_single]
    convergence = [model.convergence for model in models]
    kernel = getattr(models[0], "kernel", None)
    for k, part in enumerate(out_of_fold(problem, kernel, share)):
        with monitor.numbered("fold", k, N_FOLDS), closing(part.problem):
            for i, of_fold in enumerate(fit(part.problem, part.train)):
                values[i].append(of_fold.link_input(part.X_test, models[i]))
                convergence[i] = worse(convergence[i], of_fold.convergence)
        rows.append(part.test)
        weight.append(part.weight)
        scored = np.unique(problem.rank[np.concatenate(rows)])
        every_rank = scored.size == np.count_nonzero(problem.present)
        if few and every_rank:
            break
        if monitor.late() and every_rank and k + 1 < N_FOLDS:
            cut = [replace(c, status=Status.MAX_TIME) for c in convergence]
            convergence = list(map(worse, convergence, cut))
            break
    told = problem.rank[np.concatenate(rows)], np.concatenate(weight)
    return [
        replace(
            model,
            link=model.link_type.fit(
                np.concatenate(values[i]), *told, problem.n_classes
            ),
            convergence=replace(convergence[i], seconds=monitor.seconds),
        )
        for i, model in enumerate(models)
    ]
