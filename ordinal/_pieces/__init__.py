"""Scores in pieces, as the factorization model has them: layout, objective, solvers.

Imports `_numerics` and what stands below. `xofm` imports it.
"""
