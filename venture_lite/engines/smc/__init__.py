"""Sequential Monte Carlo over whole traces: `smc` is the action, `populations` the weights of its particles."""
