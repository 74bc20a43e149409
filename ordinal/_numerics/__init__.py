"""Numerical algorithms that do not depend on ordinal regression.

cholesky                    factorisations that can be interrupted
descent                     Armijo's rule, factors of a matrix that is made positive
lbfgs                       smooth minimisation, and line searches
tails                       tail probabilities of distributions
rows                        rows of dense and sparse matrices
threads                     pools of threads, their number, helpers of kernels
memory                      available memory

Imports `_watch` and what stands below. Every package above may import it.
"""
