"""CPU seconds of `step` by AIC over 20 features: python tools/bench/steps.py."""

import time

import numpy as np

import ordinal

rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 20))
y = np.digitize(X[:, :6].sum(axis=1) + rng.logistic(size=2000), [-2, 0, 2])
model = ordinal.fit_pom(X, y)
for direction in ("backward", "both", "forward"):
    start = time.process_time()
    found = model.step(direction=direction)
    seconds = time.process_time() - start
    print(f"{direction:9s} {seconds:.2f} s, {len(found.table['step'])} models")
