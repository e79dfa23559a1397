"""Programs of inference: `actions` finds an action by name, `program` evaluates its form, `combinators` compose
kernels, `selection` finds their blocks; `output` keeps draws, `watch` and `progress` what there is to tell of them, and
`signals` hears what ends them.
"""
