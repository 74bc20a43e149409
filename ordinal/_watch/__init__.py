"""Monitoring of a running fit, and the record of its end.

convergence   record of a finished fit, and warnings that fits and models share
monitor       whether a fit goes on: callback, clock and time limit
forecast      forecast of the duration of a fit
cancellation  end of the computations of a thread
progress      progress lines of fits and of searches
blas          one thread of numpy's BLAS during a fit

Imports `_input`. Every package above may import it.
"""
