"""The `ordinal` command: compare methods on a table, fit, predict, show the build.

Whatever the user got wrong is a ValueError, TypeError or OSError on its way up to
`main`, which turns it into one line on stderr.
"""

import argparse
import ast
import csv
import inspect
import os
import sys
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

import ordinal

from .._input.table import Table, read_table
from .._model.convergence import ConvergenceWarning, DisorderedThresholdsWarning
from ..datasets import make_gaussians, make_tlssvor
from ..gpor import fit_gpor
from ..metrics import mae, mze
from ..model_selection import stratified_holdout
from ..npsvor import fit_npsvor
from ..preprocessing import Binning, StandardizedModel, Standardizer
from ..svor import fit_redsvm, fit_shashua_levin, fit_svorex, fit_svorim
from ..tlssvor import fit_tlssvor
from ..xofm import fit_xofm

Fit = Callable[..., Any]  # fit(X, y, **params) -> model
Splits = Sequence[tuple[np.ndarray, np.ndarray]]  # (train_idx, test_idx)

# name on the command line -> function and the arguments that make it this method
METHODS: dict[str, tuple[Fit, dict[str, Any]]] = {
    "npsvor": (fit_npsvor, {}),
    "npsvor-admm": (fit_npsvor, {"solver": "admm"}),
    "svorim": (fit_svorim, {}),
    "svorex": (fit_svorex, {}),
    "shashua-levin": (fit_shashua_levin, {}),
    "redsvm": (fit_redsvm, {}),
    "tlssvor": (fit_tlssvor, {}),
    "gpor-laplace": (fit_gpor, {"inference": "laplace"}),
    "gpor-ep": (fit_gpor, {"inference": "ep"}),
    "xofm": (fit_xofm, {}),
}

_BINNING = {"frequency": Binning.equal_frequency, "length": Binning.equal_length}

# Arguments that the command line cannot hold, or has an option of its own for.
_NOT_SETTABLE = {"X", "y", "classes", "sample_weight", "start", "callback"}

# What a model says of itself: counted, or printed as a line, and not as a warning.
_REPORTED = (ConvergenceWarning, DisorderedThresholdsWarning)

# An integer target with more values than this is a quantity, not a rank.
_MAX_RANKS = 50


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0, 2 after an error, 130 after Ctrl-C."""
    try:
        args = _parser().parse_args(argv)
        args.run(args)
        sys.stdout.flush()  # a closed pipe shows here, not while Python shuts down
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has gone; what is left in the buffer must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, as the shell reports it
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else error)
    except (ValueError, TypeError, MemoryError) as error:
        return _fail(error)
    return 0


def _fail(problem: object) -> int:
    message = " ".join(str(problem).split()) or type(problem).__name__
    print(f"ordinal: error: {message}", file=sys.stderr)
    return 2


# Arguments


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see `{self.prog} --help`)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ordinal", description="Ordinal regression on tables.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    table = _Parser(add_help=False)
    table.add_argument("--target", metavar="NAME", help="its column (default: last)")
    table.add_argument(
        "--bins", type=int, metavar="K", help="cut a numeric target into K ranks"
    )
    table.add_argument(
        "--binning", choices=_BINNING, help="kind of bins (default: frequency)"
    )
    table.add_argument(
        "--classes", metavar="LOW,...,HIGH", help="the target's labels in rank order"
    )
    table.add_argument(
        "--threads", type=int, metavar="N", help="default: all that may be used"
    )

    compare = commands.add_parser(
        "compare",
        parents=[table],
        help="test error of methods over repeated hold-outs",
        description="Test error of methods over repeated stratified hold-outs, with "
        "features standardized by the training rows of each. Without DATA: on the "
        "embedded artificial sets.",
    )
    compare.add_argument("data", nargs="?", metavar="DATA", help="CSV or CSV.gz")
    compare.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=list(METHODS),
        metavar="METHOD",
        help=f"default: all of {', '.join(METHODS)}",
    )
    compare.add_argument(
        "--splits",
        default="30",
        metavar="N|FILE",
        help="number of hold-outs, or .npz of train_idx and test_idx, one row a split "
        "(with --bins K also train_idx_K, test_idx_K and the labels yK)",
    )
    compare.add_argument(
        "--test-size",
        type=_size,
        metavar="SIZE",
        help="fraction or number of rows (default: 0.25)",
    )
    compare.add_argument(
        "--seed", type=int, metavar="N", help="of the hold-outs (default: 0)"
    )
    compare.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="METHOD.ARG=VALUE",
        help="argument of a method, such as npsvor.C1=10",
    )
    compare.set_defaults(run=_compare)

    fit = commands.add_parser(
        "fit", parents=[table], help="fit a method to a table and save the model"
    )
    fit.add_argument("data", metavar="DATA", help="CSV or CSV.gz")
    fit.add_argument("--method", choices=METHODS, required=True)
    fit.add_argument("--out", required=True, metavar="MODEL.npz")
    fit.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="ARG=VALUE",
        help="argument of the method, such as C1=10",
    )
    fit.set_defaults(run=_fit)

    predict = commands.add_parser("predict", help="predict with a saved model")
    predict.add_argument("model", metavar="MODEL.npz")
    predict.add_argument("data", metavar="NEW", help="CSV or CSV.gz")
    predict.add_argument(
        "--proba",
        action="store_true",
        help="a column with the probability of each rank besides; support vector "
        "models must have been fitted with --set probability=True",
    )
    predict.add_argument("--out", metavar="FILE", help="default: standard output")
    predict.set_defaults(run=_predict)

    config = commands.add_parser("config", help="show what was built and is used")
    config.set_defaults(run=_config)
    return parser


def _size(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _method(
    name: str, settings: Sequence[str], args: argparse.Namespace
) -> tuple[Fit, dict[str, Any]]:
    """The method's function and arguments, with those of the command line."""
    fit, fixed = METHODS[name]
    given = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {setting}: expected ARG=VALUE")
        given[key] = _value(value)
    if args.threads is not None:
        given["n_threads"] = args.threads
    known = [k for k in inspect.signature(fit).parameters if k not in _NOT_SETTABLE]
    for key in given:
        if key in fixed:
            raise ValueError(f"--set: {name} means {key}={fixed[key]!r}")
        if key not in known:
            raise ValueError(
                f"--set: {name} has no argument {key!r}; it has {', '.join(known)}"
            )
    return fit, fixed | given


