"""What `infer` returns: `draws` by variable and their `summary`, with `diagnostics` of how far to trust them and what
the kernels did; `files`, `datatree`, `pictures`, `plots` and `markup` are draws for others, `presentation` values for a
person.
"""
