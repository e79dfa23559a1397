"""The data of a trace: `table` holds every value, `journal` the inverse of every change, `bags`, `keys`, `users` and
`scopes` what is found in O(1); `trace` keeps them in step. `bindings` knows the rows that names stand
for, `runtime` the values that are procedures.
"""
