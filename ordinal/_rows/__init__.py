"""Rows that are processed in chunks, wherever they are.

Rows are held in memory, read again from a source at every pass, or held by the workers
of a dask cluster. A method writes functions of one chunk; what they return is summed in
a tree that depends on the number of chunks alone, so that a fit has the same bytes
wherever its rows are.

rows        protocol of chunked rows, and its back end for sources and files
remote      back end for dask collections
first_pass  validation of all rows in one pass over a source
source      sources of blocks, their validation, and checksums of later passes
chunks      training data in memory or in chunks, passes, and state beside the rows
sums        sums over chunks in a fixed tree; mean, variance and range of columns
columns     columns of rows wherever these are: products, centres and spreads
transport   requests to workers, and replay for workers that are lost

Imports `_numerics` and what stands below.
"""
