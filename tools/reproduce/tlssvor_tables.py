"""Tables 1 and 2 of the TLS-SVOR paper: five methods on seven of its eight sets.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/tlssvor_tables.py --data FOLDER

Section 3.2: targets in 10 equal-frequency bins, 20 random partitions, features
standardised, the Gaussian kernel, and parameters from 5-fold cross-validation on the
training rows by two uniform designs of 13 and 9 points: C in 1e-3..1e3, gamma in the
range that the data give, and u of TLS-SVOR in 1.5..6. KDLOR, which has a ridge in place
of C, takes 25 points of a grid of both. The paper quotes the others' errors from their
own papers; here all have the same search. MZE is of the point with the least MZE in
cross-validation, MAE of that with the least MAE. On Abalone and the four larger sets
TLS-SVOR has 500 basis rows, as in the paper, and C in 1e-2..1e4. SVM-EBC has the
absolute cost.

The partitions are those of svor.py. MachineCPU is not among the data. Abalone has 10
features, as the sex is spelt out in three, where the paper has 8. "off" is our mean
less the paper's, in standard deviations that the paper gives.
"""

from functools import partial
from itertools import product

import numpy as np
from _protocol import figures, header, search_options, store_folder
from svor import HEADING, SETS, cell

import ordinal
from ordinal.model_selection import Grid, UniformDesign

RIDGES = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
METHODS = {
    "tlssvor": (ordinal.fit_tlssvor, UniformDesign(others={"u": (1.5, 6.0)})),
    "kdlor": (
        ordinal.companions.fit_kdlor,
        Grid(ridge=RIDGES, gamma=[0.001, 0.01, 0.03, 0.1, 0.3]),
    ),
    "svorex": (ordinal.fit_svorex, UniformDesign()),
    "svorim": (ordinal.fit_svorim, UniformDesign()),
    "svm-ebc": (ordinal.companions.fit_redsvm, UniformDesign()),
}
PAPER = {  # MZE and MAE of the seven sets, in thousandths; a mean, a deviation
    "tlssvor": "671 88 954 234, 580 41 742 87, 439 10 529 12, "
    "757 7 1401 11, 475 9 613 12, 634 3 997 10, 710 5 1248 9",
    "kdlor": "739 50 1100 100, 560 20 700 35, 740 20 1400 50, "
    "745 3 1450 20, 472 20 601 25, 643 5 907 4, 711 20 1213 3",
    "svorex": "752 63 1331 193, 569 25 773 49, 736 11 1391 21, "
    "744 5 1515 17, 462 5 602 9, 640 3 1068 5, 699 2 1270 7",
    "svorim": "719 66 1294 204, 561 26 747 49, 732 7 1361 13, "
    "751 5 1393 11, 473 5 596 8, 639 3 1008 5, 705 2 1205 7",
    "svm-ebc": "nan nan 1304 40, nan nan 732 13, nan nan 1383 4, "
    "nan nan 1404 2, nan nan 565 2, nan nan 940 1, nan nan 1143 2",
}


class ThreeToTwo:
    """The paper's folds: three fifths of the rows to learn from, two to validate on."""

    def split(self, X, y):
        part = np.empty(len(y), dtype=int)
        part[np.argsort(y, kind="stable")] = np.arange(len(y)) % 5
        for k in range(5):
            held = (part == k) | (part == (k + 1) % 5)
            yield np.flatnonzero(~held), np.flatnonzero(held)


def row(args, name, method, store):
    fit, search = METHODS[method]
    cv = 5
    if method == "tlssvor":
        cv = ThreeToTwo()
        if name not in ("pyrimidines", "boston_housing"):
            fit = partial(fit, basis=500)
            search = UniformDesign(C=(1e-2, 1e4), others=search.others)
    paper = figures(PAPER[method], SETS)[name]
    return cell(args, (name, 10), method, fit, search, paper, store, cv)


def main():
    args = search_options(__doc__, 20, sets=SETS, methods=METHODS).parse_args()
    print(header(ordinal), f"\n# {args.splits} partitions, seed {args.seed}\n{HEADING}")
    with store_folder(args) as store:
        for of in product(args.sets, args.methods):
            print(row(args, *of, store)[0], flush=True)


if __name__ == "__main__":
    main()
