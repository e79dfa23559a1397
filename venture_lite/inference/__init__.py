"""Programs of inference: `actions` finds an action by name, `program` evaluates its form, `combinators` compose
kernels; `output` keeps draws, `watch` and `progress` what there is to tell of them, and
`signals` hears what ends them.
"""
