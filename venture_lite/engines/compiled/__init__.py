"""Inference compilation: proposals learned from draws of the program."""
