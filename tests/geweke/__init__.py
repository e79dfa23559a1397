"""Joint-distribution tests of the engines (Geweke 2004)."""
