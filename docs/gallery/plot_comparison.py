"""
Compare methods over several data sets
======================================

One data set says little about a method. The Friedman test compares the ranks of methods
over several data sets, and Nemenyi's critical difference is the smallest significant
difference of average ranks.
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
    "KDLOR": ordinal.companions.fit_kdlor,
    "POM": lambda X, y: ordinal.fit_pom(X, y, l2=1e-3),
}

# %%
# One row per data set, with the error of each method on the test set, a third of the
# rows.

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
# Methods connected by a bar do not differ significantly.

ax = ordinal.plot.critical_difference(result, list(methods))
title = ax.figure.suptitle("Average ranks over sixteen tables; 1 is best")

# %%
# Wilcoxon's signed rank test compares two methods.

pair = [[row[0] for row in scores], [row[-1] for row in scores]]
print(f"SVORIM against POM: p = {wilcoxon(*pair).p_value:.3g}")
