"""Back end of rows that the workers of a dask cluster hold.

`_rows.reading` imports this package when a dask collection arrives; nothing else does.
It implements the protocol `_rows.rows.Rows`, and registers its rows for fits on a
basis.

rows       features of dask collections in blocks, and functions that workers call
reading    training data of dask collections, validated at the workers
transport  requests to workers, and replay for workers that are lost
basis      sums of fits on a basis at workers
"""

from . import basis as basis
