"""Particle Gibbs: `pgibbs` is the action, particles move side by side in columns or one by one on the trace."""
