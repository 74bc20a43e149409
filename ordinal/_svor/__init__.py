"""The SVOR family: its model, its programs, and the fits on the whole kernel matrix.

`model` is what every fit returns, `losses` states what tells the methods apart, `job`
fits a problem by the quadratic program of `_dual`, and `start` begins it at another
model. `ordinal/svor.py` states the problems and has the functions that users call.
"""
