"""Monitoring of a running fit, and the record of its end.

convergence  record of a finished fit, and the warnings
monitor      clock, time limit, callback and cancellation
progress     progress lines of fits and of searches
blas         one thread of numpy's BLAS during a fit

Imports `_input`. Every package above may import it.
"""
