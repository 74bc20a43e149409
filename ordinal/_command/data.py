"""Tables, targets and splits as the commands take them."""

import argparse
import csv
import io
import re
import sys
import zipfile
import zlib
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shlex import join, quote
from typing import Any, NamedTuple

import numpy as np

from .._files.chunks import TableBlocks
from .._files.readers import Layout, as_numbers, column_of
from .._files.table import STDIN, Table, check_rereadable, read_table
from .._formula.dates import PARTS, Part
from .._input.checks import enumerated, listed, shortened, shown
from .._input.columns import (
    disguise_of,
    identifiers_shown,
    identify_rows,
    is_decorated,
)
from .._input.frame import Frame, date_of
from .._input.labels import by_number, ranks_of
from .._model.preparation import IDENTIFIER
from ..datasets.sets import CONDITIONS, houses_file
from ..model_selection.splits import Splits, drawn_folds, drawn_holdouts
from ..preprocessing import Binning
from .predict import layout_options

BINNINGS = {"frequency": Binning.equal_frequency, "length": Binning.equal_length}

_LARGE = 1 << 30  # bytes of a file
_FEW = 20  # rows in which consecutive numbers may be a feature

_UNDECORATED = "remove thousands separators, percent signs and currencies"

# An integer target with more values than this is a quantity, not a rank.
MAX_RANKS = 50


class Data(NamedTuple):
    """Table of a comparison or fit.

    Attributes
    ----------
    name, target : str
        Names of the table and of the column of its labels.
    X : (n, d) Frame
    y : (n,) labels
    classes : (r,) labels in rank order
    params : dict
        Arguments of a fit on the labels.
    binning : Binning or None
    n_missing : int
        Number of rows without a label, which were left out.
    """

    name: str
    target: str
    X: Frame
    y: np.ndarray
    classes: np.ndarray
    params: dict[str, Any]
    binning: Binning | None = None
    n_missing: int = 0

    def described(self) -> str:
        """Return numbers of rows, features and ranks, and other content."""
        X = self.X
        categorical = sum(labels is not None for labels in X.labels)
        gaps = int(np.isnan(X.values).any(axis=0).sum())
        of = [f"{categorical} categorical"] * (categorical > 0)
        of += [f"{gaps} with missing values"] * (gaps > 0)
        kinds = f" ({', '.join(of)})" if of else ""
        n, d = X.shape
        out = f", without {self.n_missing} unlabelled row{'s' * (self.n_missing > 1)}"
        out *= self.n_missing > 0
        ranks = f"{self.classes.size} ranks of {shown(self.target)}"
        return f"{n} rows, {d} features{kinds}, {ranks}{out}"


def read_data(args: argparse.Namespace, labels: np.ndarray | None = None) -> Data:
    """Return the table `args.data`.

    `labels`, when given, replace those of its target.
    """
    if args.bins is None and args.binning is not None:
        raise ValueError("--binning needs --bins")
    if args.bins is not None and args.classes is not None:
        raise ValueError(
            "--classes cannot be combined with --bins, which makes ranks of its own: "
            "leave one of them out"
        )
    table = read_table(args.data, **layout_options(args))
    target = table.names[-1] if args.target is None else args.target
    orders, dates = orders_of(args.order), dates_of(args.dates)
    _check_columns(table, [target, *args.drop, *args.categorical, *dates, *orders])
    table = replace(table, levels=orders | levels_of(target, args.classes))
    n_rows = len(table)
    if args.missing_labels == "drop":
        if labels is not None:
            raise ValueError(
                "--missing-labels drop cannot be combined with the labels of a file of "
                "splits: leave it out"
            )
        table = table.labelled(target)
        if not len(table):
            raise ValueError(f"{table.path}: no row has a label in {shown(target)}")
    features = tuple(
        name for name in table.names if name != target and name not in args.drop
    )
    if not features:
        raise ValueError(
            f"{table.path} has only the column {shown(target)}, and no features; "
            f"cells were separated by {shown(table.layout.separator)}: state another "
            "separator, such as --separator ' '"
        )
    named = *args.categorical, *dates, *orders
    chosen = [name for name in named if name in features]
    X = table.frame(features, categorical_of(table, features, chosen))
    params: dict[str, Any] = {}
    binning = None
    if labels is not None:
        _check_labels(labels, len(X), args)
        y, classes = labels, np.arange(1, args.bins + 1)
    elif args.bins is not None:
        values = table.numbers([target])[:, 0]
        binning = BINNINGS[args.binning or "frequency"](values, args.bins)
        y, classes = binning.transform(values), np.arange(1, args.bins + 1)
    else:
        y, classes = _ranked_labels(table, target, args.classes)
        if args.classes is not None or y.dtype.kind == "U":
            params["classes"] = classes
    name, left_out = _name_of(table.path), n_rows - len(table)
    for note in _notes(X, y, target):
        print(f"ordinal: note: {note}", file=sys.stderr)
    return Data(name, target, X, y, classes, params, binning, left_out)


