"""Matrices of kernel values: which kernel is meant, its values in tiles, its slopes.

Imports `kernels` and what stands below. Everyone above may import it.
"""
