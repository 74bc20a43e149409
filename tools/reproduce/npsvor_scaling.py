"""Figure 7 of the NPSVOR paper: errors and seconds as training rows grow, ten methods.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/npsvor_scaling.py --data FOLDER
        [--png FOLDER]

H. Wang, Y. Shi, L. Niu, Y. Tian, "Nonparallel support vector ordinal regression", IEEE
Transactions on Cybernetics 47(10):3306-3317, 2017, section V-D: subsets of California
housing, here of 100 to 10 000 rows in five bins, the Gaussian kernel exp(-kappa/2 |x -
x'|^2) with kappa = 1, C = 100, no search. NPSVOR is solved by SMO to its optimum, as
the others are, and by the paper's ADMM (rho = 1, tolerances 1e-2) beside. One thread;
CPU seconds of the quicker of two fits, and the slope of their logs from 1000 rows on,
which is 2 where the time grows with the square of the rows. "gap" is that of the fit at
most rows, relative. MZE and MAE are of all rows that did not train.
"""

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

import ordinal

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from _common import add_data, california, header
from npsvor import FIT, save

SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000)
TITLES = ("MZE", "MAE", "CPU seconds of a fit")
METHODS = {**FIT, "npsvor-admm": partial(ordinal.fit_npsvor, solver="admm")}


def fitted(fit, X, y, X_rest, y_rest):
    """MZE, MAE and CPU seconds of the quicker of two fits, and the last one's gap."""
    spent = []
    for _ in range(2):
        began = time.process_time()
        model = fit(X, y, gamma=0.5, n_threads=1, C=100.0)
        spent.append(time.process_time() - began)
    c = model.convergence
    miss = np.abs(model.predict(X_rest) - y_rest)
    gap = c.gap / max(abs(c.primal), 1e-300)
    return (miss > 0).mean(), miss.mean(), min(spent), gap


def slope(sizes, spent):
    """Return the slope of the logs, from 1000 rows on."""
    large = np.array(sizes) >= 1000
    if large.sum() < 2:
        return np.nan
    return np.polyfit(np.log(sizes)[large], np.log(spent)[large], 1)[0]


def draw(found, sizes, path):
    """The three panels, from (3, sizes) values a method."""
    from matplotlib import pyplot as plt
    from pictures import use_style

    use_style()
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.6), layout="constrained")
    for panel, title in zip(panels, TITLES, strict=True):
        panel.set(title=title, xlabel="training rows", xscale="log")
        panel.grid(alpha=0.3)
    panels[2].set_yscale("log")
    for j, (name, values) in enumerate(found.items()):
        for panel, of_panel in zip(panels, values, strict=True):
            style = "o-" if j < 6 else "s--"
            panel.plot(sizes, of_panel, style, label=name.upper(), ms=3, lw=1)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    save(panels[0], path, "npsvor_scaling")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data(parser)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    parser.add_argument("--most", type=int, default=SIZES[-1], help="rows")
    parser.add_argument("--png", metavar="FOLDER", help="draw the picture")
    args = parser.parse_args()
    sizes = [size for size in SIZES if size <= args.most]
    data = {n: california(args.data, n) for n in sizes}
    found = {}
    for name in args.methods or METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ordinal.exceptions.ConvergenceWarning)
            *values, gaps = np.transpose(
                [fitted(METHODS[name], *data[n]) for n in sizes]
            )
        found[name] = values, gaps[-1]
        print(f"{name} done", file=sys.stderr)
    print(header(ordinal))
    for panel, title in enumerate(TITLES):
        print(f"\n## {title}\n{'':12}" + "".join(f"{n:9}" for n in sizes))
        for name, (values, gap) in found.items():
            line = f"{name:12}" + "".join(f"{value:9.3f}" for value in values[panel])
            if panel == 2:
                line += f"  slope {slope(sizes, values[2]):.2f}  gap {gap:.0e}"
            print(line)
    if args.png:
        draw({name: values for name, (values, _) in found.items()}, sizes, args.png)


if __name__ == "__main__":
    main()
