"""Random procedures, a module for each kind of value that they draw."""
