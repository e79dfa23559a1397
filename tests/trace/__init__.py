"""The trace: what must always hold of it, and whether the tests would notice if it did not."""
