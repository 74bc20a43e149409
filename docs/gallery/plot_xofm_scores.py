"""
Interpretable curves with monotone effects
==========================================

The score of XOFM is a sum of one piecewise linear curve per feature and one surface per
pair of features. If a feature is known to have a monotone effect, pass ``monotone``.
"""

import numpy as np
import pandas as pd

import ordinal

rng = np.random.default_rng(0)
n = 220
loans = pd.DataFrame(
    {
        "income": rng.gamma(4, 12, n).round(1),
        "debt": rng.gamma(2, 10, n).round(1),
        "years": rng.integers(0, 30, n),
        "home": rng.choice(["owned", "rented", "shared"], n, p=[0.4, 0.5, 0.1]),
    }
)
worth = (
    np.sqrt(loans["income"]) - 0.05 * loans["debt"] + 0.6 * (loans["home"] == "owned")
)
worth += 0.02 * loans["years"] + 1.2 * rng.normal(size=n)
grades = ["D", "C", "B", "A"]
grade = np.array(grades)[np.digitize(worth, np.quantile(worth, [0.2, 0.5, 0.8]))]
loans.loc[rng.random(n) < 0.1, "income"] = None

# %%
# Categories and missing values need no preparation. Without constraints, curves follow
# the noise where there are few rows, as the grey bars show.

free = ordinal.fit_xofm(loans, grade, classes=grades, l2_main=1e-5)
axes = ordinal.plot.score_functions(free, top=3)
title = axes[0].figure.suptitle("Score functions without a direction")

# %%
# With constraints, more income never lowers a grade and more debt never raises it:

known = ordinal.fit_xofm(
    loans, grade, classes=grades, l2_main=1e-5, monotone={"income": 1, "debt": -1}
)
axes = ordinal.plot.score_functions(known, top=3)
title = axes[0].figure.suptitle("Income up, debt down")

# %%
# The contributions of one application add up to its score.

one = loans.iloc[[0]]
parts = known.contributions(one).values
assert np.allclose(parts.sum(axis=1), known.decision_function(one))
ax = ordinal.plot.contributions(known, one)
title = ax.figure.suptitle("Parts of the score of one application")
