"""Random programs, and what must hold of every one of them."""
