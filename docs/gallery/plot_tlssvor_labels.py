"""
Robustness to wrong labels
==========================

A row with a wrong rank lies far on the wrong side of its thresholds. The slacks of
SVORIM grow with that distance. TLS-SVOR truncates squared slacks at ``u``, so such a
row has no more influence than one at ``u``.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import ordinal
from ordinal.metrics import mae

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(700, 2))
y = np.digitize(X[:, 0] + 0.8 * X[:, 1] ** 2, [-0.4, 0.0, 0.4, 0.8])
train, test = slice(200), slice(200, None)

# %%
# Some training labels are replaced by the farthest rank. Errors are measured on a test
# set with correct labels.

shares = [0.0, 0.05, 0.1, 0.15, 0.2]
fits = {
    "SVORIM": lambda X, y: ordinal.fit_svorim(X, y, C=10.0, gamma=1.0),
    "squared, not cut (u = inf)": lambda X, y: ordinal.fit_tlssvor(
        X, y, C=10.0, gamma=1.0, u=math.inf, basis=60
    ),
    "TLS-SVOR (u = 1.5)": lambda X, y: ordinal.fit_tlssvor(
        X, y, C=10.0, gamma=1.0, u=1.5, basis=60
    ),
}
errors = {name: [] for name in fits}
for share in shares:
    given = y[train].copy()
    wrong = rng.random(given.size) < share
    given[wrong] = np.where(given[wrong] > 1, 0, 4)
    for name, fit in fits.items():
        model = fit(X[train], given)
        errors[name].append(mae(y[test], model.predict(X[test])))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), marker in zip(errors.items(), "osD", strict=True):
    ax.plot([100 * share for share in shares], values, marker=marker, label=name)
ax.set(xlabel="wrong labels among the training rows, %", ylabel="mean absolute error")
ax.set_title("Errors on rows with true labels")
legend = ax.legend()
