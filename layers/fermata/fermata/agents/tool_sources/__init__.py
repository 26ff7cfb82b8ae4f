"""Make the tools of a configured agent from where they come from, one module a source."""
