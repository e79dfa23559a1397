"""Engines, one a file, and the program that composes them. An engine sees scaffolds and weights, never columns."""
