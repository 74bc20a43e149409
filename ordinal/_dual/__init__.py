"""Quadratic programs over one kernel matrix, and their solvers.

program      problem, optimality conditions, and the symbols of this package
driver       `solve`: SMO by blocks, Newton steps and pivots in turn
newton       Newton steps on the free variables
pivoting     pivots of an active set that end a fit
many_groups  proximal points for problems of very many groups
path         programs that are solved one after the other
feasible     feasible starting points
gram         kernel matrix of the training rows in single precision
admm         alternating direction method of multipliers for NPSVOR
factors      multiplication by (K + rho I)^-1 for ADMM

Imports `kernels`, `kernels` and what stands below. `_programs` imports it.
"""
