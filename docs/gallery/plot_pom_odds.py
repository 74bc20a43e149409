"""
Odds ratios of a proportional odds model
========================================

A linear model estimates by how much a feature changes the odds of a higher rank, with
confidence intervals. The table has estimates, standard errors and tests.
"""

import numpy as np
import pandas as pd

import ordinal

rng = np.random.default_rng(0)
n = 400
patients = pd.DataFrame(
    {
        "dose": rng.choice([0.0, 1.0, 2.0], n),
        "age": rng.normal(60, 12, n).round(),
        "sex": rng.choice(["female", "male"], n),
        "smoker": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
    }
)
relief = 0.7 * patients["dose"] - 0.02 * (patients["age"] - 60)
relief += -0.8 * (patients["smoker"] == "yes") + rng.logistic(size=n)
words = ["none", "some", "good", "full"]
answer = np.array(words)[np.digitize(relief, [-0.8, 0.6, 1.9])]

model = ordinal.fit_pom(patients, answer, classes=words)
print(model.summary())

# %%
# With an odds ratio of 2, one more unit of the feature doubles the odds of a better
# answer. Confidence intervals that do not contain 1 are blue.

ax = ordinal.plot.coefficients(model, odds_ratios=True, method="profile")
title = ax.figure.suptitle("Odds ratios with their 95 % intervals")

# %%
# Partial dependence on the scale of probabilities, with 90 % confidence intervals of
# the boundaries.

ax = ordinal.plot.partial_dependence(model, patients, "dose")
title = ax.figure.suptitle("Answers by dose")

# %%
# Is the effect of the dose significant? A likelihood ratio test against the model
# without it:

without = ordinal.fit_pom(patients.drop(columns="dose"), answer, classes=words)
print(ordinal.inference.lr_test(without, model))
