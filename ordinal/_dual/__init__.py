"""Quadratic programs over one kernel matrix, and the solvers that end them.

`program` states the problem, its optimality and the symbols of this folder. `driver`
has `solve`: SMO by blocks, `newton` steps and the pivots of an active set (`pivoting`),
judged by the kernel itself. `admm` is the other solver, with the `factors` that it
multiplies by. `gram` holds the kernel matrix, `feasible` makes starting points.

Imports `kernels`, `_kernel_matrix` and what stands below them. The methods with
hyperplanes, NPSVOR and the SVOR family, import it.
"""
