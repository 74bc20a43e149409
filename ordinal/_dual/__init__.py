"""Quadratic programs over one kernel matrix, and their solvers.

program      problem, optimality conditions, and the symbols, feasible starts
driver       `solve`: SMO by blocks, Newton steps, and pivots; paths of programs
newton       Newton steps on the free variables
many_groups  proximal points for problems of very many groups
gram         kernel matrix of the training rows in single precision
admm         alternating direction method of multipliers for NPSVOR, with (K + rho I)^-1

Imports `kernels` and what stands below. `_programs` imports it.
"""
