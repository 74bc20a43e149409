"""Networks with one hidden layer: what `networks` fits.

`layers` brings rows into the hidden layer, `losses` judges what comes out of the
network, `training` minimises that from several starts, and `models` holds what was
found.

Imports `_linear` (links and probabilities of cumulative models), `_numerics` and what
stands below. `networks` imports it.
"""
