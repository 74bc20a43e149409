"""Quadratic programs over the training rows, and their solvers.

A method is a small frozen value, a `QuadraticFamily`: it states its programs, their
losses by rank, and its model. Everything else is the same for SVOR, NPSVOR, the SVMs
and OPBE.

family       statement of a method; its solvers with the whole kernel matrix, on a basis

Programs over one kernel matrix:

program      problem, kernel matrix, optimality conditions, symbols, feasible starts
driver       `solve`: SMO by blocks, Newton steps, and pivots; paths of programs
newton       Newton steps on the free variables
many_groups  proximal points for problems of very many groups

Programs over the features of a basis, for very many rows:

on_basis     rows and their features, here or at workers; solutions of all points
losses       piecewise linear losses, and best thresholds for given scores
sums         everything that the solver asks of the rows
proximal     the solver: proximal points with semismooth Newton steps; its end in double
"""
