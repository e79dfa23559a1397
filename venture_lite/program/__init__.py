"""From syntax to Codes: `code` has what the analysis makes of one body of text, `lift` takes an expression's data out
of it, `compiler` keeps a model's names and turns expressions into slots, with `forms` for the special ones;
`parameters` and `supplied` say what braces stand for, and `label_uses` what a program does with labels of tables.
"""
