"""Start a turn from a prompt, once, on a conversation that no other turn holds."""
