"""All ten rows of Tables 3 and 4 of the XOFM paper, on three of its seven sets.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/xofm_rows.py --data FOLDER

M. Guo, Z. Xu, Q. Zhang, X. Liao, J. Liu, "Explainable ordinal factorization model",
ECAI 2020, section 4: 30 random splits into 80 % to train on and 20 % to test on. Each
method has its own search here, for the least MAE in five-fold cross-validation on the
training rows of each split, whose features are standardised; the paper searches once
for a set. Boston has the equal-length labels of another paper: those of the source are
not among the data. XOFM is as in `xofm.py`, which searches once for a set, too, and
stops after 25 steps, so that none of its fits converges.

"off" is how far our mean lies above the paper's, in standard deviations that the paper
gives; positive is better for accuracy and worse for MAE.
"""

import time
import warnings
from functools import partial
from itertools import product

import numpy as np
from svor import store_folder, tables_parser
from xofm import data, header

import ordinal
from ordinal.model_selection import Grid, nested

PENALTIES = [1e-4, 1e-3, 1e-2, 1e-1]
COSTS, GAMMAS = [0.1, 1.0, 10.0, 100.0, 1000.0], [0.01, 0.03, 0.1, 0.3, 1.0]
XOFM = partial(
    ordinal.fit_xofm, breakpoints="quantile", n_factors=12, max_iter=25,
    l2_main=0.0, l2_pair=0.0,
)  # fmt: skip
METHODS = {
    "xofm": (XOFM, Grid(n_intervals=[4, 8, 12, 16], tau=[0.5, 1.0, 2.0])),
    "lit": (ordinal.companions.fit_lit, Grid(l2=PENALTIES)),
    "lat": (ordinal.companions.fit_lat, Grid(l2=PENALTIES)),
    "kdlor": (
        ordinal.companions.fit_kdlor,
        Grid(ridge=[1e-4, 1e-3, 1e-2, 1e-1, 1.0], gamma=GAMMAS),
    ),
    "pom": (ordinal.fit_pom, Grid(l2=PENALTIES)),
    "svr": (ordinal.companions.fit_svr, Grid(C=COSTS, gamma=GAMMAS)),
    "nnor": (
        ordinal.companions.fit_nnor,
        Grid(n_hidden=[5, 10, 20], l2=[1e-3, 1e-2, 1e-1]),
    ),
    "elmor": (ordinal.companions.fit_elmor, Grid(n_hidden=[50, 100, 200, 400])),
    "cnnor": (ordinal.companions.fit_cnnor, Grid(l2=PENALTIES)),
    "ofmhs": (
        ordinal.companions.fit_ofmhs,
        Grid(l1=[1e-3, 3e-3, 1e-2, 3e-2], ratio=[0.5, 1.0, 2.0, 4.0]),
    ),
}
SETS = ("g_auto_riskness", "boston_housing", "g_abalone")
PAPER = {  # accuracy, its deviation, MAE, its deviation, a set
    "xofm": (
        (0.719, 0.031, 0.343, 0.019),
        (0.637, 0.017, 0.411, 0.016),
        (0.348, 0.023, 1.033, 0.021),
    ),
    "lit": (
        (0.469, 0.031, 0.594, 0.071),
        (0.634, 0.024, 0.475, 0.053),
        (0.304, 0.034, 1.256, 0.097),
    ),
    "lat": (
        (0.219, 0.034, 0.875, 0.081),
        (0.634, 0.021, 0.475, 0.043),
        (0.316, 0.037, 1.081, 0.103),
    ),
    "kdlor": (
        (0.375, 0.037, 0.906, 0.062),
        (0.584, 0.020, 0.485, 0.045),
        (0.295, 0.028, 1.268, 0.067),
    ),
    "pom": (
        (0.406, 0.029, 0.688, 0.082),
        (0.653, 0.022, 0.416, 0.037),
        (0.347, 0.029, 1.103, 0.078),
    ),
    "svr": (
        (0.625, 0.030, 0.375, 0.063),
        (0.584, 0.021, 0.436, 0.032),
        (0.322, 0.031, 0.982, 0.089),
    ),
    "nnor": (
        (0.656, 0.041, 0.406, 0.042),
        (0.644, 0.019, 0.426, 0.041),
        (0.333, 0.027, 1.034, 0.083),
    ),
    "elmor": (
        (0.594, 0.038, 0.438, 0.035),
        (0.584, 0.020, 0.475, 0.033),
        (0.352, 0.029, 0.996, 0.093),
    ),
    "cnnor": (
        (0.381, 0.032, 0.681, 0.013),
        (0.581, 0.022, 0.497, 0.019),
        (0.344, 0.036, 1.326, 0.029),
    ),
    "ofmhs": (
        (0.491, 0.032, 0.619, 0.040),
        (0.588, 0.014, 0.502, 0.020),
        (0.323, 0.039, 1.398, 0.041),
    ),
}


def row(args, name, method, store):
    X, y = data(args.data, name)
    fit, grid = METHODS[method]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ordinal.exceptions.DisorderedThresholdsWarning)
        if method == "xofm":  # which is meant to stop short
            warnings.simplefilter("ignore", ordinal.exceptions.ConvergenceWarning)
        found = nested(
            fit, X, y, search=grid, outer=args.splits, test_size=0.2, rng=args.seed,
            n_threads=args.threads, store=store,
        )  # fmt: skip
    ours = 1 - found.scores["mze"], found.scores["mae"]
    paper = np.reshape(PAPER[method][SETS.index(name)], (2, 2))
    out = f"{name:15} {method:6}"
    for values, (theirs, spread) in zip(ours, paper, strict=True):
        off = (values.mean() - theirs) / spread
        out += f"  {values.mean():.3f}±{values.std():.3f}"
        out += f"  {theirs:.3f}±{spread:.3f} {off:+5.1f}"
    return out + f"  {time.process_time() - began:6.0f}"


def main():
    args = tables_parser(__doc__, SETS, METHODS, 30).parse_args()
    print(header(ordinal))
    print(
        f"{'set':15} {'method':6}  {'accuracy':11}  {'paper':11}   off  {'MAE':11}  "
        f"{'paper':11}   off   CPU s"
    )
    with store_folder(args) as store:
        for cell in product(args.sets, args.methods):
            print(row(args, *cell, store), flush=True)


if __name__ == "__main__":
    main()
