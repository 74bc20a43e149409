"""The row OFMHS of Tables 3 and 4 of the XOFM paper, on three of its seven sets.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/ofmhs.py --data FOLDER

M. Guo, Z. Xu, Q. Zhang, X. Liao, J. Liu, "Explainable ordinal factorization model",
ECAI 2020, section 4, prints accuracy and MAE of "Ordinal factorization machine with
hierarchical sparsity" (Guo, Chen, Tian 2020) from 30 random splits into 80 % to train
on and 20 % to test on. Here l1 and ratio have the least MAE in five-fold
cross-validation on the training rows of each split. Boston has the equal-length labels
of another paper: those of the source are not among the data.
"""

import argparse
import time

import numpy as np
from xofm import add_data, data, header

import ordinal
from ordinal.model_selection import Grid, select, stratified_holdout

PAPER = {  # accuracy, its deviation, MAE, its deviation
    "g_auto_riskness": (0.491, 0.032, 0.619, 0.040),
    "boston_housing": (0.588, 0.014, 0.502, 0.020),
    "g_abalone": (0.323, 0.039, 1.398, 0.041),
}
GRID = Grid(l1=[1e-3, 3e-3, 1e-2, 3e-2], ratio=[0.5, 1.0, 2.0, 4.0])


def row(args, name):
    X, y = data(args.data, name)
    began, misses, pairs = time.process_time(), [], []
    for train, test in stratified_holdout(y, args.splits, test_size=0.2, rng=args.seed):
        found = select(
            ordinal.fit_ofmhs, X[train], y[train], search=GRID, rng=args.seed,
            n_threads=1,
        )  # fmt: skip
        misses.append(np.abs(found.predict(X[test]) - y[test]))
        pairs.append(found.model.n_pairs)
    accuracy = np.array([(miss == 0).mean() for miss in misses])
    mae = np.array([miss.mean() for miss in misses])
    a, a_sd, m, m_sd = PAPER[name]
    return (
        f"{name:15} {np.median(pairs):5.0f}  "
        f"{accuracy.mean():.3f}±{accuracy.std():.3f}  {a:.3f}±{a_sd:.3f}  "
        f"{mae.mean():.3f}±{mae.std():.3f}  {m:.3f}±{m_sd:.3f}"
        f"  {time.process_time() - began:6.0f}"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data(parser)
    parser.add_argument("--sets", nargs="+", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    print(header(ordinal))
    print(
        f"{'set':15} pairs  {'accuracy':11}  {'paper':11}  {'MAE':11}  {'paper':11}"
        "   CPU s"
    )
    for name in args.sets:
        print(row(args, name), flush=True)


if __name__ == "__main__":
    main()
