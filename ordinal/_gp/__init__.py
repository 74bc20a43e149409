"""Gaussian processes: covariance, likelihood, Laplace's method, EP, evidence.

Imports `kernels` and what stands below. `gpor` imports it.
"""
