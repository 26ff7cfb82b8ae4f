"""The agent of the content workspace."""
