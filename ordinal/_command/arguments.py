"""The options of the command line."""

import argparse
from typing import Any, NoReturn

import ordinal

from .._input.table import SEPARATORS
from .compare import compare
from .data import BINNINGS
from .fit import fit
from .methods import FOLDS, METHODS
from .predict import predict
from .reports import REPORTS

_OUT = "default: standard output"
_DATA = "CSV or Parquet, plain or gzipped; - is standard input"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see `{self.prog} --help`)")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; `run` of what it returns is the function to call."""
    parser = _Parser(prog="ordinal", description="Ordinal regression on tables.")
    version = f"ordinal {ordinal.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    layout = _layout_options()
    table = _table_options()
    _add_compare(commands, [layout, table])
    _add_fit(commands, [layout, table])
    _add_predict(commands, [layout])
    config = commands.add_parser("config", help="show what was built and is used")
    config.set_defaults(run=_config)
    return parser


def _layout_options() -> argparse.ArgumentParser:
    """How a table of text is written."""
    layout = _Parser(add_help=False)
    layout.add_argument(
        "--separator",
        type=_separator,
        metavar="CHAR",
        help="between cells, or `tab` (default: a comma, a semicolon with --decimal , "
        "and a tab in files called .tsv)",
    )
    layout.add_argument(
        "--decimal", choices=SEPARATORS, default=".", help="the decimal mark"
    )
    return layout


def _table_options() -> argparse.ArgumentParser:
    """The options on a table and its target, which several commands share."""
    table = _Parser(add_help=False)
    table.add_argument("--target", metavar="NAME", help="its column (default: last)")
    table.add_argument(
        "--bins", type=int, metavar="K", help="cut a numeric target into K ranks"
    )
    table.add_argument(
        "--binning", choices=BINNINGS, help="kind of bins (default: frequency)"
    )
    table.add_argument(
        "--classes", metavar="LOW,...,HIGH", help="the target's labels in rank order"
    )
    table.add_argument(
        "--drop", nargs="+", action="extend", default=[], metavar="NAME",
        help="columns to leave out",
    )  # fmt: skip
    table.add_argument(
        "--categorical", nargs="+", action="extend", default=[], metavar="NAME",
        help="columns of categories, though they hold numbers; words always are",
    )  # fmt: skip
    table.add_argument(
        "--order", nargs="+", action="extend", default=[],
        metavar="NAME=LOW,...,HIGH", help="the categories of a column in their order",
    )  # fmt: skip
    table.add_argument(
        "--threads", type=int, metavar="N", help="default: all that may be used"
    )
    return table


def _add_compare(commands: Any, parents: list[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "compare",
        parents=parents,
        help="test error of methods over repeated hold-outs",
        description="Test error of methods over repeated stratified hold-outs. What "
        "becomes of words and gaps, and the scale of numbers, is learned of the "
        "training rows of each. Without DATA: on the embedded artificial sets.",
    )
    command.add_argument("data", nargs="?", metavar="DATA", help=_DATA)
    command.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=list(METHODS),
        metavar="METHOD",
        help=f"default: all of {', '.join(METHODS)}",
    )
    command.add_argument(
        "--splits",
        default="30",
        metavar="N|FILE",
        help="number of hold-outs, or .npz of train_idx and test_idx, one row a split "
        "(with --bins K also train_idx_K, test_idx_K and the labels yK)",
    )
    command.add_argument(
        "--test-size",
        type=_size,
        metavar="SIZE",
        help="fraction or number of rows (default: 0.25)",
    )
    command.add_argument(
        "--format", choices=REPORTS, default="text", help="default: text"
    )
    command.add_argument("--out", metavar="FILE", help=_OUT)
    command.add_argument(
        "--plot", metavar="FILE", help="a picture of the errors, .pdf, .png or .svg"
    )
    command.add_argument(
        "--verbose",
        action="store_true",
        help="print what --tune searches, and what it chooses for every split",
    )
    _add_tune(command, "hold-outs and folds")
    about = "argument of a method, such as npsvor.C1=10"
    _add_settings(command, "METHOD.ARG=VALUE", about)
    command.set_defaults(run=compare)


def _add_fit(commands: Any, parents: list[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "fit", parents=parents, help="fit a method to a table and save the model"
    )
    command.add_argument("data", metavar="DATA", help=_DATA)
    command.add_argument("--method", choices=METHODS, required=True)
    command.add_argument("--out", required=True, metavar="MODEL.npz")
    command.add_argument(
        "--stream",
        action="store_true",
        help="read the rows in blocks at every pass, for a model on a basis (--set "
        "basis=300) of a table of numbers; larger files than 1 GB are anyway",
    )
    _add_tune(command, "folds")
    _add_settings(command, "ARG=VALUE", "argument of the method, such as C1=10")
    command.set_defaults(run=fit)


def _add_predict(commands: Any, parents: list[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "predict", parents=parents, help="predict with a saved model"
    )
    command.add_argument("model", metavar="MODEL.npz")
    command.add_argument("data", metavar="NEW", help=_DATA)
    command.add_argument(
        "--proba",
        action="store_true",
        help="a column with the probability of each rank besides; support vector "
        "models must have been fitted with --set probability=True",
    )
    command.add_argument("--out", metavar="FILE", help=_OUT)
    command.set_defaults(run=predict)


def _add_tune(command: Any, of: str) -> None:
    command.add_argument(
        "--tune",
        action="store_true",
        help=f"choose arguments by {FOLDS}-fold cross-validation in the training rows "
        "of each fit; the page of the command lists what is tried",
    )
    command.add_argument(
        "--seed", type=int, metavar="N", help=f"of the {of} (default: 0)"
    )


def _add_settings(command: argparse.ArgumentParser, form: str, help: str) -> None:
    command.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar=form, help=help
    )


def _separator(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


def _size(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _config(args: argparse.Namespace) -> None:
    config = ordinal.show_config()
    width = max(map(len, config))
    for key, value in config.items():
        print(f"{key:<{width}}  {value}")
