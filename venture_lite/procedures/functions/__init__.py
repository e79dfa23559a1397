"""Deterministic procedures, a module for each kind of value."""
