"""What engines ask of a block: its log density and gradient (`density`, `gradients`), its linear predictor (`linear`,
`linear_block`), its mode and scale (`linear_mode`, `mode_search`, `precondition`), its rows (`sections`), its free
`coordinates`, and where it can begin (`moving`).
"""
