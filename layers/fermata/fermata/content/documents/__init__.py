"""Stores documents: their versions, their current states, their slugs and other unique values."""
