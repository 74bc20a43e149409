"""The `ordinal` command: compare methods on a table, fit, predict, show the build.

Whatever the user got wrong is a ValueError, TypeError or OSError on its way up to
`main`, which turns it into one line on stderr.
"""

import os
import sys
from collections.abc import Sequence

from .arguments import parser

_WIDTH = 255  # characters of a word in a message: the longest name of a file


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0, 2 after an error, 130 after Ctrl-C."""
    try:
        args = parser().parse_args(argv)  # which exits after --help and --version
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


def _cut(word: str) -> str:
    """Shorten a word of the command line, which may be long; paths stay whole."""
    return word if len(word) <= _WIDTH else f"{word[: _WIDTH // 2]}...{word[-20:]}"


def _fail(problem: object) -> int:
    from .methods import in_options  # which imports every method

    words = (_cut(word) for word in in_options(str(problem)).split())
    message = " ".join(words) or type(problem).__name__
    print(f"ordinal: error: {message}", file=sys.stderr)
    return 2
