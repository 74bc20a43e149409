"""`ordinal fit`: a model of a whole table, saved in a file."""

import argparse
import sys
from dataclasses import replace

import numpy as np

from .._files.writing import check_target, descriptor_of
from .._input.labels import ranks_of
from .._input.warning import warn
from .._watch.progress import Line
from ..comparison.learner import Learner
from ..comparison.methods import Study, compared
from ..model_selection import stratified_kfold
from ..model_selection.data import SearchData
from ..model_selection.scoring import Rule, scorers_of
from .data import Data, Streamed, is_large, read_data, read_streamed
from .methods import described, learner_of, on_terminal

_STDOUT = 1  # the descriptor
_MANY = 100_000  # rows whose folds may take minutes


def fit(args: argparse.Namespace) -> None:
    """Save the model of a table, and print how its fit ended."""
    if args.folds and args.folds < 2:
        raise ValueError(f"--folds must be 2 or more, or 0 for none, got {args.folds}")
    if args.seed is not None and not args.tune:
        raise ValueError(
            "--seed is for --tune only: to seed the method itself, pass --set rng=N"
        )
    if args.rule is not None and not args.tune:
        raise ValueError(
            "--rule is for --tune only: a model without a search predicts by its own "
            "rule"
        )
    learner = learner_of(args.method, args.set, args)
    check_target(args.out)  # better now than after the fit
    rng = np.random.default_rng(args.seed or 0)
    watched = on_terminal()
    chunks = "basis" in learner.params and is_large(args.data)
    data: Data | Streamed
    if args.stream or chunks:
        data = read_streamed(args)
        labels = None
    else:
        data = read_data(args)
        labels = data.y
    model, point = learner.learn(
        data.X, labels, rng, watched, rule=args.rule, **data.params
    )
    model.save(args.out)

    # The report does not go where the model has gone.
    report = sys.stderr if descriptor_of(args.out) == _STDOUT else sys.stdout
    print(
        f"{args.method} on {data.described()}: "
        f"{model.convergence.status.value} in {model.convergence.seconds:.3g} s, "
        f"saved as {args.out}",
        file=report,
    )
    if point:
        print(f"chosen among {learner.points} points: {described(point)}", file=report)
    if isinstance(data, Data) and args.folds:
        try:
            print(_cross_validated(data, learner, args), file=report)
        except ValueError as error:  # of a fit in a fold
            warn(
                "the model is saved, but not cross-validated, because a fit without "
                f"the rows of a fold failed: {error}; --folds 0 leaves this out",
                UserWarning,
            )
    if data.binning is not None:
        edges = ", ".join(f"{edge:.6g}" for edge in data.binning.edges)
        print(
            f"ranks 1 to {args.bins} end at {edges} and the largest value", file=report
        )


def _cross_validated(data: Data, learner: Learner, args: argparse.Namespace) -> str:
    """Return the errors of the method, tuned if asked for, on rows left out."""
    seed = args.seed or 0
    k = min(args.folds, len(data.y))
    rows = SearchData(data.X, None, data.y, data.classes)
    # Both judge the labels that the saved model predicts. A search chooses by the MAE.
    both = scorers_of(("mae", "accuracy"), None)
    scorers = tuple(replace(scorer, rule=both[0].rule) for scorer in both)
    rule: Rule | None = args.rule if learner.grid else "own"
    study = Study(rows, {args.method: learner}, scorers, rule, (seed,))
    splits = stratified_kfold(ranks_of(data.y, data.classes), k, rng=seed)
    if not on_terminal() and len(data.y) > _MANY:  # a fit shows nothing
        print(f"ordinal: {k} more fits follow; --folds 0 saves them", file=sys.stderr)
    result = compared(study, splits, Line())
    mae, accuracy = (
        f"{result.mean(m)[0]:.4f} ± {result.standard_error(m)[0]:.4f}"
        for m in ("mae", "accuracy")
    )
    return f"cross-validated in {k} folds: MAE {mae}, accuracy {accuracy}"
