"""The data of a trace: `table` holds every value, `journal` the inverse of every change, `bags`, `keys`, `users` and
`scopes` what is found in O(1); `trace` keeps them in step. `emit` reads a slot's arguments out of the tables, `explain`
finds the call that fails in them.
"""
