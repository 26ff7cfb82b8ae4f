"""A stand-in for a model: speaks the protocols of all providers, answers by rules, and says so."""
