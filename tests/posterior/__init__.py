"""Programs whose posterior is known exactly, under every engine that applies."""
