"""Remembers what was said, and heals what was cut off."""
