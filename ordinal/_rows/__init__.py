"""Rows that are processed in chunks, wherever they are.

Rows are held in memory, read again from a source at every pass, or held by the workers
of a dask cluster. A method writes functions of one chunk; what they return is summed in
a tree that depends on the number of chunks alone, so that a fit has the same bytes
wherever its rows are.

rows        passes over chunks; protocols of chunked rows and of the state of a fit
            beside them, with their back end for sources and files
reading     reading of training rows, whole or in chunks, here or by dask
first_pass  validation of all rows in one pass over a source
source      sources of blocks, their validation, and checksums of later passes
sums        sums over chunks in a fixed tree; mean, variance and range of columns
columns     operations on rows wherever these are: products, blocks, sums, state;
            centres, spreads and units of columns

Imports `_numerics` and what stands below.
"""
