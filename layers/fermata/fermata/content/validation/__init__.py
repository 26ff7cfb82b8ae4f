"""Check values against the fields of their model. Pure functions, used by every surface that writes content."""
