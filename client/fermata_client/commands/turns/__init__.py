"""Commands that run a turn, and what they share."""
