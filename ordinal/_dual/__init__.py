"""Quadratic programs over one kernel matrix, and the solvers that end them.

Imports `kernels` and what stands below. The methods with hyperplanes import it.
"""
