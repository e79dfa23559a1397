"""Procedures that a user registers from Python."""
