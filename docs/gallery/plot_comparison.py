"""
Which methods differ
====================

One table tells little about methods. Over many, the Friedman test compares their ranks,
and Nemenyi's critical difference says how far apart they must be to differ by more than
chance.
"""

import ordinal
from ordinal.comparison import friedman, wilcoxon
from ordinal.datasets import make_gaussians, make_tlssvor
from ordinal.metrics import mae
from ordinal.model_selection import stratified_holdout

tables = [make_gaussians(40, rng=k) for k in range(8)]
tables += [make_tlssvor(120, rng=k) for k in range(8)]
methods = {
    "SVORIM": ordinal.fit_svorim,
    "SVOREX": ordinal.fit_svorex,
    "NPSVOR": ordinal.fit_npsvor,
    "KDLOR": ordinal.fit_kdlor,
    "POM": lambda X, y: ordinal.fit_pom(X, y, l2=1e-3),
}

# %%
# A row for each table, with the error of each method on the third of the rows that it
# was not fitted to.

scores = []
for X, y in tables:
    ((train, test),) = stratified_holdout(y, 1, test_size=1 / 3)
    scale = ordinal.preprocessing.Standardizer.fit(X[train])
    A, B = scale.transform(X[train]), scale.transform(X[test])
    scores.append(
        [mae(y[test], fit(A, y[train]).predict(B)) for fit in methods.values()]
    )

result = friedman(scores)
print(f"p = {result.F_p:.2g}, critical difference {result.critical_difference:.2f}")

# %%
# Methods that one bar joins do not differ significantly.

ax = ordinal.plot.critical_difference(result, list(methods))
title = ax.figure.suptitle("Average ranks over sixteen tables; 1 is best")

# %%
# Two methods alone are compared by the signed ranks of their differences.

pair = [[row[0] for row in scores], [row[-1] for row in scores]]
print(f"SVORIM against POM: p = {wilcoxon(*pair).p_value:.3g}")
