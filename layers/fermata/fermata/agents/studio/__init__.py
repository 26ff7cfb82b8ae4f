"""Define the agent of the governed studio."""
