"""The local cloud: the real template, handlers and state machine on one machine, without Docker or an account."""
