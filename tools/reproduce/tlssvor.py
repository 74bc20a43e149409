"""Figures 1 and 2 of the TLS-SVOR paper: test errors as rows are given a wrong rank.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/tlssvor.py [--png FILE]

The artificial set of formulas (7) and (8) has 300 rows in three parts of 100 that hold
every rank in its share. Each part in turn is learned from, the next one validates, the
third tests. Of the learned rows 0, 4, 8 and 12 % exchange the ranks 1 and 4. C and
gamma are those of least error on the validation rows, MAE for Figure 1, MZE for Figure
2, in the paper's search by two uniform designs of 21 points in all. The paper has one
set. Here are --sets sets: "grows" is by how much the mean error rises from no wrong
rows to the most, with its standard error. u = 1.5 is TLS-SVOR, u = inf np-SVOR.
"""

import math
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _protocol import header, options

import ordinal
from ordinal import metrics
from ordinal.model_selection import UniformDesign, select

WRONG = (0, 4, 8, 12)  # percent of the learned rows
U = {"np-SVOR": math.inf, "TLS-SVOR": 1.5}
MEASURES = ("MAE", "MZE")
RANKS = (1, 2, 3, 4)


def thirds(y, rng):
    """The part of each row: rows in random order are dealt out rank by rank."""
    order = rng.permutation(y.size)
    order = order[np.argsort(y[order], kind="stable")]
    part = np.empty(y.size, dtype=int)
    part[order] = np.arange(y.size) % 3
    return part


def swapped(y, percent, rng):
    """y with the first of its rows of rank 1, in random order, called 4, and the other
    way round."""
    y, half = y.copy(), round(y.size * percent / 200)
    low, high = (rng.permutation(np.flatnonzero(y == k))[:half] for k in (1, 4))
    y[low], y[high] = 4, 1
    return y


def errors(u, learn, validate, test):
    """MAE and MZE of the test rows, each at the point that validation picks for it."""
    fit = partial(ordinal.fit_tlssvor, u=u, n_threads=1)
    X, y = map(np.concatenate, zip(learn, validate, strict=True))
    rows = np.arange(len(y))
    split = rows[: len(learn[1])], rows[len(learn[1]) :]
    out = []
    for measure in (metrics.mae, metrics.mze):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ordinal.exceptions.DisorderedThresholdsWarning
            )
            found = select(
                fit, X, y, search=UniformDesign(), cv=[split], refit=False,
                scoring=measure.__name__, standardize=False, n_threads=1,
            )  # fmt: skip
            model = fit(*learn, **found.params)
        out.append(measure(test[1], model.predict(test[0]), labels=RANKS))
    return out


def experiment(seed, noise):
    """Errors by method, percentage and measure, the means of three rotations."""
    X, y = ordinal.datasets.make_tlssvor(noise=noise, rng=seed)
    rng = np.random.default_rng([1, seed])
    part = thirds(y, rng)
    out = np.zeros((len(U), len(WRONG), len(MEASURES)))
    for first in range(3):
        learn, validate, test = (
            (X[part == k % 3], y[part == k % 3]) for k in range(first, first + 3)
        )
        order = rng.integers(2**32)  # the same rows, and more, at a higher percentage
        for j, percent in enumerate(WRONG):
            labels = swapped(learn[1], percent, np.random.default_rng(order))
            for i, u in enumerate(U.values()):
                out[i, j] += np.divide(errors(u, (learn[0], labels), validate, test), 3)
    return out


def picture(path, mean, spread):
    from matplotlib import pyplot as plt
    from pictures import save, use_style

    use_style()
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for m, panel in enumerate(panels):
        for i, name in enumerate(U):
            panel.errorbar(
                WRONG, mean[i, :, m], spread[i, :, m], marker="os"[i], capsize=3,
                label=name,
            )  # fmt: skip
        panel.set(
            title=f"Figure {m + 1}", xlabel="rows of a wrong rank (%)",
            ylabel=f"{MEASURES[m]} of test rows", xticks=WRONG,
        )  # fmt: skip
        panel.legend()
    save(figure, Path(path))


def main():
    parser = options(__doc__, data=False)
    parser.add_argument("--sets", type=int, default=100, help="drawn anew, 2 or more")
    parser.add_argument(
        "--noise", type=float, default=0.026, help="of (7), a deviation"
    )
    parser.add_argument("--png", metavar="FILE", help="draw both figures")
    args = parser.parse_args()

    began = time.process_time()
    found = np.array([experiment(seed, args.noise) for seed in range(args.sets)])
    mean, root = found.mean(axis=0), math.sqrt(args.sets)
    spread = found.std(axis=0, ddof=1) / root
    growth = found[:, :, -1] - found[:, :, 0]
    print(header(ordinal), f"\n# {args.sets} sets, noise {args.noise}")
    for m, measure in enumerate(MEASURES):
        columns = "".join(f"{percent:>7} %" for percent in WRONG)
        print(f"\n## Figure {m + 1}: {measure}\n{'':9}{columns}  grows")
        for i, name in enumerate(U):
            values = "".join(f"{value:9.3f}" for value in mean[i, :, m])
            error = growth[:, i, m].std(ddof=1) / root
            print(f"{name:9}{values}  {growth[:, i, m].mean():+.3f} ± {error:.3f}")
        saved = growth[:, 0, m] - growth[:, 1, m]
        print(
            f"np-SVOR's error grows by {saved.mean():+.3f} ± "
            f"{saved.std(ddof=1) / root:.3f} more"
        )
    print(f"\n# {time.process_time() - began:.0f} CPU s")
    if args.png:
        picture(args.png, mean, spread)


if __name__ == "__main__":
    main()
