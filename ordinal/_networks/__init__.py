"""Networks with one hidden layer: what `networks` fits.

`layers` brings rows into the hidden layer, `losses` judges what comes out of the
network, `training` minimises that from several starts, and `models` holds what was
found. `extreme` solves for the outputs alone, above a layer that stays as it was drawn.
`convolution` trains a tower of layers on triplets of rows; `relations` is its model.

Imports `_linear` (links and probabilities of cumulative models), `_numerics` and what
stands below. `networks` imports it.
"""
