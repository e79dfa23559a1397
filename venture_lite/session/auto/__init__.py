"""`auto`: composes an inference program for a model, runs it until its draws can be trusted, and says which it was."""
