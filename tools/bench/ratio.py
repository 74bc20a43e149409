"""CPU seconds of stopping ratio and adjacent categories fits to 100 000 x 10.

python tools/bench/ratio.py; with --csv FILE the rows are written for vglm of R.
"""

import sys
import time

import numpy as np

from ordinal.linear import fit_ratio

rng = np.random.default_rng(0)
X = rng.standard_normal((100_000, 10))
y = np.digitize(X[:, :4].sum(axis=1) + rng.logistic(size=100_000), [-2, -0.5, 0.5, 2])
if "--csv" in sys.argv:
    np.savetxt(sys.argv[-1], np.column_stack([y, X]), delimiter=",")
for family in ("stopping", "backward", "adjacent"):
    for nominal in ([], list(range(10))):
        start = time.process_time()
        model = fit_ratio(X, y, family=family, nominal=nominal, n_threads=1)
        seconds = time.process_time() - start
        kind = "nominal" if nominal else "parallel"
        print(
            f"{family:9s} {kind:9s} {seconds:.2f} s, {model.convergence.n_iter} steps"
        )
