"""From text to syntax, in processing order: `syntax` has the records, `parse` alone knows the parser generator,
`nesting` puts directives inside loops, `directives` knows their keywords. `refusals` says why a text is refused,
`recovery` reads on after an error, `suggestions` what was meant; `source_files` reads files, and `collector` lets
Python's garbage rest.
"""
