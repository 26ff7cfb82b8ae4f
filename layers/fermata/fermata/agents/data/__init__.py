"""The agent of the data area."""
