"""Renderers of a turn's events, one module for each stream format."""
