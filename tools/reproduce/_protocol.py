"""Shared parts of the scripts of this folder: options, data, partitions, cells."""

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from _common import (  # noqa: F401  (for the scripts)
    NO_DATA,
    add_data,
    best_time,
    california,
    header,
    limited,
    resident,
    standardized,
    stored_splits,
    table,
)

AUTHORS = {"solver": "admm", "n_steps": 50, "start": 1.0, "intercept": "average"}
SIZES = {  # rows for training and for testing in the papers, drawn here
    "bank32nh": (3000, 5182),
    "cpu_act": (4000, 4182),
    "california_housing": (5000, 15640),
    "house_16H": (6000, 16784),
}


def options(doc, data=True, splits=None, **choices):
    """A parser with --data, --splits and, for each of `choices`, a choice of several,
    all by default."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if data:
        add_data(parser)
    if splits:
        text = f"the first N of {splits}"
        parser.add_argument("--splits", type=int, default=splits, help=text)
    for name, values in choices.items():
        each = list(values)
        kind = type(each[0])
        parser.add_argument(
            f"--{name}", nargs="+", choices=each, default=each, type=kind
        )
    return parser


def search_options(doc, splits, **choices):
    """The options of a script that runs so many hold-outs through `nested`."""
    parser = options(doc, splits=splits, **choices)
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--store", metavar="FOLDER", help="keep finished fits there, and find them"
    )
    return parser


def store_folder(args):
    """A context: --store, or a folder that is gone afterwards."""
    return nullcontext(args.store) if args.store else tempfile.TemporaryDirectory()


def raw_partition(data, name, bins, split, stored="orreview_equalfreq"):
    """X, y, the training rows and the test rows of one partition; X is without the
    features that are constant in the training rows."""
    X, _ = table(data, name)
    splits = stored_splits(data, name, stored)
    if name in SIZES:
        drawn = np.random.default_rng([split, bins]).permutation(len(X))
        train, test, _ = np.split(drawn, np.cumsum(SIZES[name]))
    else:
        train, test = (splits[f"{of}_idx_{bins}"][split] for of in ("train", "test"))
    return X[:, np.ptp(X[train], axis=0) > 0], splits[f"y{bins}"], train, test


def partition(data, name, bins, split, stored="orreview_equalfreq"):
    """X and y of the training rows, then of the test rows, of one of 20 partitions;
    standardised."""
    X, y, train, test = raw_partition(data, name, bins, split, stored)
    X = standardized(X, train)
    return X[train], y[train], X[test], y[test]


def figures(text, sets, scale=1000):
    """{set: ((mean, deviation), ...)} of the paper from numbers in thousandths, a set
    after each comma; a "-" is a set that the paper does not have."""
    found = {}
    for name, cells in zip(sets, text.split(", "), strict=True):
        if cells != "-":
            found[name] = np.array(cells.split(), float).reshape(-1, 2) / scale
    return found


def beside(values, paper, width=5, digits=3):
    """Cells of a row: our mean and deviation, the paper's, and how far ours is off."""
    mean, sd = np.mean(values), np.std(values)
    theirs, spread = paper
    if np.isnan(theirs):  # the paper says nothing
        shown = f"{'-':{2 * width + 1}} {'-':>5}"
    else:
        off = (mean - theirs) / spread
        shown = f"{theirs:{width}.{digits}f}±{spread:{width - 1}.{digits}f} {off:+5.1f}"
    return f"  {mean:{width}.{digits}f}±{sd:{width - 1}.{digits}f}  {shown}"


def with_spread(errors):
    """Cells of means and deviations over the first axis."""
    cells = zip(np.mean(errors, axis=0), np.std(errors, axis=0), strict=True)
    return "".join(f"  {mean:.3f}±{sd:.3f}" for mean, sd in cells)
