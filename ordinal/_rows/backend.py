"""The back end of rows that a cluster holds, imported when such rows arrive."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def is_remote(X: Any) -> bool:
    """Return whether X is a dask collection, without importing dask."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def backend() -> ModuleType:
    """Import the package that reads dask collections, which nothing else imports."""
    from .. import _dask

    return _dask
