"""OFMHS beside the lasso on all products of two features, which knows no hierarchy.

  ranks   five ranks, beside the lasso of `fit_pom`, whose loss is the same
  binary  two ranks, beside the lasso of scikit-learn's LogisticRegression (SAGA)

No public program fits OFMHS: its authors' is not, and glinternet, whose hierarchy is of
the same kind, is for R and knows no ranks. The lasso takes the same features and their
products, made before the clock starts, at the price `l1` of a main effect and
`sqrt(2 + ratio^2)` times that of a pair, the most that OFMHS asks. It breaks the
hierarchy, and is here for its seconds, of one run. `main` and `pairs` are effects that
are not 0, `alone` are pairs of which a main effect is 0. Gaps are by the loss without
features; scikit-learn stops by the change of its steps, and its gap is taken from its
coefficients.

    OPENBLAS_NUM_THREADS=1 python tools/bench/ofmhs.py
"""

import warnings

import numpy as np
from _common import Table, best_time, companions, parser, run

import ordinal

COLUMNS = (
    "n:6d", "d:4d", "l1:6g", "fit:14", "ours:8.2f", "theirs:8.2f", "theirs/ours:6.1f",
    "steps:5d", "main:4d", "pairs:5d", "alone:5d", "gap:8.1e",
)  # fmt: skip
RATIO = 1.0


def problem(n, d, ranks, seed=0):
    """Ten features count, and as many pairs of them, with noise of the logistic."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X[:, :10] @ rng.standard_normal(10)
    low, high = np.triu_indices(10, 1)
    some = rng.choice(low.size, 10, replace=False)
    f += (X[:, low[some]] * X[:, high[some]]) @ rng.standard_normal(10)
    f = 2 * f / f.std() + rng.logistic(size=n)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.digitize(f, np.quantile(f, np.arange(1, ranks) / ranks))


def with_products(X):
    """Features and their products, which are divided by the price of one."""
    low, high = np.triu_indices(X.shape[1], 1)
    return np.hstack([X, X[:, low] * X[:, high] / np.sqrt(2 + RATIO**2)])


def effects(coef, d):
    """Count nonzero main effects and pairs, and pairs without a main effect."""
    low, high = np.triu_indices(d, 1)
    main, pair = coef[:d] != 0, coef[d:] != 0
    alone = pair & ~(main[low] & main[high])
    return int(main.sum()), int(pair.sum()), int(alone.sum())


def ours(args, rows, X, y, l1):
    """A row of OFMHS; its seconds."""
    seconds, _, m = best_time(
        args.repeat,
        companions.fit_ofmhs,
        X,
        y,
        l1=l1,
        pair_ratio=RATIO,
        n_threads=1,
    )
    low, high = np.triu_indices(X.shape[1], 1)
    counts = effects(np.append(m.main, m.pairs[low, high]), X.shape[1])
    c = m.convergence
    rows.row(
        *X.shape, l1, "fit_ofmhs", seconds, None, None, c.n_iter, *counts, c.violation
    )
    return seconds


def ranks(args) -> None:
    rows = Table(args, "Five ranks", *COLUMNS)
    shapes = ((500, 20),) if args.quick else ((2000, 20), (2000, 60), (10_000, 60))
    for n, d in shapes:
        X, y = problem(n, d, 5)
        Z = with_products(X)
        for l1 in (0.03, 0.01, 0.003):
            own = ours(args, rows, X, y, l1)
            if args.quick or n > 2000:
                continue
            seconds, _, m = best_time(
                1, ordinal.fit_pom, Z, y, l1=l1, tol=1e-5, n_threads=1
            )
            c = m.convergence
            rows.row(
                n, d, l1, "lasso", None, seconds, seconds / own, c.n_iter,
                *effects(m.coef, d), c.violation,
            )  # fmt: skip


def binary(args) -> None:
    rows = Table(args, "Two ranks", *COLUMNS)
    for n, d in ((500, 20),) if args.quick else ((2000, 20), (2000, 60)):
        X, y = problem(n, d, 2)
        Z = with_products(X)
        for l1 in (0.03, 0.01, 0.003):
            own = ours(args, rows, X, y, l1)
            if not args.quick:
                seconds, _, m = best_time(1, lasso, Z, y, l1)
                coef = m.coef_[0]
                rows.row(
                    n, d, l1, "scikit-learn", None, seconds, seconds / own,
                    int(m.n_iter_[0]), *effects(coef, d),
                    gap(Z, y, coef, m.intercept_[0], l1),
                )  # fmt: skip


def lasso(X, y, l1):
    from sklearn.linear_model import LogisticRegression

    peer = LogisticRegression(
        l1_ratio=1.0,
        C=1 / (l1 * len(y)),
        solver="saga",
        tol=1e-4,
        max_iter=10_000,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.fit(X, y)


def gap(X, y, coef, intercept, l1) -> float:
    """The duality gap of the lasso of two ranks, by the loss without features. The
    point of the dual is that of the residuals, moved to a sum of 0 and shrunk until it
    is feasible."""
    s = np.where(y > 0, 1.0, -1.0)
    margin = s * (X @ coef + intercept)
    primal = np.logaddexp(0, -margin).mean() + l1 * np.abs(coef).sum()
    p = np.exp(-np.logaddexp(0, margin))  # of the wrong rank: -slope of the loss
    above, below = p[s > 0].sum(), p[s < 0].sum()
    p = p * np.where(s > 0, min(1.0, below / above), min(1.0, above / below))
    p *= min(1.0, l1 / (np.abs(X.T @ (s * p)).max() / y.size))
    dual = -(p * np.log(p) + (1 - p) * np.log1p(-p)).mean()
    q = (s > 0).mean()
    return float((primal - dual) / -(q * np.log(q) + (1 - q) * np.log(1 - q)))


PARTS = {"ranks": ranks, "binary": binary}

if __name__ == "__main__":
    args = parser(__doc__, PARTS).parse_args()
    if args.quick:
        run(args, PARTS, tuple(PARTS))
    else:
        import sklearn.linear_model  # before the clock starts

        run(args, PARTS, (), sklearn)
