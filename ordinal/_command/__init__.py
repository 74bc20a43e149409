"""The `ordinal` command: its arguments, its data, and a module for each command.

Imports what it needs of the package; nothing imports it but `ordinal.__main__`.
"""
