"""
Uncertainty of a Gaussian process
=================================

GPOR divides a Gaussian process into ranks by thresholds. Its kernel, noise and
thresholds maximise the evidence, so no cross-validation is needed, and its predictions
of the latent function and of the rank have an uncertainty.
"""

import matplotlib.pyplot as plt
import numpy as np

import ordinal

rng = np.random.default_rng(1)
x = np.sort(np.concatenate([rng.uniform(-4, 0.5, 45), rng.uniform(2.5, 4, 25)]))
latent = 1.3 * np.sin(1.4 * x) + 0.25 * x
y = np.digitize(latent + 0.3 * rng.normal(size=x.size), [-0.8, 0.0, 0.8])
model = ordinal.fit_gpor(x[:, None], y)
print(f"log evidence {model.log_evidence:.1f}, noise {model.noise:.2f}")

# %%
# The band is two posterior standard deviations wide on either side. Where there are no
# rows, it is wide, and the probabilities are spread over the ranks.

at = np.linspace(-5, 5, 300)
mean, variance = model.predict_latent(at[:, None])
deviation = np.sqrt(variance)

figure, (above, below) = plt.subplots(
    2, 1, figsize=(7, 6), sharex=True, layout="constrained"
)
above.fill_between(
    at,
    mean - 2 * deviation,
    mean + 2 * deviation,
    alpha=0.25,
    label="two deviations",
)
above.plot(at, mean, label="posterior mean")
above.legend(loc="center left", bbox_to_anchor=(1, 0.5))
for threshold in model.thresholds:
    above.axhline(threshold, color="black", linewidth=0.7, linestyle="dashed")
above.set_ylabel("latent function")
above.set_title("Thresholds (dashed) cut a function into ranks")

proba = model.predict_proba(at[:, None])
colours = plt.colormaps["viridis"](np.linspace(0.1, 0.9, len(model.classes)))
below.stackplot(at, proba.T, colors=colours, alpha=0.7, labels=model.classes)
below.legend(title="rank", loc="center left", bbox_to_anchor=(1, 0.5))
cumulated = np.cumsum(model.predict_proba(x[:, None]), axis=1)
middle = (
    cumulated[np.arange(x.size), y]
    - 0.5 * model.predict_proba(x[:, None])[np.arange(x.size), y]
)
below.scatter(x, middle, c=colours[y], edgecolor="black", linewidth=0.5, s=25)
below.set(xlabel="x", ylabel="probability", ylim=(0, 1))
title = below.set_title("Probabilities of the ranks, with the rows")

# %%
# With ``kernel="ard"``, every feature has its own length scale. Here the ranks depend
# on the first two of five features, which the fit discovers.

features = rng.normal(size=(100, 5))
rank = np.digitize(features[:, 0] + np.sin(2 * features[:, 1]), [-1, 0, 1])
relevant = ordinal.fit_gpor(features, rank, kernel="ard", inference="laplace")
ax = ordinal.plot.relevance(relevant)
title = ax.figure.suptitle("Relevance of five features, of which two matter")
