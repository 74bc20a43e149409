"""Errors, seconds and memory: "All methods on ten sets" in docs/results.md.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/start_here.py --data FOLDER \\
        {--errors | --times} [--page docs/results.md]

The sets are the ten of the NPSVOR paper's Tables II and III, with their official
hold-outs, a quarter of whose rows are tested. Features are standardised.

--errors: the search of `ordinal compare --tune` for each hold-out anew, by MAE in
5-fold cross-validation of the training rows. The first ten hold-outs are taken, and
three of methods that take long; CNNOR, and TLS-SVOR on the three largest sets, have
their defaults. --long searches all 30, which takes hours. Methods that `npsvor.py` has
run on all 30 are read from docs/results.md, and marked with a star. --store keeps what
is finished in that folder, and the same command goes on where it was killed.

--times: processor seconds of a fit with the default arguments to the training rows of
the first hold-out, by one thread, the least of three or more, and the peak memory of a
process of its own less what it held before. Linux; three minutes.

--page replaces the tables below "MAE of all methods", "MZE of all methods", "Seconds of
one fit" and "Memory of one fit" of that page, and the figures in its summary: the mean
over the sets of the ranks by MAE and MZE, seconds and megabytes on Car.
"""

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from _protocol import (
    best_time,
    header,
    limited,
    options,
    resident,
    standardized,
    stored_splits,
    table,
)
from npsvor import LARGE, SETS

import ordinal
from ordinal._command.methods import METHODS
from ordinal.model_selection import Grid, select
from ordinal.preprocessing import Standardizer

RESULTS = Path(__file__).parents[2] / "docs/results.md"
REPORTED = {  # rows here, and columns in the tables of docs/results.md
    "svc": "svc1v1", "svc-1va": "svc1va", "svr": "svr", "cssvc": "cssvc",
    "svmop": "svmop", "svorex": "svorex", "svorim": "svorim", "redsvm": "redsvm",
    "opbe": "opbe", "npsvor-admm": "npsvor",
}  # fmt: skip
FEWER = {"gpor-laplace": 3, "gpor-ep": 3, "tlssvor": 3, "ofmhs": 3, "cnnor": 3,
         "boosting": 3}  # fmt: skip
DEFAULTS = {"cnnor": SETS, "tlssvor": LARGE}  # not searched without --long
LASSO = "pom-path"
L1 = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
NAMES = [*METHODS, LASSO]
ROWS = {"gpor": "gpor-ep"}  # of the summary: the default
LARGEST = "car"
SUMMARY = "All methods on ten sets"
MAE, MZE, SECONDS, MEMORY = HEADINGS = (
    "MAE of all methods", "MZE of all methods", "Seconds of one fit",
    "Memory of one fit",
)  # fmt: skip


def method(name):
    """The function, its fixed arguments, and what is searched for others."""
    if name == LASSO:  # the searches of `select` over l1 alone are paths
        return ordinal.fit_pom, {}, {"l1": L1}
    known, fixed = METHODS[name]
    return known.fit, fixed, known.grid


def holdouts(data, name):
    """X, y and the (training, test) rows of every hold-out."""
    X, y = table(data, name)
    stored = stored_splits(data, name, "orreview_30holdout")
    return X, y, list(zip(stored["train_idx"], stored["test_idx"], strict=True))


def errors(args, name, set_name):
    """Means over the hold-outs of MAE and MZE, and how many these are."""
    X, y, splits = holdouts(args.data, set_name)
    fit, fixed, grid = method(name)
    if not args.long:
        splits = splits[: FEWER.get(name, 10)]
        grid = {} if set_name in DEFAULTS.get(name, ()) else grid
    out = []
    for k, (train, test) in enumerate(splits):
        found = f"{name} {set_name} {k}{'' if grid else ' defaults'}.json"
        kept = args.store and Path(args.store, found)
        if kept and kept.exists():
            out.append(json.loads(kept.read_text()))
            continue
        # A search tries what does not converge.
        with warnings.catch_warnings(action="ignore"):
            if grid:
                model = select(
                    fit, X[train], y[train], search=Grid(**grid), n_threads=1,
                    rng=np.random.default_rng([args.seed, k]), **fixed,
                )  # fmt: skip
                predicted = model.predict(X[test])
            else:
                scale = Standardizer.fit(X[train])
                model = fit(scale.transform(X[train]), y[train], n_threads=1, **fixed)
                predicted = model.predict(scale.transform(X[test]))
        classes = np.unique(y)
        measures = ordinal.metrics.mae, ordinal.metrics.mze
        out.append([float(m(y[test], predicted, labels=classes)) for m in measures])
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(out[-1]))
    return np.mean(out, axis=0)


def reported():
    """{(row, set): (MAE, MZE)} of the methods in docs/results.md."""
    text = RESULTS.read_text()
    found = {}
    for m, measure in enumerate(("MAE", "MZE")):
        block = text.split(f"## {measure}\n", 1)[1].split("\n\n", 1)[0].splitlines()
        columns = block[0].split()
        for line in block[1:]:
            set_name, *values = line.split()
            for row, column in REPORTED.items():
                value = float(values[columns.index(column)])
                found.setdefault((row, set_name), [0.0, 0.0])[m] = value
    return found


