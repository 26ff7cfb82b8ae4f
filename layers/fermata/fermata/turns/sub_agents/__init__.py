"""Let a turn ask other agents: each works in a turn of its own, whose end answers the call (decision 0371)."""
