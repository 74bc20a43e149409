"""The `ordinal` command: its arguments, its data, and its subcommands.

main       entry point, options of the command line, and errors
compare    `ordinal compare`, with its figure and reports: text, Markdown, CSV, JSON
fit        `ordinal fit`
predict    `ordinal predict`, which imports no method
report     `ordinal report`, `ordinal explain` and `ordinal show`
columns    columns of a table as `ordinal show` lists them
data       tables, targets and splits
methods    names of the methods and their options

Imports what it needs of the package; nothing imports it but `ordinal.__main__`.
"""