def _notes(X: Frame, y: np.ndarray, target: str) -> list[str]:
    """Return what is odd: ranks of a single row, copies of the ranks, row numbers."""
    labels, ranks, counts = np.unique(y, return_inverse=True, return_counts=True)
    single, notes = labels[counts == 1].tolist(), []
    if 0 < len(single) < labels.size / 2:
        notes.append(
            f"{enumerated(single)} of {shown(target)} "
            f"{'are ranks' if single[1:] else 'is a rank'} of a single row: remove the "
            "row if it holds a total"
        )
    for name, values, known in zip(X.shown_names, X.values.T, X.labels, strict=True):
        is_number = known is None and not IDENTIFIER.fullmatch(name)  # else a warning
        # The first rows of most columns show that they are no copies.
        if all(_one_to_one(values[k], ranks[k]) for k in (slice(0, 999), slice(None))):
            notes.append(
                f"{shown(name)} stands for {shown(target)} one to one: leave it out by "
                f"--drop {quote(name)} unless it is known before the label"
            )
        elif is_number and _count_rows(values):
            notes.append(
                f"{shown(name)} numbers the rows: leave it out by --drop {quote(name)} "
                "unless their order matters"
            )
    return notes


def _count_rows(values: np.ndarray) -> bool:
    """Return whether values are consecutive whole numbers in any order."""
    n = values.size
    few = n <= _FEW or np.ptp(values) != n - 1  # NaN differs as well
    return not few and np.array_equal(np.sort(values), values.min() + np.arange(n))


def _one_to_one(values: np.ndarray, ranks: np.ndarray) -> bool:
    """Return whether values and several ranks determine each other."""
    pairs = np.unique(np.column_stack([values, ranks]), axis=0)
    of_ranks, of_values = (np.unique(pairs[:, k]).size for k in (1, 0))
    return of_ranks == of_values == len(pairs) > 1


class Streamed(NamedTuple):
    """A file whose rows are read in chunks; its labels are among them."""

    X: TableBlocks
    params: dict[str, Any]
    binning: None = None

    def described(self) -> str:
        """Return the file and the column of its labels."""
        return (
            f"{self.X.path}, read in chunks, with the ranks of {shown(self.X.target)}"
        )


def read_streamed(args: argparse.Namespace) -> Streamed:
    """Return the table `args.data` as a source of chunks.

    The first rows tell the default target, and whether labels are strings.
    """
    for option in ("bins", "binning", "categorical", "order", "dates"):
        if getattr(args, option):
            raise ValueError(
                f"--{option} needs the whole table in memory: leave out --stream"
            )
    if args.missing_labels == "drop":
        raise ValueError(
            "--missing-labels drop needs the whole table in memory: leave out --stream"
        )
    check_rereadable("--stream needs", args.data)
    source = TableBlocks(
        args.data,
        drop=tuple(args.drop),
        **layout_options(args),
    )
    with closing(source.tables()) as tables:
        first = next(tables)
    target = first.names[-1] if args.target is None else args.target
    source = replace(source, target=target, levels=levels_of(target, args.classes))
    strings = {}
    for name in source.features_of(first):
        if isinstance(cells := first.column(name), list):
            known = {cell for cell in cells if not first.is_missing(name, cell)}
            if (problem := _disguise_shown(first, name, known, True)) is not None:
                raise ValueError(problem)
            if known and all(as_numbers([c], first.layout) is None for c in known):
                strings[name] = min(known)
    if strings:
        each = [
            f"column {shown(name)} holds strings, such as {shown(cell)}"
            for name, cell in strings.items()
        ]
        them = "them" if len(strings) > 1 else "it"
        raise ValueError(
            f"{args.data}, {', '.join(each)}, and --stream reads numbers: leave {them} "
            f"out by --drop {' '.join(map(quote, strings))}, or leave out --stream"
        )
    categorical = replace(first, levels=source.levels).is_categorical(target)
    if args.classes is not None:
        return Streamed(source, {"classes": _listed(args.classes, categorical, target)})
    order = first.orders.get(target)
    return Streamed(source, {} if order is None else {"classes": np.array(order)})


