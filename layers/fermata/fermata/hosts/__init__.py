"""The tenant's own content system: where it is, how it is asked, and what its silence means."""
