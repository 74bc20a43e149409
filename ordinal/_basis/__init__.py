"""Models on a basis of m rows, for very many rows.

choice      basis rows, and how many are enough
features    vectors z(x) whose inner products are kernel values
losses      piecewise linear losses of the problem
sums        everything that the solver asks of the rows
proximal    the solver: proximal points with semismooth Newton steps
thresholds  best thresholds for given scores
precise     the end of a fit in double precision
sampling    samples of the rows to begin with
fitting     features and solutions of all points of a path
rows        rows and their features, in this process or at workers
remote      sums at the workers of a cluster

Imports `_model` and what stands below. Methods import it.
"""
