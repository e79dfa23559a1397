"""The engines, one a file or a folder. An engine sees scaffolds, weights and blocks; `proposal` is
Metropolis-Hastings by a procedure of the user's, `adaptation` what kernels learn while they run.
"""
