"""Textbook numerics that know no ranks: factorisations, quasi-Newton, tails, threads.

Imports `_solvers`, `_input`, and how a fit is watched (`_model.convergence`,
`_model.monitor`). Everyone above may import it.
"""
