"""The engines, one a file or a folder. An engine sees scaffolds, weights and blocks; `transitions` is the step of
Metropolis-Hastings that several of them share.
"""
