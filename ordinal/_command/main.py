"""The `ordinal` command: its options, and errors as one line on stderr.

Whatever the user got wrong is a ValueError, TypeError or OSError, or an ImportError for
an extra that is not installed, on its way up to `main`, which turns it into that line.

A subcommand is imported when it is used, so that `ordinal --help` and
`ordinal --version` import neither numpy nor any method.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO, get_args

import ordinal

_EXAMPLES = """examples:
  ordinal compare ratings.csv
      find the best method for the last column of this table
  ordinal fit ratings.csv --method svorim --tune --out model.npz
      tune a method by cross-validation and save the model
  ordinal predict model.npz new.csv --out predicted.csv
      predict the rows of another table
"""
_DATA = "table in CSV or Parquet, plain or gzipped; - is standard input"
_MODEL = "model that `ordinal fit` or `model.save` has written"


class _Parser(argparse.ArgumentParser):
    """A parser that may `declare` its arguments as late as when it parses."""

    def __init__(
        self, *, declare: Callable[["_Parser"], None] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._declare = declare

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._declare is not None:
            self._declare(self)
            self._declare = None
        known, others = super().parse_known_args(args, namespace)
        if others:  # here and not in the parser of all commands, which has no options
            self.error(self._unrecognised(others))
        return known, others

    def _unrecognised(self, others: Sequence[str]) -> str:
        """Return the message about arguments that no option takes."""
        from .._input.checks import similar_to

        text = f"unrecognized arguments: {' '.join(others)}"
        if not others[0].startswith("-"):
            return f"{text}; put quotes around a value that contains blanks"
        return text + similar_to(
            others[0].partition("=")[0], self._option_string_actions
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # argparse quotes the value whole, which may be long
        from .._input.checks import shown, similar_to

        if action.choices is None or value in action.choices:
            return
        text = f"invalid choice: {shown(value)}"
        parts = value.replace(",", " ").split()
        if action.option_strings and action.nargs and set(parts) <= {*action.choices}:
            example = f"{action.option_strings[0]} {' '.join(parts)}"
            remedy = f"; separate names by blanks, as in {example}"
        elif action.option_strings and os.path.exists(value):
            remedy = f"; name the file before {action.option_strings[0]}"
        else:
            names = ", ".join(map(str, action.choices))
            remedy = similar_to(value, action.choices) or f" (choose from {names})"
        raise argparse.ArgumentError(action, text + remedy)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see `{self.prog} --help`)")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands.

    `run` of what it returns is the function to call.
    """
    parser = _Parser(
        prog="ordinal",
        description="Ordinal regression on tables, whose last column holds the ranks "
        "unless --target names another one.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"ordinal {ordinal.__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.set_defaults(run=lambda _: print(parser.format_help(), end=""))
    commands = parser.add_subparsers(metavar="COMMAND")
    commands.add_parser(
        "compare",
        help="print the cross-validated errors of methods, best first",
        description="Print the cross-validated errors of methods, best first. The "
        "encoding of categories, the imputation of missing values and the scale of "
        "numbers are learned from the training rows of each fold. Without DATA, the "
        "table is that of the package, the condition of 989 houses.",
        declare=_declare_compare,
    )
    commands.add_parser(
        "fit",
        help="fit a method to a table and save the model",
        description="Fit a method to a table, save the model with its preprocessing, "
        "and print its cross-validated errors.",
        declare=_declare_fit,
    )
    commands.add_parser(
        "predict",
        help="predict the rows of a table with a saved model",
        description="Predict the rows of a table with a saved model. Columns are found "
        "by name, others ignored. The output is a CSV table with a header and a line "
        "per row: the columns of --keep, `prediction`, with --proba P(RANK) per rank.",
        declare=_declare_predict,
    )
    commands.add_parser(
        "show",
        help="print a saved model, or the columns of a table",
        description="Print a saved model, or a line per column of a table: what fits "
        "take it for, its missing values and its categories or range.",
        declare=_declare_show,
    )
    commands.add_parser(
        "explain",
        help="print the importances of the features",
        description="Print the importances of the features of a saved model, from the "
        "rows of a table.",
        declare=_declare_explain,
    )
    commands.add_parser(
        "report",
        help="write a page about a model and its errors on a table",
        description="Write a page (HTML) about a saved model and its errors on the "
        "rows of a table with labels. Figures need matplotlib.",
        declare=_declare_report,
    )
    about = "print the version, the build, and the threads and instructions in use"
    config = commands.add_parser("config", help=about, description=f"P{about[1:]}.")
    config.set_defaults(run=_config)
    return parser


def _add_layout(command: argparse.ArgumentParser) -> None:
    """Add the options on the format of a text table."""
    from .._files.table import SEPARATORS

    layout = command.add_argument_group("format of the table")
    layout.add_argument(
        "--separator",
        type=_separator,
        metavar="CHAR",
        help="character between cells, or `tab` (default: a comma, a semicolon with "
        "--decimal , and a tab in .tsv files, or where the first line lacks it the "
        "comma, semicolon, tab or bar that it has)",
    )
    layout.add_argument(
        "--decimal",
        choices=SEPARATORS,
        default=".",
        metavar="MARK",
        help="decimal mark, a point or a comma (default: a point)",
    )
    layout.add_argument(
        "--encoding",
        default="utf-8",
        metavar="NAME",
        help="encoding of the text, such as cp1252 or utf-16 (default: utf-8)",
    )
    layout.add_argument(
        "--missing",
        nargs="+",
        metavar="WORD",
        help="words that stand for a missing value, as an empty cell does (default: ? "
        "NA N/A #N/A NaN null None); labels of --classes and --order never do",
    )
    layout.add_argument(
        "--missing-labels",
        choices=["error", "drop"],
        default="error",
        help="whether a row without a label is an error or left out (default: error)",
    )


def _add_table(command: argparse.ArgumentParser) -> None:
    """Add the options on a table and its target, which are common to commands."""
    from .data import BINNINGS

    several: Any = {"nargs": "+", "action": "extend", "default": []}
    command.add_argument(
        "--target", metavar="NAME", help="column of the ranks (default: the last one)"
    )
    command.add_argument(
        "--bins",
        type=int,
        metavar="K",
        help="number of ranks into which to cut the numbers of the target",
    )
    command.add_argument(
        "--binning",
        choices=BINNINGS,
        help="whether the bins have equal frequencies or equal lengths (default: "
        "frequency)",
    )
    command.add_argument(
        "--classes",
        metavar="LOW,...,HIGH",
        help="labels of the target from the lowest to the highest, with quotes around "
        "labels that contain commas",
    )
    command.add_argument(
        "--drop",
        **several,
        metavar="NAME",
        help="columns to leave out",
    )
    command.add_argument(
        "--categorical",
        **several,
        metavar="NAME",
        help="numeric columns to treat as categories; strings always are",
    )
    command.add_argument(
        "--order",
        **several,
        metavar="NAME=LOW,...,HIGH",
        help="categories of a column in their order, with quotes around a name that "
        "contains = and around labels that contain commas",
    )
    command.add_argument(
        "--dates",
        **several,
        metavar="NAME[=PART,...]",
        help="columns of dates, such as 2024-01-31 or 31.01.2024, which become the "
        "parts year, month, weekday and days (since 1970-01-01), or only those named: "
        "predictions of later dates need --dates NAME=month,weekday",
    )
    command.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="number of threads (default: one per available processor)",
    )


def _declare_compare(command: argparse.ArgumentParser) -> None:
    from ..comparison.learner import CONSTANTS, GPOR, GPOR_ROWS
    from ..comparison.learner import METHODS as DEFAULT
    from .compare import REPORTS, compare
    from .methods import COMPOSED, METHODS

    _add_layout(command)
    _add_table(command)
    command.add_argument("data", nargs="?", metavar="DATA", help=_DATA)
    command.add_argument(
        "--methods",
        nargs="+",
        choices=[*CONSTANTS, *METHODS, *COMPOSED, "all"],
        metavar="METHOD",
        help=f"methods to compare (default: {', '.join(DEFAULT)}, boosting if LightGBM "
        f"is installed, and {GPOR} for at most {GPOR_ROWS} training rows); `all` "
        f"stands for these and {', '.join(METHODS)}; {', '.join(COMPOSED)}, which "
        "combines others, must be named",
    )
    command.add_argument(
        "--folds",
        type=int,
        metavar="K",
        help="number of folds (default: 5)",
    )
    command.add_argument(
        "--splits",
        metavar="N|FILE",
        help="number of random hold-outs instead of folds, or an .npz file with the "
        "arrays train_idx and test_idx, which have one row per split (with --bins K "
        "also train_idx_K, test_idx_K and the labels yK)",
    )
    command.add_argument(
        "--test-size",
        type=_size,
        metavar="SIZE",
        help="fraction or number of test rows of a hold-out (default: 0.25)",
    )
    command.add_argument(
        "--format",
        choices=REPORTS,
        default="text",
        help="format of the report (default: text)",
    )
    _add_out(command, "file to write")
    command.add_argument(
        "--plot", metavar="FILE", help="draw the errors to a .pdf, .png or .svg file"
    )
    command.add_argument(
        "--verbose",
        action="store_true",
        help="also print the grids of --tune, and the points chosen in each split",
    )
    _add_tune(
        command,
        "seed of the splits and of the folds of searches",
        "rule that chooses labels from probabilities (default: the best one for each "
        "score, such as the median for MAE)",
    )
    about = "arguments of methods, such as npsvor.C=10"
    _add_settings(command, "METHOD.ARG=VALUE", about)
    command.set_defaults(run=compare)


def _declare_fit(command: argparse.ArgumentParser) -> None:
    from .fit import fit
    from .methods import COMPOSED, METHODS, NEEDY

    _add_layout(command)
    _add_table(command)
    command.add_argument("data", metavar="DATA", help=_DATA)
    command.add_argument(
        "--method",
        choices=[*METHODS, *NEEDY, *COMPOSED],
        metavar="METHOD",
        required=True,
        help=f"method to fit: {', '.join([*METHODS, *NEEDY, *COMPOSED])}",
    )
    command.add_argument(
        "--random",
        metavar="EFFECTS",
        help="random effects of clmm, such as '(1 | judge)'",
    )
    _add_out(command, "file to save the model to", "MODEL.npz")
    command.add_argument(
        "--stream",
        action="store_true",
        help="read the rows in chunks, to fit a model on a basis (--set basis=300) to "
        "a table of numbers; files larger than 1 GB are always read in chunks",
    )
    command.add_argument(
        "--folds",
        type=int,
        default=5,
        metavar="K",
        help="number of folds for the cross-validated errors (default: 5; 0 for none)",
    )
    _add_tune(
        command,
        "with --tune, seed of its folds",
        "with --tune, rule by which the search and the saved model choose labels from "
        "probabilities (default: the median, which is best for MAE)",
    )
    _add_settings(command, "ARG=VALUE", "arguments of the method, such as C=10")
    command.set_defaults(run=fit)


def _declare_show(command: argparse.ArgumentParser) -> None:
    _add_layout(command)
    command.add_argument("model", metavar="FILE", help=f"{_MODEL}, or {_DATA}")
    command.add_argument(
        "--coefficients",
        action="store_true",
        help="print the table of coefficients of a linear model instead",
    )
    _add_out(command, "file to write, with --coefficients as CSV")
    command.set_defaults(run=_show)


def _declare_predict(command: argparse.ArgumentParser) -> None:
    from .predict import predict

    _add_layout(command)
    command.add_argument("model", metavar="MODEL.npz", help=_MODEL)
    command.add_argument("data", metavar="NEW", help=_DATA)
    command.add_argument(
        "--proba",
        action="store_true",
        help="also write one column per rank with its probability; support vector "
        "models must have been fitted with --set probability=True",
    )
    command.add_argument(
        "--effects",
        choices=["new", "average", "known", "known_or_new"],
        help="groups for which a model of clmm predicts: new ones (default), one whose "
        "effects are 0, those that NEW names, or those with new ones in place of "
        "groups that the model does not know",
    )
    _add_out(command, "CSV file to write, or Parquet if its name ends in .parquet")
    command.add_argument(
        "--score",
        action="store_true",
        help="also compare the predictions with the labels of NEW, and print MAE and "
        "accuracy on standard error",
    )
    command.add_argument(
        "--target",
        metavar="NAME",
        help="column of the labels for --score (default: the last one)",
    )
    command.add_argument(
        "--keep",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="columns of NEW, such as an id, to copy before the predictions",
    )
    command.set_defaults(run=predict)


def _declare_explain(command: argparse.ArgumentParser) -> None:
    from .report import explain

    _add_model_and_rows(command)
    command.add_argument(
        "--target",
        metavar="NAME",
        help="column of the labels, by which the importance is the increase of the "
        "error when a feature is shuffled (default: the change of the predictions or "
        "of the score)",
    )
    _add_out(command, "CSV file to write instead of text")
    command.set_defaults(run=explain)


def _declare_report(command: argparse.ArgumentParser) -> None:
    from .report import report

    _add_model_and_rows(command)
    command.add_argument(
        "--target", metavar="NAME", help="column of the labels (default: the last one)"
    )
    _add_out(command, "file to write the page to", "PAGE.html")
    command.add_argument(
        "--title",
        default="",
        metavar="TEXT",
        help="title of the page (default: the class of the model)",
    )
    command.set_defaults(run=report)


def _add_model_and_rows(command: argparse.ArgumentParser) -> None:
    """Add a model and a table for it."""
    _add_layout(command)
    command.add_argument("model", metavar="MODEL.npz", help=_MODEL)
    command.add_argument("data", metavar="TABLE", help=_DATA)


def _add_out(command: argparse.ArgumentParser, about: str, required: str = "") -> None:
    """Add the file to write, which must be given if it has a name of its own here."""
    command.add_argument(
        "--out",
        type=lambda path: path if path != "-" else "/dev/stdout" if required else None,
        required=bool(required),
        metavar=required or "FILE",
        help=f"{about}; - is standard output" + (required == "") * ", the default",
    )


def _add_tune(command: argparse.ArgumentParser, seed: str, rule: str) -> None:
    from ..comparison.learner import FOLDS
    from ..model_selection.scoring import Rule

    command.add_argument(
        "--tune",
        action="store_true",
        help=f"tune hyperparameters by {FOLDS}-fold cross-validation on the training "
        "rows; the documentation of the command lists the grids",
    )
    command.add_argument("--seed", type=int, metavar="N", help=f"{seed} (default: 0)")
    command.add_argument("--rule", choices=get_args(Rule), help=rule)


def _add_settings(command: argparse.ArgumentParser, form: str, help: str) -> None:
    command.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar=form, help=help
    )


