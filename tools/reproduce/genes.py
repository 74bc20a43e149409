"""Figure 4 of the GPOR paper on simulated genes: elimination by relevance.

    OPENBLAS_NUM_THREADS=1 python tools/reproduce/genes.py

Section 6.4: 52 samples with 26, 20 and 6 of three grades. GPOR with the kernel
"ard_linear" learns a weight per gene, the half with the least weights goes, and so on
to one gene. At every number of genes three methods with a linear kernel are tested on
20 random halves. The paper's data of prostate cancer are not among ours: here 12 of
--genes simulated genes depend on a hidden severity, of which the grades are bins, and
the others are noise.

The paper chooses the genes with all samples, also those of the tests, and its errors
are therefore too small. "chosen within" repeats the elimination in each training half.
"""

import numpy as np
from _protocol import header, options, with_spread

import ordinal

METHODS = {
    "SVM": lambda X, y: ordinal.companions.fit_shashua_levin(X, y, kernel="linear"),
    "MAP": lambda X, y: ordinal.fit_gpor(X, y, kernel="linear", inference="laplace"),
    "EP": lambda X, y: ordinal.fit_gpor(X, y, kernel="linear"),
}
INFORMATIVE = 12
HEADING = "chosen   genes informative" + "".join(f"  {m:11}" for m in METHODS)


def simulated(genes, rng):
    severity = np.sort(rng.normal(size=52))
    X = rng.normal(size=(52, genes))
    X[:, :INFORMATIVE] += severity[:, None]
    y = np.repeat([1, 2, 3], [26, 20, 6])
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def eliminated(X, y):
    """The genes that are left, the most relevant first, from all of them to one."""
    kept = np.arange(X.shape[1])
    while True:
        model = ordinal.fit_gpor(
            X[:, kept], y, kernel="ard_linear", inference="laplace"
        )
        kept = kept[np.argsort(-model.relevance(), kind="stable")]
        yield kept
        if kept.size == 1:
            return
        kept = kept[: (kept.size + 1) // 2]


def halves(y, splits, seed):
    """Random halves that both hold every grade."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < splits:
        half = rng.permutation(52)
        train, test = half[:26], half[26:]
        if np.unique(y[train]).size == np.unique(y[test]).size == 3:
            found.append((train, test))
    return found


def main():
    parser = options(__doc__, data=False, splits=20)
    parser.add_argument("--genes", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    X, y = simulated(args.genes, np.random.default_rng(args.seed))
    chosen = {kept.size: kept for kept in eliminated(X, y)}
    found = {way: {n: [] for n in chosen} for way in ("by all", "within")}
    for train, test in halves(y, args.splits, args.seed):
        within = {kept.size: kept for kept in eliminated(X[train], y[train])}
        for way, genes in (("by all", chosen), ("within", within)):
            for n, kept in genes.items():
                rows, new = X[np.ix_(train, kept)], X[np.ix_(test, kept)]
                found[way][n].append(
                    [np.mean(fit(rows, y[train]).predict(new) != y[test])
                     for fit in METHODS.values()]
                )  # fmt: skip
    print(header(ordinal), f"\n# MZE over {args.splits} halves, seed {args.seed}")
    print(HEADING)
    for way, by_size in found.items():
        for n, errors in by_size.items():
            few = np.sum(chosen[n] < INFORMATIVE) if way == "by all" else "-"
            print(f"{way:8} {n:5} {few:>11}{with_spread(errors)}")


if __name__ == "__main__":
    main()