def _value(text: str) -> Any:
    """A Python literal such as 10, None or {1: 2.0}; any other text is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


# Data


class _Data(NamedTuple):
    name: str
    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,) labels
    classes: np.ndarray  # (r,) labels in rank order
    params: dict[str, Any]  # what a fit must be told of the labels
    features: tuple[str, ...] | None = None
    binning: Binning | None = None


def _read(args: argparse.Namespace, labels: np.ndarray | None = None) -> _Data:
    """The table `args.data`; `labels`, when given, replace those of its target."""
    if args.bins is None and args.binning is not None:
        raise ValueError("--binning needs --bins")
    if args.bins is not None and args.classes is not None:
        raise ValueError("--bins makes ranks of its own; --classes cannot name them")
    table = read_table(args.data)
    target = table.names[-1] if args.target is None else args.target
    table.column(target)  # so that a misspelt target is not taken for a feature
    features = tuple(name for name in table.names if name != target)
    if not features:
        raise ValueError(
            f"{args.data} has only the column {target!r}; cells are separated by commas"
        )
    X = table.numbers(features)
    params, binning = {}, None
    if labels is not None:
        y, classes = labels, np.arange(1, args.bins + 1)
        if y.shape != (len(X),):
            raise ValueError(f"{args.splits} has {y.size} labels for {len(X)} rows")
        if not np.isin(y, classes).all():
            raise ValueError(f"{args.splits}: labels must be ranks 1 to {args.bins}")
    elif args.bins is not None:
        values = table.numbers([target])[:, 0]
        binning = _BINNING[args.binning or "frequency"](values, args.bins)
        y, classes = binning.transform(values), np.arange(1, args.bins + 1)
    else:
        y, classes = _ranked_labels(table, target, args.classes)
        if args.classes is not None:
            params["classes"] = classes
    name = Path(args.data).name.removesuffix(".gz").removesuffix(".csv")
    return _Data(name, X, y, classes, params, features, binning)


def _ranked_labels(
    table: Table, target: str, listed: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """The target's labels as they are, and all of them in rank order."""
    y = table.labels(target)
    text = y.dtype.kind == "U"
    if listed is not None:
        names = [name.strip() for name in listed.split(",")]
        try:
            classes = np.array(names) if text else np.array([float(c) for c in names])
        except ValueError:
            raise ValueError(
                f"--classes {listed}: column {target!r} holds numbers"
            ) from None
        unknown = np.flatnonzero(~np.isin(y, classes))
        if unknown.size:
            raise table.error(unknown[0], target, f"is not in --classes {listed}")
        whole = y.dtype.kind == "i" and np.all(classes == np.rint(classes))
        return y, classes.astype(y.dtype) if whole else classes
    if text:
        try:
            table.numbers([target])  # for its error: one slip among numbers is found
        except ValueError as error:
            raise ValueError(
                f"{error}; labels that are words need --classes, in rank order"
            ) from None
    if y.dtype.kind != "i":
        row = next(i for i, v in enumerate(y) if v % 1 or abs(v) >= 2**53)
        raise table.error(row, target, "is no rank: cut the numbers with --bins")
    classes = np.unique(y)
    if classes.size > _MAX_RANKS:
        raise ValueError(
            f"{table.path}: column {target!r} has {classes.size} distinct values; cut "
            "it into ranks with --bins"
        )
    return y, classes