def _separator(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


def _size(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _show(args: argparse.Namespace) -> None:
    from .report import show

    show(args)


def _config(args: argparse.Namespace) -> None:
    config = ordinal.show_config()
    width = max(map(len, config))
    for key, value in config.items():
        print(f"{key:<{width}}  {value}")


_WIDTH = 255  # characters of a word in a message: the longest name of a file


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0, 2 after an error, 130 after Ctrl-C."""
    if not hasattr(ordinal, "__version__"):
        # The other distribution has replaced `__init__.py`, or has taken it along.
        return _fail(
            f"the package beside {os.path.dirname(__file__)} has lost files of "
            "'ordinal-regression' to the distribution 'ordinal': uninstall both, "
            "then install the one that is meant"
        )
    try:
        args = parser().parse_args(argv)  # which exits after --help and --version
        _check_written(args)
        _run(args)
        sys.stdout.flush()  # a closed pipe shows here, not while Python shuts down
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has gone; what is left in the buffer must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, as the shell reports it
    except OSError as error:
        problem = str(error.strerror)
        colon = "" if problem[:1].islower() else ":"  # "is a folder" is our own
        return _fail(f"{error.filename}{colon} {problem}" if error.filename else error)
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        return _fail(error)
    return 0


def _check_written(args: argparse.Namespace) -> None:
    """Raise ValueError for a file to write that is also read, or written twice."""
    from .._files.writing import replaces

    files = {
        f"--{name}": path for name in ("out", "plot") if (path := vars(args).get(name))
    }
    read = [vars(args).get(name) for name in ("model", "data", "splits")]
    for option, path in files.items():
        for other in read:
            if other and replaces(path, other):
                also = "" if path == other else f", the same file as {other}"
                raise ValueError(
                    f"{option} {path} would replace a file that is read{also}: pass "
                    "another name"
                )
    if len({os.path.realpath(path) for path in files.values()}) < len(files):
        raise ValueError(
            f"{' and '.join(files)} name the same file: pass another name for one"
        )


def _run(args: argparse.Namespace) -> None:
    """Run a subcommand, and print each warning once as a line on standard error."""
    from .._input.warning import each_warning_once
    from .._watch.convergence import filter_held

    with warnings.catch_warnings():
        filter_held("always")
        warnings.showwarning = _print_warning
        each_warning_once(args.run)(args)


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from .methods import in_options  # which imports every method

    text = " ".join(in_options(str(message)).split())
    print(f"ordinal: warning: {text}", file=sys.stderr)


def _cut(word: str) -> str:
    """Shorten a long word of the command line, but not a path."""
    return word if len(word) <= _WIDTH else f"{word[: _WIDTH // 2]}...{word[-20:]}"


def _fail(problem: object) -> int:
    from .methods import in_options  # which imports every method

    words = (_cut(word) for word in in_options(str(problem)).split())
    message = " ".join(words) or type(problem).__name__
    print(f"ordinal: error: {message}", file=sys.stderr)
    return 2
