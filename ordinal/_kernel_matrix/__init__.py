"""Matrices of kernel values: which kernel is meant, its values in tiles, its slopes.

Imports `kernels` and what stands below. The rest of `_model`, `_dual`, the methods and
`model_selection` import it.
"""
