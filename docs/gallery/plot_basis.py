"""
Large data: fit on a basis
==========================

The time of an exact kernel fit grows almost with the square of the number of rows. With
``basis``, the score is a sum over a few basis rows, and the time grows linearly.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import ordinal
from ordinal.metrics import mae

rng = np.random.default_rng(0)
X = rng.normal(size=(5_000, 4))
latent = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
y = np.digitize(latent, [-1.0, 0.0, 1.0])
train, test = slice(4_000), slice(4_000, None)

# %%
# Basis rows are drawn from the training rows. With more of them, the model approaches
# that of the full kernel. A duality gap certifies that each is optimal on its basis.

sizes = [10, 30, 100, 200]
errors, seconds = [], []
for size in sizes:
    start = perf_counter()
    model = ordinal.fit_svorim(X[train], y[train], basis=size, gamma=0.25, C=1.0)
    seconds.append(perf_counter() - start)
    errors.append(mae(y[test], model.predict(X[test])))
    print(f"{size:4} basis rows: relative gap {model.convergence.rel_gap:.1e}")

# %%
# For comparison, the exact fit of a quarter of the rows:

start = perf_counter()
exact = ordinal.fit_svorim(X[:1000], y[:1000], gamma=0.25, C=1.0)
exact_seconds = perf_counter() - start
exact_error = mae(y[test], exact.predict(X[test]))

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
left.semilogx(sizes, errors, marker="o", label="4000 rows on a basis")
left.axhline(exact_error, color="C1", linestyle="dashed", label="1000 rows, exact")
left.set(xlabel="basis rows", ylabel="mean absolute error", title="Error on new rows")
left.legend()
right.loglog(sizes, seconds, marker="o", label="4000 rows on a basis")
right.axhline(exact_seconds, color="C1", linestyle="dashed", label="1000 rows, exact")
right.legend()
text = right.set(xlabel="basis rows", ylabel="seconds", title="Time of the fit")
