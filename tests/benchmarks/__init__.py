"""Speed and memory against baselines kept here; `python -m tests.benchmarks` prints the table.

One file is one benchmark: programs as text, a hand-written baseline beside them, and a function `rows`. A time means
little on its own, so each row carries a ratio taken within one run, one thread each, repetitions interleaved.
"""
