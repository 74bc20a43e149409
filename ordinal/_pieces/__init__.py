"""Scores in pieces, as the factorization model has them.

`layout` says where a value lies among the pieces, `objective` is what a fit minimises,
`solvers` do so in two ways, `held_out` stops either one early, `training_scores` is
what predictions are read from, and `explanations` reads curves and interactions from
the pieces.

Imports `_numerics` and what stands below. `xofm` imports it.
"""
