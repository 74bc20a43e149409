"""
Thresholds and margins of SVORIM
================================

hello
"""

import ordinal

X, y = ordinal.datasets.make_gaussians(rng=0)
