"""One driver for the methods that solve quadratic programs over the training rows.

A method is a small frozen value, a `Family`: it states its programs, their losses by
rank, and its model. Everything else is the same for SVOR, NPSVOR, the SVMs and OPBE.

family      statement of a method, and the options of a fit that all of them share
fit         arguments, solutions by the whole kernel matrix or a basis, calibration
"""
