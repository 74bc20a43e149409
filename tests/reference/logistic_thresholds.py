"""Fits of mord's LogisticIT and LogisticAT, as JSON on the standard output:

    pip install mord
    python tests/reference/logistic_thresholds.py > tests/data/mord_reference.json

mord's alpha is the penalty of a sum of losses, `l2` here that of their mean. The
numbers are the coefficients and then the thresholds.
"""

import json
import sys
from pathlib import Path

from mord import LogisticAT, LogisticIT

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from pom_data import SETS

records = []
for name, (X, y, _, weight, _) in SETS.items():
    for method, peer in (("lit", LogisticIT), ("lat", LogisticAT)):
        for l2 in (1e-3, 0.1):
            fit = peer(alpha=weight.sum() * l2, max_iter=100_000)
            fit.fit(X, y, sample_weight=weight)
            numbers = [round(float(v), 7) for v in (*fit.coef_, *fit.theta_)]
            records.append({"set": name, "method": method, "l2": l2, "found": numbers})
print("[\n" + ",\n".join(map(json.dumps, records)) + "\n]")
