"""
Three ways to handle missing values
===================================

XOFM accepts missing values directly: every curve has a piece of its own for them. For
other methods, a ``TablePreprocessor`` imputes them, or incomplete rows are dropped. The
missing values in this example are informative: low scores are more often missing.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ordinal
from ordinal.metrics import mae
from ordinal.preprocessing import TablePreprocessor

rng = np.random.default_rng(0)


def draw(n, missing):
    """Return two numeric columns and a categorical one, and their ranks."""
    X = pd.DataFrame(
        {
            "score": rng.normal(size=n),
            "hours": rng.gamma(3, 2, n),
            "school": rng.choice(["north", "south", "west"], n),
        }
    )
    latent = X["score"] + 0.15 * X["hours"] + 0.5 * (X["school"] == "north")
    y = np.digitize(latent + 0.3 * rng.normal(size=n), [0.0, 1.0, 2.0])
    unsaid = 2 * missing * (X["score"] < X["score"].median())
    X.loc[rng.random(n) < unsaid, "score"] = None
    X.loc[rng.random(n) < missing / 2, "school"] = None
    return X, y


# %%
# The same training set, fitted by XOFM directly, by SVORIM after imputation, and by
# SVORIM on the complete rows only. The test set has missing values as well.

shares = [0.0, 0.1, 0.2, 0.3, 0.4]
errors = {
    "XOFM, without imputation": [],
    "SVORIM, imputed": [],
    "SVORIM, complete rows": [],
}
for share in shares:
    X, y = draw(400, share)
    new, truth = draw(1000, share)
    whole = X.notna().all(axis=1).to_numpy()
    options = {"preprocess": TablePreprocessor(), "C": 1.0}
    models = [
        ordinal.fit_xofm(X, y),
        ordinal.fit_svorim(X, y, **options),
        ordinal.fit_svorim(X[whole], y[whole], **options),
    ]
    for values, model in zip(errors.values(), models, strict=True):
        values.append(mae(truth, model.predict(new)))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), marker in zip(errors.items(), "osD", strict=True):
    ax.plot([100 * share for share in shares], values, marker=marker, label=name)
ax.set(xlabel="rows without a score, %", ylabel="mean absolute error on new rows")
ax.set_title("The more is missing, the more its handling matters")
legend = ax.legend()
