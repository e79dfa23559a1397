"""The procedures of the language, in processing order: `record` says what is known of one, `domains` and `checks` which
arguments it takes, `numeric` and `density` how a density written once is bound to numbers and to columns,
`straight_line` and `derivatives` how it is differentiated, `pullbacks` how a derivative passes through a deterministic
procedure, `predictor` and `likelihoods` what a likelihood is in its linear predictor, `transforms` how a continuous
value is moved. One module for each family holds its records; `registry` joins them.
"""