def cells_of(text: str) -> list[str]:
    """Return the labels of an option, which are the cells of a line of CSV.

    Quotes enclose labels with commas, such as '"a, b",c'.
    """
    try:
        (cells,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (ValueError, csv.Error):
        raise ValueError(
            f"{shortened(text)}: expected labels with commas between them, and quotes "
            "around labels that have commas"
        ) from None
    return [cell.strip() for cell in cells]


_NAMED = re.compile(r'(?:"((?:[^"]|"")+)"|([^=]*))(?:=(.*))?', re.DOTALL)


def orders_of(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the ordered categories of columns by --order NAME=LOW,...,HIGH.

    Quotes enclose a name with "=".
    """
    orders: dict[str, list[str]] = {}
    for text in given:
        name, labels = _named(text)
        if labels is None:
            raise ValueError(f"--order {shortened(text)}: expected NAME=LOW,...,HIGH")
        orders[name] = cells_of(labels)
    return orders


def dates_of(given: Sequence[str]) -> dict[str, tuple[Part, ...]]:
    """Return the parts of columns of dates by --dates NAME or NAME=PART,...

    Quotes enclose a name with "=".
    """
    dates = {}
    for text in given:
        name, parts = _named(text)
        chosen = set(PARTS if parts is None else cells_of(parts))
        dates[name] = tuple(part for part in PARTS if part in chosen)
        if len(dates[name]) < len(chosen):
            raise ValueError(
                f"--dates {shortened(text)}: expected NAME or NAME=PART,... with parts "
                f"from {', '.join(PARTS)}"
            )
    return dates


def _named(text: str) -> tuple[str, str | None]:
    """Return the name of a column and what follows its "=", if it does."""
    found = _NAMED.fullmatch(text)
    assert found is not None  # the expression takes any text
    quoted, name, rest = found.groups()
    return name if quoted is None else quoted.replace('""', '"'), rest


def levels_of(target: str, classes: str | None) -> dict[str, list[str]]:
    """Return the labels of --classes by column, none of which is a missing value."""
    return {} if classes is None else {target: cells_of(classes)}


def _check_columns(table: Table, names: Sequence[str]) -> None:
    """Raise ValueError that lists all columns that a table lacks.

    Otherwise a misspelt target would leave the target among the features.
    """
    absent = list(dict.fromkeys(name for name in names if name not in table.names))
    for name in absent:
        if name.startswith("RankIntervals("):
            raise ValueError(
                "the command reads one label per row, and ranks known as intervals "
                f"have two: fit them in Python, with the formula '{name} ~ ...'"
            )
        if "," in name and set(parts := cells_of(name)) <= set(table.names):
            raise ValueError(
                f"{table.path} has no column {shown(name)}: separate the names of "
                f"columns by blanks, as in {join(parts)}"
            )
    if len(absent) > 1:
        raise ValueError(
            f"{table.path} has no columns {enumerated(absent)}; it has "
            f"{listed(table.names)}"
        )
    for name in absent:
        table.column(name)  # for its error


def is_large(path: str) -> bool:
    """Return whether a file is large enough to be read in chunks."""
    return path != STDIN and Path(path).exists() and Path(path).stat().st_size > _LARGE


def _listed(listed: str, text: bool, target: str) -> np.ndarray:
    """Return the labels of --classes: strings, or numbers if the target holds them."""
    names = cells_of(listed)
    if text:
        return np.array(names)
    classes = column_of(names, Layout())
    if isinstance(classes, list) or np.isnan(classes).any():
        raise ValueError(
            f"--classes {shortened(listed)}: column {shown(target)} holds numbers; "
            "list numbers, or name the column of the ranks by --target"
        )
    return classes.astype(np.int64) if np.all(classes == np.rint(classes)) else classes


def categorical_of(
    table: Table, features: Sequence[str], chosen: Sequence[str]
) -> set[str]:
    """Return the categorical columns: those that were `chosen`, and those of strings.

    Raises ValueError for a numeric column with a few strings, and for all columns that
    identify rows, such as names or dates.
    """
    categorical = set(chosen)
    identifiers: dict[str, list[str]] = {}
    problems: list[str] = []
    for name in features:
        cells = table.column(name)
        if name in categorical or not isinstance(cells, list):
            continue
        known = [cell for cell in cells if not table.is_missing(name, cell)]
        distinct = set(known)
        slips = {c for c in distinct if as_numbers([c], table.layout) is None}
        if (disguised := _disguise_shown(table, name, distinct)) is not None:
            problems.append(disguised)
        elif 2 * len(slips) < len(distinct):
            row = next(row for row, cell in enumerate(cells) if cell in slips)
            ways = ["--decimal , reads decimal commas"] * _has_comma(cells[row])
            ways += [_UNDECORATED] * is_decorated(cells[row])
            if not re.search(r"\d", "".join(slips)):
                words = " ".join(map(quote, sorted(slips)[:3]))
                ways.append(f"for missing values: --missing {words}")
            ways.append(f"for categories: --categorical {quote(name)}")
            error = table.error(
                row,
                name,
                f"is not a finite number as others are; {'; or '.join(ways)}",
            )
            problems.append(str(error))
        elif identify_rows(known):
            identifiers[name] = known
        categorical.add(name)
    if identifiers:
        s, them = ("s", "them") if len(identifiers) > 1 else ("", "it")
        columns = " ".join(map(quote, identifiers))
        problems.append(
            f"{table.path}, column{s} {enumerated(list(identifiers))}: "
            f"{identifiers_shown(identifiers)}; leave {them} out by --drop {columns}, "
            f"or keep {them} by --categorical {columns}"
        )
    if problems:
        raise ValueError("; and ".join(problems))
    return categorical


def _has_comma(cell: str) -> bool:
    """Return whether a cell is a number with a decimal comma."""
    return "," in cell and as_numbers([cell], Layout(decimal=",")) is not None


def _disguise_shown(
    table: Table, name: str, words: Collection[str], streamed: bool = False
) -> str | None:
    """Return the message about words of a column that are numbers or dates as text."""
    disguise = disguise_of(words)
    if disguise is None:
        return None
    (kind, example), option = disguise, quote(name)
    drop = f"leave it out by --drop {option}"
    ways = [f"{drop}, or keep it by --categorical {option}"]
    if streamed:  # which reads numbers alone
        ways = [f"{drop}, or leave out --stream"]
    elif kind == "dates":
        written = "" if date_of(example) else "write them as 2024-01-31, and then "
        ways.insert(
            0,
            f"{written}--dates {option} makes year, month, weekday and days of them, "
            f"and --dates {option}=month,weekday suits predictions of later dates",
        )
    if kind == "numbers":
        if _has_comma(example):
            ways.insert(0, "--decimal , reads decimal commas")
        ways.insert(-1, _UNDECORATED)
    return (
        f"{table.path}, column {shown(name)} holds {kind} as text, such as "
        f"{shown(example)}: {'; or '.join(ways)}"
    )


def _name_of(path: str) -> str:
    """Return the name of a table: its file name without the suffix."""
    name = Path(path).name.removesuffix(".gz")
    return name.removesuffix(".csv").removesuffix(".tsv").removesuffix(".parquet")


def read_task(args: argparse.Namespace) -> tuple[Data, Splits]:
    """Read and validate the data of a comparison before the first fit."""
    _check_split_options(args)
    if args.splits is None or args.splits.isdigit():
        data = _embedded(args) if args.data is None else read_data(args)
        return data, _drawn_splits(ranks_of(data.y, data.classes), args)
    if args.data is None:
        raise ValueError(
            "a file of splits needs DATA: pass the table as the first argument"
        )
    splits, labels = _stored_splits(args.splits, args.bins)
    if labels is not None and args.binning is not None:
        raise ValueError(
            f"--binning has no effect, because {args.splits} holds the labels "
            f"y{args.bins}: leave it out"
        )
    data = read_data(args, labels)
    _check_rows(args.splits, splits, len(data.X))
    return data, splits


def _check_split_options(args: argparse.Namespace) -> None:
    """Raise ValueError for options that contradict each other about the splits."""
    if args.splits is not None and args.folds is not None:
        raise ValueError("--folds and --splits exclude each other: pass one of them")
    if args.splits is None:
        if args.test_size is not None:
            raise ValueError(
                "--test-size needs hold-out splits instead of folds: add --splits N"
            )
    elif not args.splits.isdigit() and (
        args.test_size is not None or (args.seed is not None and not args.tune)
    ):
        raise ValueError(
            "--test-size and --seed cannot be combined with a file of splits: leave "
            "them out"
        )


def _embedded(args: argparse.Namespace) -> Data:
    """Return the data set that comes with the package."""
    names = (
        "target", "bins", "binning", "classes", "drop", "categorical", "order", "dates"
    )  # fmt: skip
    given = [option for option in names if getattr(args, option)]
    if given or (option := first_layout_option(args)):
        raise ValueError(
            f"--{given[0] if given else option} needs DATA: pass the table as the "
            "first argument"
        )
    houses = {"data": houses_file(), "classes": ",".join(CONDITIONS)}
    return read_data(argparse.Namespace(**vars(args) | houses))


def first_layout_option(args: argparse.Namespace) -> str | None:
    """Return the first option on the format of a table that is given."""
    given = [option for option in ("missing", "separator") if getattr(args, option)]
    given += ["decimal"] * (args.decimal != ".")
    given += ["encoding"] * (args.encoding != "utf-8")
    given += ["missing-labels"] * (args.missing_labels != "error")
    return given[0] if given else None


def _drawn_splits(rank: np.ndarray, args: argparse.Namespace) -> Splits:
    seed = 0 if args.seed is None else args.seed
    if args.splits is None:
        folds = 5 if args.folds is None else args.folds
        return drawn_folds("--folds", rank, folds, None, rng=seed)
    size = 0.25 if args.test_size is None else args.test_size
    n = int(args.splits)
    return drawn_holdouts("--splits", rank, n, None, test_size=size, rng=seed)


def _check_labels(labels: np.ndarray, n: int, args: argparse.Namespace) -> None:
    """Raise ValueError unless the labels of a file of splits are ranks of n rows."""
    if labels.shape != (n,):
        raise ValueError(f"{args.splits} has {labels.size} labels for {n} rows")
    if not np.isin(labels, np.arange(1, args.bins + 1)).all():
        raise ValueError(f"{args.splits}: labels must be ranks 1 to {args.bins}")


def _ranked_labels(
    table: Table, target: str, listed: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of the target, and the distinct ones in rank order."""
    y = table.labels(target)
    text = y.dtype.kind == "U"
    if listed is not None:
        classes = _listed(listed, text, target)
        unknown = np.flatnonzero(~np.isin(y, classes))
        if unknown.size:
            raise table.error(
                unknown[0], target, f"is not in --classes {shortened(listed)}"
            )
        return y, classes
    if target in table.orders:
        return y, np.array(table.orders[target])
    if text:
        raise _unordered(table, target, by_number(np.unique(y)).tolist())
    odd = np.flatnonzero((2 * y % 1 != 0) | (np.abs(y) >= 2**53))
    if odd.size:
        raise table.error(
            odd[0],
            target,
            "is not a rank: cut the numbers into ranks with --bins, or list them by "
            "--classes",
        )
    classes = np.unique(y)
    if classes.size > MAX_RANKS:
        raise ValueError(
            f"{table.path}: column {shown(target)} has {classes.size} distinct values; "
            "cut it into ranks with --bins"
        )
    return y, classes


def _unordered(table: Table, target: str, distinct: list[str]) -> ValueError:
    """Return the error for labels that are strings, whose order is not known."""
    slips = sum(as_numbers([cell], table.layout) is None for cell in distinct)
    if (
        2 * slips < len(distinct)
        or as_numbers(distinct, Layout(decimal=",")) is not None
    ):
        table.numbers([target])  # for its error about the first one
    column = f"{table.path}, column {shown(target)}"
    if len(distinct) > MAX_RANKS:
        return ValueError(
            f"{column} holds {len(distinct)} different strings, such as "
            f"{shown(distinct[0])}: name the column of the ranks by --target"
        )
    content = io.StringIO()
    csv.writer(content, lineterminator="").writerow(distinct)
    return ValueError(
        f"{column} holds strings: state their order from lowest to highest; in "
        f"alphabetical order that is --classes {quote(content.getvalue())}"
    )


def _stored_splits(path: str, bins: int | None) -> tuple[Splits, np.ndarray | None]:
    """Read splits from an .npz file, and its labels for this number of bins or None."""
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(
                f"{path} is not an .npz file: pass a file written by numpy.savez"
            )
    try:
        with np.load(path, allow_pickle=False) as stored:
            names = list(stored)
            suffix = f"_{bins}" if f"train_idx_{bins}" in names else ""
            train, test = f"train_idx{suffix}", f"test_idx{suffix}"
            if train not in names or test not in names:
                raise ValueError(
                    f"no {train} and {test} among "
                    f"{', '.join(names)}: check --bins against the file"
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
