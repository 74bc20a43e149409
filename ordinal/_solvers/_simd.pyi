"""Written by tools/stubs.py."""

