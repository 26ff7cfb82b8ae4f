"""Output on a terminal: a running turn, diffs and tables."""
