"""
Thresholds and margins of SVORIM
================================

SVORIM fits one score and divides it into ranks by thresholds. Every row should have a
margin of 1 on its side of every threshold. The rows that violate or touch a margin are
the support vectors, which are ringed here; the model depends on no others.
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinal

X, y = ordinal.datasets.make_gaussians(60, rng=0)
model = ordinal.fit_svorim(X, y, C=10.0, kernel="rbf", gamma=0.02)
print(f"{len(model.support)} of {len(X)} rows are support vectors")
print(f"thresholds {model.thresholds.round(2)}, gap {model.convergence.gap:.1e}")

# %%
# Solid lines are the thresholds and dashed lines the margins at a distance of 1. They
# are curves in the plane of the features, although there is only one score.

grid_x, grid_y = np.meshgrid(np.linspace(2, 28, 200), np.linspace(0, 23, 200))
score = model.decision_function(np.column_stack([grid_x.ravel(), grid_y.ravel()]))
score = score.reshape(grid_x.shape)

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ends = [score.min() - 1, *model.thresholds, score.max() + 1]
ax.contourf(grid_x, grid_y, score, levels=ends, cmap="viridis", alpha=0.25)
ax.contour(
    grid_x,
    grid_y,
    score,
    levels=model.thresholds,
    colors="black",
    linestyles="solid",  # negative levels are dashed otherwise
)
for side in (-1, 1):
    ax.contour(
        grid_x,
        grid_y,
        score,
        levels=model.thresholds + side,
        colors="black",
        linestyles="dashed",
        linewidths=0.7,
    )
for rank, marker in zip(model.classes, "osD", strict=True):
    ax.scatter(*X[y == rank].T, marker=marker, s=18, label=f"rank {rank}")
ax.scatter(
    *model.support.T,
    s=70,
    facecolor="none",
    edgecolor="black",
    linewidth=0.6,
    label="support vector",
)
ax.set(xlabel="first feature", ylabel="second feature")
ax.set_title("Two thresholds of one score, with their margins")
legend = figure.legend(loc="outside lower center", ncols=4)

# %%
# Histograms of the scores of the same rows. The thresholds divide the scores into the
# predicted ranks.

ax = ordinal.plot.scores(model, X, y)
title = ax.figure.suptitle("Scores of the rows, by their ranks")
