"""Read the files in which a workspace defines its agents, and check them without a service."""
