"""Section V-C of the NPSVOR paper, Tables II to V: ten methods on ten ordinal sets.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/npsvor.py --data FOLDER [--png FOLDER]

H. Wang, Y. Shi, L. Niu, Y. Tian, "Nonparallel support vector ordinal regression", IEEE
Transactions on Cybernetics 47(10):3306-3317, 2017: 30 stratified hold-outs with a
quarter of the rows to test on, the official ones of the ORReview collection, features
standardised, the kernel exp(-gamma |x - x'|^2), and C and gamma from 5-fold cross
validation on the training rows, both over 1e-3, 1e-2 ... 1e3. NPSVOR has C1 = C2 = C,
epsilon = 0.2 and is solved by the paper's ADMM, rho = 1 and tolerances 1e-2; "np-50"
ends after 50 steps from z = 1, as the program of the authors, and "np-opt" is the exact
optimum. SVR has epsilon = 0.1. OPBE is of SVORIM. --png needs matplotlib.

MZE is of the point with the least MZE in cross validation, MAE of that with the least
MAE; among equals the least C wins, then the least gamma. Folds, the same for all
methods, hold every rank in its share. The sets are ten of the paper's 23, and by
request larger ones with 5 equal-frequency bins. The paper's tables are not at hand:
what can be compared is that it ranks NPSVOR first by MAE and second by MZE.

Printed are errors, seconds of the searches as in Table V, fits that differ, failed or
ended short of their tolerance, and for each measure: average ranks, Wilcoxon's test on
the hold-outs of a set (0.05, Table IV) and between sets, and Friedman's test with
Nemenyi's critical difference. In the paper's average ranks, methods that do not differ
significantly on a set share a place.

--png draws `critical_difference_mze.png` and `critical_difference.png` (MAE), Figure 5,
and `search_seconds.png`, Figure 6, of sets with more than 500 training rows. --store
keeps what was fitted in that folder, and the same command goes on where it was killed.
"""

from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from _protocol import (
    AUTHORS,
    SIZES,
    header,
    raw_partition,
    search_options,
    store_folder,
    stored_splits,
    table,
    with_spread,
)
from svor import MEASURES, by_measure, fits

import ordinal
from ordinal import comparison, plot
from ordinal.model_selection import Grid

SETS = [
    *("ERA", "LEV", "tae", "car", "balance-scale"),
    *("contact-lenses", "bondrate", "pasture", "toy", "squash-stored"),
]
FIT = {
    "svc1v1": ordinal.companions.fit_svc,
    "svc1va": partial(ordinal.companions.fit_svc, decomposition="one_vs_all"),
    "svr": partial(ordinal.companions.fit_svr, epsilon=0.1),
    "cssvc": ordinal.companions.fit_cssvc,
    "svmop": ordinal.companions.fit_svmop,
    "svorex": ordinal.fit_svorex,
    "svorim": ordinal.fit_svorim,
    "redsvm": ordinal.companions.fit_redsvm,
    "opbe": ordinal.companions.fit_opbe,
    "npsvor": partial(ordinal.fit_npsvor, solver="admm"),
    "np-50": partial(ordinal.fit_npsvor, **AUTHORS),
    "np-opt": ordinal.fit_npsvor,
}
LOGS = 10.0 ** np.arange(-3, 4)
GRID = Grid(C=LOGS, gamma=LOGS)
HEADINGS = (
    f"{'set':18} {'method':7}"
    + "".join(f"  {m.upper():11}" for m in MEASURES)
    + f"  {'fits':>6} failed unconverged seconds",
    "method  rank  wins draws losses  npsvor worse better p",
    " " * 14 + "".join(f"{m:>8}" for m in FIT),
)
DRAWN = ["abalone", *SIZES]  # of the six large sets, with 5 bins; by request only
LARGE = ["ERA", "LEV", "car"]  # more than 500 training rows


def scored(args, name, method, store):
    """MZE and MAE of the hold-outs of a set, (2, n), the seconds of the searches and
    the printed row."""
    X, y = table(args.data, name)
    if name in DRAWN:  # every partition has the same X, as no feature is constant
        drawn = [raw_partition(args.data, name, 5, k) for k in range(args.splits)]
        y, outer = drawn[0][1], [part[2:] for part in drawn]
    else:
        stored = stored_splits(args.data, name, "orreview_30holdout")
        outer = list(zip(stored["train_idx"], stored["test_idx"], strict=True))
    found = by_measure(
        FIT[method], X, y, search=GRID, seed=args.seed, n_threads=args.threads,
        store=store, outer=outer[: args.splits],
    )  # fmt: skip
    errors = np.array([result.scores[m] for m, result in found.items()])
    ended, seconds = fits(found)
    failed = ended.count("failed")
    unconverged = len(ended) - sum(map(ended.count, ("converged", "fitted", "failed")))
    line = f"{name:18} {method:7}{with_spread(errors.T)}  {len(ended):6} {failed:6} "
    return errors, seconds, f"{line}{unconverged:11} {seconds:7.0f}"


