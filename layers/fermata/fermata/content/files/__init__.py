"""Reads and writes a space as files in the `.contentrain/` layout, the same bytes for the same content."""