def measured(data, name, set_name):
    """Seconds and megabytes of a fit with the default arguments."""
    X, y, splits = holdouts(data, set_name)
    train = splits[0][0]
    X = X[:, np.ptp(X[train], axis=0) > 0]
    X, y = np.ascontiguousarray(standardized(X, train)[train]), y[train]
    fit, fixed, _ = method(name)
    if name == LASSO:
        fit = ordinal.fit_pom_path
    few = np.concatenate([np.flatnonzero(y == rank)[:3] for rank in np.unique(y)])
    with warnings.catch_warnings(action="ignore"):
        fit(X[few], y[few], n_threads=1, **fixed)  # imports what a first fit does
        before = resident("VmRSS")
        first = best_time(1, fit, X, y, n_threads=1, **fixed)[0]
        memory = resident("VmHWM") - before
        repeat = 1 if first > 5 else 3
        again = best_time(repeat, fit, X, y, n_threads=1, **fixed)[0]
    return min(first, again), max(memory, 0.0)


def markdown(cells, spec, starred=(), columns=SETS):
    """{(row, set): value} as a table, a row a method, a column a set."""
    rows = list(dict.fromkeys(row for row, _ in cells))
    lines = [f"| method | {' | '.join(columns)} |"]
    lines.append("|---" + "|---:" * len(columns) + "|")
    for row in rows:
        name = f"{row} *" if row in starred else row
        values = " | ".join(format(cells[row, s], spec) for s in columns)
        lines.append(f"| {name} | {values} |")
    return "\n".join(lines) + "\n"


def parsed(section):
    """{(row, set): value} of the table in a section of the page."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    sets = [cell.strip() for cell in lines[0].split("|")[2:-1]]
    cells = {}
    for line in lines[2:]:
        name, *values = (cell.strip(" *") for cell in line.split("|")[1:-1])
        cells |= {(name, s): float(v) for s, v in zip(sets, values, strict=True)}
    return cells


def section_of(text, heading):
    """Return the range of the text below a heading."""
    start = re.search(rf"^##+ {heading}\n", text, re.M).end()
    end = re.search(r"^##+ |\Z", text[start:], re.M).start() + start
    return start, end


def with_table(text, heading, table):
    """The page with another table below a heading."""
    start, end = section_of(text, heading)
    old = re.search(r"^(\|.*\n)+", text[start:end], re.M)
    return text[: start + old.start()] + table + text[start + old.end() :]


def mean_ranks(cells):
    """{row: mean over the sets of its place among all rows}."""
    rows = list(dict.fromkeys(row for row, _ in cells))
    test = ordinal.comparison.friedman([[cells[r, s] for r in rows] for s in SETS])
    return dict(zip(rows, test.ranks, strict=True))


def summary(text):
    """The page, with the figures in its summary as its tables have them. The first two
    cells of a row, which name a function and say what it is for, stay as they are."""
    cells = {h: parsed(text[slice(*section_of(text, h))]) for h in HEADINGS}
    ranks = [mean_ranks(cells[h]) for h in (MAE, MZE)]
    start, end = section_of(text, SUMMARY)
    lines = text[start:end].split("\n")
    for i, line in enumerate(lines):
        if found := re.match(r"\| \[`fit_(\w+)`\]", line):
            name = found[1].replace("_", "-")
            row = ROWS.get(name, name)
            kept = "|".join(line.split("|")[:3])
            places = " | ".join(f"{r[row]:.1f}" for r in ranks)
            means = " | ".join(
                f"{np.mean([cells[h][row, s] for s in SETS]):.3f}" for h in (MAE, MZE)
            )
            cost = f"{cells[SECONDS][row, LARGEST]:.3f} | "
            cost += f"{cells[MEMORY][row, LARGEST]:.0f}"
            lines[i] = f"{kept}| {means} | {places} | {cost} |"
    return text[:start] + "\n".join(lines) + text[end:]


def all_errors(args):
    """The tables of MAE and MZE by their headings."""
    known = reported()
    found = {}
    for name in NAMES:
        for s in SETS:
            star = name in REPORTED
            found[name, s] = known[name, s] if star else errors(args, name, s)
        print(name, *(f"{found[name, s][0]:.3f}" for s in SETS), file=sys.stderr)
    return {
        h: markdown({cell: v[m] for cell, v in found.items()}, ".3f", REPORTED)
        for m, h in enumerate((MAE, MZE))
    }


def all_times(args):
    """The tables of seconds and megabytes by their headings."""
    found = {}
    for name in NAMES:
        for s in SETS:
            # in a process that begins as this one, in which nothing was fitted
            found[name, s] = limited(None, measured, args.data, name, s)
        print(name, *(f"{found[name, s][0]:.3f}" for s in SETS), file=sys.stderr)
    specs = zip((SECONDS, MEMORY), (".3f", ".1f"), strict=True)
    return {
        h: markdown({cell: v[m] for cell, v in found.items()}, spec)
        for m, (h, spec) in enumerate(specs)
    }


def main():
    parser = options(__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--errors", action="store_true", help="MAE and MZE, an hour")
    what.add_argument("--times", action="store_true", help="seconds and memory")
    parser.add_argument("--long", action="store_true", help="search all 30 hold-outs")
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument(
        "--store", metavar="FOLDER", help="keep finished hold-outs there"
    )
    parser.add_argument("--page", type=Path, help="put the tables there")
    args = parser.parse_args()

    print(header(ordinal))
    measure = all_errors if args.errors else all_times
    tables = measure(args)
    for heading, rows in tables.items():
        print(f"\n## {heading}\n\n{rows}")
    if args.page is not None:
        text = args.page.read_text()
        for heading, rows in tables.items():
            text = with_table(text, heading, rows)
        args.page.write_text(summary(text))


if __name__ == "__main__":
    main()
