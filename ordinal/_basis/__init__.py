"""Models on a basis of m rows, for very many rows.

choice      basis rows, how many are enough, and samples of the rows to begin with
features    vectors z(x) whose inner products are kernel values
losses      piecewise linear losses of the problem, and best thresholds for given scores
sums        everything that the solver asks of the rows
proximal    the solver: proximal points with semismooth Newton steps
precise     the end of a fit in double precision
fitting     features and solutions of all points of a path
rows        rows and their features, in this process or at workers

Imports `_model` and what stands below. Methods import it.
"""
