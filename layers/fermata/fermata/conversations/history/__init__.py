"""Compile the history of a conversation that one model is sent."""
