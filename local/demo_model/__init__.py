"""A rule-based stand-in for a model that speaks the protocols of all providers."""
