"""Abilities of the BLAS below numpy, for the tests."""

import numpy as np
import pytest


def _rows_keep_their_bytes() -> bool:
    rng = np.random.default_rng(0)
    A = rng.random((1031, 200), dtype=np.float32)
    B = rng.random((200, 128), dtype=np.float32)
    return bool(((A[:1024] @ B)[7:] == (A[7:] @ B)[:-7]).all())


# Where a row of a product in single precision depends on its place in a tile, as with
# the loops that OpenBLAS has for Haswell: docs/reliability.md, "Determinism"
rows_keep_their_bytes = pytest.mark.skipif(
    not _rows_keep_their_bytes(), reason="a row's product depends on its place"
)
