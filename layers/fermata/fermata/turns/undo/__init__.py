"""Undo the edits of a turn, in a turn of its own that asks no model (decision 0117)."""
