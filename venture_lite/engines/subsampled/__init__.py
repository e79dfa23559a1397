"""Subsampled Metropolis-Hastings: `subsampled` is the action, `sequential_test` decides from some of the rows."""
