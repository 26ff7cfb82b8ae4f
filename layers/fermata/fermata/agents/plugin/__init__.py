"""The agent of the plugin editor."""
