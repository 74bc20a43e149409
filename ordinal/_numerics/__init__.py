"""Textbook numerics that know no ranks.

Factorisations, L-BFGS, tails of distributions, low-rank imputation, rows of
dense and sparse tables, threads.

Imports `_solvers`, `_input`, and how a fit is watched (`_model.convergence`,
`_model.monitor`). Everyone above may import it.
"""
