"""Checks of a trace for tests and debugging: all invariants, snapshots to compare, values computed anew."""
