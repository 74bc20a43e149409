"""Sources of blocks that tests read."""


class Cut:
    """Arrays in blocks; counts the passes, and those that have not ended."""

    def __init__(self, ends, *arrays, fail=None):
        self.ends, self.arrays, self.passes, self.open = ends, arrays, 0, 0
        self.fail = fail

    def blocks(self):
        self.passes += 1
        self.open += 1
        try:
            start = 0
            for end in [*self.ends, self.arrays[0].shape[0]]:
                if self.fail is not None and self.passes > self.fail:
                    raise OSError("the disk is gone")
                yield tuple(a[start:end] for a in self.arrays)
                start = end
        finally:
            self.open -= 1