def _stored_splits(path: str, bins: int | None) -> tuple[Splits, np.ndarray | None]:
    """Splits of an .npz, and the labels it holds for this number of bins, if any."""
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{path} is not an .npz file")
    try:
        with np.load(path, allow_pickle=False) as stored:
            names = list(stored)
            suffix = f"_{bins}" if f"train_idx_{bins}" in names else ""
            train, test = f"train_idx{suffix}", f"test_idx{suffix}"
            if train not in names or test not in names:
                raise ValueError(
                    f"no {train} and {test} among {', '.join(names)}; "
                    "does --bins fit the file?"
                )
            train_idx, test_idx = stored[train], stored[test]
            labels = stored[f"y{bins}"] if f"y{bins}" in names else None
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} holds no splits: {error}") from error
    for idx in (train_idx, test_idx):
        if idx.ndim != 2 or idx.size == 0 or idx.dtype.kind not in "iu":
            raise ValueError(f"{path}: {train} and {test} must be 2-D row numbers")
    if len(train_idx) != len(test_idx):
        raise ValueError(f"{path}: {train} and {test} differ in their number of splits")
    return list(zip(train_idx, test_idx, strict=True)), labels


def _check_rows(path: str, splits: Splits, n: int) -> None:
    for k, (train_idx, test_idx) in enumerate(splits):
        rows = np.concatenate([train_idx, test_idx])
        if rows.min() < 0 or rows.max() >= n:
            raise ValueError(f"{path}: split {k} has a row outside 0 to {n - 1}")
        if np.unique(rows).size < rows.size:
            raise ValueError(f"{path}: split {k} uses a row twice")


def _tasks(args: argparse.Namespace) -> list[tuple[_Data, Splits]]:
    """What to compare on, all of it validated before the first fit."""
    stored = not args.splits.isdigit()
    if args.data is None:
        for option in ("target", "bins", "binning", "classes"):
            if getattr(args, option) is not None:
                raise ValueError(f"--{option} needs DATA")
        if stored:
            raise ValueError("a file of splits needs DATA")
        embedded = {"gaussians": make_gaussians(), "tlssvor": make_tlssvor()}
        data = [
            _Data(name, X, y, np.unique(y), {}) for name, (X, y) in embedded.items()
        ]
        return [(d, _holdouts(d.y, args)) for d in data]
    if not stored:
        table = _read(args)
        return [(table, _holdouts(table.y, args))]
    if args.test_size is not None or args.seed is not None:
        raise ValueError("--test-size and --seed do not go with a file of splits")
    splits, labels = _stored_splits(args.splits, args.bins)
    if labels is not None and args.binning is not None:
        raise ValueError(f"--binning: {args.splits} holds the labels y{args.bins}")
    table = _read(args, labels)
    _check_rows(args.splits, splits, len(table.X))
    return [(table, splits)]


def _holdouts(y: np.ndarray, args: argparse.Namespace) -> Splits:
    test_size = 0.25 if args.test_size is None else args.test_size
    seed = 0 if args.seed is None else args.seed
    return stratified_holdout(y, int(args.splits), test_size=test_size, rng=seed)


# Commands


class _Scores(NamedTuple):
    mze: np.ndarray  # (n_splits,)
    mae: np.ndarray
    seconds: np.ndarray  # of the fit alone
    failures: list[str]  # status of each fit that did not converge
    disordered: int  # number of fits with thresholds out of order