def compare(measure, methods, tables):
    """Print which method is better, from (n, k) errors a set; the Friedman test."""
    means = np.array([errors.mean(axis=0) for errors in tables])
    test = comparison.friedman(means)
    counts = comparison.win_draw_loss(tables)
    print(f"\n## {measure.upper()}\n{HEADINGS[1]}")
    for j, method in enumerate(methods):
        out = (
            f"{method:7} {test.ranks[j]:4.2f}  {counts.win[j]:4} {counts.draw[j]:5} "
            f"{counts.loss[j]:6}"
        )
        if "npsvor" in methods and method != "npsvor":
            signed = comparison.wilcoxon(means[:, methods.index("npsvor")], means[:, j])
            out += f"  {signed.plus:12g} {signed.minus:6g} {signed.p_value:.3f}"
        print(out)
    print(
        f"Friedman: chi2 = {test.chi2:.2f}, p = {test.chi2_p:.3f}; F = {test.F:.2f}, "
        f"p = {test.F_p:.3f}; critical difference {test.critical_difference:.2f}"
    )
    return test


def matrix(title, sets, methods, cell):
    """Print what cell(set, method) says, a row a set."""
    print(f"\n## {title}\n{'':14}" + "".join(f"{m:>8}" for m in methods))
    for name in sets:
        print(f"{name:14}" + "".join(f"{cell(name, m):>8}" for m in methods))


def draw_seconds(seconds, sets, methods):
    """Figure 6: bars of the seconds of each set and method."""
    from matplotlib import pyplot as plt

    from ordinal.plot.style import fill

    _, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    width, places = 0.8 / len(methods), np.arange(len(sets))
    for j, method in enumerate(methods):
        heights = [seconds[name, method] for name in sets]
        axes.bar(places + j * width, heights, width, label=method.upper(), **fill(j))
    axes.set(yscale="log", ylabel="seconds of all searches")
    axes.set_xticks(places + 0.4 - width / 2, sets)
    axes.legend(ncols=2, fontsize="small", bbox_to_anchor=(1.01, 1), loc="upper left")
    return axes


def save(axes, folder, name):
    import pictures

    pictures.save(axes.figure, Path(folder, f"{name}.png"))


def draw(args, test, measure, methods):
    """Draw Figure 5 for one measure."""
    axes = plot.critical_difference(test, [method.upper() for method in methods])
    own = "" if measure == "mae" else f"_{measure}"
    save(axes, args.png, f"critical_difference{own}")


def main():
    parser = search_options(__doc__, 30, sets=[*SETS, *DRAWN], methods=FIT)
    parser.set_defaults(sets=SETS)
    parser.add_argument("--png", metavar="FOLDER", help="draw Figures 5 and 6")
    args = parser.parse_args()

    methods = args.methods
    print(
        header(ordinal),
        f"\n# {args.splits} hold-outs, seed {args.seed}\n\n{HEADINGS[0]}",
    )
    with store_folder(args) as store:
        errors, seconds = {}, {}
        for name, method in product(args.sets, methods):
            cell = name, method
            errors[cell], seconds[cell], line = scored(args, *cell, store)
            print(line, flush=True)
        for m, measure in enumerate(MEASURES):

            def mean(*cell, m=m):
                return f"{errors[cell][m].mean():.3f}"

            matrix(measure.upper(), args.sets, methods, mean)

        def spent(*cell):
            return f"{seconds[cell]:.0f}"

        matrix("Seconds of all searches", args.sets, methods, spent)
        if args.png is not None:
            from pictures import use_style

            use_style()
        for m, measure in enumerate(MEASURES):
            if len(args.sets) < 2 or len(methods) < 2:
                break
            tables = [
                np.column_stack([errors[name, method][m] for method in methods])
                for name in args.sets
            ]
            test = compare(measure, methods, tables)
            if args.png is not None:
                draw(args, test, measure, methods)
        if args.png is not None:
            large = [name for name in LARGE if name in args.sets]
            if large:
                axes = draw_seconds(seconds, large, methods)
                save(axes, args.png, "search_seconds")


if __name__ == "__main__":
    main()
