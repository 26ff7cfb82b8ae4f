"""Register webhooks of a tenant, and deliver events to them: signed, retried, each known by its id."""
