"""The definition of what a transition is: `machine` and `steps` run Codes, `scaffold` finds what a change touches,
`regenerate` takes it out and makes it anew, `weights` weighs it. `sources` says what a value is computed from,
`ancestry` on which choices it depends, `constants` which families depend on none. `evidence` brings observations down
to the choices that take them, and `model` joins a trace with all of these. `selection` finds a kernel's
blocks, and `schedule` orders the parts of one.
"""
