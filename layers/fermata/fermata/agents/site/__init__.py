"""The agent of the site editor."""
