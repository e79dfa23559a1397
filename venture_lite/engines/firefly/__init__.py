"""Firefly Monte Carlo: `flymc` is the action, `firefly` a block's state, `firefly_bounds` its bounds from below."""
