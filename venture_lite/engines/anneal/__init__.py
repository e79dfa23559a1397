"""Subsample annealing: `anneal` is the action, `assignments` what becomes of a datum."""
