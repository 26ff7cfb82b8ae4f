"""Adapters between the providers' protocols and the Messages form that rules, scripts and the cache use."""
