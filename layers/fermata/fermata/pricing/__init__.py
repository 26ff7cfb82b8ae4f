"""Price provider requests, and know the context windows of models."""