def _compare(args: argparse.Namespace) -> None:
    methods = _chosen_methods(args)
    tasks = _tasks(args)
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
                f"--set {setting}: expected METHOD.ARG=VALUE with a method among "
                f"{', '.join(settings)}"
            )
        settings[name].append(rest)
    return {name: _method(name, given, args) for name, given in settings.items()}


def _print_heading(data: _Data, splits: Splits, width: int) -> None:
    (n, d), (train_idx, test_idx) = data.X.shape, splits[0]
    print(
        f"{data.name}: {n} rows, {d} features, {data.classes.size} ranks; "
        f"{len(splits)} x ({train_idx.size} training + {test_idx.size} test rows)\n\n"
        f"{'method':<{width}}  {'MZE (sd)':<15}  {'MAE (sd)':<15}  {'fit (s)':>8}  "
        "converged",
        flush=True,
    )


def _evaluate(fit: Fit, params: dict, data: _Data, splits: Splits) -> _Scores:
    errors, failures, disordered = [], [], 0
    for train_idx, test_idx in splits:
        standardizer = Standardizer.fit(data.X[train_idx])
        X = standardizer.transform(data.X[train_idx])
        with warnings.catch_warnings():
            for category in _REPORTED:
                warnings.simplefilter("ignore", category)
            start = time.perf_counter()
            model = fit(X, data.y[train_idx], **data.params, **params)
            elapsed = time.perf_counter() - start
        if not model.convergence.converged:
            failures.append(model.convergence.status.value)
        disordered += bool(getattr(model, "disorder", ()))
        true = data.y[test_idx]
        predicted = model.predict(standardizer.transform(data.X[test_idx]))
        errors.append(
            (
                mze(true, predicted, labels=data.classes),
                mae(true, predicted, labels=data.classes),
                elapsed,
            )
        )
    zero_one, absolute, seconds = np.array(errors).T
    return _Scores(zero_one, absolute, seconds, failures, disordered)


def _mean_sd(values: np.ndarray) -> str:
    """Mean and sample deviation, as the papers' tables give them."""
    sd = f"({values.std(ddof=1):.4f})" if values.size > 1 else ""
    return f"{values.mean():6.4f} {sd:<8}"


def _fit(args: argparse.Namespace) -> None:
    fit, params = _method(args.method, args.set, args)
    if not Path(args.out).absolute().parent.is_dir():  # better now than after the fit
        raise ValueError(f"--out {args.out}: no such folder")
    data = _read(args)
    standardizer = Standardizer.fit(data.X)
    with warnings.catch_warnings(record=True) as caught:
        for category in _REPORTED:
            warnings.simplefilter("always", category)
        model = fit(standardizer.transform(data.X), data.y, **data.params, **params)
    for warning in caught:
        print(f"ordinal: warning: {warning.message}", file=sys.stderr)
    StandardizedModel(standardizer, model, data.features).save(args.out)

    n, d = data.X.shape
    print(
        f"{args.method} on {n} rows, {d} features, {data.classes.size} ranks: "
        f"{model.convergence.status.value} in {model.convergence.seconds:.3g} s, "
        f"saved as {args.out}"
    )
    if data.binning is not None:
        edges = ", ".join(f"{edge:.6g}" for edge in data.binning.edges)
        print(f"ranks 1 to {args.bins} end at {edges} and the largest value")


def _predict(args: argparse.Namespace) -> None:
    model = ordinal.load(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(f"{args.model} holds a {type(model).__name__}, not a model")
    table = read_table(args.data)
    features = getattr(model, "feature_names", None)
    # Without a header, a table as wide as the features has nothing else in it. A
    # wider one is taken for another of the training kind, with its target.
    if features is None or (not table.has_header and len(table.names) == len(features)):
        features = table.names
    X = table.numbers(features)
    names, rows = ["prediction"], [[label] for label in model.predict(X).tolist()]
    if args.proba:
        names += [f"P({label})" for label in model.classes.tolist()]
        columns = model.predict_proba(X).tolist()
        rows = [a + b for a, b in zip(rows, columns, strict=True)]
    with (
        open(args.out, "w", encoding="utf-8", newline="")
        if args.out
        else nullcontext(sys.stdout)
    ) as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(names)
        for row in rows:
            write(row)


def _config(args: argparse.Namespace) -> None:
    config = ordinal.show_config()
    width = max(map(len, config))
    for key, value in config.items():
        print(f"{key:<{width}}  {value}")
