"""What callers hand over becomes arrays: every "X must be ..." is raised here.

Imports nothing of this package but `_solvers`. Anyone may import it.
"""
