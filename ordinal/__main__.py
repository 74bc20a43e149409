"""`python -m ordinal` is the `ordinal` command."""

import sys

from ._command.main import main

if __name__ == "__main__":
    sys.exit(main())
