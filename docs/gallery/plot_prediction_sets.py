"""
Prediction sets with a guaranteed coverage
==========================================

A prediction set is a range of neighbouring ranks that contains the true one with a
given probability. It is calibrated on rows that the model was not fitted to, and
assumes only that these rows and new rows come from the same distribution.
"""

import numpy as np

import ordinal

rng = np.random.default_rng(0)
X = rng.normal(size=(900, 3))
spread = 0.2 + 0.8 * (X[:, 1] > 0)  # half of the rows are much harder than the others
y = np.digitize(1.5 * X[:, 0] + spread * rng.normal(size=900), [-1.5, -0.5, 0.5, 1.5])

model = ordinal.fit_svorim(X[:300], y[:300], C=1.0, probability=True)
sets = ordinal.conformal(model, X[300:600], y[300:600], coverage=0.9)

# %%
# Blocks are sets and dots are true ranks. Dots outside their set are red.

ax = ordinal.plot.prediction_sets(sets, X[600:], y[600:])
title = ax.figure.suptitle("Sets of 300 new rows")

# %%
# The coverage can be changed afterwards. A higher coverage gives larger sets.

for coverage in (0.5, 0.8, 0.9, 0.99):
    member = sets.predict_set(X[600:], coverage=coverage)
    held = member[np.arange(300), y[600:]].mean()
    size = member.sum(axis=1).mean()
    print(f"asked {coverage:.2f}: {held:.3f} held, {size:.2f} ranks in the mean")
