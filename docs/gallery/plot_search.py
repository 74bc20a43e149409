"""
Tune C and gamma
================

Hyperparameters are chosen by cross-validation. A picture of the scores shows whether
the grid was large enough, and how much the choice matters.
"""

import numpy as np

import ordinal
from ordinal.model_selection import Grid, UniformDesign, select

X, y = ordinal.datasets.make_gaussians(60, rng=0)
grid = Grid(
    C=np.geomspace(0.01, 1000, 6).tolist(), gamma=np.geomspace(0.01, 10, 7).tolist()
)
found = select(ordinal.fit_svorim, X, y, search=grid)
print(found)

# %%
# The best point has a ring. The diamond is the simplest point within one standard
# error, which ``refit="one_se"`` selects.

ax = ordinal.plot.search(found)
title = ax.figure.suptitle("Mean absolute error over a grid")

# %%
# A uniform design needs half as many points: 13 that are spread over the box, then 8 in
# a smaller box around the best.

design = UniformDesign(C=(0.01, 1000.0), gamma=(0.01, 10.0))
spread = select(ordinal.fit_svorim, X, y, search=design)
print(spread)
ax = ordinal.plot.search(spread)
title = ax.figure.suptitle("The same by a uniform design")
