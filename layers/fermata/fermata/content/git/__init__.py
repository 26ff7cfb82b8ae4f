"""Moves a space to a Git repository and back, also with somebody else committing meanwhile."""
