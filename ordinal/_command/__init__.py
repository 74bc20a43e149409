"""The `ordinal` command: its arguments, its data, and its subcommands.

main       entry point and subcommands
arguments  options of the command line
compare    `ordinal compare`
fit        `ordinal fit`
predict    `ordinal predict`
data       tables, targets and splits
methods    names of the methods and their options
reports    output of a comparison: text, Markdown, CSV, JSON
figure     figure of a comparison

Imports what it needs of the package; nothing imports it but `ordinal.__main__`.
"""
